"""A traffic run as a person wants to see it in a terminal."""

from collections.abc import Iterable
from typing import Self

import numpy as np
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from kubescene.clock import SECOND, format_duration
from kubescene.markup import visible
from kubescene.reports.columns import put
from kubescene.reports.plots import axis, highest, plot
from kubescene.reports.progress import LiveLine
from kubescene.reports.words import counted
from kubescene.traffic import (
    AutoscalerDecision,
    Phase,
    SizeDecision,
    TrafficProgress,
    TrafficResult,
    TrafficSummary,
    Verdict,
)
from kubescene.traffic.decided import early_failures, kept_for, size_changes

VERDICT_STYLES = {
    Verdict.KEPT: "bold green",
    Verdict.MISSED: "bold red",
    Verdict.NOTHING: "bold yellow",
    Phase.CANCELLED: "bold yellow",
    Phase.FAILED: "bold red",
}
PLOT_HEIGHT, RATE_HEIGHT = 8, 3
DECISIONS_SHOWN = 12
SAY_EVERY = 10 * SECOND


def print_result(result: TrafficResult, console: Console) -> None:
    """Phase, replicas and requests over time, measures, and what autoscalers decided."""
    put(console, *sections(result, console.width))


def sections(result: TrafficResult, width: int) -> Iterable[RenderableType]:
    yield headline(result)
    if result.counts and result.end:
        yield replicas_plot(result, width)
    if result.requests.count:
        yield rate_plot(result, width)
    yield measures_table(result.summary)
    changes = [each for each in result.decisions if each.after != each.before]
    if changes:
        yield decisions_table(changes)
    elif result.decisions:
        yield kept_table(result.decisions)
    if result.sizes:
        yield sizes_table(size_changes(result.sizes))
    failing = [each for each in result.decisions if each.details.get("error")]
    if failing:
        yield failing_note(failing, result.decisions)


def headline(result: TrafficResult) -> Text:
    verdict = Text(result.verdict, style=VERDICT_STYLES[result.verdict])
    told = Text.assemble((visible(result.name), "bold"), "  ", verdict)
    told.append(f"  {format_duration(result.end)} simulated, {result.spec.mode} mode", style="dim")
    if result.message:
        told.append(f"\n{visible(result.message)}", style="red")
    return told


def replicas_plot(result: TrafficResult, width: int) -> Text:
    """Active replicas as columns, the desired number as a line where it is higher."""
    columns = max(min(width - 12, 100), 20)
    active = highest([(each.time, each.active) for each in result.counts], result.end, columns)
    desired = highest([(each.time, each.desired) for each in result.counts], result.end, columns)
    label = len(f"{max([*active, *desired, 1]):,}")
    text = Text("\nReplicas (active; ─ desired)\n", style="bold")
    rows = plot(active, PLOT_HEIGHT, desired)
    text.append("\n".join(rows), style="not bold green")
    text.append("\n" + "\n".join(axis(columns, label, format_duration(result.end))), "not bold dim")
    return text


