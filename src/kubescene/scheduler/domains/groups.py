"""Pods on nodes, grouped by what can be asked about them, and counted for each question.

A pod belongs to one `LabelGroup` and to one `TermGroup` for each term that it carries. A group
knows how many of its pods each node has, and which counters want to hear when that changes. A
`RowCounter` has one number per node: what the pods on it add up to for one question.
"""

from collections.abc import Hashable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubescene.api.selectors import LabelSelector
from kubescene.scheduler.domains.affinity_terms import CarriedTerm
from kubescene.scheduler.domains.tallies import ALL_NODES, CountedNodes, DomainTally
from kubescene.scheduler.state.node_info import NO_ROW
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY

LabelPair: TypeAlias = tuple[str, str]
T = TypeVar("T", bound=Hashable)


class Share(NamedTuple):
    """What each pod of a group adds to a counter: how much, and how many matches that is."""

    amount: int
    matches: int


NO_SHARE = Share(0, 0)
ONE = Share(1, 1)


class CountedGroup:
    """How many pods of a group are on each node, by the node's name."""

    __slots__ = ("counters", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self.counters: dict[RowCounter, Share] = {}

    def _copied(self, memo: dict[int, Any]) -> Self:
        """A copy for a copied world; what never changes is shared."""
        copy: Self = object.__new__(type(self))
        memo[id(self)] = copy
        copy.nodes = self.nodes.copy()
        copy.counters = {deepcopy(each, memo): share for each, share in self.counters.items()}
        return copy


class LabelGroup(CountedGroup):
    """Pods of one namespace with the same labels, being deleted or not."""

    __slots__ = ("labels", "namespace", "terminating")

    def __init__(self, pod: PodInfo) -> None:
        super().__init__()
        self.namespace = pod.namespace
        self.labels = pod.labels
        self.terminating = pod.terminating

    def __deepcopy__(self, memo: dict[int, Any]) -> "LabelGroup":
        copy = self._copied(memo)
        copy.namespace = self.namespace
        copy.labels = self.labels
        copy.terminating = self.terminating
        return copy


class TermGroup(CountedGroup):
    """Pods that carry the same term."""

    __slots__ = ("carried",)

    def __init__(self, carried: CarriedTerm) -> None:
        super().__init__()
        self.carried = carried

    def __deepcopy__(self, memo: dict[int, Any]) -> "TermGroup":
        copy = self._copied(memo)
        copy.carried = self.carried
        return copy


def label_key(signature: PodSignature) -> tuple[str, tuple[LabelPair, ...]]:
    """What a `LabelGroup` is found by, beside whether its pods are being deleted."""
    return signature.namespace, tuple(sorted(signature.labels.items()))


def a_pair(selector: LabelSelector) -> LabelPair | None:
    """A label that everything has which a selector matches, if it names one."""
    for requirement in selector.requirements:
        if (value := requirement.exact()) is not None:
            return requirement.key, value
    return None


class Filed(Generic[T]):
    """Things that match labels, filed under a label that they insist on, if they do."""

    __slots__ = ("_drawers",)

    def __init__(self) -> None:
        self._drawers: dict[LabelPair | None, dict[T, None]] = {}

    def put(self, item: T, pair: LabelPair | None) -> None:
        self._drawers.setdefault(pair, {})[item] = None

    def take(self, item: T, pair: LabelPair | None) -> None:
        drawer = self._drawers[pair]
        del drawer[item]
        if not drawer:
            del self._drawers[pair]

    def among(self, labels: Mapping[str, str]) -> Iterator[T]:
        """Those that may match these labels."""
        drawers = self._drawers
        yield from drawers.get(None, ())
        for pair in labels.items():
            yield from drawers.get(pair, ())

    def under(self, pair: LabelPair) -> Iterator[T]:
        yield from self._drawers.get(pair, ())

    def clear(self) -> None:
        self._drawers.clear()


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
            if len(self.tallies) >= POLICY.tallies_kept:
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
