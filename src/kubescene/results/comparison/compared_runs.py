"""Two runs beside each other, and what came of them in numbers: nodes, measures, preemptions.

Each run is read once, into its ledger; explanations are read for those pods alone that were placed
otherwise, and for a bounded number of them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.garbage import uncollected
from kubescene.results.comparison.attribution import Side
from kubescene.results.comparison.histories import RunHistory
from kubescene.results.comparison.inputs import inputs_of
from kubescene.results.comparison.placements import Explainer, Placements
from kubescene.results.comparison.values import (
    ComparedNodeUse,
    ComparedRun,
    Comparison,
    ExpectationComparison,
    MeasureComparison,
    NodeComparison,
    PreemptionDifference,
    WorkloadComparison,
)
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import BOUND, PENDING, PodEntry, PreemptionEntry
from kubescene.results.measures import measure_rows
from kubescene.results.opening import open_run
from kubescene.results.output import TIMELINE_FILE
from kubescene.results.over_time.workloads import WorkloadRow, workload_rows
from kubescene.results.sources import RunSource
from kubescene.timeline import Outcome

LOOKED_AT = 200
"""So many pods are asked about: each costs a look into the explanations of both runs."""
TEMPLATE_HASH = "pod-template-hash"


def compare(
    a: object,
    b: object,
    *,
    names: tuple[str, str] = ("", ""),
    looked_at: int = LOOKED_AT,
    explainers: Mapping[Side, Explainer] | None = None,
) -> Comparison:
    """Compare two runs: directories, `Run` objects, or whatever else `open_run` takes.

    ``names`` are what the runs are called. ``looked_at`` bounds for how many pods it is found out
    who moved them: first those that do not merely follow, the earliest first. ``explainers``
    explain attempts where a run has not kept it, such as one that was played again.
    """
    sources = {Side.A: open_run(a), Side.B: open_run(b)}
    with uncollected():  # much is made, and all of it stays
        return _compare(sources, names, looked_at, explainers or {})


def _compare(
    sources: dict[Side, RunSource],
    titles: tuple[str, str],
    looked_at: int,
    explainers: Mapping[Side, Explainer],
) -> Comparison:
    names = names_in_a(sources[Side.A].ledger, sources[Side.B].ledger)
    histories = {
        Side.A: RunHistory(sources[Side.A].ledger),
        Side.B: RunHistory(sources[Side.B].ledger, names),
    }
    inputs = inputs_of(sources[Side.A], sources[Side.B])
    explain = {side: source.explain for side, source in sources.items()} | {**explainers}
    placements = Placements(explain, histories, inputs)
    placed, divergence = placements.otherwise(looked_at), placements.divergence()
    ledgers = [history.ledger for history in histories.values()]
    nodes, nodes_alike = compared_nodes(*ledgers)
    measures, measures_alike = compared_measures(*sources.values())
    return Comparison(
        a=_compared(sources[Side.A], titles[0]),
        b=_compared(sources[Side.B], titles[1]),
        warnings=(*_warnings(sources), *placements.warnings, *inputs.warnings),
        inputs=inputs.differences,
        inputs_known=not inputs.warnings,
        divergence=divergence,
        placed=placed,
        looked_at=min(looked_at, len(placed)),
        renamed=len(names),
        only_in_a=placements.only_in(Side.A),
        only_in_b=placements.only_in(Side.B),
        waiting=placements.waiting(),
        preemptions=different_preemptions(ledgers[0], ledgers[1], histories[Side.B].known_as()),
        cluster=cluster_use(*ledgers),
        nodes=nodes,
        nodes_alike=nodes_alike,
        workloads=tuple(compared_workloads(*ledgers)),
        measures=measures,
        measures_alike=measures_alike,
        expectations=compared_expectations(*ledgers),
    )


def _compared(source: RunSource, name: str) -> ComparedRun:
    ledger, simulation = source.ledger, (source.spec or {}).get("simulation") or {}
    return ComparedRun(
        name=name or source.place.removesuffix(f"/{TIMELINE_FILE}"),
        scenario=source.scenario,
        seed=source.seed,
        version=source.version,
        phase=source.phase,
        pods=len(ledger.pods),
        bound=ledger.states[BOUND],
        pending=ledger.states[PENDING],
        preemptions=len(ledger.preemptions),
        explain=str(simulation.get("explain") or "Auto"),
    )


def _warnings(sources: dict[Side, RunSource]) -> list[str]:
    found = []
    for side, source in sources.items():
        found += [f"{side}: {warning}" for warning in source.warnings]
        if not source.complete and not source.warnings:
            found.append(
                f"{side}: {source.place} has no end: it was cut short, or goes on. It is read up "
                f"to step {source.ledger.step}; what the other run did later counts as different"
            )
    return found


def names_in_a(a: Ledger, b: Ledger) -> dict[str, str]:
    """For pods of B, by uid, that are called otherwise in A: what they are called there.

    Pods of one namespace and name are the same; where a name was used several times, in the order
    in which they came. Controllers give their pods names out of the seed and a hash of their
    template, so pods that have no namesake are matched by who made them and the order in which
    they came: the third pod of a Deployment is its third pod, whatever it is called.
    """
    alone_in_a, alone_in_b = _by_maker(a, b), _by_maker(b, a)
    return {
        theirs.uid: mine.pod
        for maker, pods in alone_in_b.items()
        for mine, theirs in zip(alone_in_a.get(maker, ()), pods, strict=False)
    }


def _by_maker(ledger: Ledger, other: Ledger) -> dict[tuple[str, str], list[PodEntry]]:
    """The pods of controllers that have no namesake in the other run, in order."""
    found: dict[tuple[str, str], list[PodEntry]] = {}
    for pod in _without_namesake(ledger, other):
        if pod.owner and pod.uid:
            found.setdefault((pod.namespace, maker_of(pod)), []).append(pod)
    return found


def _without_namesake(ledger: Ledger, other: Ledger) -> Iterator[PodEntry]:
    names = Counter(pod.pod for pod in other.pods)
    for pod in ledger.pods:
        names[pod.pod] -= 1
        if names[pod.pod] < 0:
            yield pod


def maker_of(pod: PodEntry) -> str:
    """``Kind/name`` of the controller; of a Deployment's ReplicaSet, the Deployment."""
    of_template = f"-{pod.labels.get(TEMPLATE_HASH, '')}"
    kind, _, name = pod.owner.partition("/")
    if kind == "ReplicaSet" and len(of_template) > 1 and name.endswith(of_template):
        return f"Deployment/{name.removesuffix(of_template)}"
    return pod.owner


