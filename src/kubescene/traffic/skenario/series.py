"""The series of Skenario's charts, made of a result, with its names and rules.

``tally_lines`` are running levels of stocks, ``response_times`` one row for each request,
``requests_per_second`` the arrivals by whole seconds, ``cpu_utilizations`` what was read at ticks.
In fixed mode levels of requests come from the columns: requests are no movements there.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kubescene.clock import SECOND
from kubescene.clock.batches import Integers
from kubescene.flows.records import FAILED, RequestColumns, RequestOutcome
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.spec.fields import Mode
from kubescene.traffic.world.entities import KINDS, EntityKind
from kubescene.traffic.world.movements import MOVEMENT_KINDS, MovementKind, MovementLog
from kubescene.traffic.world.worlds import ReplicaCount

PROCESSING = "RequestsProcessing"
LEFT_OUT = frozenset(
    {
        MovementKind.START_TO_RUNNING,
        MovementKind.RUNNING_TO_HALTED,
        MovementKind.AUTOSCALER_TICK,
        MovementKind.METRICS_TICK,
        MovementKind.SEND_METRICS_TO_PIPELINE,
        MovementKind.SEND_METRICS_TO_SINK,
    }
)
SHOWN = frozenset(
    {"ReplicasActive", "ReplicasDesired", "RequestsRouting", PROCESSING, "RequestsFailed"}
)


class TallyLine(NamedTuple):
    """The level of a stock from an instant on."""

    occurs_at: int
    stock_name: str
    kind_stocked: str
    tally: int


class ResponseTime(NamedTuple):
    arrived_at: int
    completed_at: int
    response_time: int


class RequestsPerSecond(NamedTuple):
    second: int
    requests: int


class CpuUtilization(NamedTuple):
    cpu_utilization: float
    calculated_at: int


def tally_lines(result: TrafficResult) -> list[TallyLine]:
    """Levels of the stocks that are shown, sorted by time and name."""
    if result.spec.mode is Mode.FAITHFUL:
        return sorted(set(movement_tallies(result.movements, result.end)), key=_by_time)
    replicas = count_tallies(result.counts, result.end)
    return sorted([*replicas, *request_tallies(result.requests)], key=_by_time)


def _by_time(line: TallyLine) -> tuple[int, str]:
    return line.occurs_at, line.stock_name


def movement_tallies(log: MovementLog, end: int) -> Iterator[TallyLine]:
    """Levels by movements, and for replicas a last point at the end, so that lines reach it."""
    levels: dict[str, int] = {}
    left_out = {number for number, kind in enumerate(MOVEMENT_KINDS) if kind in LEFT_OUT}
    shown = [_display(name) for name in log.stocks]
    replicas: dict[str, int] = {}
    for index, kind in enumerate(log.kinds):
        if kind in left_out:
            continue
        moved = KINDS[log.moved_kinds[index]]
        kind_stocked = EntityKind.REPLICA if moved is EntityKind.DESIRED else moved
        for number, change in ((log.sources[index], -1), (log.targets[index], 1)):
            name = shown[number]
            if name in SHOWN and log.sources[index] != log.targets[index]:
                level = levels[name] = levels.get(name, 0) + change
                yield TallyLine(log.occurs_at[index], name, kind_stocked, level)
                if kind_stocked is EntityKind.REPLICA:
                    replicas[name] = level
    for name, level in replicas.items():
        yield TallyLine(end, name, EntityKind.REPLICA, level)


def count_tallies(counts: Sequence[ReplicaCount], end: int) -> Iterator[TallyLine]:
    """Levels of replicas by the counts, and a last point at the end."""
    for name, place in (("ReplicasDesired", 1), ("ReplicasActive", 3)):
        level = None
        for each in counts:
            if each[place] != level:
                level = each[place]
                yield TallyLine(each.time, name, EntityKind.REPLICA, level)
        if level is not None:
            yield TallyLine(end, name, EntityKind.REPLICA, level)


def request_tallies(columns: RequestColumns) -> Iterator[TallyLine]:
    """Levels of requests inside replicas and of failed ones, by the columns."""
    inside = columns.outcome != RequestOutcome.REFUSED
    left = inside & (columns.outcome != RequestOutcome.OPEN)
    yield from _lines(PROCESSING, *levels(columns.arrived[inside], columns.completed[left]))
    failed = columns.outcome >= FAILED[0]
    yield from _lines("RequestsFailed", *levels(columns.completed[failed]))


def _lines(name: str, instants: Integers, tallies: Integers) -> Iterator[TallyLine]:
    for instant, level in zip(instants.tolist(), tallies.tolist(), strict=True):
        yield TallyLine(instant, name, EntityKind.REQUEST, level)


def levels(up: Integers, down: Integers | None = None) -> tuple[Integers, Integers]:
    """Instants, and the running level from each on: one for each at which it changes."""
    instants = up if down is None else np.concatenate((up, down))
    changes = np.ones(len(instants), dtype=np.int8)
    changes[len(up) :] = -1
    order = np.argsort(instants, kind="stable")
    instants, tallies = instants[order], np.cumsum(changes[order], dtype=np.int64)
    last = np.ones(len(instants), dtype=np.bool_)
    np.not_equal(instants[1:], instants[:-1], out=last[:-1])
    return instants[last], tallies[last]


def _display(stock: str) -> str:
    return PROCESSING if stock.startswith(PROCESSING) else stock


def response_times(result: TrafficResult) -> list[ResponseTime]:
    """First and last instant of every request, in order of arrival, failed ones included.

    For those that are still inside at the end the last instant is that of their routing.
    """
    columns = (each.tolist() for each in response_columns(result))
    return [ResponseTime(*row) for row in zip(*columns, strict=True)]


def response_columns(result: TrafficResult) -> tuple[Integers, Integers, Integers]:
    """The same as columns."""
    columns = result.requests
    routed = 1 if result.spec.mode is Mode.FAITHFUL else 0
    ends = np.where(
        columns.outcome == RequestOutcome.OPEN, columns.arrived + routed, columns.completed
    )
    return columns.arrived, ends, ends - columns.arrived


def requests_per_second(result: TrafficResult) -> list[RequestsPerSecond]:
    """Arrivals in each whole second that has some."""
    columns = (each.tolist() for each in arrivals_by_second(result))
    return list(map(RequestsPerSecond, *columns))


def arrivals_by_second(result: TrafficResult) -> tuple[Integers, Integers]:
    """The same as columns."""
    counts = np.bincount(result.requests.arrived // SECOND)
    seconds = np.flatnonzero(counts)
    return seconds, counts[seconds]


def cpu_utilizations(result: TrafficResult) -> list[CpuUtilization]:
    """What was read at ticks, the highest of each instant."""
    highest: dict[int, float] = {}
    for each in result.utilizations:
        highest[each.time] = max(each.percent, highest.get(each.time, each.percent))
    return [CpuUtilization(percent, time) for time, percent in sorted(highest.items())]
