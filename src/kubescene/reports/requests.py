"""Requests of Traffic objects and what autoscalers decided, as a terminal shows them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kubescene.clock import format_duration, parse_time
from kubescene.markup import visible
from kubescene.reports.amounts import told_duration
from kubescene.reports.columns import TerminalColumn, fitted_table
from kubescene.reports.plots import axis, plot
from kubescene.results.summary import ScalingTold, Summary, TrafficTold

PLOTTED = 3
"""So many Traffics are drawn."""
HEIGHT = 3
DECISIONS_SHOWN = 12


class Plot(NamedTuple):
    """Levels over time, and marks above them."""

    name: str
    values: Sequence[int]
    style: str
    marks: Sequence[int] = ()


def requests_sections(summary: Summary, width: int) -> Iterable[RenderableType]:
    """A table of all, plots of the first ones, and the decisions."""
    traffic = summary.traffic
    if traffic:
        yield traffic_table(traffic, width)
        notes = [f"{each.traffic}: {each.inexact}" for each in traffic if each.inexact]
        if notes:
            lines = [Padding(Text(visible(each), style="yellow"), (0, 0, 0, 2)) for each in notes]
            yield Group(Text("\nNot exact", style="yellow"), *lines)
    for each in traffic[:PLOTTED]:
        yield plots(each, length_of(summary), width)
    if summary.scaling:
        yield scaling_table(summary.scaling)


def traffic_table(traffic: Sequence[TrafficTold], width: int) -> Table:
    """Times of all that ended, failures at their time-outs, and of those served."""
    failed = [Text(failures(each), style="red" if each.failed else "") for each in traffic]
    missed = [Text(f"{each.slo_minutes:g} of {each.minutes:g} min") for each in traffic]
    return fitted_table(
        "\nRequests (p99: of all that ended, a failure at its time-out)",
        (
            TerminalColumn("traffic", "left", [visible(each.traffic) for each in traffic]),
            TerminalColumn("requests", "right", [f"{each.requests:,}" for each in traffic]),
            TerminalColumn("failed", "right", failed),
            TerminalColumn("p50", "right", [told_ms(each.p50_ms) for each in traffic], 3),
            TerminalColumn("p99", "right", [told_ms(each.p99_ms) for each in traffic]),
            TerminalColumn("served p50", "right", [told_ms(t.served_p50_ms) for t in traffic], 4),
            TerminalColumn("served p99", "right", [told_ms(t.served_p99_ms) for t in traffic]),
            TerminalColumn("SLO missed", "right", missed, 2),
        ),
        width,
    )


def failures(told: TrafficTold) -> str:
    share = 100 * told.failed / told.requests if told.requests else 0.0
    return f"{told.failed:,} ({share:.2f} %)"


def told_ms(value: float | None) -> str:
    if value is None:
        return "never"
    return f"{value:.1f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def plots(told: TrafficTold, end: str, width: int) -> Text:
    """What came, what failed, how long it took and who served, one above the other."""
    columns = min(max(width - 14, 20), len(told.rps))
    objective = [int(told.objective_ms)] * columns
    drawn = (
        Plot("requests a second", told.rps, "cyan"),
        Plot("failed a second", told.failed_rps, "red"),
        Plot("p99 of all, ms (\u2500 the objective)", told.p99_levels_ms, "yellow", objective),
        Plot("pods that serve", told.ready, "green"),
    )
    shown = [each for each in drawn if any(each.values)]
    label = max(len(f"{max([*each.values, *each.marks]):,}") for each in drawn if each in shown)
    text = Text(f"\n{visible(told.traffic)}\n", style="bold")
    for each in shown:
        rows = plot(coarser(each.values, columns), HEIGHT, each.marks)
        text.append(f"{'':{label + 2}}{each.name}\n", style="not bold dim")
        lines = [f"{row:>{label + 2 + columns}}" for row in rows]
        text.append("\n".join(lines) + "\n", f"not bold {each.style}")
    return text.append("\n".join(axis(columns, label, end)), "not bold dim")


def coarser(values: Sequence[int], parts: int) -> list[int]:
    """The highest of each share of them."""
    ends = [len(values) * place // parts for place in range(parts + 1)]
    return [max(values[start:end]) for start, end in pairwise(ends)]


def length_of(summary: Summary) -> str:
    """How long the run was, as an axis tells it."""
    return format_duration(parse_time(summary.ended) - parse_time(summary.started))


def scaling_table(scaling: Sequence[ScalingTold]) -> Table:
    shown = scaling[:DECISIONS_SHOWN]
    more = f" (the first {DECISIONS_SHOWN} of {len(scaling)})" if len(scaling) > len(shown) else ""
    table = Table(title=f"\nScaling{more}", title_justify="left", title_style="bold", box=None)
    table.pad_edge = False
    table.add_column("time", justify="right", header_style="dim", no_wrap=True)
    table.add_column("target", header_style="dim", no_wrap=True)
    table.add_column("change", header_style="dim", no_wrap=True)
    table.add_column("why", header_style="dim")
    for each in shown:
        moved = f"{each.replicas_from} \u2192 {each.replicas_to}"
        reason = each.reason.removeprefix(f"{each.replicas_from} -> {each.replicas_to}: ")
        when = f"+{told_duration(each.time_s)}"
        table.add_row(when, visible(each.target), moved, Text(visible(reason)))
    return table
