"""KEP-140's result calculation package: the functions that its Story 1 asks for.

Each takes whatever `open_run` takes. What comes back can be iterated, and is a frame by
``.frame()``.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.rows import AllocationRow, AttemptRow, PodRow, UtilizationRow
from kubescene.results.sources import open_run
from kubescene.results.tables import Table, tables
from kubescene.timeline import Fact


class Moment(NamedTuple):
    """A fact, and the cluster as it is after it. The ledger goes on with the next moment."""

    fact: Fact
    ledger: Ledger


def scheduling_results(where: Any) -> Table[AttemptRow]:
    """Every attempt of a scheduler at a pod: on which node it ended, or why on none."""
    return tables(where)["attempts"]


def allocation_rate(where: Any) -> Table[AllocationRow]:
    """How much of each resource of the whole cluster was asked for, at the end of each step."""
    return tables(where)["allocation"]


def node_utilization(where: Any) -> Table[UtilizationRow]:
    """How much of each node was asked for, at the end of each step."""
    return tables(where)["utilization"]


def by_pod(where: Any) -> dict[str, tuple[PodRow, ...]]:
    """What became of each pod, by NAMESPACE/NAME; several, if one of the name came again."""
    found: dict[str, tuple[PodRow, ...]] = {}
    for row in tables(where)["pods"]:
        name = f"{row.namespace}/{row.name}"
        found[name] = (*found.get(name, ()), row)
    return found


def iterate(where: Any) -> Iterator[Moment]:
    """Everything that happened, one fact after the other, for values of your own.

    >>> from kubescene.results import iterate
    >>> busiest = max(m.ledger.totals.nodes for m in iterate("out"))  # doctest: +SKIP
    """
    entries = Entries()
    for fact in open_run(where).facts():
        entries.add(fact)
        yield Moment(fact, entries.ledger)
