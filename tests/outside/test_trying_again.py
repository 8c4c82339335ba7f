"""Pods that wait are tried again by the real kube-scheduler in the order of ours, one by one."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kubescene.testing.comparing_schedulers import (
    Differences,
    ObservedDecision,
    OtherScheduler,
    command_of,
    ours,
)
from kubescene.types import JsonObject
from outside.random_scenarios import ZONE, patient, waiting_scenario
from outside_runs import create, done, scenario
from real_programs import require_program


@pytest.fixture(scope="module")
def binary() -> str:
    return str(require_program("kube-scheduler"))


@pytest.fixture
def other(binary: str) -> Iterator[OtherScheduler]:
    with OtherScheduler(command_of(binary)) as found:
        yield found


def node(name: str, cpu: int, **labels: str) -> JsonObject:
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "200"}
    metadata = {"name": name, "labels": labels}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name: str, cpu: str, labels: JsonObject | None = None, **spec: Any) -> JsonObject:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    metadata = {"name": name, "labels": labels or {}}
    body = {"containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def removed(step: int, name: str) -> JsonObject:
    where = {"name": name, "namespace": "default"}
    target = {"typeMeta": {"apiVersion": "v1", "kind": "Pod"}, "objectMeta": where}
    return {"step": step, "deleteOperation": target}


def story(operations: Sequence[JsonObject]) -> JsonObject:
    made = scenario(operations)
    del made["spec"]["controllers"]["outside"]
    return made


def placed(decisions: Sequence[ObservedDecision], step: int) -> list[str]:
    """Who was bound in a step, in order."""
    return [
        each.pod.partition("/")[2]
        for each in decisions
        if each.what == "is bound to" and each.step.startswith(f"{step}.")
    ]


def test_a_failure_that_says_the_same_counts(other: OtherScheduler) -> None:
    """It is not written, and yet the pod stands behind those that have failed before it."""
    made = story(
        [
            create(1, node("small", 4)),
            create(2, pod("filler", "1")),
            create(2, pod("other", "2")),
            create(3, pod("again", "3")),
            create(3, pod("once", "1", nodeSelector={"disk": "ssd"})),
            removed(4, "filler"),
            create(5, node("large", 8, disk="ssd")),
            done(6),
        ]
    )
    here = ours(made)
    assert placed(here, 5) == ["once", "again"]
    assert list(Differences(here, other.play(made)).lines()) == []


def test_priorities_count_and_not_the_seconds_between_two_failures(other: OtherScheduler) -> None:
    """Real seconds pass between the failures of the two, and only one of them fits."""
    made = story(
        [
            *(create(1, patient(value)) for value in (0, 200)),
            create(1, node("small", 4)),
            create(2, pod("low", "6", priorityClassName="patient-0")),
            create(3, pod("between-$(INDEX)", "1m"), count=120),
            create(4, pod("high", "6", priorityClassName="patient-200")),
            create(5, node("large", 8)),
            done(6),
        ]
    )
    here = ours(made)
    assert placed(here, 5) == ["high"]
    assert list(Differences(here, other.play(made)).lines()) == []


def test_what_a_binding_brings_about_comes_before_the_next_pod(other: OtherScheduler) -> None:
    """Who waits for the first of them is older than the second."""
    beside = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": ZONE}
    follower = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [beside]}}
    made = story(
        [
            create(1, node("small", 1, **{ZONE: "a"})),
            create(2, pod("first", "3", labels={"app": "first"})),
            create(3, pod("follower", "100m", affinity=follower)),
            create(4, pod("second", "3")),
            create(5, node("large", 8, **{ZONE: "b"})),
            done(6),
        ]
    )
    here = ours(made)
    assert placed(here, 5) == ["first", "follower", "second"]
    assert list(Differences(here, other.play(made)).lines()) == []


def test_pods_that_are_spread_over_domains_still_to_come(other: OtherScheduler) -> None:
    labels = {"app": "spread"}
    constraint = {
        "maxSkew": 1,
        "minDomains": 3,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    constraints = [constraint]
    made = story(
        [
            *(create(1, node(f"n{i}", 8, **{ZONE: zone})) for i, zone in enumerate("ab")),
            *(
                create(
                    2 + i // 3, pod(f"s{i}", "100m", labels, topologySpreadConstraints=constraints)
                )
                for i in range(9)
            ),
            removed(5, "s0"),
            create(6, node("n2", 8, **{ZONE: "c"})),
            create(7, node("n3", 8, **{ZONE: "d"})),
            done(8),
        ]
    )
    here = ours(made)
    assert len(placed(here, 6)) >= 3
    assert list(Differences(here, other.play(made)).lines()) == []


@pytest.mark.parametrize("seed", range(1, 7))
def test_random_pods_of_several_priorities_wait_alike(seed: int, other: OtherScheduler) -> None:
    made = waiting_scenario(seed)
    here = ours(made)
    assert sum(each.what == "waits" for each in here) >= 8
    assert list(Differences(here, other.play(made)).lines()) == []


def test_a_preemptor_with_a_claim_preempts_twice(other: OtherScheduler) -> None:
    """It is nominated when it has failed, and once more when its node is found, before its volume.

    The place that it has made is taken by a pod that waited and may not preempt.
    """
    loud = {**patient(100), "preemptionPolicy": "PreemptLowerPriority"}
    lows = (patient(10), patient(20))
    disk = {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}
    made = story(
        [
            *(create(1, each) for each in (*lows, loud, patient(200), storage_class(), claim())),
            create(1, node("n$(INDEX)", 4), count=2),
            create(2, pod("low-10", "3", priorityClassName="patient-10")),
            create(2, pod("low-20", "3", priorityClassName="patient-20")),
            create(3, pod("never", "3", priorityClassName="patient-200")),
            create(4, pod("loud", "3", priorityClassName="patient-100", volumes=[disk])),
            done(5),
        ]
    )
    here = ours(made)
    assert [each.pod for each in here if each.what == "leaves"] == [
        "default/low-10",
        "default/low-20",
    ]
    assert placed(here, 4) == ["never", "loud"]
    assert list(Differences(here, other.play(made)).lines()) == []


def storage_class() -> JsonObject:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"}
    mode = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    return {**kind, "metadata": {"name": "made"}, **mode}


def claim() -> JsonObject:
    size = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "made", "resources": size}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {**kind, "metadata": {"name": "disk"}, "spec": spec}
