"""The summary of a run as a person wants to see it in a terminal."""

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.reports.amounts import is_bytes, natural, told_duration
from kubescene.reports.columns import TerminalColumn, fitted_table, fitting, put
from kubescene.reports.plots import bars
from kubescene.reports.words import told_apart
from kubescene.results import ExpectationOutcome, NodeUse, Placement, Summary
from kubescene.results.states import is_broken
from kubescene.results.summary import CostTold, WorkloadTold

PHASE_STYLES = {"Succeeded": "bold green", "Paused": "bold yellow", "Failed": "bold red"}
ROWS_SHOWN = 12
TENTHS = 10
OUTCOME_STYLES = {"Completed": "green", "Refused": "red", "TimedOut": "red", "Incomplete": "red"}


def print_summary(summary: Summary, console: Console) -> None:
    """Steps, decisions, nodes and pods that wait, as far as there are any."""
    put(console, Group(*sections(summary, console.width)))


def sections(summary: Summary, width: int) -> Iterable[RenderableType]:
    yield headline(summary)
    if summary.warnings:
        yield warnings_text(summary)
    if summary.steps:
        yield steps_table(summary, width)
    if summary.placements:
        yield decisions_table(summary, width)
    if summary.nodes:
        yield from nodes_tables(summary.nodes, width)
    yield from sections_over_time(summary, width)
    if summary.pending:
        yield pending_table(summary, width)
    if summary.outcomes:
        yield operations_text(summary)
    if summary.ignored:
        yield ignored_line(summary)
    if summary.outside:
        yield outside_text(summary)
    if summary.expectations:
        yield expectations_text(summary)


def sections_over_time(summary: Summary, width: int) -> Iterable[RenderableType]:
    """What there is to say of virtual time that passed."""
    if summary.workloads:
        yield workloads_table(summary.workloads, width)
    if summary.traffic or summary.scaling:
        # Most runs have neither.
        from kubescene.reports.requests import requests_sections

        yield from requests_sections(summary, width)
    if summary.costs:
        yield costs_table(summary.costs, width)


def warnings_text(summary: Summary) -> RenderableType:
    lines = [Padding(Text(each, style="yellow"), (0, 0, 0, 2)) for each in summary.warnings]
    return Group(Text("\nNot simulated", style="yellow"), *lines)


def ignored_line(summary: Summary) -> Text:
    shown, left = summary.ignored[:ROWS_SHOWN], len(summary.ignored) - ROWS_SHOWN
    more = f" and {left} more" if left > 0 else ""
    names = ", ".join(shown)
    why = "since the scenario was done or their step had passed"
    return Text(f"\nNever played, {why}: {names}{more}", style="yellow")


def operations_text(summary: Summary) -> RenderableType:
    """What came of operations that take time."""
    shown = told_apart(summary.outcomes)
    table = Table.grid(padding=(0, 2))
    for each in shown[-ROWS_SHOWN:]:
        style = OUTCOME_STYLES.get(each.state, "yellow")
        when = f"+{told_duration(each.time_s)}"
        table.add_row(f"  {each.operation}", when, Text(each.state, style=style), each.message)
    left = len(shown) - ROWS_SHOWN
    more = [Text(f"  and {left} more before", style="dim")] if left > 0 else []
    return Group(Text("\nOperations", style="bold"), *more, table)


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
    style, mark = ("green", "holds  ") if outcome.holds else ("bold red", "FAILS  ")
    table = Table.grid()
    text = f"{outcome.name}: {outcome.why}" if outcome.why else outcome.name
    table.add_row(Text(f"  {mark}", style=style), Text(text, style="" if outcome.holds else "red"))
    return table


def headline(summary: Summary) -> RenderableType:
    """How it ended; what its author expects of it comes first if it did not come true."""
    phase = Text(summary.phase, style=PHASE_STYLES.get(summary.phase, "bold"))
    if summary.unmet:
        phase = Text.assemble((summary.verdict, "bold red"), (f"  {summary.phase}", "dim"))
    title = Text.assemble((summary.scenario, "bold"), "  ", phase)
    if summary.message:
        return Panel(Text(summary.message), title=title, title_align="left", border_style="red")
    if summary.phase == "Paused":
        title.append("  (no done operation: it would go on with more operations)", style="dim")
    return title


