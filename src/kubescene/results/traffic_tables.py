"""The tables of a traffic run. Times are seconds of simulated time; None is what did not happen."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from kubescene.clock import SECOND
from kubescene.results.tables import Table, polars_module
from kubescene.traffic import RequestOutcome, TrafficResult

if TYPE_CHECKING:
    import polars

OUTCOMES = {each.value: each.name.lower() for each in RequestOutcome}


class RequestRow(msgspec.Struct, frozen=True):
    """One request: when it came and left, how long that took, who served it, how it ended."""

    arrived_s: float
    completed_s: float
    response_s: float
    replica: int
    outcome: str


class CountRow(msgspec.Struct, frozen=True):
    """How many replicas there are in each state from then on."""

    time_s: float
    desired: int
    launching: int
    active: int
    terminating: int


class ReplicaRow(msgspec.Struct, frozen=True):
    """The life of a replica."""

    name: str
    cpu: int
    memory: int
    launched_s: float
    activated_s: float | None
    deactivated_s: float | None
    terminated_s: float | None
    restarts: int


class ReplicaUtilizationRow(msgspec.Struct, frozen=True):
    """The mean share of their CPU that active replicas use."""

    time_s: float
    percent: float


class DecisionRow(msgspec.Struct, frozen=True):
    """What an autoscaler recommended, and why."""

    time_s: float
    autoscaler: str
    before: int
    after: int
    reason: str
    details: dict[str, Any]


class TrafficMeasureRow(msgspec.Struct, frozen=True):
    """A number that the run comes down to."""

    measure: str
    value: float


class RequestTable(Table[RequestRow]):
    """Millions of rows that are columns already."""

    def __init__(self, result: TrafficResult) -> None:
        super().__init__("requests", RequestRow, lambda: request_rows(result))
        self._requests = result.requests

    def to_dict(self) -> dict[str, Any]:
        columns = self._requests
        arrived, completed = columns.arrived / SECOND, columns.completed / SECOND
        outcome = [OUTCOMES[each] for each in columns.outcome.tolist()]
        replica, response = columns.replica.astype("int64"), completed - arrived
        return dict(
            zip(self.columns, (arrived, completed, response, replica, outcome), strict=True)
        )

    def frame(self) -> "polars.DataFrame":
        made: polars.DataFrame = polars_module().DataFrame(self.to_dict())
        return made


def traffic_tables(result: TrafficResult) -> Mapping[str, Table[Any]]:
    """All tables of a traffic run, by name."""
    found: tuple[Table[Any], ...] = (
        RequestTable(result),
        Table("replicas", ReplicaRow, lambda: replica_rows(result)),
        Table("counts", CountRow, lambda: count_rows(result)),
        Table("utilization", ReplicaUtilizationRow, lambda: utilization_rows(result)),
        Table("decisions", DecisionRow, lambda: decision_rows(result)),
        Table("measures", TrafficMeasureRow, lambda: measure_rows(result)),
    )
    return {table.name: table for table in found}


def request_rows(result: TrafficResult) -> Iterator[RequestRow]:
    columns = result.requests
    told = (columns.arrived, columns.completed, columns.replica, columns.outcome)
    for arrived, completed, replica, outcome in zip(*(each.tolist() for each in told), strict=True):
        begun, over = arrived / SECOND, completed / SECOND
        yield RequestRow(begun, over, over - begun, replica, OUTCOMES[outcome])


def replica_rows(result: TrafficResult) -> Iterator[ReplicaRow]:
    for each in result.replicas:
        yield ReplicaRow(
            each.name,
            each.cpu,
            each.memory,
            each.launched_at / SECOND,
            came(each.activated_at),
            came(each.deactivated_at),
            came(each.terminated_at),
            each.restarts,
        )


def came(instant: int) -> float | None:
    return None if instant < 0 else instant / SECOND


def count_rows(result: TrafficResult) -> Iterator[CountRow]:
    return (CountRow(time / SECOND, *rest) for time, *rest in result.counts)


def utilization_rows(result: TrafficResult) -> Iterator[ReplicaUtilizationRow]:
    return (ReplicaUtilizationRow(each.time / SECOND, each.percent) for each in result.utilizations)


def decision_rows(result: TrafficResult) -> Iterator[DecisionRow]:
    for each in result.decisions:
        time, told = each.time / SECOND, (each.before, each.after, each.reason, each.details)
        yield DecisionRow(time, each.autoscaler, *told)


def measure_rows(result: TrafficResult) -> Iterator[TrafficMeasureRow]:
    """Every number of the summary; those within one have its name before theirs."""
    return (TrafficMeasureRow(*each) for each in numbers(msgspec.to_builtins(result.summary)))


def numbers(told: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in told.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{before}{name}.")
        elif isinstance(value, int | float):
            yield f"{before}{name}", value
