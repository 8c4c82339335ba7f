"""The numbers of a traffic run that people ask for first."""

from collections.abc import Iterator

from kubescene.reports.html.contents import Figure
from kubescene.traffic import TrafficResult
from kubescene.traffic.measures import Summary

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
        tone="wait" if told.slo_minutes else "",
    )


def _of_response_times(told: Summary) -> Iterator[Figure]:
    """Where nobody succeeded there are none: no time at all would look like a very short one."""
    if not told.succeeded:
        yield Figure("Median", NONE, "no request succeeded")
        yield Figure("95 %", NONE, "no request succeeded")
        return
    yield Figure("Median", f"{told.response_p50_s:.3f} s", "response time")
    yield Figure("95 %", f"{told.response_p95_s:.3f} s", f"99 %: {told.response_p99_s:.3f} s")


def _of_replicas(result: TrafficResult) -> Iterator[Figure]:
    told = result.summary
    hours = f"{told.replica_hours:.2f} replica-hours"
    yield Figure("Replicas", f"{told.replicas_least} to {told.replicas_most}", hours)
    yield Figure("CPU", f"{told.cpu_used_hours:.2f} h used", f"of {told.cpu_hours:.2f} h")
    moves = f"{told.scale_ups} up, {told.scale_downs} down"
    yield Figure("Scaling", moves, f"{told.flapping} reversals")
    if told.time_to_scale_max_s:
        longest = f"longest {told.time_to_scale_max_s:.1f} s"
        yield Figure("Time to scale", f"{told.time_to_scale_mean_s:.1f} s", longest)
    if told.oom_kills:
        yield Figure("Out of memory", f"{told.oom_kills:,}", "replicas killed", tone="bad")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "no request ended"