def steps_table(summary: Summary, width: int) -> Table:
    """What was done in each step; pods that wait are those without a node at its end."""
    steps = summary.steps
    waiting = [Text(str(s.pending), style="yellow" if s.pending else "") for s in steps]
    return fitted_table(
        "\nSteps",
        (
            TerminalColumn("step", "right", [str(s.major) for s in steps]),
            TerminalColumn("operations", "right", [str(s.operations) for s in steps], 1),
            TerminalColumn("minor steps", "right", [str(s.minor_steps) for s in steps], 3),
            TerminalColumn(
                "attempts", "right", [str(s.scheduled + s.failed_attempts) for s in steps], 2
            ),
            TerminalColumn("bound", "right", [str(s.scheduled) for s in steps]),
            TerminalColumn("waiting", "right", waiting),
            TerminalColumn("deleted", "right", [str(s.deleted) for s in steps]),
            TerminalColumn("other writes", "right", [str(s.controller_writes) for s in steps], 4),
        ),
        width,
    )


def decisions_table(summary: Summary, width: int) -> Table:
    shown = summary.placements[-ROWS_SHOWN:]
    scored = any(placed.score is not None for placed in shown)
    scores = [_score_cells(placed) for placed in shown]
    columns = [TerminalColumn("step", "right", [placed.step for placed in shown])]
    if summary.started != summary.ended:
        times = [f"+{told_duration(placed.time_s)}" for placed in shown]
        columns.append(TerminalColumn("time", "right", times, 1))
    columns += (
        TerminalColumn("pod", "left", [placed.pod for placed in shown]),
        TerminalColumn("node", "left", [Text(placed.node, style="green") for placed in shown]),
    )
    if scored:
        columns += (
            TerminalColumn("score", "right", [score for score, _ in scores], 3),
            TerminalColumn("runner-up", "left", [runner_up for _, runner_up in scores], 4),
        )
    # Of the nodes evaluated; a scheduler outside the process does not tell which it has.
    fits = [f"{p.feasible} of {p.candidates}" if p.candidates else "-" for p in shown]
    columns.append(TerminalColumn("feasible", "right", fits, 2))
    told = _decisions_told(summary.placements_total, shown, scored=scored)
    return fitted_table(f"\nDecisions{told}", columns, width)


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


def pending_table(summary: Summary, width: int) -> Table:
    more = f" ({ROWS_SHOWN} of {len(summary.pending)})" if len(summary.pending) > ROWS_SHOWN else ""
    shown = summary.pending[:ROWS_SHOWN]
    return fitted_table(
        f"\nPods that wait{more}",
        (
            TerminalColumn("pod", "left", [Text(pod.pod, style="yellow") for pod in shown]),
            TerminalColumn("tried", "right", [str(pod.attempts) for pod in shown], 1),
            TerminalColumn("why", "left", [Text(pod.message) for pod in shown], folds=True),
        ),
        width,
    )


def workloads_table(workloads: Sequence[WorkloadTold], width: int) -> Table:
    """Those that lack something first; over time, the fewest pods that were available."""
    shown = sorted(workloads, key=lambda each: (not is_short(each), each.workload))[:ROWS_SHOWN]
    more = f" ({ROWS_SHOWN} of {len(workloads)})" if len(workloads) > ROWS_SHOWN else ""
    ready = [Text(ready_of(each), style="red" if is_short(each) else "") for each in shown]
    drawn = [Text(drawn_levels(each), style="green") for each in shown]
    columns = [
        TerminalColumn("workload", "left", [each.workload for each in shown]),
        TerminalColumn("kind", "left", [each.kind for each in shown], 4),
        TerminalColumn("over time", "left", drawn, 3),
        TerminalColumn("ready", "right", ready),
        TerminalColumn("least", "right", [or_dash(each.least_available) for each in shown], 1),
        TerminalColumn("roll-out", "left", [*map(rollout_cell, shown)], 2),
    ]
    columns += (
        TerminalColumn(name, "right", cells, 2)
        for name, cells in (
            ("below budget", [below_cell(each) for each in shown]),
            ("restarts", [count_cell(each.restarts) for each in shown]),
            ("completed", [count_cell(each.completions) for each in shown]),
            ("failed", [count_cell(each.failures, "red") for each in shown]),
        )
        if any(cell.plain != "-" for cell in cells)
    )
    return fitted_table(f"\nWorkloads{more}", columns, width)


