"""The page of two runs: what was moved and by whom, what became of nodes, and every measure."""

from collections.abc import Iterator, Sequence

from kubescene.markup import Child, Markup, h, table
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
from kubescene.reports.html import sections
from kubescene.reports.html.shell import PAGES, STYLE, Shell, footer
from kubescene.reports.words import counted
from kubescene.results.comparison import Comparison, PlacedPod, Side
from kubescene.results.comparison.values import ComparedNodeUse, MeasureComparison, NodeComparison
from kubescene.version import __version__

SHELL = Shell((STYLE, PAGES / "comparison.css"), PAGES / "comparison.js")
FIRST, ROWS = 25, 500
BAR = 100
"""Half the width of a bar that may go to either side."""


def comparison_page(comparison: Comparison) -> str:
    """The whole document."""
    title = f"{comparison.a.name} and {comparison.b.name}"
    return SHELL.document(title, __version__, body_of(comparison))


def body_of(comparison: Comparison) -> Iterator[Markup]:
    titled = [
        ("given", "What they were given", given(comparison)),
        ("expectations", "Expectations", expectations(comparison)),
        ("workloads", "Workloads", workloads(comparison)),
        ("measures", "Measures", measures(comparison)),
        ("parting", "Where they part", parting(comparison)),
        ("moved", "Who stands elsewhere", moved(comparison)),
        ("waiting", "Who found no node in one of them", nowhere(comparison)),
        ("only", "Pods of one run only", only(comparison)),
        ("nodes", "Nodes", nodes(comparison)),
    ]
    there = [(name, title, shown) for name, title, shown in titled if shown]
    counts = {"moved": len(comparison.moved), "measures": len(comparison.measures)}
    yield sections.navigation((name, title, counts.get(name, 0)) for name, title, _ in there)
    yield h(
        "main",
        heading(comparison),
        (h("section", h("h2", title), shown, id=name) for name, title, shown in there),
        footer(__version__),
    )


def heading(comparison: Comparison) -> Markup:
    a, b = comparison.a, comparison.b
    tone, word = ("good", "equal") if comparison.equal else ("wait", "different")
    title = h("div", h("h1", f"{a.name} → {b.name}"), h("span", word, class_=f"phase {tone}"))
    runs = (
        h("li", h("b", str(side)), " ", told_run(run)) for side, run in ((Side.A, a), (Side.B, b))
    )
    verdict = h("p", h("b", said(comparison)), class_=f"said {tone}")
    warnings = h("ul", (h("li", each) for each in comparison.warnings), class_="warnings")
    return h(
        "header",
        title,
        h("ul", runs, class_="sides"),
        verdict,
        warnings if comparison.warnings else None,
        id="top",
    )


def said(comparison: Comparison) -> str:
    """All of it in a sentence."""
    if comparison.equal:
        return equal_line(comparison)
    movers = [f"{plugin} moved {count}" for plugin, count in comparison.movers().items()]
    by = f": {', '.join(movers)}" if movers else ""
    told = f"{counted(len(comparison.placed), 'pod')} placed otherwise{by}. "
    return f"{told}{counted(len(comparison.measures), 'measure')} differ."


def given(comparison: Comparison) -> Markup | None:
    if not comparison.inputs:
        line = given_line(comparison)
        return h("p", line) if line else None
    rows = [(each.what, each.a, each.b) for each in comparison.inputs]
    return listed(("what", "A", "B"), rows)


def expectations(comparison: Comparison) -> Markup | None:
    if not comparison.expectations:
        return None
    rows = [
        (
            each.name,
            told_expectation(each.in_a, each.why_in_a),
            told_expectation(each.in_b, each.why_in_b),
        )
        for each in comparison.unmet
    ]
    line = h("p", expectations_line(comparison))
    return h("div", line, listed(("expectation", "A", "B"), rows) if rows else None)


def parting(comparison: Comparison) -> Markup | None:
    lines = [] if comparison.divergence is None else told_divergence(comparison.divergence)
    lines += filter(None, [told_rest(comparison), told_names(comparison)])
    return h("div", (h("p", line) for line in lines)) if lines else None


def moved(comparison: Comparison) -> Markup | None:
    pods = comparison.moved
    if not pods:
        return None
    movers = comparison.movers()
    most = max(movers.values(), default=0)
    bars = (
        h("div", h("span", plugin), sections.gauge(100 * count / most), h("span", str(count)))
        for plugin, count in movers.items()
    )
    rows = [moved_row(each) for each in pods[:ROWS]]
    heads = ("step", "pod", "A", "B", "moved by", "cause", "why")
    unexplained = told_unexplained(comparison, replayable=True)
    notes = (h("p", line, class_="more") for line in unexplained)
    return h("div", h("div", bars, class_="movers"), notes, listed(heads, rows, total=len(pods)))


def moved_row(pod: PlacedPod) -> Sequence[Child]:
    why = "" if pod.attribution is None else told_why(pod.attribution, pod.node_in_a, pod.node_in_b)
    step = pod.step_in_a or pod.step_in_b
    names = (h("code", pod.pod), h("code", pod.node_in_a), h("code", pod.node_in_b))
    return step, *names, told_mover(pod), told_cause(pod), why


