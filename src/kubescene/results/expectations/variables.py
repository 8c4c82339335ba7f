"""What an expression may speak of: the tables and measures of a run, by the names of their columns.

Types come from the rows, so a misspelled column is found before anything is played. Counts of facts
are left out: that an expectation was looked at is a fact, too.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.inspect import (
    BoolType,
    DictType,
    Field,
    FloatType,
    IntType,
    NoneType,
    StrType,
    StructType,
    UnionType,
    type_info,
)

from kubescene.cel import BOOL, DOUBLE, DYN, INT, STRING, Type, list_of, map_of, object_of
from kubescene.results import measures, rows
from kubescene.results.cost.bill import Bill
from kubescene.results.cost.rows import (
    CostRow,
    CostSeriesRow,
    InstanceRow,
    cost_rows,
    cost_series_rows,
    instance_rows,
)
from kubescene.results.ledger_entries import DELETED, PENDING
from kubescene.results.measures.cost import CostMeasure
from kubescene.results.measures.measure import RESOURCE, Measure, ResourceMeasure
from kubescene.results.measures.own import OwnFunction, own_measures
from kubescene.results.over_time.requests import (
    TrafficRow,
    WindowRow,
    traffic_rows,
    window_rows,
)
from kubescene.results.over_time.scaling import ScalingRow, scaling_rows
from kubescene.results.over_time.series import (
    CHANGE_OR_STEP,
    SeriesRow,
    WorkloadSeriesRow,
    series_of,
    series_rows,
)
from kubescene.results.over_time.workloads import (
    BudgetRow,
    RolloutRow,
    WorkloadRow,
    Workloads,
    budget_rows,
    rollout_rows,
    workload_row,
)
from kubescene.results.sources import RunSource

LEFT_OUT: Mapping[type[msgspec.Struct], tuple[str, ...]] = {rows.StepRow: ("facts",)}
EVERYWHERE = ("cpu", "memory", "pods")
"""Resources of which every run has measures."""
MEASURES = "measures"

Make = Callable[[RunSource], Any]


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that expressions may use, and how its value is made of a run."""

    name: str
    about: str
    type: Type
    make: Make


# -- types ---------------------------------------------------------------------------------------


def row_type(name: str, row: type[msgspec.Struct], **more: Type) -> Type:
    """The type of a table's rows; ``more`` is what expressions have beside its columns."""
    own = {each.encode_name: cel_type(each.type) for each in columns(row)}
    return object_of(name, {**own, **more})


def columns(row: type[msgspec.Struct]) -> list[Field]:
    """The columns of a row that expressions may use."""
    found = type_info(row)
    assert isinstance(found, StructType)
    return [each for each in found.fields if each.encode_name not in LEFT_OUT.get(row, ())]


def cel_type(told: msgspec.inspect.Type) -> Type:
    """The type of a column; a value that may be absent is null, which fits every type."""
    if isinstance(told, UnionType):
        present = [each for each in told.types if not isinstance(each, NoneType)]
        return cel_type(present[0]) if len(present) == 1 else DYN
    if isinstance(told, DictType):
        return map_of(cel_type(told.key_type), cel_type(told.value_type))
    return PLAIN[type(told)]


PLAIN: Mapping[type, Type] = {BoolType: BOOL, FloatType: DOUBLE, IntType: INT, StrType: STRING}


def measures_type(names: Iterable[str]) -> Type:
    """By name, so that a misspelled one is found; also by key, for resources of the run's own."""
    return Type("map", (STRING, DYN), tuple((name, DYN) for name in names))


def measures_everywhere() -> Iterator[str]:
    """The names of measures that every run has."""
    for measure in measures.ALL:
        if isinstance(measure, Measure) or (
            isinstance(measure, CostMeasure) and measure.of_group is None
        ):
            yield measure.name
        elif isinstance(measure, ResourceMeasure):
            yield from (measure.name.replace(RESOURCE, each) for each in EVERYWHERE)


