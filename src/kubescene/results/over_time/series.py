"""Series: what the cluster and its workloads were over virtual time, at marks that one chooses.

A row stands for a stretch of time, from ``time_s`` up to that of the next row. Its values are those
at its beginning; ``..._peak`` and ``least_available`` are of any moment of it, so that nothing
between two marks is lost. A row of a major step has the values of its end.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from kubescene.clock import parse_duration
from kubescene.errors import ConfigurationError
from kubescene.results.clockwork import Clockwork
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.entries import NO_COUNTS, WorkloadCounts, WorkloadEntry
from kubescene.results.over_time.instants import Sample
from kubescene.results.over_time.workloads import Group, Workloads

CHANGE, STEP = "change", "step"
CHANGE_OR_STEP = "change or step"
"""As `CHANGE`, and where a step begins."""
MOST_MARKS = 1_000_000
Every: TypeAlias = str | int
"""`CHANGE`, `STEP`, `CHANGE_OR_STEP`, or a span of time in nanoseconds."""
When = tuple[int, int]
"""A time and a major step."""
T = TypeVar("T")


class SeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster from an instant on, until the next row.

    ``pods_ready`` counts the pods of workloads, which say so. ``..._peak`` are the highest at any
    moment until the next row.
    """

    step: int
    time_s: float
    until_s: float
    nodes: int
    nodes_ready: int
    pods_pending: int
    pods_pending_peak: int
    pods_bound: int
    pods_ready: int
    cpu_requested: int
    cpu_requested_peak: int
    cpu_allocatable: int
    memory_requested: int
    memory_requested_peak: int
    memory_allocatable: int


class WorkloadSeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """A workload from an instant on, until its next row; ``least_available`` at any moment of it.

    ``restarts``, ``completions`` and ``failures`` are so many so far.
    """

    namespace: str
    kind: str
    name: str
    step: int
    time_s: float
    until_s: float
    desired: int | None
    pods: int
    updated: int | None
    ready: int | None
    available: int | None
    least_available: int | None
    pending: int
    pending_peak: int
    restarts: int
    completions: int
    failures: int


def every_of(told: str) -> Every:
    """How often a series has a row: ``change``, ``step``, or a duration such as ``1m``."""
    if told in (CHANGE, STEP):
        return told
    try:
        span = parse_duration(told)
    except ValueError:
        span = 0
    if span <= 0:
        raise ConfigurationError(
            f"--every {told}: 'change', 'step' or a duration such as 30s or 5m is expected"
        )
    return span


class Mark(NamedTuple):
    """Where a row begins; ``at_end``: its values are those of its end."""

    when: When
    until: int
    at_end: bool = False


def marks_of(ledger: Ledger, every: Every, changes: Iterable[When] = ()) -> list[Mark]:
    """The marks of a run; ``changes`` are those that a reader of changes wants to see."""
    if ledger.started_time is None:
        return []
    if every == STEP:
        return [Mark((each.ended_time, each.major), each.ended_time, True) for each in ledger.steps]
    if isinstance(every, int):
        return with_ends(list(regular(ledger, every)), ledger.time)
    begins = [(step.started_time, step.major) for step in ledger.steps]
    return with_ends(sorted({*changes, *(begins if every == CHANGE_OR_STEP else ())}), ledger.time)


def regular(ledger: Ledger, every: int) -> Iterator[When]:
    began, count = ledger.started_time or 0, ledger.duration // every + 1
    if count > MOST_MARKS:
        raise ConfigurationError(
            f"a series with {count:,} rows is of no use: choose a longer --every"
        )
    begins = [step.started_time for step in ledger.steps]
    for number in range(count):
        time = began + number * every
        place = bisect_right(begins, time) - 1
        yield time, ledger.steps[place].major if place >= 0 else 0


def with_ends(whens: Sequence[When], end: int) -> list[Mark]:
    """Each mark with the time of the next; the last is where the run ends."""
    if whens and whens[-1][0] < end:
        whens = [*whens, (end, whens[-1][1])]
    times = [time for time, _ in whens[1:]]
    return [Mark(when, until) for when, until in zip(whens, [*times, end], strict=False)]


def stilled(value: Any) -> Any:
    return value.still


class Stretch(NamedTuple, Generic[T]):
    """What a series says between two marks: the value that a row has, and all that there were."""

    value: T
    all: list[T]


