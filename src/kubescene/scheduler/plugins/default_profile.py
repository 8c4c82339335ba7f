"""The registry and the profile of a scheduler that nobody configured: kube-scheduler v1.36.

Plugins are named once, in the order of kube-scheduler's ``multiPoint`` list, and stand at every
extension point that they implement. What comes of it at each point
are the rules P-1, P-2, P-3, P-4, P-5, P-6, P-7, P-8, P-9 and P-10.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from kubescene.scheduler.framework.feature_gates import DEFAULT_GATES, GANG_SCHEDULING, FeatureGates
from kubescene.scheduler.framework.plugin_registry import PluginRegistry
from kubescene.scheduler.framework.points import points_of
from kubescene.scheduler.framework.profile import EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.plugins import BUILT_IN
from kubescene.scheduler.state.pod_kinds import DEFAULT_SCHEDULER

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


GATED_PLUGINS = ((GANG_SCHEDULING, EnabledPlugin("GangScheduling")),)
"""Plugins that join at the end when their feature gate is on."""


def default_registry() -> PluginRegistry:
    """The built-in plugins."""
    registry = PluginRegistry()
    for name, each in BUILT_IN.items():
        registry.register(name, each.make, each.plugin)
    return registry


def default_plugins(gates: FeatureGates = DEFAULT_GATES) -> tuple[EnabledPlugin, ...]:
    """Those of the default plugins that exist here."""
    gated = [plugin for gate, plugin in GATED_PLUGINS if gates.enabled(gate)]
    return tuple(each for each in (*DEFAULT_PLUGINS, *gated) if each.name in BUILT_IN)


def default_profile(
    scheduler_name: str = DEFAULT_SCHEDULER, gates: FeatureGates = DEFAULT_GATES
) -> Profile:
    """The plugins of kube-scheduler v1.36 that exist here, in its order and with its weights."""
    return Profile(scheduler_name, _default_points(gates))


def gated_profile(profile: Profile, gates: FeatureGates) -> Profile:
    """The same profile; the default one is the one that these gates make."""
    if profile.points is not _default_points(DEFAULT_GATES):
        return profile
    return replace(profile, points=_default_points(gates))


@cache
def _default_points(
    gates: FeatureGates,
) -> Mapping[ExtensionPoint, tuple[EnabledPlugin, ...]]:
    standing = {each: points_of(BUILT_IN[each.name].plugin) for each in default_plugins(gates)}
    return {
        point: tuple(each for each, points in standing.items() if point in points)
        for point in ExtensionPoint
    }