def cluster_use(a: Ledger, b: Ledger) -> NodeComparison:
    """All nodes together, at the end."""
    first, second = (_use(ledger.totals.requested, ledger.totals.allocatable) for ledger in (a, b))
    return NodeComparison(node="all nodes", a=first, b=second)


def compared_nodes(a: Ledger, b: Ledger) -> tuple[tuple[NodeComparison, ...], int]:
    """Nodes that are not used alike at the end, and how many are.

    The one with the largest difference in the share of its cpu or memory comes first.
    """
    of_a, of_b = _uses(a), _uses(b)
    names = dict.fromkeys((*of_a, *of_b))
    rows = [NodeComparison(node=name, a=of_a.get(name), b=of_b.get(name)) for name in names]
    differing = [row for row in rows if row.a != row.b]
    differing.sort(key=lambda row: (-_distance(row), row.node))
    return tuple(differing), len(rows) - len(differing)


def _uses(ledger: Ledger) -> dict[str, ComparedNodeUse]:
    return {node.name: _use(node.use.requested, node.use.allocatable) for node in ledger.standing()}


def _use(requested: Mapping[str, int], allocatable: Mapping[str, int]) -> ComparedNodeUse:
    return ComparedNodeUse(
        pods=requested.get(PODS, 0),
        cpu=requested.get(CPU, 0),
        cpu_allocatable=allocatable.get(CPU, 0),
        memory=requested.get(MEMORY, 0),
        memory_allocatable=allocatable.get(MEMORY, 0),
    )


def _distance(row: NodeComparison) -> float:
    first, second = row.a or ComparedNodeUse(), row.b or ComparedNodeUse()
    return max(
        abs(first.cpu_share - second.cpu_share), abs(first.memory_share - second.memory_share)
    )


