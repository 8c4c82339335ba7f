"""Runs of pods that are alike: the next best node of the last search, tried before a new one. [B-2]

If a pod is signed like the one before it, the node that took that one is full by now, and little
time has passed, then the ranking of that search still stands: its next node is the hint for this
pod. The cycle tries it as it tries a nominated node.

Pods are signed by the plugins of the profile (`SigningPlugin`): by what they look at. If one of
them does not sign, or extenders have a say, there are no hints. [B-1] With the defaults of
kube-scheduler there are none either: PodTopologySpread refuses to sign as long as it has default
constraints.
"""

from collections.abc import Sequence

from kubescene.clock import MILLISECOND, Clock
from kubescene.scheduler.framework.interfaces import Rows, Scores, SigningPlugin
from kubescene.scheduler.framework.points import implements
from kubescene.scheduler.framework.profile import ExtensionPoint
from kubescene.scheduler.framework.relevance import RelevantPlugins
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.signing import encoded
from kubescene.scheduler.state.memo import Memo
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo

LONGEST_USE = 500 * MILLISECOND

_POINTS = (
    ExtensionPoint.PRE_FILTER,
    ExtensionPoint.FILTER,
    ExtensionPoint.PRE_SCORE,
    ExtensionPoint.SCORE,
)


class Ranking:
    """Nodes in the order in which kube-scheduler's heap gives them out, best first."""

    __slots__ = ("_places", "_size", "_totals", "names")

    def __init__(self, names: Sequence[str], rows: Rows, totals: Scores) -> None:
        self.names: list[str] = [names[row] for row in rows.tolist()]
        self._totals: list[int] = totals.tolist()
        self._places = list(range(len(self.names)))
        self._size = len(self._places)
        for place in range(self._size // 2 - 1, -1, -1):
            self._sink(place)

    def __len__(self) -> int:
        return self._size

    def pop(self) -> str:
        places = self._places
        self._size -= 1
        places[0], places[self._size] = places[self._size], places[0]
        self._sink(0)
        return self.names[places[self._size]]

    def _sink(self, place: int) -> None:
        while (child := 2 * place + 1) < self._size:
            if child + 1 < self._size and self._is_better(child + 1, child):
                child += 1
            if not self._is_better(child, place):
                return
            places = self._places
            places[place], places[child] = places[child], places[place]
            place = child

    def _is_better(self, place: int, other: int) -> bool:
        return self._totals[self._places[place]] > self._totals[self._places[other]]


class Signing:
    """How the plugins of a profile sign pods."""

    def __init__(self, framework: Framework, *, possible: bool = True) -> None:
        names = dict.fromkeys(each.name for at in _POINTS for each in framework.profile.at(at))
        plugins = [framework.plugins[name] for name in names]
        self._plugins: list[SigningPlugin] = [
            each for each in plugins if isinstance(each, SigningPlugin) and implements(each, "sign")
        ]
        self.possible = possible and len(self._plugins) == len(plugins)
        self._relevance = framework.relevance
        self._known: Memo[PodSignature, tuple[RelevantPlugins, bytes | None]] = Memo(self._sign)

    def of(self, pod: PodInfo, now: RelevantPlugins | None = None) -> bytes | None:
        """The signature of a pod; None if it is like no other.

        ``now`` are the plugins that matter to it, if the cycle has found out.
        """
        if not self.possible or pod.is_resized:
            return None
        relevant, signed = self._known[pod.signature]
        if relevant is not (now or self._relevance.of(pod.signature)):
            self._known.clear()
            signed = self._known[pod.signature][1]
        return signed

    def _sign(self, signature: PodSignature) -> tuple[RelevantPlugins, bytes | None]:
        return self._relevance.of(signature), self._encode(signature)

    def _encode(self, signature: PodSignature) -> bytes | None:
        parts: dict[str, object] = {"schedulerName": signature.scheduler_name}
        for at, plugin in enumerate(self._plugins):
            part = plugin.sign(signature)
            if part is None:
                # Whoever refuses to sign will mostly do so again, and is asked first.
                self._plugins.insert(0, self._plugins.pop(at))
                return None
            parts.update(part)
        return encoded(parts)


class Batch:
    """What the last cycle of a profile left for the next one."""

    def __init__(self, signing: Signing, clock: Clock) -> None:
        self._signing = signing
        self._clock = clock
        self._signed: bytes | None = None
        self._made_at = 0
        self._searched: tuple[Sequence[str], Rows, Scores] | None = None
        self._ranking: Ranking | None = None
        self._last_cycle = -1
        self.last_node = ""

    def may_hint(self, pod: PodInfo, cycle: int, relevant: RelevantPlugins | None = None) -> bool:
        """Whether a hint can be given if the node of the last pod does not fit this one.

        ``relevant`` are the plugins that matter to it, if the cycle has found out.
        """
        return (
            self._signed is not None
            and cycle == self._last_cycle + 1
            and self._signed == self._signing.of(pod, relevant)
            and self._clock.now() <= self._made_at + LONGEST_USE
            and bool(self._nodes_left)
        )

    def signs(self, pod: PodInfo, relevant: RelevantPlugins) -> bool:
        """Whether a cycle about such a pod may take a hint, or leave one."""
        return self._signing.of(pod, relevant) is not None

    def leave_nothing(self) -> None:
        """A cycle without a hint for the next one is over."""
        self._signed = self._ranking = self._searched = None

    def hint(self) -> str:
        """The next best node."""
        return self._ranked().pop()

    def store(
        self,
        pod: PodInfo,
        cycle: int,
        *,
        hint: str,
        node: str,
        names: Sequence[str],
        scored: tuple[Rows, Scores] | None,
        relevant: RelevantPlugins | None = None,
    ) -> None:
        """A cycle chose a node; ``scored`` are all that it had the choice of, if several."""
        self._last_cycle, self.last_node = cycle, node
        if hint == node:
            return
        self._signed = self._ranking = self._searched = None
        if scored is not None and (signed := self._signing.of(pod, relevant)) is not None:
            self._signed = signed
            self._searched = (names, *scored)
            self._made_at = self._clock.now()

    @property
    def _nodes_left(self) -> int:
        if self._ranking is not None:
            return len(self._ranking)
        return 0 if self._searched is None else self._searched[1].size - 1

    def _ranked(self) -> Ranking:
        """The heap is made when it is needed, and without the node that was chosen from it."""
        if self._ranking is None:
            assert self._searched is not None
            self._ranking = Ranking(*self._searched)
            self._ranking.pop()
            self._searched = None
        return self._ranking
