"""What the charts of a traffic run show: its series, thinned to what a picture can hold.

Where more happens than there are places, a line shows the highest value of each, and says so.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from kubescene.api.text.yaml_text import read_yaml
from kubescene.autoscalers import HPA_TYPES, RecommendedPodResources
from kubescene.clock.batches import Integers
from kubescene.flows.records import FAILED, RequestOutcome
from kubescene.flows.units import Cpu, Memory
from kubescene.reports.html.charts import Chart, ChartLine, ChartMark, Level, Point, seconds
from kubescene.reports.html.contents import Figure
from kubescene.reports.words import counted
from kubescene.traffic import AutoscalerDecision, TrafficResult, TrafficSummary
from kubescene.traffic.decided import reserved_over_time
from kubescene.traffic.measures import all_percentile_s, percentile_s
from kubescene.traffic.skenario.series import cpu_utilizations, levels
from kubescene.traffic.spec.objects import autoscaler_of

PLACES = 450
"""So many points a line has at most, one for every two units of width."""
MOST_MARKS = 300
PERCENTILES = {
    "p50": (50, "good", True),
    "p95": (95, "wait", True),
    "p99": (99, "bad", True),
    "p95 of those served": (95, "served", False),
}
"""What the lines of a chart are: the percentile, a tone, and whether failures count."""
SIZES = {"cpu": ("cores", 1000), "memory": ("MiB", 1 << 20)}
FAILURES = {
    RequestOutcome.TIMEOUT: ("timed out", "bad"),
    RequestOutcome.REFUSED: ("refused", "wait"),
    RequestOutcome.KILLED: ("killed", "odd"),
}


def replicas(result: TrafficResult) -> Chart:
    """Skenario's first chart: replicas, and what arrived; a dot for every decision for another
    number.
    """
    counts = result.counts
    lines = [
        ChartLine(
            "active", _changes([(c.time, c.active) for c in counts]), "good", True, shape="area"
        ),
        ChartLine(
            "launching", _changes([(c.time, c.launching) for c in counts]), "wait", steps=True
        ),
        ChartLine("desired", _changes([(c.time, c.desired) for c in counts]), "info", steps=True),
        arrivals(result),
    ]
    marks = tuple(_marks(result.decisions))
    return Chart(
        "Replicas over time",
        seconds(result.end),
        lines,
        270,
        "replicas",
        "requests/s",
        marks,
        whole=True,
    )


def requests(result: TrafficResult) -> Chart:
    """The second: requests inside replicas, and those that wait for one."""
    columns = result.requests
    inside = columns.outcome != RequestOutcome.REFUSED
    left = inside & (columns.outcome != RequestOutcome.OPEN)
    there = levels(columns.arrived[inside], columns.completed[left])
    lines = [ChartLine("in flight", _thinned(result, *there), "info"), arrivals(result)]
    return Chart("Requests over time", seconds(result.end), lines, 230, "requests", "requests/s")


def failed_so_far(result: TrafficResult) -> Chart:
    """Part of the second, too; by itself, since it only grows and would hide the others."""
    columns = result.requests
    failed = levels(columns.completed[columns.outcome >= FAILED[0]])
    points = [(0.0, 0.0), *_thinned(result, *failed)]
    lines = [ChartLine("failed so far", points, "bad", steps=True)]
    return Chart("Failed requests so far", seconds(result.end), lines, 140, "requests")


def response_times(result: TrafficResult) -> Chart:
    """The third: a point for every completed request, as far as they can be told apart."""
    columns = result.requests
    done = columns.outcome == RequestOutcome.OK
    ends, times = columns.completed[done], (columns.completed - columns.arrived)[done]
    lines = [ChartLine("served", _points(result, ends, times), "info", shape="points")]
    return Chart(
        "Response times of those served",
        seconds(result.end),
        lines,
        200,
        "seconds",
        levels=_objective(result),
    )


def _objective(result: TrafficResult) -> tuple[Level, ...]:
    objective = result.spec.objective
    name = f"objective: {objective.percentile:g} % within {objective.response_time}"
    return (Level(name, seconds(int(objective.response_time))),)


def percentiles(result: TrafficResult) -> Chart:
    """Of all requests by when they came, failures at their time-outs, and of those served.

    Those served have gaps where nobody was; without a time-out nothing can be said of failures.
    By when they came, as the objective has it: of an outage one hears only later.
    """
    step, timeout = _step(result, 120), int(result.spec.request.timeout)
    rows: dict[str, list[Point]] = {name: [] for name in PERCENTILES}
    columns = result.requests
    failed = columns.outcome >= FAILED[0]
    done = columns.outcome == RequestOutcome.OK
    places, firsts = np.unique(columns.arrived[done] // step, return_index=True)
    times = (columns.completed - columns.arrived)[done]
    served = dict(zip(places.tolist(), map(np.sort, np.split(times, firsts[1:])), strict=False))
    lost = np.bincount(columns.arrived[failed] // step).tolist()
    for place in sorted({*served, *(place for place, count in enumerate(lost) if count)}):
        at = seconds(place * step + step // 2)
        own = served.get(place, times[:0])
        missing = lost[place] if place < len(lost) else 0
        for name, (percent, _, every) in PERCENTILES.items():
            if every:
                value = all_percentile_s(own, missing, timeout, percent)
            else:
                value = percentile_s(own, percent) if len(own) else None
            if value is not None:
                rows[name].append((at, value))
    near = 1.5 * seconds(step)
    lines = [
        ChartLine(name, points, PERCENTILES[name][1], near=near)
        for name, points in rows.items()
        if result.summary.failed or PERCENTILES[name][2]
    ]
    title = "Response-time percentiles by when requests came, failures at their time-outs"
    return Chart(title, seconds(result.end), lines, 200, "seconds", levels=_objective(result))


def cpu(result: TrafficResult) -> Iterator[Chart]:
    """The fourth, with the HPA's target; then CPU as it was requested and used."""
    yield utilization(result)
    if result.cpu_used or result.sizes:
        yield requested_and_used(result)


