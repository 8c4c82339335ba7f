"""Results as a notebook shows them: bounded, escaped, in the notebook's own colours.

The types of this package have a ``_repr_html_`` that leads here, so that nobody imports this who
has no notebook.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from kubescene.api.objects import Node, Pod
from kubescene.clock import Clock, format_duration, format_time
from kubescene.markup import ROWS_SHOWN, Child, Markup, excerpt, h
from kubescene.results.comparison.values import Comparison, PlacedPod
from kubescene.results.explaining import ExplainedAttempt, NodeVerdict
from kubescene.results.summary import Summary
from kubescene.results.tables import Table
from kubescene.results.traffic_tables import traffic_tables
from kubescene.traffic import TrafficResult
from kubescene.types import JsonObject

ATTEMPTS_SHOWN = 10
BOX = "kubescene"


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def table_html(shown: Table[Any]) -> Markup:
    """The first rows of a table of results."""
    rows = (list(map(cell, shown.values(row))) for row in shown)
    rest = "and more: .rows, .frame(), .csv() and .json() have all of them"
    numbers = [name for name, kind in shown.kinds().items() if kind in (int, float)]
    return excerpt(shown.columns, rows, title=shown.name, rest=rest, numbers=numbers)


def cell(value: object) -> Child:
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, str):
        return value
    return str(value)


def attempt_html(attempt: ExplainedAttempt) -> Markup:
    """What came of an attempt, and what was said about each node."""
    outcome = f"bound to {attempt.node}" if attempt.node else attempt.message
    title = h("p", h("b", attempt.pod), f" at step {attempt.step}: {outcome}")
    counts = f"{attempt.feasible} of {attempt.evaluated} nodes that were looked at fit"
    if not attempt.explained:
        kept = "scores were not kept: spec.simulation.explain: Full keeps them"
        return h("div", title, h("p", f"{counts}; {kept}"), class_=BOX)
    columns = ("node", *attempt.plugins, *(("total",) if attempt.plugins else ()), "verdict")
    rows = (verdict_row(attempt, each) for each in attempt.verdicts)
    left = len(attempt.verdicts) - ROWS_SHOWN
    listed = excerpt(columns, rows, rest=f"and {left} more nodes", numbers=columns[1:-1])
    return h("div", title, listed, h("p", counts), room_made(attempt), class_=BOX)


def verdict_row(attempt: ExplainedAttempt, verdict: NodeVerdict) -> Sequence[Child]:
    scores = [str(each) for each in verdict.scores] or [""] * len(attempt.plugins)
    total = ["" if verdict.total is None else str(verdict.total)] if attempt.plugins else []
    said = f"{verdict.rejected_by}: {verdict.reasons}" if verdict.rejected_by else "fits"
    return verdict.node, *scores, *total, "chosen" if verdict.node == attempt.node else said


def room_made(attempt: ExplainedAttempt) -> Markup | None:
    record = attempt.preemption
    if record is None:
        return None
    if not record.node:
        return h("p", f"preemption: {record.message or 'failed'}")
    victims = ", ".join(islice(record.victims, ATTEMPTS_SHOWN))
    why = f" ({record.criterion})" if record.criterion else ""
    return h("p", f"preemption: {record.node} makes room by losing {victims}{why}")


def attempts_html(attempts: Sequence[ExplainedAttempt]) -> Markup:
    """The newest attempts at a pod, from the earliest of them."""
    if not attempts:
        return h("p", "no attempt")
    left = len(attempts) - ATTEMPTS_SHOWN
    before = h("p", h("i", f"{left} attempts before")) if left > 0 else None
    return h("div", before, map(attempt_html, attempts[-ATTEMPTS_SHOWN:]), class_=BOX)


def summary_html(summary: Summary) -> Markup:
    """The short account of a run."""
    return h("div", summary_parts(summary), class_=BOX)


def summary_parts(summary: Summary) -> Iterator[Markup]:
    counts = f"{summary.pods_bound} bound, {len(summary.pending)} waiting, "
    counts += f"{counted(len(summary.nodes), 'node')}, seed {summary.seed}"
    phase = summary.phase or "not over"
    if summary.unmet:
        phase += f", {summary.verdict}"
    yield h("p", h("b", summary.scenario), " ", phase, h("br"), counts)
    if summary.message:
        yield h("p", summary.message)
    columns = ("step", "operations", "minor steps", "bound", "waiting", "deleted")
    steps = (
        (s.major, s.operations, s.minor_steps, s.scheduled, s.pending, s.deleted)
        for s in summary.steps
    )
    left = len(summary.steps) - ROWS_SHOWN
    yield excerpt(columns, steps, rest=f"and {left} more steps", numbers=columns)
    if summary.pending:
        waiting = ((each.pod, each.attempts, each.message) for each in summary.pending)
        left = len(summary.pending) - ROWS_SHOWN
        rest = f"and {left} more pods wait"
        yield excerpt(("pod that waits", "tried", "why"), waiting, rest=rest, numbers=("tried",))
    if summary.unmet:
        unmet = ((each.name, each.why) for each in summary.unmet)
        rest = f"and {len(summary.unmet) - ROWS_SHOWN} more"
        yield excerpt(("expectation that does not hold", "why"), unmet, rest=rest)
    for warning in summary.warnings[:ROWS_SHOWN]:
        yield h("p", h("i", "not simulated: "), warning)


def traffic_html(result: TrafficResult) -> Markup:
    """A traffic run: how it ended, its measures, and what autoscalers changed."""
    simulated = f"{format_duration(result.end)} simulated, {result.requests.count:,} requests"
    head = h("p", h("b", result.name), " ", result.verdict, h("br"), simulated)
    said = h("p", result.message) if result.message else None
    found = traffic_tables(result)
    rows = ((row.measure, cell(row.value)) for row in found["measures"])
    rest = 'and more: .tables["measures"] has all of them'
    measures = excerpt(("measure", "value"), rows, rest=rest, numbers=("value",))
    changed = [row for row in found["decisions"] if row.after != row.before]
    told = ((cell(each.time_s), f"{each.before} → {each.after}", each.reason) for each in changed)
    left = f'and {len(changed) - ROWS_SHOWN} more changes: .tables["decisions"] has all of them'
    columns = ("time (s)", "replicas", "why")
    decided = excerpt(columns, told, rest=left, numbers=columns[:1]) if changed else None
    return h("div", head, said, measures, decided, class_=BOX)


class ListedCluster(Protocol):
    """A cluster whose objects can be asked for."""

    @property
    def clock(self) -> Clock: ...

    def list(self, kind: str) -> "list[JsonObject]": ...


def cluster_html(cluster: ListedCluster) -> Markup:
    """A cluster as it stands: what its nodes have given away, and who waits."""
    return h("div", cluster_parts(cluster), class_=BOX)


def cluster_parts(cluster: ListedCluster) -> Iterator[Markup]:
    nodes = [Node(each) for each in cluster.list("nodes")]
    pods = [Pod(each) for each in cluster.list("pods")]
    on = Counter(pod.node for pod in pods)
    now = format_time(cluster.clock.now())
    counts = f"{counted(len(nodes), 'node')}, {counted(len(pods), 'pod')}"
    yield h("p", h("b", "Cluster"), f" at {now}", h("br"), counts)
    columns = ("node", "ready", "pods", "cpu", "memory")
    told = (
        (each.name, "yes" if each.is_ready else "no", on[each.name], *offers(each))
        for each in nodes
    )
    yield excerpt(
        columns, told, rest=f"and {len(nodes) - ROWS_SHOWN} more nodes", numbers=columns[2:]
    )
    waiting = [pod for pod in pods if not pod.node]
    if waiting:
        rows = ((f"{each.namespace}/{each.name}", each.why_pending) for each in waiting)
        yield excerpt(
            ("pod without a node", "why"), rows, rest=f"and {len(waiting) - ROWS_SHOWN} more"
        )


def offers(node: Node) -> tuple[str, str]:
    allocatable = (node.json.get("status") or {}).get("allocatable") or {}
    return str(allocatable.get("cpu", "-")), str(allocatable.get("memory", "-"))


def comparison_html(shown: Comparison) -> Markup:
    """Who stands elsewhere and through which plugin, and the measures that differ."""
    return h("div", comparison_parts(shown), class_=BOX)


def comparison_parts(shown: Comparison) -> Iterator[Markup]:
    a, b = shown.a.name, shown.b.name
    outcome = (
        "the same happened in both" if shown.equal else f"{len(shown.placed)} pods placed otherwise"
    )
    yield h("p", h("b", f"{a} and {b}"), h("br"), outcome)
    for warning in shown.warnings[:ROWS_SHOWN]:
        yield h("p", h("i", warning))
    if shown.unmet:
        unmet = ((each.name, told_holds(each.in_a), told_holds(each.in_b)) for each in shown.unmet)
        rest = f"and {len(shown.unmet) - ROWS_SHOWN} more: .expectations has all of them"
        yield excerpt(("expectation", f"in {a}", f"in {b}"), unmet, rest=rest)
    if shown.placed:
        moved = (
            (each.pod, each.node_in_a or "-", each.node_in_b or "-", mover_of(each), each.cause)
            for each in shown.placed
        )
        rest = f"and {len(shown.placed) - ROWS_SHOWN} more pods: .placed has all of them"
        yield excerpt(("pod", f"in {a}", f"in {b}", "plugin", "cause"), moved, rest=rest)
    if shown.measures:
        differing = ((each.measure, cell(each.a), cell(each.b)) for each in shown.measures)
        rest = f"and {len(shown.measures) - ROWS_SHOWN} more: .measures has all of them"
        yield excerpt(("measure", f"in {a}", f"in {b}"), differing, rest=rest)


def told_holds(holds: bool | None) -> str:
    return "-" if holds is None else "holds" if holds else "fails"


def mover_of(pod: PlacedPod) -> str:
    """The plugin that moved it, or why none is named."""
    if pod.attribution is None:
        return ""
    return pod.attribution.plugin or str(pod.attribution.why)