def costs_table(costs: Sequence[CostTold], width: int) -> Table:
    """The dearest groups first; then all of them, if that can be summed up."""
    shown = sorted(costs, key=lambda each: (-each.cost, each.group))[:ROWS_SHOWN]
    more = f" ({ROWS_SHOWN} of {len(costs)})" if len(costs) > ROWS_SHOWN else ""
    currencies = {each.currency for each in costs}
    total = f": {sum(each.cost for each in costs):.4g} {shown[0].currency}"
    used = [each.requested or 0 for each in shown]
    shares = [f"{x / e.cost:.0%}" if e.cost else "-" for x, e in zip(used, shown, strict=True)]
    columns = [
        TerminalColumn("group", "left", [each.group for each in shown]),
        TerminalColumn("machines", "right", [str(each.instances) for each in shown]),
        TerminalColumn("at most", "right", [str(each.instances_most) for each in shown], 2),
        TerminalColumn("hours", "right", [f"{each.hours:.2f}" for each in shown], 1),
        TerminalColumn("cost", "right", [f"{each.cost:.4g} {each.currency}" for each in shown]),
        TerminalColumn("requested", "right", shares, 3),
    ]
    if any(each.failed for each in shown):
        failed = [count_cell(each.failed, "red") for each in shown]
        columns.append(TerminalColumn("failed", "right", failed, 2))
    return fitted_table(f"\nCost{total if len(currencies) == 1 else ''}{more}", columns, width)


def is_short(told: WorkloadTold) -> bool:
    """Whether it lacks pods, or its roll-out is not over."""
    if told.rollout in ("Stalled", "Unfinished"):
        return True
    return told.available is not None and told.available < (told.desired or 0)


def ready_of(told: WorkloadTold) -> str:
    if told.available is None:
        return str(told.ready)
    return f"{told.ready}/{told.desired}"


def drawn_levels(told: WorkloadTold) -> str:
    return bars([*told.levels, told.desired or 0])[:-1] if told.levels else ""


def rollout_cell(told: WorkloadTold) -> Text:
    if told.rollout_s is not None:
        return Text(told_duration(told.rollout_s))
    return Text(told.rollout or "-", style="red" if told.rollout else "dim")


def below_cell(told: WorkloadTold) -> Text:
    if told.below_budget_s is None:
        return Text("-", style="dim")
    return Text(told_duration(told.below_budget_s), style="red" if told.below_budget_s else "")


def count_cell(count: int, style: str = "") -> Text:
    return Text(str(count), style=style) if count else Text("-", style="dim")


def or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


BAR_WIDTH, NARROW_BAR_WIDTH = 12, 6


def nodes_tables(nodes: Sequence[NodeUse], width: int) -> Iterator[Table]:
    """All of them if they are few."""
    if len(nodes) > ROWS_SHOWN:
        yield histogram(nodes, width)
    yield nodes_table(nodes, width)


def histogram(nodes: Sequence[NodeUse], width: int) -> Table:
    """How many nodes are how full by cpu; those of no use are counted apart."""
    counts: dict[tuple[int, str], int] = {}
    for node in nodes:
        band = band_of(node)
        counts[band] = counts.get(band, 0) + 1
    bands = sorted(counts, reverse=True)
    most = max(counts.values())
    bar_width = min(4 * BAR_WIDTH, max(width - 32, 1))
    bars = [Text("█" * max(round(counts[band] / most * bar_width), 1), "green") for band in bands]
    return fitted_table(
        f"\nNodes by cpu requested ({len(nodes)} nodes)",
        (
            TerminalColumn("requested", "right", [name for _, name in bands]),
            TerminalColumn("nodes", "right", [str(counts[band]) for band in bands]),
            TerminalColumn("", "left", bars, 1),
        ),
        width,
    )