def utilization(result: TrafficResult) -> Chart:
    """CPU that active replicas use, as it was read at ticks."""
    read = cpu_utilizations(result)
    points = [(seconds(each.calculated_at), each.cpu_utilization) for each in read]
    lines = [ChartLine("mean of active replicas", points, "info")]
    targets = [Level(f"HPA target: {each} %", each) for each in _cpu_targets(result)]
    return Chart("CPU utilization", seconds(result.end), lines, 180, "percent", levels=targets)


def _cpu_targets(result: TrafficResult) -> Iterator[int]:
    """Utilizations of cpu that HPAs of the run aim at."""
    for index, given in enumerate(result.spec.autoscalers):
        told = autoscaler_of(given, index)
        if told.type not in HPA_TYPES:
            continue
        [document] = read_yaml(told.yaml)
        spec = document.value.get("spec") or {}
        if (found := spec.get("targetCPUUtilizationPercentage")) is not None:
            yield found
        for metric in spec.get("metrics") or ():
            source = metric.get("resource") or metric.get("containerResource") or {}
            found = (source.get("target") or {}).get("averageUtilization")
            if source.get("name") == "cpu" and found is not None:
                yield found


def requested_and_used(result: TrafficResult) -> Chart:
    """CPU of all replicas from launch to end, and what requests used of it between ticks."""
    held = [(each.time, each.cpu) for each in reserved_over_time(result)]
    used = [(seconds(each.time), each.millicores / 1000) for each in result.cpu_used]
    requested = [(at, level / 1000) for at, level in _changes(held)]
    lines = [
        ChartLine("requested", requested, "good", steps=True, shape="area"),
        ChartLine("used", used, "info"),
    ]
    return Chart("CPU requested and used", seconds(result.end), lines, 160, "cores")


def metrics(result: TrafficResult) -> Chart:
    """What the HPA measured at each decision, as shares of the targets; cpu has its own chart."""
    rows: dict[str, list[Point]] = {}
    for each in result.decisions:
        for metric in each.details.get("metrics") or ():
            ratio = metric.get("ratio")
            if isinstance(ratio, int | float) and not metric["name"].startswith(
                "cpu resource util"
            ):
                rows.setdefault(metric["name"], []).append((seconds(each.time), ratio))
    tones = ("info", "wait", "odd", "good", "bad")
    lines = [
        ChartLine(name, points, tones[index % len(tones)])
        for index, (name, points) in enumerate(rows.items())
    ]
    return Chart(
        "Metrics of the HPA",
        seconds(result.end),
        lines,
        160,
        "of target",
        levels=[Level("target", 1)],
    )


