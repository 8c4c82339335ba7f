"""What a benchmark shows: a table for people, one JSON document for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kubescene.benchmarks.measurements import Measurement, WorkloadResult
from kubescene.types import JsonObject


@dataclass(frozen=True, slots=True)
class Growth:
    """How much of its speed a test case keeps from its fewest nodes to its most, by CPU time."""

    test_case: str
    fewest: int
    most: int
    ratio: float


def growths(results: Sequence[WorkloadResult]) -> list[Growth]:
    """For every test case that was replayed at several sizes, in order."""
    found = []
    for name in dict.fromkeys(each.test_case for each in results):
        rated = [each for each in results if each.test_case == name and _rate(each)]
        if len({each.nodes for each in rated}) > 1:
            small = min(rated, key=lambda each: each.nodes)
            large = max(rated, key=lambda each: each.nodes)
            found.append(Growth(name, small.nodes, large.nodes, _rate(large) / _rate(small)))
    return found


def table(results: Sequence[WorkloadResult]) -> list[str]:
    """Lines for a terminal."""
    lines = [
        f"{'workload':62} {'nodes':>6} {'pods':>7} {'pods/s wall':>12} {'pods/s CPU':>11} "
        f"{'peak MB':>8}  kube-scheduler on its CI"
    ]
    for result in results:
        lines.extend(_rows(result))
        lines.extend(f"    not replayed: {each}" for each in result.not_replayed)
    lines.extend(
        f"{each.test_case}: {each.most:,} nodes have {each.ratio:.2f} of the pods/s of "
        f"{each.fewest:,} nodes, by CPU"
        for each in growths(results)
    )
    return lines


def document(results: Sequence[WorkloadResult]) -> JsonObject:
    """The same for programs."""
    return {
        "workloads": [_workload(each) for each in results],
        "growth": [
            {
                "testCase": each.test_case,
                "fewestNodes": each.fewest,
                "mostNodes": each.most,
                "ratio": round(each.ratio, 3),
            }
            for each in growths(results)
        ],
    }


def _rows(result: WorkloadResult) -> list[str]:
    if not result.measurements:
        return [f"{result.full_name:62} {result.nodes:6} nothing is measured in it"]
    return [_row(result, each) for each in result.measurements]


def _row(result: WorkloadResult, measured: Measurement) -> str:
    name = result.full_name
    if len(result.measurements) > 1:
        name += f" {measured.name}"
    return (
        f"{name:62} {result.nodes:6} {measured.pods:7} {measured.per_wall_s:12,.0f} "
        f"{measured.per_cpu_s:11,.0f} {result.peak_mb:8,.0f}  {_upstream(result)}"
    ).rstrip()


def _upstream(result: WorkloadResult) -> str:
    known = threshold_of(result.full_name)
    if known is None:
        return f"> {result.threshold:,.0f} (the file)" if result.threshold else ""
    parts = [
        f"> {value:,.0f} ({version})"
        for value, version in zip(known, ("v1.36", "v1.37"), strict=True)
        if value is not None
    ]
    return ", ".join(parts)


def _workload(result: WorkloadResult) -> JsonObject:
    known = threshold_of(result.full_name)
    upstream = {} if known is None else {"v1.36": known.v1_36, "v1.37": known.v1_37}
    return {
        "testCase": result.test_case,
        "workload": result.workload,
        "nodes": result.nodes,
        "measurements": [
            {
                "name": each.name,
                "pods": each.pods,
                "wallSeconds": round(each.wall_s, 4),
                "cpuSeconds": round(each.cpu_s, 4),
                "podsPerWallSecond": round(each.per_wall_s, 1),
                "podsPerCpuSecond": round(each.per_cpu_s, 1),
            }
            for each in result.measurements
        ],
        "peakMegabytes": round(result.peak_mb, 1),
        "wallSeconds": round(result.wall_s, 4),
        "cpuSeconds": round(result.cpu_s, 4),
        "virtualSeconds": result.virtual_s,
        "threshold": result.threshold,
        "upstream": upstream,
        "notReplayed": result.not_replayed,
    }


def _rate(result: WorkloadResult) -> float:
    pods = sum(each.pods for each in result.measurements)
    cpu_s = sum(each.cpu_s for each in result.measurements)
    return pods / cpu_s if cpu_s else 0.0


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
