"""Decisions that changed how many replicas a workload has, or how many machines a node group."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from kubescene.controllers.builtin.autoscaling.facts import ReplicasDecided
from kubescene.karpenter.facts import KarpenterDecided
from kubescene.node_autoscaling.facts import NodesDecided
from kubescene.results.clockwork import Clockwork
from kubescene.results.ledger import Ledger
from kubescene.timeline import CustomFact

DECIDED = ReplicasDecided.__name__
"""What autoscalers of pods tell."""
NODE_FACTS: Mapping[str, tuple[type[NodesDecided], str]] = {
    NodesDecided.__name__: (NodesDecided, "NodeGroup"),
    KarpenterDecided.__name__: (KarpenterDecided, "NodePool"),
}
"""What autoscalers of nodes tell, and what they resize."""
SCALING = frozenset({DECIDED, *NODE_FACTS})


class ToldRun(Protocol):
    """A run, as far as those need it who read what controllers told; see `RunSource`."""

    @property
    def ledger(self) -> Ledger: ...

    def custom_facts(self) -> Iterator[CustomFact]: ...


class ScalingRow(msgspec.Struct, frozen=True, kw_only=True):
    """An autoscaler changed the scale of its target (``Kind/name``), such as a NodeGroup."""

    namespace: str
    autoscaler: str
    target: str
    step: str
    time_s: float
    replicas_from: int
    replicas_to: int
    reason: str


def sizes_decided(fact: CustomFact, clock: Clockwork) -> Iterator[ScalingRow]:
    """Groups that grow, and groups that lose nodes."""
    told = nodes_decided(fact)
    if told is None:
        return
    changes = [(each.group, each.before, each.after, told.why_ordered) for each in told.ordered]
    for group in dict.fromkeys(each.group for each in told.removed):
        leaving = [each for each in told.removed if each.group == group]
        names = ", ".join(each.node for each in leaving)
        size = leaving[0].size
        changes.append((group, size, size - len(leaving), f"not needed: {names}"))
    for group, before, after, why in changes:
        yield ScalingRow(
            namespace="",
            autoscaler=fact.actor,
            target=f"{NODE_FACTS[fact.kind][1]}/{group}",
            step=str(fact.step),
            time_s=clock.seconds(fact.time),
            replicas_from=before,
            replicas_to=after,
            reason=why,
        )


def nodes_decided(fact: CustomFact) -> NodesDecided | None:
    """None if somebody else told another fact of that name."""
    if fact.kind not in NODE_FACTS:
        return None
    try:
        return fact.read(NODE_FACTS[fact.kind][0])
    except msgspec.ValidationError:
        return None


def scaling_rows(source: ToldRun) -> Iterator[ScalingRow]:
    """All of them, in their order, read anew."""
    if not SCALING.isdisjoint(source.ledger.custom_facts):
        yield from decided(source.custom_facts(), source.ledger)


def decided(facts: Iterable[CustomFact], ledger: Ledger) -> Iterator[ScalingRow]:
    """The decisions among facts of a run."""
    clock = Clockwork(ledger)
    for fact in facts:
        if fact.kind in NODE_FACTS:
            yield from sizes_decided(fact, clock)
        if fact.kind != DECIDED:
            continue
        try:
            told = fact.read(ReplicasDecided)
        except msgspec.ValidationError:
            continue
        yield ScalingRow(
            namespace=told.namespace,
            autoscaler=told.name,
            target=told.target,
            step=str(fact.step),
            time_s=clock.seconds(fact.time),
            replicas_from=told.current,
            replicas_to=told.desired,
            reason=told.reason,
        )
