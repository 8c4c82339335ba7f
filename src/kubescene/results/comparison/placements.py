"""Which pods stand elsewhere, and why: the decisions of two runs beside each other.

Which pod is which is said by `matching`.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from operator import itemgetter
from typing import TypeAlias

import msgspec

from kubescene.clock import ScenarioStep
from kubescene.errors import ConfigurationError
from kubescene.results.comparison.attribution import Attribution, Side, Why, attribute
from kubescene.results.comparison.histories import ClusterChecksums, RunHistory
from kubescene.results.comparison.inputs import Inputs
from kubescene.results.comparison.values import Cause, ComparedWait, Divergence, PlacedPod
from kubescene.results.explaining import ExplainedAttempt
from kubescene.results.ledger_entries import PENDING, PodEntry

NEVER = ScenarioStep(1 << 62, 0)

Explainer: TypeAlias = Callable[[str], list[ExplainedAttempt]]
"""The attempts at a pod, by ``NAMESPACE/NAME``."""


class Rank(IntEnum):
    """Whom to look at first."""

    FIRST_HAND = 0
    UNKNOWN = 1
    FOLLOWS = 2


UNASKED = {Rank.FIRST_HAND: None, Rank.UNKNOWN: None, Rank.FOLLOWS: Cause.CONSEQUENCE}
"""What is known of the cause where nobody asks."""


class Placements:
    """The decisions of both runs. ``warnings`` say why attempts could not be explained."""

    def __init__(
        self,
        explain: Mapping[Side, Explainer],
        histories: Mapping[Side, RunHistory],
        inputs: Inputs,
    ) -> None:
        self._explain = explain
        self._histories = histories
        self._inputs = inputs
        self._mute: dict[Side, str] = {}

    @property
    def warnings(self) -> list[str]:
        return [f"{side}: {why}" for side, why in self._mute.items()]

    # -- which -----------------------------------------------------------------------------

    def otherwise(self, looked_at: int) -> tuple[PlacedPod, ...]:
        """The pods with another node; ``looked_at`` of them with reasons.

        First those that two schedulers put elsewhere in the same cluster, each kind in the order of
        the decisions.
        """
        pairs = sorted(((a, b) for a, b in self._pairs() if a.node != b.node), key=_order)
        ranked = sorted([(self._rank(a, b), a, b) for a, b in pairs], key=itemgetter(0))
        return tuple(
            self._placed(a, b) if number < looked_at else _unasked(a, b, UNASKED[rank])
            for number, (rank, a, b) in enumerate(ranked)
        )

    def _rank(self, a: PodEntry, b: PodEntry) -> Rank:
        """What the ledgers alone tell of the cause."""
        if a.bound_step is None or b.bound_step is None:
            return Rank.UNKNOWN
        in_a = self._histories[Side.A].pods_before_binding(a.bound_step)
        in_b = self._histories[Side.B].pods_before_binding(b.bound_step)
        return Rank.FIRST_HAND if in_a == in_b else Rank.FOLLOWS

    def only_in(self, side: Side) -> tuple[str, ...]:
        """Pods that the other run does not have, as often as it does not have them."""
        others = self._histories[_other(side)].pods
        mine = self._histories[side].pods
        return tuple(name for name, pods in mine.items() for _ in pods[len(others.get(name, ())) :])

    def waiting(self) -> tuple[ComparedWait, ...]:
        """Pods that wait in both, but not for the same reasons."""
        return tuple(
            ComparedWait(pod=a.pod, in_a=a.message, in_b=b.message)
            for a, b in self._pairs()
            if a.state == b.state == PENDING and a.message != b.message
        )

    def _pairs(self) -> Iterator[tuple[PodEntry, PodEntry]]:
        others = self._histories[Side.B].pods
        for name, pods in self._histories[Side.A].pods.items():
            yield from zip(pods, others.get(name, ()), strict=False)

    # -- where the runs part ---------------------------------------------------------------

    def divergence(self) -> Divergence | None:
        """The first pod that was bound differently; None if all went the same way."""
        bound = [self._histories[side].bound() for side in Side]
        for number, (a, b) in enumerate(zip(*bound, strict=False), 1):
            if (a.pod, a.node) != (self._histories[Side.B].name_of(b), b.node):
                return self._parted(number, a, b)
        shorter = min(map(len, bound))
        a, b = (each[shorter] if shorter < len(each) else None for each in bound)
        return None if a is b else self._parted(shorter + 1, a, b)

    def _parted(self, number: int, a: PodEntry | None, b: PodEntry | None) -> Divergence:
        """How the decisions of that number differ: about one pod, or about which comes next."""
        found = self._about(a, Side.A) or self._about(b, Side.B)
        if found is None:
            return Divergence(
                number=number,
                pod="" if a is None else a.pod,
                other_pod="" if b is None else b.pod,
                node_in_a="" if a is None else a.node,
                node_in_b="" if b is None else b.node,
                step_in_a="" if a is None else str(a.bound_step),
                step_in_b="" if b is None else str(b.bound_step),
            )
        return Divergence(
            number=number,
            pod=found.pod,
            node_in_a=found.node_in_a,
            node_in_b=found.node_in_b,
            step_in_a=found.step_in_a,
            step_in_b=found.step_in_b,
            cause=found.cause,
            attribution=found.attribution,
        )

    def _about(self, pod: PodEntry | None, side: Side) -> PlacedPod | None:
        """What the other run made of the attempt that bound a pod; None if the same, or nothing."""
        twin = None if pod is None else self._twin(pod, side)
        if pod is None or twin is None:
            return None
        mine, theirs = (
            self._attempt(each, entry, pod.attempts)
            for each, entry in ((side, pod), (_other(side), twin))
        )
        node = twin.node if theirs is None else theirs.node
        if node == pod.node:
            return None
        if side is Side.A:
            found = _unasked(pod, twin)
            return self._attributed(msgspec.structs.replace(found, node_in_b=node), mine, theirs)
        found = _unasked(twin, pod)
        return self._attributed(msgspec.structs.replace(found, node_in_a=node), theirs, mine)

    def _twin(self, pod: PodEntry, side: Side) -> PodEntry | None:
        """The same pod in the other run."""
        name = self._histories[side].name_of(pod)
        place = self._histories[side].pods[name].index(pod)
        others = self._histories[_other(side)].pods.get(name, [])
        return others[place] if place < len(others) else None

    # -- why -------------------------------------------------------------------------------

    def _placed(self, a: PodEntry, b: PodEntry) -> PlacedPod:
        found = _unasked(a, b)
        if a.came_with_node or b.came_with_node:
            return msgspec.structs.replace(found, cause=Cause.SCENARIO)
        return self._attributed(
            found, self._attempt(Side.A, a, a.attempts), self._attempt(Side.B, b, b.attempts)
        )

    def _attempt(self, side: Side, pod: PodEntry, number: int) -> ExplainedAttempt | None:
        """One of the attempts at a pod, counted from 1."""
        if side in self._mute or not 0 < number <= pod.attempts:
            return None
        namesakes = self._histories[side].namesakes[pod.pod]
        before = sum(each.attempts for each in namesakes[: namesakes.index(pod)])
        try:
            attempts = self._explain[side](pod.pod)
        except ConfigurationError as error:
            self._mute[side] = str(error)
            return None
        place = before + number - 1
        return attempts[place] if place < len(attempts) else None

    def _attributed(
        self, found: PlacedPod, a: ExplainedAttempt | None, b: ExplainedAttempt | None
    ) -> PlacedPod:
        """With the reasons, as far as both attempts are explained."""
        if a is None or b is None:
            missing = tuple(side for side, each in zip(Side, (a, b), strict=True) if each is None)
            why = Why.UNEXPLAINED if self._mute else Why.UNTRIED
            return msgspec.structs.replace(found, attribution=Attribution(why, sides=missing))
        attribution = self._known_nodes(attribute(a, b), a, b)
        return msgspec.structs.replace(
            found,
            step_in_a=a.step,
            step_in_b=b.step,
            cause=self._cause(a, b, attribution),
            reconfigured=self._reconfigured(attribution),
            attribution=attribution,
        )

    def _known_nodes(
        self, attribution: Attribution, a: ExplainedAttempt, b: ExplainedAttempt
    ) -> Attribution:
        """Nobody looks at a node that is not there."""
        side = attribution.side
        if attribution.why is not Why.UNSEEN or side is None:
            return attribution
        step = _step(a if side is Side.A else b)
        if self._histories[side].had_node(attribution.node, step):
            return attribution
        return msgspec.structs.replace(attribution, why=Why.ABSENT)

    def _cause(self, a: ExplainedAttempt, b: ExplainedAttempt, attribution: Attribution) -> Cause:
        before, after = self._state(Side.A, a), self._state(Side.B, b)
        if before.pods != after.pods:
            return Cause.CONSEQUENCE
        if before.nodes != after.nodes:
            return Cause.SCENARIO
        if self._inputs.operations_differ and not self._reconfigured(attribution):
            return Cause.SCENARIO
        return Cause.SCHEDULER

    def _reconfigured(self, attribution: Attribution) -> bool:
        rating = attribution.why is not Why.VERDICT
        return self._inputs.reconfigured(attribution.plugin, rating=rating)

    def _state(self, side: Side, attempt: ExplainedAttempt) -> ClusterChecksums:
        history, step = self._histories[side], _step(attempt)
        return history.before_binding(step) if attempt.node else history.after(step)


def _other(side: Side) -> Side:
    return Side.B if side is Side.A else Side.A


def _order(pair: tuple[PodEntry, PodEntry]) -> tuple[ScenarioStep, ScenarioStep, str]:
    """As A decided; what it never did, as B did."""
    a, b = pair
    return a.bound_step or b.bound_step or NEVER, a.created_step, a.pod


def _unasked(a: PodEntry, b: PodEntry, cause: Cause | None = None) -> PlacedPod:
    return PlacedPod(
        pod=a.pod,
        pod_in_b="" if a.pod == b.pod else b.pod,
        node_in_a=a.node,
        node_in_b=b.node,
        step_in_a="" if a.bound_step is None else str(a.bound_step),
        step_in_b="" if b.bound_step is None else str(b.bound_step),
        message=a.message if not a.node else b.message if not b.node else "",
        cause=cause,
    )


def _step(attempt: ExplainedAttempt) -> ScenarioStep:
    major, _, minor = attempt.step.partition(".")
    return ScenarioStep(int(major), int(minor))
