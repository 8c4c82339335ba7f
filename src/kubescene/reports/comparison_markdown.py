"""Two runs beside each other in Markdown, for a pull request.

A short table first, everything long folded away. Tables are cut and say so, so that a comparison of
any size fits into a comment.
"""

from collections.abc import Iterator, Sequence

from kubescene.reports.comparison import node_cells
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
    told_unexplained,
    told_value,
    told_why,
)
from kubescene.reports.words import counted
from kubescene.results.comparison import Comparison, PlacedPod, Side
from kubescene.results.comparison.values import ComparedNodeUse

ROWS_SHOWN = 50
INPUTS_SHOWN = 20
LONGEST_CELL = 160
LONGEST_NAME = 80
LARGEST_TABLE = 4_500
"""Characters; with twelve tables at most, a page stays below the 65,536 of a comment."""


def markdown(comparison: Comparison, *, replayable: bool = True) -> str:
    """The page, with a line break at its end."""
    return "\n".join(_lines(comparison, replayable=replayable)).rstrip("\n") + "\n"


def _lines(comparison: Comparison, *, replayable: bool) -> Iterator[str]:
    yield from (f"> **Warning:** {text(warning, 500)}\n" for warning in comparison.warnings)
    if comparison.equal:
        yield f"✅ {text(equal_line(comparison))}\n"
        if comparison.inputs:
            yield from _inputs(comparison)
        if comparison.unmet:
            yield from _expectations(comparison)
        return
    yield from _overview(comparison)
    yield from _inputs(comparison)
    if comparison.expectations:
        yield from _expectations(comparison)
    if comparison.divergence is not None:
        yield " ".join(text(line, 1_000) for line in told_divergence(comparison.divergence)) + "\n"
    for line in filter(None, [told_rest(comparison), told_names(comparison)]):
        yield f"{text(line, 500)}\n"
    yield from _pods(comparison)
    yield from _numbers(comparison)
    for line in told_unexplained(comparison, replayable=replayable):
        yield f"> {text(line)}"


def _overview(comparison: Comparison) -> Iterator[str]:
    a, b = comparison.a, comparison.b
    placed, movers = len(comparison.placed), comparison.movers()
    by = ", ".join(f"{plugin} {count}" for plugin, count in movers.items())
    title = f"{a.name} → {b.name}: {counted(placed, 'pod')} placed otherwise"
    yield f"### {text(f'{title}, moved by {by}' if by else title, 3 * LONGEST_NAME)}\n"
    cluster = comparison.cluster
    use_a, use_b = (cluster.a, cluster.b) if cluster is not None else (None, None)
    rows = [
        ("bound", str(a.bound), str(b.bound)),
        ("waiting", str(a.pending), str(b.pending)),
        ("preemptions", str(a.preemptions), str(b.preemptions)),
        ("cpu requested", *(_share(each, "cpu") for each in (use_a, use_b))),
        ("memory requested", *(_share(each, "memory") for each in (use_a, use_b))),
        ("ended", a.phase or "-", b.phase or "-"),
    ]
    heads = (counted(a.pods, "pod") if a.pods == b.pods else "", f"A: {a.name}", f"B: {b.name}")
    yield from table(heads, rows, len(rows))


def _share(use: ComparedNodeUse | None, resource: str) -> str:
    if use is None:
        return "-"
    return f"{use.cpu_share if resource == 'cpu' else use.memory_share:.1%}"


def _inputs(comparison: Comparison) -> Iterator[str]:
    if not comparison.inputs:
        yield f"{text(given_line(comparison))}\n"
        return
    rows = [(each.what, each.a, each.b) for each in comparison.inputs]
    yield f"**{given_line(comparison)}**\n"
    yield from table(("what", "A", "B"), rows[:INPUTS_SHOWN], len(rows))


def _expectations(comparison: Comparison) -> Iterator[str]:
    """Those that fail somewhere, or that one of the runs does not have."""
    rows = [
        (
            each.name,
            told_expectation(each.in_a, each.why_in_a),
            told_expectation(each.in_b, each.why_in_b),
        )
        for each in comparison.unmet
    ]
    yield f"**{text(expectations_line(comparison))}**\n"
    if rows:
        yield from table(("expectation", "A", "B"), rows[:ROWS_SHOWN], len(rows))


