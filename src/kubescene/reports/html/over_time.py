"""A run over virtual time, as charts on one axis: requests, response times, CPU, pods, machines."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kubescene.reports.html.contents import ChartView, DecidedView, OverTimeView, SeriesView
from kubescene.results.cost.bill import Bill
from kubescene.results.cost.rows import instance_rows
from kubescene.results.ledger import Ledger
from kubescene.results.over_time.requests import WindowRow, window_rows
from kubescene.results.over_time.scaling import scaling_rows
from kubescene.results.over_time.series import (
    SeriesRow,
    WorkloadSeriesRow,
    series_rows,
    workload_series_rows,
)
from kubescene.results.sources import RunSource

PLACES = 400
"""So many parts of the run: of each that has more points, the first, the last and the highest."""
TRAFFICS, TARGETS = 4, 6
"""So many Traffics, and so many workloads that are scaled, are drawn."""
DECISIONS = 200
Point = tuple[float, float]


# -- what is shown -------------------------------------------------------------------------------


def over_time_of(source: RunSource) -> OverTimeView:
    """Nothing of a run in which no time passes."""
    ledger = source.ledger
    end = ledger.duration / 1e9
    if not end:
        return OverTimeView()
    windows = [*window_rows(source)]
    rows = [*series_rows(ledger)]
    decisions = sorted(decided(source), key=lambda each: each.at)
    targets = dict.fromkeys(each.who for each in decisions)
    charts = [
        *traffic_charts(windows),
        *cluster_charts(rows, windows),
        *all_workloads_chart(ledger),
        *workload_charts(ledger, [*targets]),
        *machine_charts(ledger),
    ]
    drawn = tuple(thinned_chart(each, end) for each in charts if worth_drawing(each))
    return OverTimeView(end, drawn, tuple(decisions[:DECISIONS]), len(decisions))


def worth_drawing(chart: ChartView) -> bool:
    """Whether anything of it is not always the same."""
    return any(len({value for _, value in each.points}) > 1 for each in chart.series)


def traffic_charts(windows: Sequence[WindowRow]) -> Iterator[ChartView]:
    """Of those with the most requests, in the order in which they began."""
    requests: dict[str, int] = {}
    for each in windows:
        requests[each.traffic] = requests.get(each.traffic, 0) + each.requests
    most = sorted(requests, key=lambda name: -requests[name])[:TRAFFICS]
    for name in (each for each in requests if each in most):
        own = [each for each in windows if each.traffic == name]
        yield ChartView(f"Requests of {name}", "a second", tuple(request_lines(own)))
        yield ChartView(f"Response times of {name}", "ms", tuple(time_lines(own)))


def request_lines(windows: Sequence[WindowRow]) -> Iterator[SeriesView]:
    came = [(each.time_s, each.requests / each.window_s) for each in windows if each.window_s]
    failed = [(each.time_s, each.failed / each.window_s) for each in windows if each.window_s]
    yield SeriesView("came", "info", tuple(came))
    yield SeriesView("failed", "bad", tuple(failed))


def time_lines(windows: Sequence[WindowRow]) -> Iterator[SeriesView]:
    """Of all that ended, failures at their time-outs; then of those served."""
    for name, tone, column in (
        ("p50 of all", "info", "p50_ms"),
        ("p99 of all", "bad", "p99_ms"),
        ("p99 of those served", "good", "served_p99_ms"),
    ):
        told = ((each.time_s, getattr(each, column)) for each in windows)
        yield SeriesView(name, tone, tuple((at, value) for at, value in told if value is not None))
    level = windows[-1].objective_ms
    if level:
        yield SeriesView("objective", "level", ((0, level),), level=True)


def cluster_charts(rows: Sequence[SeriesRow], windows: Sequence[WindowRow]) -> Iterator[ChartView]:
    waits = ((row.time_s, row.pods_pending_peak, row.pods_pending) for row in rows)
    pods = (
        stairs("bound", "good", ((row.time_s, row.pods_bound) for row in rows)),
        peaked("wait for a node", "bad", waits),
    )
    yield ChartView("Pods", "pods", pods)
    used: dict[float, float] = {}
    for each in windows:
        used[each.time_s] = used.get(each.time_s, 0) + each.cpu
    requested = (
        (row.time_s, row.cpu_requested_peak / 1000, row.cpu_requested / 1000) for row in rows
    )
    cpu = [
        stairs("allocatable", "good", ((row.time_s, row.cpu_allocatable / 1000) for row in rows)),
        peaked("requested", "wait", requested),
    ]
    if used:
        cpu.append(SeriesView("used by requests", "info", tuple(used.items())))
    yield ChartView("CPU", "cores", tuple(cpu))


def workload_charts(ledger: Ledger, targets: Sequence[str]) -> Iterator[ChartView]:
    """Workloads that autoscalers change: what they want, what is ready, what waits."""
    found: dict[str, list[WorkloadSeriesRow]] = {}
    for row in workload_series_rows(ledger):
        name = f"{row.namespace}/{row.kind}/{row.name}"
        if name in targets:
            found.setdefault(name, []).append(row)
    for name, rows in [*found.items()][:TARGETS]:
        waits = ((row.time_s, row.pending_peak, row.pending) for row in rows)
        yield ChartView(
            f"Replicas of {name}",
            "pods",
            (
                stairs("desired", "info", ((row.time_s, row.desired or 0) for row in rows)),
                stairs("ready", "good", ((row.time_s, row.ready or 0) for row in rows)),
                peaked("wait for a node", "bad", waits),
            ),
        )


def all_workloads_chart(ledger: Ledger) -> Iterator[ChartView]:
    """What all workloads together want, and how much of it is ready."""
    began = ledger.started_time or 0
    wanted: list[tuple[float, int]] = []
    ready: list[tuple[float, int]] = []
    for entry in ledger.workloads:
        told = [(each.time, each.desired or 0, each.ready) for each in entry.history]
        ends = [(entry.end_time, 0, 0)] if entry.end_time is not None else []
        had = want = 0
        for time, wants, has in (*told, *ends):
            at = (time - began) / 1e9
            wanted.append((at, wants - want))
            ready.append((at, has - had))
            want, had = wants, has
    lines = (stairs("wanted", "info", summed(wanted)), stairs("ready", "good", summed(ready)))
    yield ChartView("Pods of all workloads", "pods", lines)


def machine_charts(ledger: Ledger) -> Iterator[ChartView]:
    """Machines of node groups: those that boot, and those that are nodes."""
    changes: dict[str, list[tuple[float, int]]] = {"boot": [], "are nodes": []}
    for row in instance_rows(Bill(ledger)):
        if row.launched_s is None:
            continue
        # One that is gone may have been a node without ever being ready.
        ready, ended = row.registered_s, row.ended_s
        changes["boot"].append((row.launched_s, 1))
        if (first := ready if ready is not None else ended) is not None:
            changes["boot"].append((first, -1))
        if ready is not None:
            changes["are nodes"].append((ready, 1))
            if ended is not None:
                changes["are nodes"].append((ended, -1))
    if changes["boot"]:
        tones = {"boot": "wait", "are nodes": "good"}
        lines = tuple(stairs(n, tones[n], summed(found)) for n, found in changes.items())
        yield ChartView("Machines of node groups", "machines", lines)


def summed(changes: Iterable[tuple[float, int]]) -> Iterator[Point]:
    total, levels = 0, {0.0: 0}
    for at, change in sorted(changes):
        total += change
        levels[at] = total
    yield from levels.items()


def stairs(name: str, tone: str, points: Iterable[Point]) -> SeriesView:
    """What was at the end of each instant, until it changes."""
    return SeriesView(name, tone, tuple(changed(dict(points).items())), step=True)


def peaked(name: str, tone: str, rows: Iterable[tuple[float, float, float]]) -> SeriesView:
    """Time, peak and level: the peak is of that instant alone, the level holds until it changes."""
    instants: dict[float, tuple[float, float]] = {}
    for at, peak, level in rows:
        instants[at] = max(peak, instants.get(at, (peak,))[0]), level
    points = ((at, each) for at, both in instants.items() for each in both)
    return SeriesView(name, tone, tuple(changed(points)), step=True)


def changed(points: Iterable[Point]) -> Iterator[Point]:
    """Of equal ones that follow each other, the first."""
    last = None
    for at, value in points:
        if value != last:
            yield at, value
            last = value


def thinned_chart(chart: ChartView, end: float) -> ChartView:
    series = [
        msgspec.structs.replace(each, points=tuple(thinned(each.points, end)))
        for each in chart.series
        if each.points
    ]
    return msgspec.structs.replace(chart, series=tuple(series))


def thinned(points: Sequence[Point], end: float) -> Iterator[Point]:
    """Rounded, and of each part of the run the first, the highest and the last."""
    parts: dict[int, list[Point]] = {}
    for at, value in points:
        place = min(int(at * PLACES / end), PLACES - 1)
        parts.setdefault(place, []).append((round(at, 3), round(value, 3)))
    for part in parts.values():
        highest = max(part, key=lambda point: point[1])
        yield from sorted(dict.fromkeys((part[0], highest, part[-1])), key=lambda point: point[0])


# -- what was decided ----------------------------------------------------------------------------


def decided(source: RunSource) -> Iterator[DecidedView]:
    """The rows of the table of scaling: of pods and of groups of machines."""
    for row in scaling_rows(source):
        what = f"{row.replicas_from} → {row.replicas_to}"
        why = row.reason.removeprefix(f"{row.replicas_from} -> {row.replicas_to}: ")
        who = f"{row.namespace}/{row.target}" if row.namespace else row.target
        yield DecidedView(row.time_s, who, what, why)
