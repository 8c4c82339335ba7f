"""What autoscalers tell of their decisions, whichever they are."""

from collections.abc import Mapping

from msgspec import Struct

Sizes = Mapping[str, Mapping[str, str]]
"""Quantities by container and resource."""


class ReplicasDecided(Struct, frozen=True):
    """A pass changed the scale of its target: from how many to how many, and why."""

    namespace: str
    name: str
    target: str
    current: int
    desired: int
    reason: str = ""


class SizesDecided(Struct, frozen=True):
    """A pod is resized in place, or evicted so that the next one is another size, and why."""

    namespace: str
    name: str
    target: str
    pod: str
    action: str
    """``resized`` or ``evicted``."""
    before: Sizes
    after: Sizes
    reason: str