def sizes(result: TrafficResult) -> Iterator[Chart]:
    """What the VPA recommended for each resource, and what replicas had."""
    for resource, (unit, divisor) in SIZES.items():
        told = [
            (seconds(each.time), part)
            for each in result.sizes
            for part in each.resources
            if part.resource_name == resource and part.target
        ]
        if not told:
            continue
        stride = max(len(told) // PLACES, 1)
        lines = [
            ChartLine(
                name, [(at, getattr(part, of) / divisor) for at, part in told[::stride]], tone
            )
            for name, of, tone in (
                ("target", "target", "info"),
                ("lower bound", "lower_bound", "odd"),
            )
        ]
        held = reserved_over_time(result)
        means = [(each.time, getattr(each, resource) // max(each.replicas, 1)) for each in held]
        mean = [(at, level / divisor) for at, level in _changes(means)]
        if any(level for _, level in mean):
            lines.insert(0, ChartLine("of replicas, mean", mean, "good", steps=True))
        label = f"Recommended {resource}"
        yield Chart(label, seconds(result.end), lines, 160, f"{resource}, {unit}")


def target_text(told: RecommendedPodResources) -> str:
    """``cpu 442m``."""
    kinds = {"cpu": Cpu, "memory": Memory}
    return f"{told.resource_name} {kinds.get(told.resource_name, int)(told.target)}"


def failures(result: TrafficResult) -> Chart:
    """How many requests failed, by when and how: bars that stand on each other."""
    columns = result.requests
    step = _step(result, 120)
    below = np.zeros(result.end // step + 1, dtype=np.int64)
    lines: list[ChartLine] = []
    for outcome, (name, tone) in FAILURES.items():
        places = columns.completed[columns.outcome == outcome] // step
        if len(places):
            own = np.bincount(places, minlength=len(below))
            below = below + own
            points = [
                (seconds(place * step + step // 2), int(below[place]))
                for place in np.flatnonzero(own).tolist()
            ]
            lines.append(ChartLine(name, points, tone, shape="bars"))
    # The highest first: those below are drawn over its lower part.
    unit = f"requests in {seconds(step):g} s"
    return Chart("Failed requests", seconds(result.end), lines[::-1], 160, unit)


def arrivals(result: TrafficResult) -> ChartLine:
    step = _step(result, PLACES // 2)
    counts = np.bincount(result.requests.arrived // step).tolist()
    points = [
        (seconds(place * step + step // 2), count / seconds(step))
        for place, count in enumerate(counts)
    ]
    return ChartLine("requests per second (right)", points, "rate", right=True)


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


def _marks(decisions: Sequence[AutoscalerDecision]) -> Iterator[ChartMark]:
    for index, each in changes(decisions)[:MOST_MARKS]:
        title = f"{seconds(each.time):g} s: {each.before} to {each.after}. {each.reason}"
        tone = "up" if each.after > each.before else "down"
        yield ChartMark(seconds(each.time), each.after, f"#decision-{index}", title, tone)


NONE = "–"


def figures_of(result: TrafficResult) -> Iterator[Figure]:
    yield from _of_requests(result)
    yield from _of_replicas(result)


def _of_requests(result: TrafficResult) -> Iterator[Figure]:
    told, objective = result.summary, result.spec.objective
    yield Figure("Requests", f"{told.requests:,}", f"{told.open:,} open at the end")
    share = _share(told.failed, told.requests - told.open)
    yield Figure("Failed", f"{told.failed:,}", share, tone="bad" if told.failed else "")
    yield from _of_response_times(told)
    yield Figure(
        "SLO missed",
        f"{told.slo_minutes:,} min",
        f"of {told.minutes:,}; {objective.percentile:g} % within {objective.response_time}",
        tone="bad" if told.slo_minutes else "",
    )


def _of_response_times(told: TrafficSummary) -> Iterator[Figure]:
    """Where nobody ended there are none: no time at all would look like a very short one."""
    if told.failed:
        every = [_time(each) for each in (told.all_response_p50_s, told.all_response_p99_s)]
        note = f"median {every[0]}, 99 % {every[1]}; failures at their time-outs"
        yield Figure("95 % of all", _time(told.all_response_p95_s), note, tone="bad")
    if not told.succeeded:
        yield Figure("95 % of those served", NONE, "no request succeeded")
        return
    served = f"median {told.response_p50_s:.3f} s, 99 % {told.response_p99_s:.3f} s"
    yield Figure("95 % of those served", f"{told.response_p95_s:.3f} s", served)


def _time(value: float | None) -> str:
    return "never" if value is None else f"{value:.3f} s"


def _of_replicas(result: TrafficResult) -> Iterator[Figure]:
    told = result.summary
    hours = f"{told.replica_hours:.2f} replica-hours"
    yield Figure("Replicas", f"{told.replicas_least} to {told.replicas_most}", hours)
    yield Figure("CPU", f"{told.cpu_used_hours:.2f} h used", f"of {told.cpu_hours:.2f} h")
    moves = f"{told.scale_ups} up, {told.scale_downs} down"
    note = counted(told.reversals, "reversal")
    if told.time_to_scale_max_s:
        note += f"; {told.time_to_scale_mean_s:.1f} s from decision to ready"
    yield Figure("Scaling", moves, note)
    if told.oom_kills:
        yield Figure("Out of memory", f"{told.oom_kills:,}", "replicas killed", tone="bad")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "no request ended"
