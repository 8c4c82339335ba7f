"""What kube-scheduler is held to on its own CI, in pods per second.

``v1_36`` is the threshold in the files of v1.36.4, with queueing hints on where there are two; some
of them are old and loose. ``v1_37`` is the one of v1.37: the least of the last 250 runs there. The
CI machine is limited to 6 CPUs, and the figures include etcd and API server.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Threshold(NamedTuple):
    v1_36: float | None
    v1_37: float | None


_NO_SUFFIX = ("_QueueingHintsEnabled", "_AsyncAPICallsEnabled", "_AsyncPreemptionEnabled")

THRESHOLDS: Mapping[str, Threshold] = {
    "SchedulingBasic/5000Nodes_10000Pods": Threshold(270, 680),
    "SchedulingBasic/5000Nodes_50000Pods": Threshold(None, 790),
    "SchedulingDaemonset/15000Nodes": Threshold(390, 1100),
    "PreemptionAsync/5000Nodes": Threshold(160, 570),
    "Unschedulable/5kNodes/100Init/10kPods": Threshold(170, 590),
    "Unschedulable/5kNodes/20kInit/10kPods": Threshold(None, 600),
    "SchedulingWithMixedChurn/5000Nodes_10000Pods": Threshold(265, 710),
    "SchedulingWhileGated/1Node_10000GatedPods": Threshold(130, 910),
    "SchedulingDeletedPodsWithFinalizers/5000Node_5000DeletingPods": Threshold(None, 830),
    "SchedulingWithExtendedResource/5000pods_5000nodes": Threshold(None, 180),
    "SchedulingPodAntiAffinity/5000Nodes_2000Pods": Threshold(60, 180),
    "SchedulingPodMatchingAntiAffinity/5000Nodes_5000Pods": Threshold(540, 540),
    "SchedulingPodAffinity/5000Nodes_5000Pods": Threshold(35, 70),
    "SchedulingPreferredPodAffinity/5000Nodes_5000Pods": Threshold(90, 160),
    "SchedulingPreferredPodAntiAffinity/5000Nodes_5000Pods": Threshold(90, 190),
    "SchedulingNodeAffinity/5000Nodes_10000Pods": Threshold(220, 540),
    "MixedSchedulingBasePod/5000Nodes_5000Pods": Threshold(140, 540),
    "SchedulingRequiredPodAntiAffinityWithNSSelector/5000Nodes_2000Pods": Threshold(24, 140),
    "SchedulingPreferredAntiAffinityWithNSSelector/5000Nodes_2000Pods": Threshold(55, 180),
    "SchedulingRequiredPodAffinityWithNSSelector/5000Nodes_2000Pods": Threshold(35, 180),
    "SchedulingPreferredAffinityWithNSSelector/5000Nodes_5000Pods": Threshold(90, 190),
    "SchedulingGatedPodsWithPodAffinityImpactForThroughput/1Node_10000GatedPods": Threshold(
        110, 750
    ),
    "TopologySpreading/5000Nodes_5000Pods": Threshold(85, 460),
    "PreferredTopologySpreading/5000Nodes_5000Pods": Threshold(125, 340),
    "DefaultTopologySpreading/5000Nodes_50000Pods": Threshold(None, 160),
    "SchedulingWithNodeInclusionPolicy/5000Nodes": Threshold(68, 270),
    "SchedulingSecrets/5000Nodes_10000Pods": Threshold(260, 790),
    "SchedulingInTreePVs/5000Nodes_2000Pods": Threshold(90, 290),
    "SchedulingMigratedInTreePVs/5000Nodes_5000Pods": Threshold(35, 100),
    "SchedulingCSIPVs/5000Nodes_5000Pods": Threshold(48, 100),
    "SchedulingWithResourceClaimTemplate/5000pods_500nodes": Threshold(56, 56),
    "SteadyStateClusterResourceClaimTemplate/empty_500nodes": Threshold(64, 64),
    "SteadyStateClusterResourceClaimTemplate/half_500nodes": Threshold(60, 60),
    "SteadyStateClusterResourceClaimTemplate/full_500nodes": Threshold(60, 60),
}


def threshold_of(full_name: str) -> Threshold | None:
    """The figures for a workload; its variants with other gates share them."""
    for suffix in _NO_SUFFIX:
        full_name = full_name.removesuffix(suffix)
    return THRESHOLDS.get(full_name)