POD = row_type("pod", rows.PodRow)
NODE = row_type("node", rows.NodeRow)
STEP = row_type("step", rows.StepRow)
ATTEMPT = row_type("attempt", rows.AttemptRow)
PREEMPTION = row_type("preemption", rows.PreemptionRow)
OUTCOME = row_type("outcome", rows.OutcomeRow)
USE = row_type("use", rows.UtilizationRow)
POINT = row_type("point", SeriesRow)
WORKLOAD_POINT = row_type("workloadPoint", WorkloadSeriesRow)
WORKLOAD = row_type("workload", WorkloadRow, series=list_of(WORKLOAD_POINT))
ROLLOUT = row_type("rollout", RolloutRow)
BUDGET = row_type("budget", BudgetRow)
SCALING = row_type("scaling", ScalingRow)
TRAFFIC = row_type("traffic", TrafficRow)
WINDOW = row_type("window", WindowRow)
INSTANCE = row_type("instance", InstanceRow)
COST = row_type("cost", CostRow)
COST_POINT = row_type("costPoint", CostSeriesRow)
ROW_TYPES: Mapping[Type, type[msgspec.Struct]] = {
    POD: rows.PodRow,
    NODE: rows.NodeRow,
    STEP: rows.StepRow,
    ATTEMPT: rows.AttemptRow,
    PREEMPTION: rows.PreemptionRow,
    OUTCOME: rows.OutcomeRow,
    USE: rows.UtilizationRow,
    WORKLOAD: WorkloadRow,
    WORKLOAD_POINT: WorkloadSeriesRow,
    ROLLOUT: RolloutRow,
    BUDGET: BudgetRow,
    SCALING: ScalingRow,
    TRAFFIC: TrafficRow,
    WINDOW: WindowRow,
    POINT: SeriesRow,
    INSTANCE: InstanceRow,
    COST: CostRow,
    COST_POINT: CostSeriesRow,
}


# -- values --------------------------------------------------------------------------------------


def plain(table: Iterable[msgspec.Struct]) -> list[Any]:
    """Rows as the expression language knows them.

    One by one: in one go nobody else could do anything meanwhile.
    """
    return [msgspec.to_builtins(row) for row in table]


def pods(run: RunSource) -> list[Any]:
    return plain(row for row in rows.pod_rows(run.ledger) if row.state != DELETED)


def pods_by_name(run: RunSource) -> dict[str, Any]:
    return {f"{each['namespace']}/{each['name']}": each for each in pods(run)}


def pending(run: RunSource) -> list[Any]:
    return plain(row for row in rows.pod_rows(run.ledger) if row.state == PENDING)


def deleted_pods(run: RunSource) -> list[Any]:
    return plain(row for row in rows.pod_rows(run.ledger) if row.state == DELETED)


def nodes(run: RunSource) -> list[Any]:
    return plain(row for row in rows.node_rows(run.ledger) if row.present)


def nodes_by_name(run: RunSource) -> dict[str, Any]:
    return {each["name"]: each for each in nodes(run)}


def removed_nodes(run: RunSource) -> list[Any]:
    return plain(row for row in rows.node_rows(run.ledger) if not row.present)


def steps(run: RunSource) -> list[Any]:
    return plain(rows.step_rows(run.ledger))


def steps_by_number(run: RunSource) -> dict[int, Any]:
    return {each["step"]: each for each in steps(run)}


def attempts(run: RunSource) -> list[Any]:
    return plain(rows.attempt_rows(run))


def preemptions(run: RunSource) -> list[Any]:
    return plain(rows.preemption_rows(run.ledger))


def outcomes(run: RunSource) -> list[Any]:
    return plain(rows.outcome_rows(run.ledger))


def utilization(run: RunSource) -> list[Any]:
    return plain(rows.utilization_rows(run.ledger))


def workloads(run: RunSource) -> dict[str, Any]:
    """Those that exist by ``NAMESPACE/NAME``; where several kinds share that, ``.../KIND/NAME``."""
    known = Workloads(run.ledger)
    groups = [each for each in known.groups if each.entry is None or each.entry.end_time is None]
    often = Counter((each.namespace, each.name) for each in groups)
    found = {}
    for each in groups:
        kind = f"{each.kind}/" if often[each.namespace, each.name] > 1 else ""
        series = series_of(each, run.ledger, known.clock, CHANGE_OR_STEP)
        row = msgspec.to_builtins(workload_row(each, known)) | {"series": plain(series)}
        found[f"{each.namespace}/{kind}{each.name}"] = row
    return found


def rollouts(run: RunSource) -> list[Any]:
    return plain(rollout_rows(run.ledger))


def budgets(run: RunSource) -> list[Any]:
    return plain(budget_rows(run.ledger))


def scaling(run: RunSource) -> list[Any]:
    return plain(scaling_rows(run))


def traffic_by_name(run: RunSource) -> dict[str, Any]:
    return {row.traffic: msgspec.to_builtins(row) for row in traffic_rows(run)}


def windows(run: RunSource) -> list[Any]:
    return plain(window_rows(run))


def series(run: RunSource) -> list[Any]:
    return plain(series_rows(run.ledger, CHANGE_OR_STEP))


def instances(run: RunSource) -> list[Any]:
    return plain(instance_rows(Bill(run.ledger)))


def costs_by_group(run: RunSource) -> dict[str, Any]:
    return {row.group: msgspec.to_builtins(row) for row in cost_rows(Bill(run.ledger))}