def _pods(comparison: Comparison) -> Iterator[str]:
    if moved := comparison.moved:
        rows = [_moved_row(each) for each in moved[:ROWS_SHOWN]]
        heads = ("step", "pod", "A", "B", "moved by", "cause", "why")
        yield from folded(f"{counted(len(moved), 'pod')} went elsewhere", heads, rows, len(moved))
    for side in Side:
        if waiting := comparison.nowhere(side):
            other = Side.B if side is Side.A else Side.A
            rows = [_nowhere_row(each) for each in waiting[:ROWS_SHOWN]]
            title = f"{counted(len(waiting), 'pod')} found no node in {side}"
            names = ("pod", f"in {other}", "kept off by", "cause", f"why in {side}")
            yield from folded(title, names, rows, len(waiting))
    for side, pods in ((Side.A, comparison.only_in_a), (Side.B, comparison.only_in_b)):
        if pods:
            title = f"{counted(len(pods), 'pod')} in {side} only"
            yield from folded(title, ("pod",), [(pod,) for pod in pods[:ROWS_SHOWN]], len(pods))
    if waiting_both := comparison.waiting:
        rows = [(each.pod, each.in_a, each.in_b) for each in waiting_both[:ROWS_SHOWN]]
        title = f"{counted(len(waiting_both), 'pod')} waiting in both, for different reasons"
        yield from folded(title, ("pod", "A", "B"), rows, len(waiting_both))
    if preempted := comparison.preemptions:
        rows = [
            (each.side, each.step, each.pod, each.node, each.preemptor)
            for each in preempted[:ROWS_SHOWN]
        ]
        title = f"{counted(len(preempted), 'preemption')} of one run only"
        yield from folded(title, ("only in", "step", "pod", "node", "for"), rows, len(preempted))


def _moved_row(each: PlacedPod) -> tuple[str, ...]:
    why = ""
    if each.attribution is not None:
        why = told_why(each.attribution, each.node_in_a, each.node_in_b)
    mover = told_mover(each)
    return (each.step_in_a, each.pod, each.node_in_a, each.node_in_b, mover, told_cause(each), why)


def _nowhere_row(each: PlacedPod) -> tuple[str, ...]:
    node = each.node_in_a or each.node_in_b
    return (each.pod, node, told_mover(each), told_cause(each), each.message)


def _numbers(comparison: Comparison) -> Iterator[str]:
    if nodes := comparison.nodes:
        rows = [(each.node, *node_cells(each)) for each in nodes[:ROWS_SHOWN]]
        heads = ("node", *(f"{what} {s}" for what in ("pods", "cpu", "memory") for s in Side))
        title = f"{counted(len(nodes), 'node')} used otherwise at the end"
        yield from folded(title, heads, rows, len(nodes))
    if workloads := comparison.workloads:
        told = [
            (each.workload, each.column, told_value(each.a), told_value(each.b))
            for each in workloads[:ROWS_SHOWN]
        ]
        title = f"workloads differ in {counted(len(workloads), 'number')}"
        yield from folded(title, ("workload", "what", "A", "B"), told, len(workloads))
    if measures := comparison.measures:
        values = [
            (each.measure, number(each.a, each.unit), number(each.b, each.unit), change(each))
            for each in measures[:ROWS_SHOWN]
        ]
        all_of_them = len(measures) + comparison.measures_alike
        title = f"{len(measures)} of {counted(all_of_them, 'measure')} differ"
        yield from folded(title, ("measure", "A", "B", "change"), values, len(measures))


def folded(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], total: int
) -> Iterator[str]:
    """A table behind its title; ``total`` says how many rows there would be."""
    yield f"<details><summary>{text(title)}</summary>\n"
    yield from table(heads, rows, total)
    yield "</details>\n"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], total: int) -> Iterator[str]:
    """As many rows as there is room for, and how many there would be more."""
    yield f"| {' | '.join(text(head, LONGEST_CELL) for head in heads)} |"
    yield f"|{'|'.join('---' for _ in heads)}|"
    room, left = LARGEST_TABLE, total
    for row in rows:
        line = f"| {' | '.join(text(cell, LONGEST_CELL) for cell in row)} |"
        room -= len(line)
        if room < 0:
            break
        left -= 1
        yield line
    yield ""
    if left:
        yield f"… and {left:,} more.\n"


def text(value: str, longest: int = 0) -> str:
    """What people wrote, so that it cannot become markup; cut where it is long."""
    if longest and len(value) > longest:
        value = f"{value[: longest - 1]}…"
    value = " ".join(value.split())
    for character in "\\`*_[]|~#":
        value = value.replace(character, f"\\{character}")
    return (
        value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    )
