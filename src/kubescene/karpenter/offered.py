"""The definitions of Karpenter's kinds, for whoever names one."""

from collections.abc import Callable, Sequence
from functools import partial

from kubescene.types import JsonObject


def _load(kind: str) -> JsonObject:
    from kubescene.karpenter.kinds import DEFINITIONS

    return next(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == kind)


OFFERS: Sequence[tuple[str, str, Callable[[], JsonObject]]] = tuple(
    (group, kind, partial(_load, kind))
    for group, kind in (
        ("karpenter.sh", "NodePool"),
        ("karpenter.sh", "NodeClaim"),
        ("kubescene.dev", "InstanceCatalogue"),
    )
)
"""Group, kind, and what makes the definition."""
