"""Profiles: which plugins run at which extension point, in which order, with which weight.

A profile is what one ``schedulerName`` stands for. It is written out in full: every point lists its
plugins. Reading a ``KubeSchedulerConfiguration`` means computing such profiles from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ExtensionPoint(StrEnum):
    PRE_ENQUEUE = "PreEnqueue"
    QUEUE_SORT = "QueueSort"
    PRE_FILTER = "PreFilter"
    FILTER = "Filter"
    POST_FILTER = "PostFilter"
    PRE_SCORE = "PreScore"
    SCORE = "Score"
    RESERVE = "Reserve"
    PERMIT = "Permit"
    PRE_BIND = "PreBind"
    BIND = "Bind"
    POST_BIND = "PostBind"


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin at one point. The weight counts for Score only."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Profile:
    """One schedulerName. ``percentage_of_nodes_to_score`` 0 means: adapt to the cluster's size."""

    scheduler_name: str
    points: Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]]
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    percentage_of_nodes_to_score: int = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> "Profile":
        """Immutable, and so shared by the copies of a world."""
        return self

    def at(self, point: ExtensionPoint) -> tuple[EnabledPlugin, ...]:
        return self.points.get(point, ())

    def plugin_names(self) -> list[str]:
        """Every plugin of the profile once, in order of first mention."""
        return list(dict.fromkeys(each.name for at in self.points.values() for each in at))


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a pod waits after a failed attempt: doubling, up to ``maximum_s``."""

    initial_s: int = 1
    maximum_s: int = 10

    def seconds(self, count: int) -> int:
        """The wait after ``count`` failures. [Q-4]"""
        if count == 0 or self.maximum_s == 0:
            return 0
        if self.initial_s > self.maximum_s >> (count - 1):
            return self.maximum_s
        return self.initial_s << (count - 1)
