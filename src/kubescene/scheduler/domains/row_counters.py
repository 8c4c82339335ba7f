"""One number per node: what the pods on it add up to for one question."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kubescene.scheduler.domains.affinity_terms import CarriedTerm
from kubescene.scheduler.domains.groups import LabelGroup, LabelPair, Share
from kubescene.scheduler.domains.tallies import ALL_NODES, CountedNodes, DomainTally
from kubescene.scheduler.state.node_info import NO_ROW
from kubescene.scheduler.state.nodes import NodeTable

_TALLIES_KEPT = 16


class Matcher(Protocol):
    """A question about pods on nodes. A hashable value: equal questions share a counter."""

    @property
    def pair(self) -> LabelPair | None:
        """A label that every pod has whose labels matter."""
        ...

    @property
    def reads_labels(self) -> bool:
        """Whether labels of pods matter at all."""
        ...

    @property
    def held_against(self) -> Mapping[str, str] | None:
        """The labels that carried terms are held against; None if terms do not matter."""
        ...

    def of_labels(self, group: LabelGroup) -> Share: ...

    def of_term(self, carried: CarriedTerm) -> Share: ...


class RowCounter:
    """Amounts and matches by row, and the tallies made of them. Fed by the census.

    A counter that has not been asked for in a long time falls asleep: nobody feeds it any more.
    """

    __slots__ = ("amounts", "awake", "layout", "matcher", "matches", "tallies", "used")

    def __init__(self, matcher: Matcher, nodes: NodeTable) -> None:
        self.matcher = matcher
        self.tallies: dict[tuple[str, CountedNodes], DomainTally] = {}
        self.awake = True
        self.used = 0
        self.reset(nodes)

    def reset(self, nodes: NodeTable) -> None:
        """Begin with nothing."""
        self.layout = nodes.layout
        self.amounts: NDArray[np.int32] = np.zeros(len(nodes), dtype=np.int32)
        self.matches: NDArray[np.int32] = np.zeros(len(nodes), dtype=np.int32)
        self.tallies.clear()

    def sleep(self) -> None:
        self.awake = False
        self.tallies.clear()
        self.amounts = self.matches = np.zeros(0, dtype=np.int32)

    def place(self, nodes: NodeTable) -> bool:
        """Follow the rows of the table; False if it is too long ago that they were followed."""
        if self.layout == nodes.layout:
            return True
        moves = nodes.moved_from(self.layout)
        if moves is None:
            return False
        self.layout = nodes.layout
        self.amounts = _moved(self.amounts, moves)
        self.matches = _moved(self.matches, moves)
        return True

    def add(self, row: int, share: Share, pods: int) -> None:
        """So many pods more, or less, on a node. The counter is in place."""
        amount, matches = share.amount * pods, share.matches * pods
        self.amounts[row] += amount
        self.matches[row] += matches
        for tally in self.tallies.values():
            tally.add(row, amount, matches)

    def clear(self, row: int) -> None:
        """A node left and came back: what was counted for it is void, and so are the tallies."""
        self.amounts[row] = self.matches[row] = 0
        for tally in self.tallies.values():
            tally.is_stale = True

    def tally(
        self, nodes: NodeTable, epoch: int, key: str, counted: CountedNodes = ALL_NODES
    ) -> DomainTally:
        """By domain of a topology key, over the nodes that count; ``epoch`` is the census's."""
        found = self.tallies.get((key, counted))
        if found is None:
            if len(self.tallies) >= _TALLIES_KEPT:
                del self.tallies[next(iter(self.tallies))]
            found = self.tallies[key, counted] = DomainTally(key, counted)
        if found.epoch != epoch or found.is_stale:
            found.count(nodes, self.amounts, self.matches)
            found.epoch, found.is_stale = epoch, False
        return found


def _moved(column: NDArray[np.int32], moves: NDArray[np.intp]) -> NDArray[np.int32]:
    if not column.size:
        return np.zeros(moves.size, dtype=np.int32)
    taken = column.take(moves, mode="clip")
    taken[moves == NO_ROW] = 0
    return taken
