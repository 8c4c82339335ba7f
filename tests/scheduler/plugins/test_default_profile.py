"""The plugins of kube-scheduler v1.36 at each point, in order, without any configuration."""

import inspect
import re

import pytest

from kubescene.scheduler import ExtensionPoint, FeatureGates, default_profile
from kubescene.scheduler.framework import interfaces
from kubescene.scheduler.framework.points import implements
from kubescene.scheduler.plugins import BUILT_IN

PLUGINS = {
    "P-1": (ExtensionPoint.PRE_ENQUEUE, "SchedulingGates DynamicResources DefaultPreemption"),
    "P-2": (ExtensionPoint.QUEUE_SORT, "PrioritySort"),
    "P-3": (
        ExtensionPoint.PRE_FILTER,
        "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
    ),
    "P-4": (
        ExtensionPoint.FILTER,
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
        "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread "
        "InterPodAffinity DynamicResources NodeDeclaredFeatures",
    ),
    "P-5": (ExtensionPoint.POST_FILTER, "DynamicResources DefaultPreemption"),
    "P-6": (
        ExtensionPoint.PRE_SCORE,
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
        "InterPodAffinity NodeResourcesBalancedAllocation",
    ),
    "P-7": (
        ExtensionPoint.SCORE,
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread "
        "InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality",
    ),
    "P-8 Reserve": (ExtensionPoint.RESERVE, "VolumeBinding DynamicResources"),
    "P-8 Permit": (ExtensionPoint.PERMIT, ""),
    "P-8 PreBind": (ExtensionPoint.PRE_BIND, "VolumeBinding DynamicResources"),
    "P-8 Bind": (ExtensionPoint.BIND, "DefaultBinder"),
    "P-8 PostBind": (ExtensionPoint.POST_BIND, ""),
}


@pytest.mark.parametrize(("point", "plugins"), PLUGINS.values(), ids=PLUGINS)
def test_plugins_stand_where_they_stand_in_kube_scheduler(
    point: ExtensionPoint, plugins: str
) -> None:
    assert [each.name for each in default_profile().at(point)] == plugins.split()


def test_p_7_weights() -> None:
    weights = {each.name: each.weight for each in default_profile().at(ExtensionPoint.SCORE)}
    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_p_9_gangs_are_off_until_their_gates_are_on() -> None:
    gates = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True})
    assert "GangScheduling" not in default_profile().plugin_names()
    points = default_profile(gates=gates).points
    assert [point for point, at in points.items() if "GangScheduling" in map(_name, at)] == [
        ExtensionPoint.PRE_ENQUEUE,
        ExtensionPoint.PERMIT,
    ]


def test_p_10_who_follows_supposed_changes() -> None:
    following = [
        name
        for name, built_in in BUILT_IN.items()
        if any(implements(built_in.plugin, method) for method in ("add_pod", "remove_pod"))
    ]
    assert sorted(following) == ["InterPodAffinity", "PodTopologySpread", "VolumeRestrictions"]


OWN = {"DefaultPreemption": {"candidates_wanted"}, "DynamicResources": {"allocations"}}
"""What nobody but the plugin itself and its tests calls."""


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_plugin_shows_nothing_that_the_manual_of_authors_does_not_have(
    name: str,
) -> None:
    shown = {each for each in dir(BUILT_IN[name].plugin) if each.islower() and each[0] != "_"}
    manual = set(re.findall(r"\w+", inspect.getsource(interfaces)))
    assert shown - manual == OWN.get(name, set())


def _name(enabled: object) -> str:
    return str(getattr(enabled, "name", ""))
