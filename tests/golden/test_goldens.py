"""Parity with kube-scheduler v1.36.4: recorded decisions against ours, without tolerance.

`README.md` says what the recordings hold; `kubescene.testing.goldens` replays them.
"""

from functools import cache
from pathlib import Path

import pytest

from kubescene.scheduler.plugins import BUILT_IN
from kubescene.testing.goldens import Tally, replay_files

DATA = Path(__file__).parent / "data" / "scheduler"
CASES = {
    "basic-resources": 34,
    "batching": 20,
    "claims": 40,
    "config-errors": 100,
    "custom-config": 20,
    "extenders": 32,
    "gangs": 30,
    "host-ports": 25,
    "image-locality": 20,
    "inter-pod-affinity": 17,
    "mixed": 10,
    "node-affinity": 34,
    "preemption": 20,
    "queueing": 50,
    "sampling": 18,
    "scheduling-gates": 34,
    "taints": 34,
    "topology-spread": 17,
    "unschedulable": 100,
    "vectors": 21,
    "volumes": 17,
}
"""How many cases each file has, so that none gets lost unnoticed."""

PREEMPTING = ("DefaultPreemption",)
WAITS_FOR: dict[str, tuple[str, ...]] = {
    "basic-resources": PREEMPTING,
    "batching": ("KubeSchedulerConfiguration", "OpportunisticBatching", *PREEMPTING),
    "claims": ("device claims", *PREEMPTING),
    "config-errors": ("KubeSchedulerConfiguration",),
    "custom-config": ("KubeSchedulerConfiguration", "PodTopologySpread", "InterPodAffinity"),
    "extenders": ("KubeSchedulerConfiguration", "HTTP extenders", *PREEMPTING),
    "gangs": ("GangScheduling", *PREEMPTING),
    "host-ports": PREEMPTING,
    "inter-pod-affinity": ("InterPodAffinity", *PREEMPTING),
    "mixed": ("PodTopologySpread", "InterPodAffinity", "VolumeBinding", *PREEMPTING),
    "node-affinity": PREEMPTING,
    "preemption": PREEMPTING,
    "queueing": ("PodTopologySpread", "InterPodAffinity", *PREEMPTING),
    "sampling": ("KubeSchedulerConfiguration", *PREEMPTING),
    "taints": PREEMPTING,
    "topology-spread": ("PodTopologySpread", *PREEMPTING),
    "unschedulable": PREEMPTING,
    "vectors": ("KubeSchedulerConfiguration", "VolumeBinding", *PREEMPTING),
    "volumes": ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"),
}
"""What a family cannot be equal without. A plugin goes from here when it comes into `BUILT_IN`."""


@cache
def replayed(family: str) -> Tally:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    return tally


def missing(family: str) -> list[str]:
    return [name for name in WAITS_FOR.get(family, ()) if name not in BUILT_IN]


@pytest.mark.parametrize("family", CASES)
def test_decisions_equal_those_of_kube_scheduler(family: str) -> None:
    tally = replayed(family)
    assert tally.cases == CASES[family]
    if missing(family):
        assert not tally.is_equal, f"equal without {missing(family)}: take them out of WAITS_FOR"
    else:
        assert tally.is_equal, "\n".join(str(each) for each in tally.first)
