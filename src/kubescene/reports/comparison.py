"""Two runs beside each other in a terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubescene.reports.columns import plain_table, put
from kubescene.reports.comparison_words import (
    change,
    equal_line,
    expectations_line,
    given_line,
    number,
    told_cause,
    told_divergence,
    told_expectation,
    told_mover,
    told_names,
    told_rest,
    told_run,
    told_unexplained,
    told_value,
    told_why,
)
from kubescene.reports.words import counted
from kubescene.results.comparison import Cause, Comparison, PlacedPod, Side
from kubescene.results.comparison.values import ComparedNodeUse, NodeComparison

ROWS_SHOWN = 20


def print_comparison(comparison: Comparison, console: Console, *, replayable: bool) -> None:
    """One line if they are equal; otherwise what differs, the inputs first."""
    put(console, Group(*sections(comparison, replayable=replayable)))


def sections(comparison: Comparison, *, replayable: bool) -> Iterable[RenderableType]:
    for warning in comparison.warnings:
        yield Text(f"warning: {warning}", style="yellow")
    if comparison.equal:
        yield Text(equal_line(comparison), style="green")
        if comparison.inputs:
            yield inputs_table(comparison)
        if comparison.unmet:
            yield expectations_table(comparison)
        return
    yield from headlines(comparison)
    yield inputs_table(comparison) if comparison.inputs else Text(f"\n{given_line(comparison)}")
    if comparison.unmet:
        yield expectations_table(comparison)
    elif comparison.expectations:
        yield Text(f"\n{expectations_line(comparison)}")
    yield from parting(comparison)
    yield from pod_sections(comparison)
    yield from number_sections(comparison)
    lines = told_unexplained(comparison, replayable=replayable)
    if lines:
        yield Text("\n" + "\n".join(lines), style="yellow")


def headlines(comparison: Comparison) -> Iterable[RenderableType]:
    for side, run in ((Side.A, comparison.a), (Side.B, comparison.b)):
        yield Text.assemble((f"{side} ", "bold"), (run.name, "bold"), f"  {told_run(run)}")


def parting(comparison: Comparison) -> Iterable[RenderableType]:
    """Where they part, in sentences."""
    lines = [] if comparison.divergence is None else told_divergence(comparison.divergence)
    lines += filter(None, [told_rest(comparison), told_names(comparison)])
    if lines:
        yield Text("\n" + "\n".join(lines))


def inputs_table(comparison: Comparison) -> Table:
    rows = comparison.inputs
    table = shown(
        f"\n{given_line(comparison)}", rows, ("what", "left"), ("A", "left"), ("B", "left")
    )
    for column in table.columns:
        column.overflow = "fold"  # the end of a path is what tells
    for each in rows[:ROWS_SHOWN]:
        table.add_row(Text(each.what), Text(each.a), Text(each.b))
    return table


def expectations_table(comparison: Comparison) -> Table:
    """Those that fail somewhere, or that one of the runs does not have."""
    rows = comparison.unmet
    columns = (("expectation", "left"), ("A", "left"), ("B", "left"))
    table = shown(f"\n{expectations_line(comparison)}", rows, *columns)
    for each in rows[:ROWS_SHOWN]:
        in_a = told_expectation(each.in_a, each.why_in_a)
        in_b = told_expectation(each.in_b, each.why_in_b)
        table.add_row(Text(each.name), *(Text(told, style=_tone(told)) for told in (in_a, in_b)))
    return table


def _tone(told: str) -> str:
    return "green" if told == "holds" else "red" if told.startswith("fails") else ""


def pod_sections(comparison: Comparison) -> Iterable[RenderableType]:
    if moved := comparison.moved:
        yield moved_table(comparison, moved)
        yield from reasons(comparison, moved)
    for side in Side:
        if waiting := comparison.nowhere(side):
            yield nowhere_table(side, waiting)
    for side, names in ((Side.A, comparison.only_in_a), (Side.B, comparison.only_in_b)):
        if names:
            left = len(names) - ROWS_SHOWN
            more = f" and {left} more" if left > 0 else ""
            listed = ", ".join(names[:ROWS_SHOWN])
            yield Text(f"\n{counted(len(names), 'pod')} in {side} only: {listed}{more}")
    if comparison.waiting:
        yield waiting_table(comparison)
    if comparison.preemptions:
        yield preemptions_table(comparison)


def moved_table(comparison: Comparison, moved: Sequence[PlacedPod]) -> Table:
    movers = ", ".join(f"{plugin} {count}" for plugin, count in comparison.movers().items())
    by = f"; moved by {movers}" if movers else ""
    table = shown(
        f"\n{counted(len(moved), 'pod')} went elsewhere{by}",
        moved,
        ("step", "right"),
        ("pod", "left"),
        ("A", "left"),
        ("B", "left"),
        ("moved by", "left"),
        ("cause", "left"),
    )
    for each in moved[:ROWS_SHOWN]:
        table.add_row(
            each.step_in_a,
            Text(each.pod),
            Text(each.node_in_a),
            Text(each.node_in_b, style="green"),
            Text(told_mover(each), style="bold"),
            Text(told_cause(each), style="dim" if each.cause is Cause.CONSEQUENCE else ""),
        )
    return table


def reasons(comparison: Comparison, moved: Sequence[PlacedPod]) -> Iterable[RenderableType]:
    """Why, for those that did not merely follow; that of the first was told."""
    told = "" if comparison.divergence is None else comparison.divergence.pod
    for each in moved[:ROWS_SHOWN]:
        if each.attribution and each.pod != told and each.cause is not Cause.CONSEQUENCE:
            why = told_why(each.attribution, each.node_in_a, each.node_in_b)
            yield Text(f"{each.pod}: {why}", style="dim")


def nowhere_table(side: Side, waiting: Sequence[PlacedPod]) -> Table:
    other = Side.B if side is Side.A else Side.A
    table = shown(
        f"\n{counted(len(waiting), 'pod')} found no node in {side}",
        waiting,
        ("pod", "left"),
        (f"in {other}", "left"),
        ("kept off by", "left"),
        ("cause", "left"),
        (f"why in {side}", "left"),
    )
    for each in waiting[:ROWS_SHOWN]:
        table.add_row(
            Text(each.pod, style="yellow"),
            Text(each.node_in_a or each.node_in_b),
            Text(told_mover(each), style="bold"),
            Text(told_cause(each)),
            Text(each.message),
        )
    return table


def waiting_table(comparison: Comparison) -> Table:
    rows = comparison.waiting
    title = f"\n{counted(len(rows), 'pod')} waiting in both, for different reasons"
    table = shown(title, rows, ("pod", "left"), ("A", "left"), ("B", "left"))
    for each in rows[:ROWS_SHOWN]:
        table.add_row(Text(each.pod, style="yellow"), Text(each.in_a), Text(each.in_b))
    return table


def preemptions_table(comparison: Comparison) -> Table:
    rows = comparison.preemptions
    columns = (("only in", "left"), ("step", "right"), ("pod", "left"), ("node", "left"))
    table = shown("\nPreemptions of one run only", rows, *columns, ("for", "left"))
    for each in rows[:ROWS_SHOWN]:
        pod, node, preemptor = Text(each.pod), Text(each.node), Text(each.preemptor)
        table.add_row(each.side, each.step, pod, node, preemptor)
    return table


def number_sections(comparison: Comparison) -> Iterable[RenderableType]:
    if comparison.nodes:
        yield nodes_table(comparison)
    if comparison.workloads:
        yield workloads_table(comparison)
    if comparison.measures:
        yield measures_table(comparison)


def workloads_table(comparison: Comparison) -> Table:
    rows = comparison.workloads
    columns = (("workload", "left"), ("what", "left"), ("A", "right"), ("B", "right"))
    table = shown("\nWorkloads that differ", rows, *columns)
    for each in rows[:ROWS_SHOWN]:
        cells = Text(told_value(each.a)), Text(told_value(each.b))
        table.add_row(Text(each.workload), each.column, *cells)
    return table


def nodes_table(comparison: Comparison) -> Table:
    rows = comparison.nodes
    alike = f"; {counted(comparison.nodes_alike, 'node')} alike" if comparison.nodes_alike else ""
    table = shown(
        f"\nNodes at the end, where they differ{alike}",
        rows,
        ("node", "left"),
        *((f"{what} {side}", "right") for what in ("pods", "cpu", "memory") for side in Side),
    )
    cluster = [comparison.cluster] if comparison.cluster is not None else []
    for each in (*rows[:ROWS_SHOWN], *cluster):
        table.add_row(Text(each.node), *node_cells(each))
    return table


def node_cells(row: NodeComparison) -> list[str]:
    """Pods, cpu and memory of a node, A beside B."""
    cells = [_cells(row.a), _cells(row.b)]
    return [cell for pair in zip(*cells, strict=True) for cell in pair]


def _cells(use: ComparedNodeUse | None) -> tuple[str, str, str]:
    if use is None:
        return ("-", "-", "-")
    return (str(use.pods), f"{use.cpu_share:.0%}", f"{use.memory_share:.0%}")


def measures_table(comparison: Comparison) -> Table:
    rows = comparison.measures
    alike = f"; {comparison.measures_alike} are equal" if comparison.measures_alike else ""
    columns = (("measure", "left"), ("A", "right"), ("B", "right"), ("change", "right"))
    table = shown(f"\nMeasures that differ{alike}", rows, *columns, ("unit", "left"))
    for each in rows[:ROWS_SHOWN]:
        a, b = number(each.a, each.unit), number(each.b, each.unit)
        table.add_row(each.measure, a, b, change(each), each.unit)
    return table


def shown(title: str, rows: Sequence[object], *columns: tuple[str, str]) -> Table:
    """A table whose title says if it is cut."""
    more = f" (the first {ROWS_SHOWN} of {len(rows)})" if len(rows) > ROWS_SHOWN else ""
    return plain_table(f"{title}{more}", *columns)
