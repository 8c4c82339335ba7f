"""What became of the requests of Traffic objects: by windows of time, and in all.

Response times are said twice: of those that were served, and of all, where those that failed took
their time-out.
"""

from collections.abc import Iterator

import msgspec

from kubescene.flows.percentiles import nearest_rank
from kubescene.results.clockwork import Clockwork
from kubescene.results.sources import RunSource

MEASURED = "TrafficMeasured"
"""What the controller of Traffic objects tells."""
PER_MS, PER_S = 10**6, 10**9


class WindowRow(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of a Traffic (``NAMESPACE/NAME``) that came or were completed in a window.

    It ends at ``time_s``. ``good`` were served within the objective.
    """

    traffic: str
    step: str
    time_s: float
    window_s: float
    ready: int
    cpu: float
    requests: int
    succeeded: int
    good: int
    failed: int
    timed_out: int
    refused: int
    killed: int
    inside: int
    served_p50_ms: float | None
    served_p95_ms: float | None
    served_p99_ms: float | None
    served_max_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class TrafficRow(msgspec.Struct, frozen=True, kw_only=True):
    """All requests of a Traffic whose windows are over.

    Percentiles are of histograms: at most a sixteenth too small.
    """

    traffic: str
    requests: int
    succeeded: int
    good: int
    failed: int
    timed_out: int
    refused: int
    killed: int
    inside: int
    cpu_hours: float
    windows: int
    windows_met: int
    served_p50_ms: float | None
    served_p95_ms: float | None
    served_p99_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class _Counts(msgspec.Struct, frozen=True):
    """What is read of such a fact; somebody else may tell another of that name."""

    arrived: int
    succeeded: int
    timed_out: int
    refused: int
    killed: int
    inside: int
    good: int
    served: tuple[int | None, ...]
    all: tuple[int | None, ...]
    times: tuple[tuple[int, int], ...]

    @property
    def failed(self) -> int:
        return self.timed_out + self.refused + self.killed


class _TrafficMeasured(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    window: int
    ready: int
    cpu: int
    timeout: int
    percentile: float
    counts: _Counts

    @property
    def traffic(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_met(self) -> bool:
        """Whether so many of those completed were good as the objective wants."""
        done = self.counts.succeeded + self.counts.failed
        return self.counts.good * 100 >= self.percentile * done


def window_rows(source: RunSource) -> Iterator[WindowRow]:
    """All of them, in their order, read anew."""
    clock = Clockwork(source.ledger)
    for step, time, told in _measured(source):
        counts = told.counts
        served, everybody = map(_milliseconds, counts.served), map(_milliseconds, counts.all)
        p50, p95, p99, longest = served
        all_p50, all_p95, all_p99 = everybody
        yield WindowRow(
            traffic=told.traffic,
            step=step,
            time_s=clock.seconds(time),
            window_s=told.window / PER_S,
            ready=told.ready,
            cpu=told.cpu / 1000,
            requests=counts.arrived,
            succeeded=counts.succeeded,
            good=counts.good,
            failed=counts.failed,
            timed_out=counts.timed_out,
            refused=counts.refused,
            killed=counts.killed,
            inside=counts.inside,
            served_p50_ms=p50,
            served_p95_ms=p95,
            served_p99_ms=p99,
            served_max_ms=longest,
            p50_ms=all_p50,
            p95_ms=all_p95,
            p99_ms=all_p99,
        )


def traffic_rows(source: RunSource) -> Iterator[TrafficRow]:
    """One for each Traffic, in the order in which they were first measured."""
    found: dict[str, list[_TrafficMeasured]] = {}
    for _, _, told in _measured(source):
        found.setdefault(told.traffic, []).append(told)
    for traffic, windows in found.items():
        yield _summed(traffic, windows)


def _measured(source: RunSource) -> Iterator[tuple[str, int, _TrafficMeasured]]:
    for fact in source.custom_facts():
        if fact.kind == MEASURED:
            try:
                yield str(fact.step), fact.time, fact.read(_TrafficMeasured)
            except msgspec.ValidationError:
                continue


def _summed(traffic: str, windows: list[_TrafficMeasured]) -> TrafficRow:
    counts = [each.counts for each in windows]
    failed, timeout = sum(each.failed for each in counts), windows[-1].timeout
    times: dict[int, int] = {}
    for each in counts:
        for lower, count in each.times:
            times[lower] = times.get(lower, 0) + count
    bounds = sorted(times.items())
    served = [_of_histogram(bounds, 0, -1, percent) for percent in (50, 95, 99)]
    everybody = [_of_histogram(bounds, failed, timeout, percent) for percent in (50, 95, 99)]
    return TrafficRow(
        traffic=traffic,
        requests=sum(each.arrived for each in counts),
        succeeded=sum(each.succeeded for each in counts),
        good=sum(each.good for each in counts),
        failed=failed,
        timed_out=sum(each.timed_out for each in counts),
        refused=sum(each.refused for each in counts),
        killed=sum(each.killed for each in counts),
        inside=counts[-1].inside,
        cpu_hours=sum(each.cpu * each.window for each in windows) / (3600 * PER_S * 1000),
        windows=len(windows),
        windows_met=sum(each.is_met for each in windows),
        served_p50_ms=served[0],
        served_p95_ms=served[1],
        served_p99_ms=served[2],
        p50_ms=everybody[0],
        p95_ms=everybody[1],
        p99_ms=everybody[2],
    )


def _of_histogram(
    bounds: list[tuple[int, int]], failed: int, timeout: int, percent: float
) -> float | None:
    served = sum(count for _, count in bounds)
    if not served + failed:
        return None
    rank = nearest_rank(served + failed, percent)
    if rank > served:
        return _milliseconds(timeout if timeout >= 0 else None)
    for lower, count in bounds:
        rank -= count
        if rank <= 0:
            return _milliseconds(lower)
    return None


def _milliseconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / PER_MS