def rate_plot(result: TrafficResult, width: int) -> Text:
    """Requests a second."""
    columns = max(min(width - 12, 100), 20)
    seconds = np.bincount(result.requests.arrived // SECOND, minlength=-(-result.end // SECOND))
    points = [(second * SECOND, int(count)) for second, count in enumerate(seconds)]
    levels = highest(points, result.end, columns)
    text = Text("\nRequests a second\n", style="bold")
    return text.append("\n".join(plot(levels, RATE_HEIGHT)), style="not bold cyan")


def measures_table(summary: TrafficSummary) -> Table:
    table = Table(title="\nMeasures", title_justify="left", title_style="bold", box=None)
    table.show_header = False
    table.pad_edge = False
    for name, value in measures(summary):
        table.add_row(Text(name, style="dim"), value)
    return table


def measures(summary: TrafficSummary) -> Iterable[tuple[str, str]]:
    yield "requests", f"{summary.requests:,}, {summary.open:,} still inside at the end"
    yield "failed", failures(summary)
    yield from response_times(summary)
    yield "SLO", f"missed in {summary.slo_minutes} of {counted(summary.minutes, 'minute')}"
    killed = f", {summary.oom_kills:,} killed for want of memory" if summary.oom_kills else ""
    yield "replicas", f"{summary.replicas_least} to {summary.replicas_most} active{killed}"
    yield (
        "cost",
        (
            f"{summary.replica_hours:.3f} replica-hours, {summary.cpu_hours:.3f} CPU-hours, "
            f"of which {summary.cpu_used_hours:.3f} were used"
        ),
    )
    yield (
        "scaling",
        (
            f"{summary.scale_ups} up, {summary.scale_downs} down, "
            f"{counted(summary.reversals, 'reversal')}, {counted(summary.evictions, 'eviction')}"
        ),
    )
    if summary.time_to_scale_max_s:
        yield (
            "decision to ready",
            (
                f"mean {seconds(summary.time_to_scale_mean_s)}, "
                f"longest {seconds(summary.time_to_scale_max_s)}"
            ),
        )


def response_times(summary: TrafficSummary) -> Iterable[tuple[str, str]]:
    """Of all, failures at their time-outs, and of those served."""
    if summary.failed:
        of_all = (
            summary.all_response_p50_s,
            summary.all_response_p90_s,
            summary.all_response_p95_s,
            summary.all_response_p99_s,
        )
        yield "response time", f"of all, failures at their time-outs: {percentiles(of_all)}"
    of_served = (
        summary.response_p50_s,
        summary.response_p90_s,
        summary.response_p95_s,
        summary.response_p99_s,
    )
    mean = seconds(summary.response_mean_s)
    told = f"of those served: {percentiles(of_served)}, mean {mean}"
    name = "" if summary.failed else "response time"
    yield name, told if summary.succeeded else "none was served"


def percentiles(values: Iterable[float | None]) -> str:
    return ", ".join(
        f"p{name} {'never' if value is None else seconds(value)}"
        for name, value in zip((50, 90, 95, 99), values, strict=True)
    )


def failures(summary: TrafficSummary) -> str:
    done = summary.requests - summary.open
    share = 100 * summary.failed / done if done else 0.0
    return (
        f"{summary.failed:,} ({share:.2f} %): {summary.timed_out:,} timed out, "
        f"{summary.refused:,} refused, {summary.killed:,} killed"
    )


def seconds(value: float) -> str:
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def decisions_table(changes: list[AutoscalerDecision]) -> Table:
    table = titled("Decisions", len(changes))
    for each in changes[:DECISIONS_SHOWN]:
        moved = f"{each.before} → {each.after}"
        reason = each.reason.removeprefix(f"{each.before} -> {each.after}: ")
        table.add_row(format_duration(each.time // SECOND * SECOND), moved, words(reason))
    return table


def kept_table(decisions: list[AutoscalerDecision]) -> Table:
    """A number that never changes has its reasons, too."""
    reasons = kept_for(decisions)
    table = titled(f"Decisions: all {len(decisions)} left the number as it was", len(reasons))
    for reason, several in reasons[:DECISIONS_SHOWN]:
        first = format_duration(several[0].time // SECOND * SECOND)
        table.add_row(first, f"{several[0].after}, {len(several)} times", words(reason))
    return table


def sizes_table(sizes: list[SizeDecision]) -> Table:
    """Recommendations that differ from the one before, or that moved somebody."""
    table = titled("Sizes", len(sizes))
    for each in sizes[:DECISIONS_SHOWN]:
        moved = len(each.evicted) + len(each.resized)
        change = counted(moved, "replica") if moved else "nobody"
        table.add_row(format_duration(each.time // SECOND * SECOND), change, words(each.reason))
    return table


def words(reason: str) -> Text:
    """What an autoscaler says, as it says it: brackets are no styles."""
    return Text(visible(reason))


def failing_note(failing: list[AutoscalerDecision], decisions: list[AutoscalerDecision]) -> Text:
    """A count that stays because nothing could be measured looks like one that was decided."""
    first, passes = failing[0], len(decisions)
    at, cause = format_duration(first.time // SECOND * SECOND), first.details["error"]
    if early_failures(decisions) == len(failing):
        until = format_duration(failing[-1].time // SECOND * SECOND)
        told = f"No metrics yet until {until}, as after every start"
        return Text(f"\n{told}: {visible(str(cause).rpartition(': ')[2])}", style="dim")
    told = f"Metrics failed in {len(failing)} of {counted(passes, 'decision')}, first at {at}"
    return Text(f"\n{told}: {visible(str(cause).rpartition(': ')[2])}", style="yellow")


def titled(name: str, count: int) -> Table:
    more = f" (the first {DECISIONS_SHOWN} of {count})" if count > DECISIONS_SHOWN else ""
    table = Table(title=f"\n{name}{more}", title_justify="left", title_style="bold", box=None)
    table.pad_edge = False
    table.add_column("time", justify="right", header_style="dim")
    table.add_column("change", header_style="dim", no_wrap=True)
    table.add_column("why", header_style="dim")
    return table


class TrafficProgressLine:
    """How far a run is: a live line on a terminal, a plain line now and then elsewhere."""

    def __init__(self, console: Console) -> None:
        self._line = LiveLine(console, SAY_EVERY, "bar", "percent")

    def __enter__(self) -> Self:
        self._line.open(total=1.0)
        return self

    def __exit__(self, *ending: object) -> None:
        self._line.close()

    def __call__(self, progress: TrafficProgress) -> None:
        pace = progress.requests / max(self._line.spent_s, 0.001)
        told = (
            f"{format_duration(progress.now // SECOND * SECOND)} of "
            f"{format_duration(progress.end)}, {counted(progress.requests, 'request')}, "
            f"{counted(progress.active, 'replica')} active, {pace:,.0f} requests a second"
        )
        if self._line.is_live:
            self._line.show(told, completed=progress.now / progress.end)
        elif self._line.is_due:
            self._line.say(told)