def stretches(
    values: Sequence[tuple[When, T]],
    marks: Sequence[Mark],
    before: T,
    still: Callable[[T], T] = lambda value: value,
) -> Iterator[Stretch[T]]:
    """One for each mark; a value counts until the next one. ``before`` counts before the first.

    ``still`` leaves out of a value what was so within its instant only.
    """
    place, current = 0, before
    for number, mark in enumerate(marks):
        after = marks[number + 1].when if number + 1 < len(marks) else None
        came: list[tuple[When, T]] = []
        while place < len(values) and is_inside(values[place][0], mark, after):
            came.append(values[place])
            place += 1
        first = [each for when, each in came if mark.at_end or when[0] <= mark.when[0]]
        carried = still(current)
        current = came[-1][1] if came else current
        value = first[-1] if first else carried
        everything = [each for _, each in came]
        yield Stretch(value, everything if first else [carried, *everything])


def is_inside(when: When, mark: Mark, after: When | None) -> bool:
    """Whether something that happened then belongs to a mark, and not to the one after."""
    if mark.at_end:
        return when[1] <= mark.when[1]
    if after is None:
        return True
    return when < after if mark.when[0] == after[0] else when[0] < after[0]


# -- the cluster ---------------------------------------------------------------------------------


NOTHING_YET = Sample(*[0] * len(Sample._fields))


def series_rows(ledger: Ledger, every: Every = CHANGE) -> Iterator[SeriesRow]:
    """The cluster over virtual time."""
    samples = [((each.time, each.step), each) for each in ledger.instants]
    ready = ready_pods(ledger)
    marks = marks_of(ledger, every, [when for when, _ in (*samples, *ready)])
    clock = Clockwork(ledger)
    together = zip(
        marks,
        stretches(samples, marks, NOTHING_YET, stilled),
        stretches(ready, marks, 0),
        strict=True,
    )
    for mark, cluster, pods in together:
        now = cluster.value
        yield SeriesRow(
            **when_of(mark, clock),
            nodes=now.nodes,
            nodes_ready=now.nodes_ready,
            pods_pending=now.pods_pending,
            pods_pending_peak=max(each.most_pending for each in cluster.all),
            pods_bound=now.pods_bound,
            pods_ready=pods.value,
            cpu_requested=now.cpu_requested,
            cpu_requested_peak=max(each.most_cpu for each in cluster.all),
            cpu_allocatable=now.cpu_allocatable,
            memory_requested=now.memory_requested,
            memory_requested_peak=max(each.most_memory for each in cluster.all),
            memory_allocatable=now.memory_allocatable,
        )


def when_of(mark: Mark, clock: Clockwork) -> dict[str, Any]:
    time, step = mark.when
    return {"step": step, "time_s": clock.seconds(time), "until_s": clock.seconds(mark.until)}


def ready_pods(ledger: Ledger) -> list[tuple[When, int]]:
    """How many pods of all workloads are ready, from each change on."""
    changes: list[tuple[When, int]] = []
    for entry in ledger.workloads:
        before = 0
        for each in entry.history:
            if each.ready != before:
                changes.append(((each.time, each.step), each.ready - before))
            before = each.ready
        if entry.end_time is not None and entry.end_step is not None and before:
            changes.append(((entry.end_time, entry.end_step.major), -before))
    return summed(changes)


def summed(changes: Iterable[tuple[When, int]]) -> list[tuple[When, int]]:
    """What comes of changes, from each instant on."""
    ordered = sorted(changes)
    sums = accumulate(change for _, change in ordered)
    found = ((when, total) for (when, _), total in zip(ordered, sums, strict=True))
    return [(when, [total for _, total in same][-1]) for when, same in groupby(found, first_of)]


def first_of(pair: tuple[When, Any]) -> When:
    return pair[0]


# -- workloads -----------------------------------------------------------------------------------


def workload_series_rows(ledger: Ledger, every: Every = CHANGE) -> Iterator[WorkloadSeriesRow]:
    """Every workload over virtual time, from its creation to its end."""
    clock = Clockwork(ledger)
    for group in Workloads(ledger).groups:
        yield from series_of(group, ledger, clock, every)


