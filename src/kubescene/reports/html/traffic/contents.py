"""What the charts of a traffic run show: its series, thinned to what a picture can hold.

Where more happens than there are places, a line shows the highest value of each, and says so.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from kubescene.clock.batches import Integers
from kubescene.reports.html.traffic.charts import Chart, Line, Mark, Point, seconds
from kubescene.traffic import AutoscalerDecision, TrafficResult
from kubescene.traffic.flow.records import FAILED, RequestOutcome
from kubescene.traffic.measures import percentile_s
from kubescene.traffic.skenario.series import cpu_utilizations, levels

PLACES = 450
"""So many points a line has at most, one for every two units of width."""
MOST_MARKS = 300
FAILURES = {
    RequestOutcome.TIMEOUT: ("timed out", "bad"),
    RequestOutcome.REFUSED: ("refused", "wait"),
    RequestOutcome.KILLED: ("killed", "odd"),
}


def replicas(result: TrafficResult) -> Chart:
    """Skenario's first chart: replicas, and what arrived; a dot for every decision for another
    number.
    """
    counted = result.counts
    lines = [
        Line("active", _changes([(c.time, c.active) for c in counted]), "good", steps=True),
        Line("desired", _changes([(c.time, c.desired) for c in counted]), "info", steps=True),
        Line("launching", _changes([(c.time, c.launching) for c in counted]), "wait", steps=True),
        arrivals(result),
    ]
    marks = tuple(_marks(result.decisions))
    return Chart(
        "Replicas over time", seconds(result.end), lines, 270, "replicas", "requests/s", marks
    )


def requests(result: TrafficResult) -> Chart:
    """The second: requests inside replicas."""
    columns = result.requests
    inside = columns.outcome != RequestOutcome.REFUSED
    left = inside & (columns.outcome != RequestOutcome.OPEN)
    there = levels(columns.arrived[inside], columns.completed[left])
    lines = [Line("processing", _thinned(result, *there), "info"), arrivals(result)]
    return Chart("Requests over time", seconds(result.end), lines, 230, "requests", "requests/s")


def failed_so_far(result: TrafficResult) -> Chart:
    """Part of the second, too; by itself, since it only grows and would hide the others."""
    columns = result.requests
    failed = levels(columns.completed[columns.outcome >= FAILED[0]])
    lines = [Line("failed so far", _thinned(result, *failed), "bad", steps=True)]
    return Chart("Failed requests so far", seconds(result.end), lines, 140, "requests")


def response_times(result: TrafficResult) -> Chart:
    """The third: a point for every completed request, as far as they can be told apart."""
    columns = result.requests
    done = columns.outcome == RequestOutcome.OK
    ends, times = columns.completed[done], (columns.completed - columns.arrived)[done]
    lines = [Line("succeeded", _points(result, ends, times), "info", shape="points")]
    return Chart("Response times", seconds(result.end), lines, 200, "seconds")


def percentiles(result: TrafficResult) -> Chart:
    """Percentiles of the requests that succeeded, by when they completed; gaps where none did."""
    columns = result.requests
    done = columns.outcome == RequestOutcome.OK
    ends, times = columns.completed[done], (columns.completed - columns.arrived)[done]
    step = _step(result, 120)
    rows: dict[int, list[Point]] = {50: [], 95: [], 99: []}
    order = np.argsort(ends, kind="stable")
    places, firsts = np.unique(ends[order] // step, return_index=True)
    parts = np.split(times[order], firsts[1:])
    for place, own in zip(places.tolist(), map(np.sort, parts), strict=True):
        for percent, points in rows.items():
            points.append((seconds(place * step + step // 2), percentile_s(own, percent)))
    tones = {50: "good", 95: "wait", 99: "bad"}
    lines = [
        Line(f"p{percent}", points, tones[percent], near=1.5 * seconds(step))
        for percent, points in rows.items()
    ]
    return Chart("Response-time percentiles", seconds(result.end), lines, 200, "seconds")


def utilization(result: TrafficResult) -> Chart:
    """The fourth: CPU that active replicas use, as it was read at ticks."""
    read = cpu_utilizations(result)
    points = [(seconds(each.calculated_at), each.cpu_utilization) for each in read]
    lines = [Line("mean of active replicas", points, "info")]
    return Chart("CPU utilization", seconds(result.end), lines, 180, "percent")


def failures(result: TrafficResult) -> Chart:
    """How many requests failed, by when and how: bars that stand on each other."""
    columns = result.requests
    step = _step(result, 120)
    below = np.zeros(result.end // step + 1, dtype=np.int64)
    lines: list[Line] = []
    for outcome, (name, tone) in FAILURES.items():
        places = columns.completed[columns.outcome == outcome] // step
        if len(places):
            own = np.bincount(places, minlength=len(below))
            below = below + own
            points = [
                (seconds(place * step + step // 2), int(below[place]))
                for place in np.flatnonzero(own).tolist()
            ]
            lines.append(Line(name, points, tone, shape="bars"))
    # The highest first: those below are drawn over its lower part.
    unit = f"requests in {seconds(step):g} s"
    return Chart("Failed requests", seconds(result.end), lines[::-1], 160, unit)


def arrivals(result: TrafficResult) -> Line:
    step = _step(result, PLACES // 2)
    counts = np.bincount(result.requests.arrived // step).tolist()
    points = [
        (seconds(place * step + step // 2), count / seconds(step))
        for place, count in enumerate(counts)
    ]
    return Line("requests per second (right)", points, "rate", right=True)


def _step(result: TrafficResult, places: int) -> int:
    """Nanoseconds of one place: whole seconds, so that rates are not torn."""
    whole = -(-result.end // (places * 10**9))
    return max(whole, 1) * 10**9


def _changes(counts: Sequence[tuple[int, int]]) -> list[Point]:
    """Where a level changes, thinned to the highest of each place."""
    changed = [
        each for index, each in enumerate(counts) if not index or counts[index - 1][1] != each[1]
    ]
    stride = max(-(-len(changed) // (4 * PLACES)), 1)
    thinned = [
        max(changed[at : at + stride], key=lambda each: each[1])
        for at in range(0, len(changed), stride)
    ]
    return [(seconds(time), level) for time, level in sorted(thinned)]


def _thinned(result: TrafficResult, instants: Integers, tallies: Integers) -> list[Point]:
    """The highest level of each place."""
    if not len(instants):
        return []
    step = max(-(-result.end // PLACES), 1)
    places, first = np.unique(instants // step, return_index=True)
    highest = np.maximum.reduceat(tallies, first).tolist()
    return [
        (seconds(int(place) * step), level) for place, level in zip(places, highest, strict=True)
    ]


def _points(result: TrafficResult, ends: Integers, times: Integers) -> list[Point]:
    """One point for each cell of a raster that has any."""
    if not len(ends):
        return []
    step, rise = max(result.end // (2 * PLACES), 1), max(int(times.max()) // 120, 1)
    cells = np.unique((ends // step) * (1 << 20) + times // rise)
    return [
        (seconds(cell // (1 << 20) * step), seconds(cell % (1 << 20) * rise + rise // 2))
        for cell in cells.tolist()
    ]


def changes(decisions: Sequence[AutoscalerDecision]) -> list[tuple[int, AutoscalerDecision]]:
    """Decisions for another number, with their places among all."""
    return [(index, each) for index, each in enumerate(decisions) if each.after != each.before]


def _marks(decisions: Sequence[AutoscalerDecision]) -> Iterator[Mark]:
    for index, each in changes(decisions)[:MOST_MARKS]:
        title = f"{seconds(each.time):g} s: {each.before} to {each.after}. {each.reason}"
        tone = "up" if each.after > each.before else "down"
        yield Mark(seconds(each.time), each.after, f"#decision-{index}", title, tone)
