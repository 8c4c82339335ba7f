"""The summary of a run as a person wants to see it in a terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kubescene.results import ExpectationOutcome, NodeUse, Placement, Summary

PHASE_STYLES = {"Succeeded": "bold green", "Paused": "bold yellow", "Failed": "bold red"}
BAR_WIDTH = 12
ROWS_SHOWN = 12


def print_summary(summary: Summary, console: Console) -> None:
    """Steps, decisions, nodes and pods that wait, as far as there are any."""
    console.print(Group(*sections(summary)))


def sections(summary: Summary) -> Iterable[RenderableType]:
    yield headline(summary)
    if summary.warnings:
        yield warnings_text(summary)
    if summary.steps:
        yield steps_table(summary)
    if summary.placements:
        yield decisions_table(summary)
    if summary.nodes:
        yield nodes_table(summary)
    if summary.pending:
        yield pending_table(summary)
    if summary.ignored:
        yield ignored_line(summary)
    if summary.outside:
        yield outside_text(summary)
    if summary.expectations:
        yield expectations_text(summary)


def warnings_text(summary: Summary) -> RenderableType:
    lines = [Padding(Text(each, style="yellow"), (0, 0, 0, 2)) for each in summary.warnings]
    return Group(Text("\nNot simulated", style="yellow"), *lines)


def ignored_line(summary: Summary) -> Text:
    shown, left = summary.ignored[:ROWS_SHOWN], len(summary.ignored) - ROWS_SHOWN
    more = f" and {left} more" if left > 0 else ""
    names = ", ".join(shown)
    why = "since the scenario was done or their step had passed"
    return Text(f"\nNever played, {why}: {names}{more}", style="yellow")


def outside_text(summary: Summary) -> RenderableType:
    """Whose turns were judged how, and whether another run will be alike."""
    table = Table.grid(padding=(0, 2))
    for each in summary.outside:
        style, worth = ("green", "same bytes") if each.same_bytes else ("yellow", each.message)
        judged = ", ".join(each.judged_by) or "-"
        table.add_row(f"  {each.name}", each.kind, judged, Text(worth, style=style))
    return Group(Text("\nOutside", style="bold"), table)


def expectations_text(summary: Summary) -> RenderableType:
    """Last, since it is what a verdict looks for. Those that do not hold are all shown."""
    of = len(summary.expectations)
    verdict = f"{of - len(summary.unmet)} of {of} hold"
    held = [each for each in summary.expectations if each.holds]
    shown = [*summary.unmet, *held[:ROWS_SHOWN]]
    lines = [expectation_line(each) for each in summary.expectations if each in shown]
    more = [Text(f"  and {of - len(shown)} more that hold", style="dim")] if of > len(shown) else []
    return Group(Text(f"\nExpectations: {verdict}", style="bold"), *lines, *more)


def expectation_line(outcome: ExpectationOutcome) -> RenderableType:
    style, mark = ("green", "holds  ") if outcome.holds else ("red", "FAILS  ")
    table = Table.grid()
    text = f"{outcome.name}: {outcome.why}" if outcome.why else outcome.name
    table.add_row(Text(f"  {mark}", style=style), Text(text))
    return table


def headline(summary: Summary) -> RenderableType:
    phase = Text(summary.phase, style=PHASE_STYLES.get(summary.phase, "bold"))
    title = Text.assemble((summary.scenario, "bold"), "  ", phase)
    if summary.message:
        return Panel(Text(summary.message), title=title, title_align="left", border_style="red")
    if summary.phase == "Paused":
        title.append("  (no done operation: it would go on with more operations)", style="dim")
    return title


WIDEST_TITLE = 60


def plain_table(title: str, *columns: tuple[str, str]) -> Table:
    """A table that is as wide as its title: rich would break that at the table's width."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.min_width = min(WIDEST_TITLE, max(map(len, title.splitlines())))
    for name, justify in columns:
        table.add_column(name, justify=justify, header_style="dim")  # type: ignore[arg-type]
    return table