def cost_series(run: RunSource) -> list[Any]:
    return plain(cost_series_rows(Bill(run.ledger), CHANGE_OR_STEP))


def phase(run: RunSource) -> str:
    return run.phase


ALL = (
    Variable("pods", "The pods that exist.", list_of(POD), pods),
    Variable(
        "pod",
        'The same by `NAMESPACE/NAME`: `pod["default/web-1"]`.',
        map_of(STRING, POD),
        pods_by_name,
    ),
    Variable("pending", "The pods that have no node.", list_of(POD), pending),
    Variable("deleted_pods", "The pods that are gone.", list_of(POD), deleted_pods),
    Variable("nodes", "The nodes that exist.", list_of(NODE), nodes),
    Variable("node", 'The same by name: `node["node-1"]`.', map_of(STRING, NODE), nodes_by_name),
    Variable("removed_nodes", "The nodes that are gone.", list_of(NODE), removed_nodes),
    Variable("steps", "The major steps that were played, in order.", list_of(STEP), steps),
    Variable("step", "The same by number: `step[2]`.", map_of(INT, STEP), steps_by_number),
    Variable("attempts", "Every attempt of a scheduler.", list_of(ATTEMPT), attempts),
    Variable("preemptions", "Pods that had to leave for others.", list_of(PREEMPTION), preemptions),
    Variable(
        "outcomes",
        "What came of operations that take time, or did less than they seem to say: "
        '`outcomes.all(o, o.state != "Refused")`.',
        list_of(OUTCOME),
        outcomes,
    ),
    Variable(
        "workloads",
        "The workloads that exist, by `NAMESPACE/NAME` (where several kinds share that, by "
        "`NAMESPACE/KIND/NAME`): "
        '`workloads["default/web"].ready == 3`. Each has a `series`, from its creation on.',
        map_of(STRING, WORKLOAD),
        workloads,
    ),
    Variable("rollouts", "Every roll-out of a workload.", list_of(ROLLOUT), rollouts),
    Variable("budgets", "The PodDisruptionBudgets that ever were.", list_of(BUDGET), budgets),
    Variable("scaling", "Every change of a scale by an autoscaler.", list_of(SCALING), scaling),
    Variable(
        "traffic",
        'What became of all requests of a Traffic, by `NAMESPACE/NAME`: `traffic["default/web"]'
        ".p99_ms < 300.0`, where those that failed took their time-out.",
        map_of(STRING, TRAFFIC),
        traffic_by_name,
    ),
    Variable(
        "windows",
        "The same for every window of 15 seconds: "
        "`windows.all(w, w.time_s < 600.0 || w.p99_ms < 300.0)`.",
        list_of(WINDOW),
        windows,
    ),
    Variable(
        "series",
        "The cluster [over virtual time](#over-virtual-time), from each change and each step on.",
        list_of(POINT),
        series,
    ),
    Variable(
        "instances",
        "The machines of node groups, from their order to the end of their bill: "
        '`instances.all(i, i.state != "Failed")`.',
        list_of(INSTANCE),
        instances,
    ),
    Variable(
        "costs",
        'What each node group has cost, and what for: `costs["std"].cost < 1.5`. Prices are those '
        "that groups say themselves.",
        map_of(STRING, COST),
        costs_by_group,
    ),
    Variable(
        "cost_series",
        "Money over virtual time, by group, all together as `*`: "
        '`cost_series.all(c, c.group != "*" || c.per_hour < 4.0)`.',
        list_of(COST_POINT),
        cost_series,
    ),
    Variable("utilization", "Every node at the end of every step.", list_of(USE), utilization),
    Variable(
        MEASURES,
        "Numbers that a run comes down to ([all of them](measures.md)): `measures.pods_pending`. "
        "One that has no value, such as a share of nothing, is no key. Those of other resources "
        "than cpu, memory and pods, and of single workloads: "
        '`measures["allocation_example_com_gpu"]`, `measures["least_available_default_web"]`.',
        measures_type(measures_everywhere()),
        measures.measures,
    ),
    Variable("phase", "`Succeeded`, or `Paused` if there was no done operation.", STRING, phase),
)
VARIABLES: Mapping[str, Variable] = {each.name: each for each in ALL}
TYPES: Mapping[str, Type] = {each.name: each.type for each in ALL}


def types_with(own: Sequence[OwnFunction]) -> Mapping[str, Type]:
    """The same where there are measures of somebody's own, too."""
    if not own:
        return TYPES
    known = [*measures_everywhere()]
    return {**TYPES, MEASURES: measures_type([*known, *(m.name for m in own_measures(own, known))])}
