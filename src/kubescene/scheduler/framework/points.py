"""What a plugin must have to stand at an extension point."""

from collections.abc import Mapping

from kubescene.scheduler.framework import interfaces
from kubescene.scheduler.framework.profile import ExtensionPoint

POINTS: Mapping[ExtensionPoint, tuple[tuple[str, ...], ...]] = {
    ExtensionPoint.PRE_ENQUEUE: (("pre_enqueue",),),
    ExtensionPoint.QUEUE_SORT: (("sort_key",),),
    ExtensionPoint.PRE_FILTER: (("pre_filter",),),
    ExtensionPoint.FILTER: (("filter_nodes", "describe"), ("filter",)),
    ExtensionPoint.POST_FILTER: (("post_filter",),),
    ExtensionPoint.PRE_SCORE: (("pre_score",),),
    ExtensionPoint.SCORE: (("score_nodes",), ("score",)),
    ExtensionPoint.RESERVE: (("reserve", "unreserve"),),
    ExtensionPoint.PERMIT: (("permit",),),
    ExtensionPoint.PRE_BIND: (("pre_bind",),),
    ExtensionPoint.BIND: (("bind",),),
    ExtensionPoint.POST_BIND: (("post_bind",),),
}
"""Per point, the methods a plugin needs: all of one of the alternatives."""


def implements(plugin: object, method: str) -> bool:
    """Whether a plugin has a method of its own, not just one it inherits from a protocol."""
    found = getattr(plugin, method, None)
    return found is not None and getattr(found, "__module__", "") != interfaces.__name__


def points_of(plugin: object) -> list[ExtensionPoint]:
    """The points that a plugin, or the class of one, can stand at."""
    return [
        point
        for point, alternatives in POINTS.items()
        if any(all(implements(plugin, method) for method in methods) for methods in alternatives)
    ]
