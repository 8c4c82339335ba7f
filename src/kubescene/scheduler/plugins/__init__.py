"""The built-in plugins, one module each, by the names that kube-scheduler gives them."""

from collections.abc import Mapping

from kubescene.scheduler.interfaces import PluginFactory
from kubescene.scheduler.plugins import (
    default_binder,
    node_affinity,
    node_name,
    node_resources_balanced_allocation,
    node_resources_fit,
    node_unschedulable,
    priority_sort,
    scheduling_gates,
    taint_toleration,
)

BUILT_IN: Mapping[str, PluginFactory] = {
    "SchedulingGates": scheduling_gates.make,
    "PrioritySort": priority_sort.make,
    "NodeUnschedulable": node_unschedulable.make,
    "NodeName": node_name.make,
    "TaintToleration": taint_toleration.make,
    "NodeAffinity": node_affinity.make,
    "NodeResourcesFit": node_resources_fit.make,
    "NodeResourcesBalancedAllocation": node_resources_balanced_allocation.make,
    "DefaultBinder": default_binder.make,
}
