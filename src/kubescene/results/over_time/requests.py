"""What became of the requests of Traffic objects: by windows of time, and in all.

Response times are said twice: of those that were served, and of all, where those that failed took
their time-out.
"""

from collections.abc import Iterable, Iterator

import msgspec

from kubescene.controllers.builtin.traffic.facts import TrafficMeasured
from kubescene.flows.percentiles import nearest_rank
from kubescene.results.clockwork import Clockwork
from kubescene.results.over_time.scaling import ToldRun
from kubescene.timeline import CustomFact

MEASURED = TrafficMeasured.__name__
"""What the controller of Traffic objects tells."""
PER_MS, PER_S = 10**6, 10**9
ENDLESS = 1 << 63
"""How long one takes that fails without a time-out."""


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
    objective_ms: float


class TrafficRow(msgspec.Struct, frozen=True, kw_only=True):
    """All requests of a Traffic whose windows are over.

    Percentiles are of histograms: at most a sixteenth too small. ``inexact`` says what was
    simulated in another way than it would be, in some window.
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
    served_max_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    inexact: str


def window_rows(source: ToldRun) -> Iterator[WindowRow]:
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
            objective_ms=told.objective / PER_MS,
        )


def traffic_rows(source: ToldRun) -> Iterator[TrafficRow]:
    """One for each Traffic, in the order in which they were first measured."""
    for total in totals_by_traffic(source).values():
        yield total.row()


def _measured(source: ToldRun) -> Iterator[tuple[str, int, TrafficMeasured]]:
    if MEASURED in source.ledger.custom_facts:
        yield from measured(source.custom_facts())


def measured(facts: Iterable[CustomFact]) -> Iterator[tuple[str, int, TrafficMeasured]]:
    """What was told of windows, with step and time."""
    for fact in facts:
        if fact.kind == MEASURED:
            try:
                yield str(fact.step), fact.time, fact.read(TrafficMeasured)
            except msgspec.ValidationError:
                continue


class WindowTotals:
    """Windows of one Traffic, or of several, summed up. Times are nanoseconds."""

    def __init__(self, traffic: str) -> None:
        self.traffic = traffic
        self.requests = self.succeeded = self.good = 0
        self.timed_out = self.refused = self.killed = 0
        self.windows = self.windows_met = 0
        self.used = 0
        """Millicores times nanoseconds."""
        self.length = 0
        """Of all windows."""
        self.missed = 0
        """How long the windows were in which the objective was missed."""
        self.longest: int | None = None
        self.starts: list[int] = []
        """How long pods took from their creation until they served."""
        self.objective = 0
        """Within which a response is good, as it was said last."""
        self.inexact: dict[str, None] = {}
        self._inside: dict[str, int] = {}
        self._served: dict[int, int] = {}
        self._failed: dict[int, int] = {}
        """How many failed, by their time-outs."""

    @property
    def failed(self) -> int:
        return self.timed_out + self.refused + self.killed

    @property
    def inside(self) -> int:
        """At the end of the last windows."""
        return sum(self._inside.values())

    def add(self, told: TrafficMeasured) -> None:
        counts = told.counts
        self.requests += counts.arrived
        self.succeeded += counts.succeeded
        self.good += counts.good
        self.timed_out += counts.timed_out
        self.refused += counts.refused
        self.killed += counts.killed
        self.windows += 1
        self.windows_met += told.is_met
        self.length += told.window
        self.missed += 0 if told.is_met else told.window
        self.used += told.cpu * told.window
        self.starts += told.started
        self._inside[told.traffic] = counts.inside
        self.objective = told.objective
        if told.inexact:
            self.inexact.setdefault(told.inexact)
        longest = counts.served[-1] if counts.served else None
        if longest is not None:
            self.longest = max(longest, self.longest or 0)
        for lower, count in counts.times:
            self._served[lower] = self._served.get(lower, 0) + count
        if counts.failed:
            self._failed[told.timeout] = self._failed.get(told.timeout, 0) + counts.failed

    def of_served(self, percent: float) -> int | None:
        """The percentile of those that were served."""
        return of_histogram(sorted(self._served.items()), percent)

    def of_all(self, percent: float) -> int | None:
        """The same of all that ended; None where the rank falls on one without a time-out."""
        failed = [(t if t >= 0 else ENDLESS, count) for t, count in self._failed.items()]
        found = of_histogram(sorted([*self._served.items(), *failed]), percent)
        return None if found == ENDLESS else found

    def row(self) -> TrafficRow:
        p50, p95, p99 = (_milliseconds(self.of_all(percent)) for percent in (50, 95, 99))
        served = [_milliseconds(self.of_served(percent)) for percent in (50, 95, 99)]
        return TrafficRow(
            traffic=self.traffic,
            requests=self.requests,
            succeeded=self.succeeded,
            good=self.good,
            failed=self.failed,
            timed_out=self.timed_out,
            refused=self.refused,
            killed=self.killed,
            inside=self.inside,
            cpu_hours=self.used / (3600 * PER_S * 1000),
            windows=self.windows,
            windows_met=self.windows_met,
            served_p50_ms=served[0],
            served_p95_ms=served[1],
            served_p99_ms=served[2],
            served_max_ms=_milliseconds(self.longest),
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            inexact="; ".join(self.inexact),
        )


class TrafficParts:
    """A Traffic in equal parts of a run: the most of any of their windows."""

    def __init__(self, began: int, duration: int, parts: int) -> None:
        self.rps = [0] * parts
        self.failed = [0] * parts
        """A second, as those that came."""
        self.p99_ms = [0] * parts
        """Of all that ended."""
        self.ready = [0] * parts
        self._began, self._span = began, max(duration, 1)

    def add(self, time: int, told: TrafficMeasured) -> None:
        counts, parts, window = told.counts, len(self.rps), max(told.window, 1)
        end, last = time - self._began, len(self.rps) - 1
        first = min(max(end - window, 0) * parts // self._span, last)
        until = min(max(-(-end * parts // self._span), first + 1), parts)
        slowest = counts.all[-1] if counts.all else None
        values = (
            (self.rps, -(-counts.arrived * PER_S // window)),
            (self.failed, -(-counts.failed * PER_S // window)),
            (self.p99_ms, -(-(slowest or 0) // PER_MS)),
            (self.ready, told.ready),
        )
        for levels, value in values:
            for place in range(first, until):
                levels[place] = max(levels[place], value)


def totals_by_traffic(source: ToldRun) -> dict[str, WindowTotals]:
    """By ``NAMESPACE/NAME``, in the order in which they were first measured."""
    return summed(told for _, _, told in _measured(source))


def summed(windows: Iterable[TrafficMeasured]) -> dict[str, WindowTotals]:
    found: dict[str, WindowTotals] = {}
    for told in windows:
        if told.traffic not in found:
            found[told.traffic] = WindowTotals(told.traffic)
        found[told.traffic].add(told)
    return found


def totals_of_all(source: ToldRun) -> WindowTotals | None:
    """Of all Traffics together; None if there is none."""
    found: WindowTotals | None = None
    for _, _, told in _measured(source):
        found = found or WindowTotals("")
        found.add(told)
    return found


def of_histogram(bounds: list[tuple[int, int]], percent: float) -> int | None:
    count = sum(each for _, each in bounds)
    rank = nearest_rank(count, percent)
    for lower, each in bounds:
        rank -= each
        if rank <= 0:
            return lower
    return None


def _milliseconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / PER_MS
