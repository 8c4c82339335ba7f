"""The built-in plugins, one module each, by the names that kube-scheduler gives them."""

from collections.abc import Mapping
from typing import NamedTuple

from kubescene.scheduler.framework.interfaces import Plugin, PluginFactory
from kubescene.scheduler.plugins import (
    default_binder,
    default_preemption,
    dynamic_resources,
    gang_scheduling,
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_declared_features,
    node_name,
    node_ports,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    node_volume_limits,
    pod_topology_spread,
    priority_sort,
    scheduling_gates,
    taint_toleration,
    volume_binding,
    volume_restrictions,
    volume_zone,
)


class BuiltIn(NamedTuple):
    """The class of a plugin, and what makes one from its arguments."""

    plugin: type[Plugin]
    make: PluginFactory


BUILT_IN: Mapping[str, BuiltIn] = {
    "SchedulingGates": BuiltIn(scheduling_gates.SchedulingGates, scheduling_gates.make),
    "PrioritySort": BuiltIn(priority_sort.PrioritySort, priority_sort.make),
    "NodeUnschedulable": BuiltIn(node_unschedulable.NodeUnschedulable, node_unschedulable.make),
    "NodeName": BuiltIn(node_name.NodeName, node_name.make),
    "TaintToleration": BuiltIn(taint_toleration.TaintToleration, taint_toleration.make),
    "NodeAffinity": BuiltIn(node_affinity.NodeAffinity, node_affinity.make),
    "NodePorts": BuiltIn(node_ports.NodePorts, node_ports.make),
    "NodeResourcesFit": BuiltIn(node_resources_fit.NodeResourcesFit, node_resources_fit.make),
    "PodTopologySpread": BuiltIn(pod_topology_spread.PodTopologySpread, pod_topology_spread.make),
    "InterPodAffinity": BuiltIn(inter_pod_affinity.InterPodAffinity, inter_pod_affinity.make),
    "DynamicResources": BuiltIn(dynamic_resources.DynamicResources, dynamic_resources.make),
    "DefaultPreemption": BuiltIn(default_preemption.DefaultPreemption, default_preemption.make),
    "VolumeRestrictions": BuiltIn(volume_restrictions.VolumeRestrictions, volume_restrictions.make),
    "NodeVolumeLimits": BuiltIn(node_volume_limits.NodeVolumeLimits, node_volume_limits.make),
    "VolumeBinding": BuiltIn(volume_binding.VolumeBinding, volume_binding.make),
    "VolumeZone": BuiltIn(volume_zone.VolumeZone, volume_zone.make),
    "NodeResourcesBalancedAllocation": BuiltIn(
        node_resources_balanced_allocation.NodeResourcesBalancedAllocation,
        node_resources_balanced_allocation.make,
    ),
    "ImageLocality": BuiltIn(image_locality.ImageLocality, image_locality.make),
    "DefaultBinder": BuiltIn(default_binder.DefaultBinder, default_binder.make),
    "NodeDeclaredFeatures": BuiltIn(
        node_declared_features.NodeDeclaredFeatures, node_declared_features.make
    ),
    "GangScheduling": BuiltIn(gang_scheduling.GangScheduling, gang_scheduling.make),
}