def steps_table(summary: Summary) -> Table:
    table = plain_table(
        "\nSteps",
        ("step", "right"),
        ("operations", "right"),
        ("minor steps", "right"),
        ("bound", "right"),
        ("unschedulable", "right"),
        ("deleted", "right"),
        ("other writes", "right"),
    )
    for step in summary.steps:
        failed = Text(str(step.failed_attempts), style="yellow" if step.failed_attempts else "")
        table.add_row(
            str(step.major),
            str(step.operations),
            str(step.minor_steps),
            str(step.scheduled),
            failed,
            str(step.deleted),
            str(step.controller_writes),
        )
    return table


def decisions_table(summary: Summary) -> Table:
    shown = summary.placements[-ROWS_SHOWN:]
    scored = any(placed.score is not None for placed in shown)
    table = plain_table(
        f"\nDecisions{_decisions_told(summary.placements_total, shown, scored=scored)}",
        ("step", "right"),
        ("pod", "left"),
        ("node", "left"),
        *((("score", "right"), ("runner-up", "left")) if scored else ()),
        ("nodes that fit", "right"),
    )
    for placed in shown:
        table.add_row(
            placed.step,
            placed.pod,
            Text(placed.node, style="green"),
            *(_score_cells(placed) if scored else ()),
            # A scheduler outside the process does not tell which nodes it has looked at.
            f"{placed.feasible} of {placed.candidates}" if placed.candidates else "-",
        )
    return table


def _decisions_told(total: int, shown: Sequence[Placement], *, scored: bool) -> str:
    told = [f"the last {ROWS_SHOWN} of {total}"] if total > ROWS_SHOWN else []
    if not scored and any(placed.feasible > 1 for placed in shown):
        told.append("scores were not kept")
    return f" ({'; '.join(told)})" if told else ""


def _score_cells(placed: Placement) -> tuple[str, str]:
    score = "-" if placed.score is None else str(placed.score)
    if placed.runner_up:
        return score, f"{placed.runner_up} {placed.runner_up_score}"
    return score, "only one fits" if placed.feasible == 1 else "-"


def nodes_table(summary: Summary) -> Table:
    nodes = sorted(summary.nodes, key=lambda node: -share(node, "cpu"))
    more = f" (the {ROWS_SHOWN} busiest of {len(nodes)})" if len(nodes) > ROWS_SHOWN else ""
    table = plain_table(
        f"\nNodes{more}", ("node", "left"), ("pods", "right"), ("cpu", "left"), ("memory", "left")
    )
    for node in nodes[:ROWS_SHOWN]:
        table.add_row(node.name, str(node.pods), gauge(node, "cpu"), gauge(node, "memory"))
    return table


def pending_table(summary: Summary) -> Table:
    more = f" ({ROWS_SHOWN} of {len(summary.pending)})" if len(summary.pending) > ROWS_SHOWN else ""
    table = plain_table(
        f"\nPods that wait{more}", ("pod", "left"), ("tried", "right"), ("why", "left")
    )
    for pod in summary.pending[:ROWS_SHOWN]:
        table.add_row(Text(pod.pod, style="yellow"), str(pod.attempts), Text(pod.message))
    return table


def share(node: NodeUse, resource: str) -> float:
    offered = node.allocatable.get(resource, 0)
    return node.requested.get(resource, 0) / offered if offered else 0.0


def gauge(node: NodeUse, resource: str) -> Text:
    """A bar and the figures: requested of allocatable."""
    offered = node.allocatable.get(resource, 0)
    if not offered:
        return Text("-", style="dim")
    used = share(node, resource)
    filled = min(round(used * BAR_WIDTH), BAR_WIDTH)
    style = "red" if used > 0.95 else "yellow" if used > 0.8 else "green"
    amounts = f" {amount(resource, node.requested.get(resource, 0))}/{amount(resource, offered)}"
    return Text.assemble(
        ("█" * filled, style),
        ("░" * (BAR_WIDTH - filled), "dim"),
        f" {used:4.0%}",
        (amounts, "dim"),
    )


def amount(resource: str, value: int) -> str:
    """Cpu in cores, everything else in binary units."""
    if resource == "cpu":
        return f"{value / 1000:g}"
    for unit in ("", "Ki", "Mi", "Gi", "Ti"):
        if value < 1024 or unit == "Ti":
            return f"{value:.4g}{unit}" if isinstance(value, float) else f"{value}{unit}"
        value /= 1024  # type: ignore[assignment]
    raise AssertionError("unreachable")