def nowhere(comparison: Comparison) -> Markup | None:
    rows = [
        (
            h("code", each.pod),
            h("code", each.node_in_a) if each.node_in_a else h("span", "no node", class_="bad"),
            h("code", each.node_in_b) if each.node_in_b else h("span", "no node", class_="bad"),
            told_mover(each),
            told_cause(each),
        )
        for side in Side
        for each in comparison.nowhere(side)
    ]
    return listed(("pod", "A", "B", "kept off by", "cause"), rows) if rows else None


def only(comparison: Comparison) -> Markup | None:
    sides = ((Side.A, comparison.only_in_a), (Side.B, comparison.only_in_b))
    rows = [(pod, f"in {side} only") for side, pods in sides for pod in pods]
    return listed(("pod", ""), rows) if rows else None


def workloads(comparison: Comparison) -> Markup | None:
    """Where workloads went through something else."""
    rows = [
        (f"{each.workload} ({each.kind})", each.column, told_value(each.a), told_value(each.b))
        for each in comparison.workloads
    ]
    return listed(("workload", "what", "A", "B"), rows, numbers=("A", "B")) if rows else None


def measures(comparison: Comparison) -> Markup | None:
    if not comparison.measures:
        return None
    ordered = sorted(comparison.measures, key=lambda each: (-abs(relative(each)), each.measure))
    rows = [
        (
            h("code", each.measure),
            number(each.a, each.unit),
            number(each.b, each.unit),
            difference_bar(relative(each)),
            change(each),
        )
        for each in ordered
    ]
    alike = f"{counted(comparison.measures_alike, 'measure')} more are the same in both."
    heads = ("measure", "A", "B", "less in B · more in B", "change")
    shown = listed(heads, rows, numbers=("A", "B", "change"))
    return h("div", shown, h("p", alike, class_="more") if comparison.measures_alike else None)


def relative(measure: MeasureComparison) -> float:
    """From -1 (B has none) to 1 (A has none): by how much of the larger one they differ."""
    a, b = float(measure.a or 0), float(measure.b or 0)
    largest = max(abs(a), abs(b))
    return (b - a) / largest if largest else 0.0


def difference_bar(share: float) -> Markup:
    """To the left what B has less than A, to the right what it has more."""
    length = max(min(abs(share), 1.0) * BAR, 1.0 if share else 0.0)
    begin = BAR - length if share < 0 else BAR
    tone = "less" if share < 0 else "greater"
    filled = h("rect", x=f"{begin:.1f}", y=0, width=f"{length:.1f}", height=10, class_=tone)
    middle = h("rect", x=f"{BAR - 0.5}", y=0, width=1, height=10, class_="zero")
    told = "alike" if not share else f"{abs(share):.0%} {'less' if share < 0 else 'more'} in B"
    return h(
        "svg",
        h("title", told),
        filled,
        middle,
        class_="difference",
        viewBox=f"0 0 {2 * BAR} 10",
        preserveAspectRatio="none",
        role="img",
    )


def nodes(comparison: Comparison) -> Markup | None:
    found = [*filter(None, [comparison.cluster]), *comparison.nodes]
    if not comparison.nodes:
        return None
    rows = [node_row(each) for each in found[:ROWS]]
    heads = ("node", "pods A", "pods B", "cpu A", "cpu B", "memory A", "memory B")
    alike = f"{counted(comparison.nodes_alike, 'node')} more are used alike."
    shown = listed(heads, rows, total=len(found), numbers=heads[1:3])
    return h("div", shown, h("p", alike, class_="more") if comparison.nodes_alike else None)


def node_row(node: NodeComparison) -> Sequence[Child]:
    uses = (node.a, node.b)
    pods = (("-" if use is None else str(use.pods)) for use in uses)
    shares = (share_of(use, name) for name in ("cpu", "memory") for use in uses)
    return h("code", node.node), *pods, *shares


def share_of(use: ComparedNodeUse | None, resource: str) -> Child:
    if use is None:
        return "-"
    share = use.cpu_share if resource == "cpu" else use.memory_share
    return h("span", sections.gauge(100 * share), f"{share:.0%}", class_="share")


def listed(
    heads: Sequence[str],
    rows: Sequence[Sequence[Child]],
    *,
    total: int | None = None,
    numbers: Sequence[str] = (),
) -> Markup:
    """A table whose rows beyond the first are folded away; it says how much is left out."""
    open_rows, folded = rows[:FIRST], rows[FIRST:ROWS]
    left = (len(rows) if total is None else total) - min(len(rows), ROWS)
    more = h("p", f"and {left:,} more", class_="more") if left else None
    rest = None
    if folded:
        head = h("summary", f"{len(folded):,} more")
        rest = h("details", head, table(heads, folded, numbers=numbers), more)
    return h("div", table(heads, open_rows, numbers=numbers), rest or more, class_="wide")