def series_of(
    group: Group, ledger: Ledger, clock: Clockwork, every: Every
) -> Iterator[WorkloadSeriesRow]:
    """One workload over virtual time; of pods that nobody speaks for, how many wait."""
    pending, entry = waiting(group), group.entry
    history = [] if entry is None else [*told_by(entry)]
    marks = marks_of(ledger, every, [when for when, _ in (*history, *pending)])
    told = zip(
        marks,
        stretches(history, marks, NO_COUNTS, stilled),
        stretches(pending, marks, NO_PODS, stilled),
        strict=True,
    )
    began, ended = lifetime(group)
    for mark, counts, waits in told:
        if mark.until < began or (mark.when[0] < began and not mark.at_end):
            continue
        if ended is not None and mark.when[0] > ended:
            return
        now = counts.value
        least = [each.least_available for each in counts.all if each.least_available is not None]
        yield WorkloadSeriesRow(
            namespace=group.namespace,
            kind=group.kind,
            name=group.name,
            **when_of(mark, clock),
            desired=now.desired,
            pods=now.pods if entry is not None else waits.value.there,
            updated=now.updated,
            ready=None if entry is None else now.ready,
            available=now.available,
            least_available=min(least, default=None),
            pending=waits.value.pending,
            pending_peak=max(each.most for each in waits.all),
            restarts=now.restarts,
            completions=now.completions,
            failures=now.failures,
        )


def told_by(entry: WorkloadEntry) -> Iterator[tuple[When, WorkloadCounts]]:
    before = NO_COUNTS
    for each in entry.history:
        yield (each.time, each.step), each.after(before)
        before = each


def lifetime(group: Group) -> tuple[int, int | None]:
    if group.entry is not None:
        return group.entry.time, group.entry.end_time
    return min(pod.created_time for pod in group.pods), None


class PodsThere(NamedTuple):
    """Pods from an instant on: without a node, at most so many within it, and all that exist."""

    pending: int = 0
    most: int = 0
    there: int = 0

    @property
    def still(self) -> "PodsThere":
        return self._replace(most=self.pending)


NO_PODS = PodsThere()


def waiting(group: Group) -> list[tuple[When, PodsThere]]:
    """How many of its pods wait for a node, from each change on."""
    changes: dict[Any, list[int]] = {}
    for pod in group.pods:
        add(changes, (pod.created_time, pod.created_step), 1, 1)
        if pod.bound_time is not None and pod.bound_step is not None:
            add(changes, (pod.bound_time, pod.bound_step), -1, 0)
        if pod.ended_time is not None and pod.ended_step is not None:
            add(changes, (pod.ended_time, pod.ended_step), -(pod.bound_time is None), -1)
    pending = there = 0
    found: list[tuple[When, PodsThere]] = []
    for (time, step), moments in groupby(sorted(changes), lambda when: (when[0], when[1].major)):
        most = 0
        for moment in moments:
            pending, there = pending + changes[moment][0], there + changes[moment][1]
            most = max(most, pending)
        found.append(((time, step), PodsThere(pending, most, there)))
    return found


def add(changes: dict[Any, list[int]], when: Any, pending: int, there: int) -> None:
    known = changes.setdefault(when, [0, 0])
    known[0] += pending
    known[1] += there


# -- small drawings ------------------------------------------------------------------------------


def levels(entry: WorkloadEntry, ledger: Ledger, parts: int) -> list[int]:
    """In equal parts of the run the fewest pods available; of Jobs, the most that are active."""
    told = [(each.time, number_of(each)) for _, each in told_by(entry)]
    choose = max if entry.now.available is None else min
    return parts_of(told, ledger, parts, choose)


def number_of(counts: WorkloadCounts) -> int:
    return counts.pods if counts.available is None else counts.available


def parts_of(
    told: Sequence[tuple[int, int]],
    ledger: Ledger,
    parts: int,
    choose: Callable[[int, int], int] = min,
) -> list[int]:
    """One value for each part of the run, of those that count in it; each from its time on."""
    began, span = ledger.started_time or 0, max(ledger.duration, 1)
    found: list[int | None] = [None] * parts
    for index, (time, value) in enumerate(told):
        end = told[index + 1][0] if index + 1 < len(told) else began + span
        first = min((time - began) * parts // span, parts - 1)
        last = min(max(-(-(end - began) * parts // span), first + 1), parts)
        for place in range(first, last if end > time else first):
            known = found[place]
            found[place] = value if known is None else choose(known, value)
    return [each or 0 for each in found]