def compared_measures(a: RunSource, b: RunSource) -> tuple[tuple[MeasureComparison, ...], int]:
    """Measures that differ, in the order of the reference page, and how many do not."""
    of_a = {row.measure: row for row in measure_rows(a)}
    of_b = {row.measure: row for row in measure_rows(b)}
    rows = [
        MeasureComparison(
            measure=name,
            unit=(of_a.get(name) or of_b[name]).unit,
            a=of_a[name].value if name in of_a else None,
            b=of_b[name].value if name in of_b else None,
        )
        for name in dict.fromkeys((*of_a, *of_b))
    ]
    differing = tuple(row for row in rows if row.a != row.b)
    return differing, len(rows) - len(differing)


COMPARED = (
    "desired",
    "pods",
    "ready",
    "available",
    "pending",
    "least_available",
    "below_budget_s",
    "rollouts",
    "rollout",
    "rollout_s",
    "restarts",
    "completions",
    "failures",
)
"""Columns that say what a workload went through."""
PRESENT, ABSENT = "present", "absent"


def compared_workloads(a: Ledger, b: Ledger) -> Iterator[WorkloadComparison]:
    """Where workloads differ, by namespace and name; of those that came again, the last."""
    of_a, of_b = ({workload_key(row): row for row in workload_rows(each)} for each in (a, b))
    for key in sorted(of_a.keys() | of_b.keys()):
        mine, theirs = of_a.get(key), of_b.get(key)
        namespace, name, kind = key
        for column, in_a, in_b in differing_columns(mine, theirs):
            yield WorkloadComparison(
                workload=f"{namespace}/{name}", kind=kind, column=column, a=in_a, b=in_b
            )


def workload_key(row: WorkloadRow) -> tuple[str, str, str]:
    return row.namespace, row.name, row.kind


def differing_columns(
    a: WorkloadRow | None, b: WorkloadRow | None
) -> Iterator[tuple[str, Any, Any]]:
    here, there = (PRESENT if row and row.present else ABSENT for row in (a, b))
    if here != there:
        yield PRESENT, here, there
    for column in COMPARED if a and b else ():
        in_a, in_b = getattr(a, column), getattr(b, column)
        if in_a != in_b:
            yield column, in_a, in_b


def compared_expectations(a: Ledger, b: Ledger) -> tuple[ExpectationComparison, ...]:
    """What came of the expectations of either run, by name."""
    of_a, of_b = ({each.name: each for each in ledger.expectations} for ledger in (a, b))
    return tuple(
        _expected(name, of_a.get(name), of_b.get(name)) for name in dict.fromkeys((*of_a, *of_b))
    )


def _expected(name: str, a: Outcome | None, b: Outcome | None) -> ExpectationComparison:
    return ExpectationComparison(
        name=name,
        in_a=None if a is None else a.holds,
        in_b=None if b is None else b.holds,
        why_in_a=_why(a),
        why_in_b=_why(b),
    )


def _why(outcome: Outcome | None) -> str:
    told = () if outcome is None else (outcome.message, outcome.error)
    return ": ".join(filter(None, told))


def different_preemptions(
    a: Ledger, b: Ledger, names: Mapping[str, str]
) -> tuple[PreemptionDifference, ...]:
    """Preemptions of one of the runs only: by victim, node and preemptor.

    ``names`` are what pods of B are called in A, if not the same.
    """
    in_a = [(each, _key(each, {})) for each in a.preemptions]
    in_b = [(each, _key(each, names)) for each in b.preemptions]
    return (*_missing(in_a, in_b, Side.A), *_missing(in_b, in_a, Side.B))


Keyed: TypeAlias = list[tuple[PreemptionEntry, tuple[str, str, str]]]


def _missing(mine: Keyed, others: Keyed, side: Side) -> list[PreemptionDifference]:
    known = Counter(key for _, key in others)
    found = []
    for each, key in mine:
        if known[key]:
            known[key] -= 1
        else:
            found.append(
                PreemptionDifference(
                    side=side,
                    pod=each.pod,
                    node=each.node,
                    preemptor=each.preemptor,
                    step=str(each.step),
                )
            )
    return found


def _key(entry: PreemptionEntry, names: Mapping[str, str]) -> tuple[str, str, str]:
    pod, preemptor = (names.get(each, each) for each in (entry.pod, entry.preemptor))
    return pod, entry.node, preemptor
