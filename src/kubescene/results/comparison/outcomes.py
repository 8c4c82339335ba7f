"""What came of two runs in numbers: nodes, measures, preemptions."""

from collections import Counter
from collections.abc import Mapping

from kubescene.api.resource_requests import CPU, MEMORY, PODS
from kubescene.results.comparison.attribution import Side
from kubescene.results.comparison.values import (
    ExpectationComparison,
    MeasureComparison,
    NodeComparison,
    NodeUse,
    PreemptionDifference,
)
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import PreemptionEntry
from kubescene.results.measures import measure_rows
from kubescene.results.sources import RunSource
from kubescene.timeline import Outcome


def cluster_use(a: Ledger, b: Ledger) -> NodeComparison:
    """All nodes together, at the end."""
    first, second = (_use(ledger.totals.requested, ledger.totals.allocatable) for ledger in (a, b))
    return NodeComparison(node="all nodes", a=first, b=second)


def compared_nodes(a: Ledger, b: Ledger) -> tuple[tuple[NodeComparison, ...], int]:
    """Nodes that are not used alike at the end, and how many are.

    The one with the largest difference in the share of its cpu or memory comes first.
    """
    of_a, of_b = _uses(a), _uses(b)
    names = dict.fromkeys((*of_a, *of_b))
    rows = [NodeComparison(node=name, a=of_a.get(name), b=of_b.get(name)) for name in names]
    differing = [row for row in rows if row.a != row.b]
    differing.sort(key=lambda row: (-_distance(row), row.node))
    return tuple(differing), len(rows) - len(differing)


def _uses(ledger: Ledger) -> dict[str, NodeUse]:
    return {node.name: _use(node.use.requested, node.use.allocatable) for node in ledger.standing()}


def _use(requested: Mapping[str, int], allocatable: Mapping[str, int]) -> NodeUse:
    return NodeUse(
        pods=requested.get(PODS, 0),
        cpu=requested.get(CPU, 0),
        cpu_allocatable=allocatable.get(CPU, 0),
        memory=requested.get(MEMORY, 0),
        memory_allocatable=allocatable.get(MEMORY, 0),
    )


def _distance(row: NodeComparison) -> float:
    first, second = row.a or NodeUse(), row.b or NodeUse()
    return max(
        abs(first.cpu_share - second.cpu_share), abs(first.memory_share - second.memory_share)
    )


def compared_measures(a: RunSource, b: RunSource) -> tuple[tuple[MeasureComparison, ...], int]:
    """Measures that differ, in the order of the reference page, and how many do not."""
    of_a = {row.measure: row for row in measure_rows(a)}
    of_b = {row.measure: row for row in measure_rows(b)}
    rows = [
        MeasureComparison(
            measure=name,
            unit=(of_a.get(name) or of_b[name]).unit,
            a=of_a[name].value if name in of_a else None,
            b=of_b[name].value if name in of_b else None,
        )
        for name in dict.fromkeys((*of_a, *of_b))
    ]
    differing = tuple(row for row in rows if row.a != row.b)
    return differing, len(rows) - len(differing)


def compared_expectations(a: Ledger, b: Ledger) -> tuple[ExpectationComparison, ...]:
    """What came of the expectations of either run, by name."""
    of_a, of_b = ({each.name: each for each in ledger.expectations} for ledger in (a, b))
    return tuple(
        _expected(name, of_a.get(name), of_b.get(name)) for name in dict.fromkeys((*of_a, *of_b))
    )


def _expected(name: str, a: Outcome | None, b: Outcome | None) -> ExpectationComparison:
    return ExpectationComparison(
        name=name,
        in_a=None if a is None else a.holds,
        in_b=None if b is None else b.holds,
        why_in_a=_why(a),
        why_in_b=_why(b),
    )


def _why(outcome: Outcome | None) -> str:
    told = () if outcome is None else (outcome.message, outcome.error)
    return ": ".join(filter(None, told))


def different_preemptions(a: Ledger, b: Ledger) -> tuple[PreemptionDifference, ...]:
    """Preemptions of one of the runs only: by victim, node and preemptor."""
    return (*_missing(a, b, Side.A), *_missing(b, a, Side.B))


def _missing(ledger: Ledger, other: Ledger, side: Side) -> list[PreemptionDifference]:
    known = Counter(map(_key, other.preemptions))
    found = []
    for each in ledger.preemptions:
        if known[_key(each)]:
            known[_key(each)] -= 1
        else:
            found.append(
                PreemptionDifference(
                    side=side,
                    pod=each.pod,
                    node=each.node,
                    preemptor=each.preemptor,
                    step=str(each.step),
                )
            )
    return found


def _key(entry: PreemptionEntry) -> tuple[str, str, str]:
    return entry.pod, entry.node, entry.preemptor
