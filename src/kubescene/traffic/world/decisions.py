"""What autoscalers said, and what became of it."""

from typing import Any

import msgspec

from kubescene.autoscalers import RecommendedPodResources, VerticalRecommendationResponse
from kubescene.struct_types import build


class AutoscalerDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One recommendation. ``before`` and ``after`` are numbers of pods.

    ``reason`` and ``details`` are the autoscaler's own words.
    """

    time: int
    autoscaler: str
    before: int
    after: int
    reason: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)


class SizeDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One recommendation of a size, and whom it moved. CPU in millicores, memory in bytes."""

    time: int
    autoscaler: str
    resources: tuple[RecommendedPodResources, ...] = ()
    evicted: tuple[str, ...] = ()
    resized: tuple[str, ...] = ()
    reason: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def resource(response: VerticalRecommendationResponse, name: str) -> RecommendedPodResources | None:
    """What is recommended for a resource: the last entry, if there are several.

    A target of nothing is no recommendation.
    """
    found = [each for each in response.rec if each.resource_name == name and each.target > 0]
    return found[-1] if found else None


build(AutoscalerDecision, SizeDecision)
