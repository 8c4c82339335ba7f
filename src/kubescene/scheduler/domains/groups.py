"""Pods on nodes, grouped by what can be asked about them.

A pod belongs to one `LabelGroup` and to one `TermGroup` for each term that it carries. A group
knows how many of its pods each node has, and which counters want to hear when that changes.
"""

from collections.abc import Hashable, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

from kubescene.api.selectors import LabelSelector
from kubescene.scheduler.domains.affinity_terms import CarriedTerm
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from kubescene.scheduler.domains.row_counters import RowCounter

LabelPair: TypeAlias = tuple[str, str]
T = TypeVar("T", bound=Hashable)


class Share(NamedTuple):
    """What each pod of a group adds to a counter: how much, and how many matches that is."""

    amount: int
    matches: int


NO_SHARE = Share(0, 0)
ONE = Share(1, 1)


class PodGroup:
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


class LabelGroup(PodGroup):
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


class TermGroup(PodGroup):
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
