"""The profile of a scheduler that nobody configured: the plugins of kube-scheduler v1.36.

Plugins are named once, in the order of kube-scheduler's ``multiPoint`` list, and stand at every
extension point that they implement.
"""

from collections.abc import Mapping
from functools import cache

from kubescene.scheduler.config import EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.pods import DEFAULT_SCHEDULER
from kubescene.scheduler.points import points_of

DEFAULT_PLUGINS = (
    EnabledPlugin("SchedulingGates"),
    EnabledPlugin("PrioritySort"),
    EnabledPlugin("NodeUnschedulable"),
    EnabledPlugin("NodeName"),
    EnabledPlugin("TaintToleration", weight=3),
    EnabledPlugin("NodeAffinity", weight=2),
    EnabledPlugin("NodePorts"),
    EnabledPlugin("NodeResourcesFit"),
    EnabledPlugin("VolumeRestrictions"),
    EnabledPlugin("NodeVolumeLimits"),
    EnabledPlugin("VolumeBinding"),
    EnabledPlugin("VolumeZone"),
    EnabledPlugin("PodTopologySpread", weight=2),
    EnabledPlugin("InterPodAffinity", weight=2),
    EnabledPlugin("DynamicResources", weight=2),
    EnabledPlugin("DefaultPreemption"),
    EnabledPlugin("NodeResourcesBalancedAllocation"),
    EnabledPlugin("ImageLocality"),
    EnabledPlugin("DefaultBinder"),
    EnabledPlugin("NodeDeclaredFeatures"),
)


def default_plugins() -> tuple[EnabledPlugin, ...]:
    """Those of the default plugins that exist here."""
    # Late, so that a plugin module may import from this package without a cycle.
    from kubescene.scheduler.plugins import BUILT_IN

    return tuple(each for each in DEFAULT_PLUGINS if each.name in BUILT_IN)


def default_profile(scheduler_name: str = DEFAULT_SCHEDULER) -> Profile:
    """The plugins of kube-scheduler v1.36 that exist here, in its order and with its weights."""
    return Profile(scheduler_name, _default_points())


@cache
def _default_points() -> Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]]:
    # Late, so that a plugin module may import from this package without a cycle.
    from kubescene.scheduler.plugins import BUILT_IN

    standing = {each: points_of(BUILT_IN[each.name].plugin) for each in default_plugins()}
    return {
        point: tuple(each for each, points in standing.items() if point in points)
        for point in ExtensionPoint
    }
