"""Decisions that changed how many replicas a workload has."""

from collections.abc import Iterator

import msgspec

from kubescene.results.clockwork import Clockwork
from kubescene.results.sources import RunSource

DECIDED = "ReplicasDecided"
"""What horizontal autoscalers tell."""


class ScalingRow(msgspec.Struct, frozen=True, kw_only=True):
    """An autoscaler changed the scale of its target (``Kind/name``)."""

    namespace: str
    autoscaler: str
    target: str
    step: str
    time_s: float
    replicas_from: int
    replicas_to: int
    reason: str


class _ReplicasDecided(msgspec.Struct, frozen=True):
    """What is read of such a fact; somebody else may tell another of that name."""

    namespace: str
    name: str
    target: str
    current: int
    desired: int
    reason: str = ""


def scaling_rows(source: RunSource) -> Iterator[ScalingRow]:
    """All of them, in their order, read anew."""
    clock = Clockwork(source.ledger)
    for fact in source.custom_facts():
        if fact.kind != DECIDED:
            continue
        try:
            told = fact.read(_ReplicasDecided)
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