def band_of(node: NodeUse) -> tuple[int, str]:
    """A tenth of what it offers, or why that is of no interest; fuller ones sort later."""
    used = share(node, CPU)
    if is_broken(node.status):
        return -1, node.status.partition(",")[0]
    if not node.requested.get(CPU, 0):
        return 0, "nothing"
    if used > 1:
        return TENTHS + 2, "over 100%"
    tenth = min(ceil(used * TENTHS), TENTHS)
    return tenth, f"{(tenth - 1) * 10} to {tenth * 10}%"


def nodes_table(nodes: Sequence[NodeUse], width: int) -> Table:
    """The busiest; of equal ones those that come first by name, node-2 before node-10."""
    ordered = sorted(nodes, key=lambda node: (-share(node, CPU), natural(node.name)))
    shown = ordered[:ROWS_SHOWN]
    more = f" (the {ROWS_SHOWN} busiest of {len(nodes)})" if len(nodes) > ROWS_SHOWN else ""
    columns = node_columns(shown, BAR_WIDTH)
    if len(fitting(columns, width)) < len(columns):
        columns = node_columns(shown, NARROW_BAR_WIDTH)
    return fitted_table(f"\nNodes{more}", columns, width)


def node_columns(nodes: Sequence[NodeUse], bar: int) -> list[TerminalColumn]:
    """Pods can be missed first, then memory, then what is scarce."""
    columns = [TerminalColumn("node", "left", [node.name for node in nodes])]
    if any(node.status for node in nodes):
        columns.append(TerminalColumn("status", "left", [*map(status_cell, nodes)], folds=True))
    columns += (
        TerminalColumn("pods", "right", [str(node.pods) for node in nodes], 3),
        TerminalColumn(CPU, "left", [gauge(node, CPU, bar) for node in nodes]),
        TerminalColumn(MEMORY, "left", [gauge(node, MEMORY, bar) for node in nodes], 2),
        *(
            TerminalColumn(name, "left", [figures(node, name) for node in nodes], 1)
            for name in others(nodes)
        ),
    )
    return columns


def status_cell(node: NodeUse) -> Text:
    broken = is_broken(node.status)
    return Text(node.status or "Ready", style="red" if broken else "yellow" if node.status else "")


def others(nodes: Sequence[NodeUse]) -> list[str]:
    """Extended resources and devices that nodes offer, and storage that pods ask for."""
    offered = {name for node in nodes for name in node.allocatable}
    asked = {name for node in nodes for name in node.requested}
    return sorted(
        name
        for name in offered - {CPU, MEMORY, PODS}
        if name in asked or ("/" in name and any(node.allocatable.get(name) for node in nodes))
    )


def share(node: NodeUse, resource: str) -> float:
    offered = node.allocatable.get(resource, 0)
    return node.requested.get(resource, 0) / offered if offered else 0.0


def gauge(node: NodeUse, resource: str, width: int = BAR_WIDTH) -> Text:
    """A bar and the figures: requested of allocatable."""
    if not node.allocatable.get(resource, 0):
        return Text("-", style="dim")
    used = share(node, resource)
    filled = min(round(used * width), width)
    style = "red" if used > 0.95 else "yellow" if used > 0.8 else "green"
    return Text.assemble(
        ("█" * filled, style),
        ("░" * (width - filled), "dim"),
        f" {used:4.0%} ",
        figures(node, resource),
    )


def figures(node: NodeUse, resource: str) -> Text:
    """Requested of allocatable, as numbers alone."""
    offered = node.allocatable.get(resource, 0)
    if not offered:
        return Text("-", style="dim")
    asked = amount(resource, node.requested.get(resource, 0))
    return Text(f"{asked}/{amount(resource, offered)}", style="dim")


def amount(resource: str, value: int) -> str:
    """Cpu in cores, bytes in binary units, and what is counted as it is."""
    if resource == CPU:
        return f"{value / 1000:g}"
    if not is_bytes(resource):
        return str(value)
    for unit in ("", "Ki", "Mi", "Gi", "Ti"):
        if value < 1024 or unit == "Ti":
            return f"{value:.4g}{unit}" if isinstance(value, float) else f"{value}{unit}"
        value /= 1024  # type: ignore[assignment]
    raise AssertionError("unreachable")
