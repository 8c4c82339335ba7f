"""Results at any instant, computed a second time from the objects that the world has just then.

The ledger knows what facts told of; this adds up the store. Pods end in every way that there is.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.cluster.world import ClusterWorld
from kubescene.results.entries import Entries
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import BOUND, DELETED, FINISHED, PENDING, TERMINATING
from kubescene.runs.requests import RunRequest
from kubescene.runs.staging import stage
from kubescene.timeline import PodFinished, PodRestarted, TimelineLog
from random_scenarios import API_VERSION, Drawn, Json, Lot

FINAL = ("Succeeded", "Failed")
STEPS = 6


def holds_room(pod: Json) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in FINAL


def state(pod: Json) -> str:
    final = pod["status"].get("phase") in FINAL
    if pod["metadata"].get("deletionTimestamp"):
        # One that its kubelet has stopped counts as gone, though a finalizer keeps the object.
        return DELETED if final else TERMINATING
    if final:
        return FINISHED
    return BOUND if pod["spec"].get("nodeName") else PENDING


def compare(cluster: ClusterWorld, ledger: Ledger) -> None:
    """What nodes offer and pods take, node by node, and how many pods are in which state."""
    pods = cluster.list("pods")
    nodes = {node["metadata"]["name"]: node for node in cluster.list("nodes")}
    assert {node.name for node in ledger.standing()} == set(nodes)
    for node in ledger.standing():
        there = [p for p in pods if holds_room(p) and p["spec"]["nodeName"] == node.name]
        taken: Counter[str] = Counter({"pods": len(there)})
        for pod in there:
            taken.update({name: int(amount) for name, amount in pod_requests(pod).items()})
        asked = {name: amount for name, amount in node.room.requested.items() if amount}
        assert asked == {name: amount for name, amount in taken.items() if amount}
        offered = node_allocatable(nodes[node.name])
        assert node.allocatable == {name: int(it) for name, it in offered.items() if it}
    seen = Counter(map(state, pods))
    told = {each: count for each, count in ledger.states.items() if each != DELETED and count}
    finished_and_marked = sum(
        1 for pod in pods if pod["metadata"].get("deletionTimestamp") and state(pod) == DELETED
    )
    del seen[DELETED]
    extra = told.get(FINISHED, 0) - seen[FINISHED]
    assert 0 <= extra <= finished_and_marked
    assert {**told, FINISHED: 0} == {**seen, FINISHED: 0}


def play(scenario: Json) -> TimelineLog:
    """A run that is compared after every moment of its engine."""
    run = stage(RunRequest(scenario=scenario))
    entries, position = Entries(), 0
    for _ in run.play():
        for fact in run.log.read(position, len(run.log)):
            entries.add(fact)
        position = len(run.log)
        compare(run.cluster, entries.ledger)
    assert entries.ledger.phase == "Succeeded", entries.ledger.message
    return run.log


# -- scenarios whose pods end ----------------------------------------------------------------------


def scenario_of(lot: Lot, seed: int) -> Json:
    operations: list[Json] = []

    def add(step: int, kind: str, body: Json) -> None:
        operations.append({"step": step, f"{kind}Operation": body})

    capacity = {"cpu": "4", "memory": "8Gi", "pods": "20"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n-$(INDEX)"},
        "status": {"capacity": capacity, "allocatable": capacity},
    }
    add(1, "create", {"object": node, "count": 2 + lot.below(2)})
    add(1, "create", {"object": held(lot), "count": STEPS})
    for step in range(2, STEPS):
        if lot.happens(50):
            add(step, "delete", target("Pod", f"held-{step}"))
        for number in range(1 + lot.below(3)):
            add(step, *lot.of(*COMES)(lot, f"{step}-{number}"))
        if lot.happens(60):
            add(step, *lot.of(*HAPPENS)(lot, f"{2 + lot.below(step - 1)}-0"))
        if lot.happens(80):
            add(step, "advance", {"duration": lot.of("7s", "45s", "10m")})
    add(STEPS, "done", {})
    simulation: Json = {"seed": seed}
    if lot.happens(50):
        simulation["kubelet"] = {
            "startDelay": lot.of("0s", "3s"),
            "readyDelay": lot.of("0s", "4s"),
            "terminateDelay": lot.of("0s", "6s"),
        }
    simulation["workloads"] = [
        {
            "selector": {"matchLabels": {"ends": "yes"}},
            "runTime": lot.of("0s", "5s", "30s"),
            "exitCode": lot.of(0, {"empirical": {"values": [0, 1]}}),
        }
    ]
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": f"ends-{seed}"},
        "spec": {"operations": operations, "simulation": simulation},
    }


def pod_of(lot: Lot, *, policies: tuple[str, ...]) -> Json:
    requests = {"cpu": lot.of("250m", "1", "2"), "memory": lot.of("128Mi", "1Gi")}
    spec: Json = {
        "containers": [
            {"name": name, "image": "app:1", "resources": {"requests": requests}}
            for name in ("main", "second")[: 1 + lot.below(2)]
        ],
        "restartPolicy": lot.of(*policies),
        "terminationGracePeriodSeconds": lot.of(30, 0, 2),
    }
    if lot.happens(20):
        spec["activeDeadlineSeconds"] = lot.of(3, 40)
    metadata: Json = {"labels": {"app": "any", "ends": lot.of("yes", "no")}}
    if lot.happens(20):
        metadata["annotations"] = {"kubescene.dev/run-time": lot.of("2s", "20s")}
    return {"metadata": metadata, "spec": spec}


def held(lot: Lot) -> Json:
    """Pods that nobody takes away but an operation, though they may have ended before."""
    made = pod_of(lot, policies=("Never", "OnFailure", "Always"))
    made["metadata"] |= {"name": "held-$(INDEX)", "namespace": "default"}
    made["spec"]["tolerations"] = [{"operator": "Exists"}]
    if lot.happens(30):
        made["metadata"]["finalizers"] = ["example.com/hold"]
    return {"apiVersion": "v1", "kind": "Pod", **made}


def pods(lot: Lot, name: str) -> tuple[str, Json]:
    made = pod_of(lot, policies=("Never", "OnFailure", "Always"))
    made["metadata"] |= {"name": f"pod-{name}-$(INDEX)", "namespace": "default"}
    if lot.happens(15):
        made["metadata"]["finalizers"] = ["example.com/hold"]
    return "create", {"object": {"apiVersion": "v1", "kind": "Pod", **made}, "count": 3}


def deployment(lot: Lot, name: str) -> tuple[str, Json]:
    template = pod_of(lot, policies=("Always",))
    template["spec"].pop("activeDeadlineSeconds", None)
    template["metadata"]["labels"]["owner"] = name
    spec = {
        "replicas": 1 + lot.below(3),
        "selector": {"matchLabels": {"owner": name}},
        "template": template,
    }
    metadata = {"name": f"set-{name}", "namespace": "default"}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return "create", {"object": made}


def job(lot: Lot, name: str) -> tuple[str, Json]:
    spec: Json = {
        "template": pod_of(lot, policies=("Never", "OnFailure")),
        "completions": 1 + lot.below(3),
        "parallelism": 2,
        "backoffLimit": lot.below(3),
    }
    if lot.happens(40):
        spec["ttlSecondsAfterFinished"] = lot.of(0, 5)
    if lot.happens(20):
        spec["activeDeadlineSeconds"] = 8
    metadata = {"name": f"job-{name}", "namespace": "default"}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return "create", {"object": made}


def target(kind: str, name: str, api_version: str = "v1", namespace: str = "default") -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"typeMeta": {"apiVersion": api_version, "kind": kind}, "objectMeta": metadata}


def cordon(lot: Lot, name: str) -> tuple[str, Json]:
    del name
    patch = lot.of('{"spec": {"unschedulable": true}}', '{"spec": {"unschedulable": null}}')
    return "patch", {**target("Node", "n-0", namespace=""), "patch": patch, "patchType": "merge"}


def evict_by_taint(lot: Lot, name: str) -> tuple[str, Json]:
    del name
    taints = lot.of('[{"key": "gone", "effect": "NoExecute"}]', "null")
    patch = f'{{"spec": {{"taints": {taints}}}}}'
    return "patch", {**target("Node", "n-0", namespace=""), "patch": patch, "patchType": "merge"}


def stop_kubelet(lot: Lot, name: str) -> tuple[str, Json]:
    del name
    patch = '{"metadata": {"annotations": {"kubescene.dev/kubelet": "stopped"}}}'
    return "patch", {**target("Node", "n-1", namespace=""), "patch": patch, "patchType": "merge"}


COMES: tuple[Callable[[Lot, str], tuple[str, Json]], ...] = (pods, pods, job, job, deployment)
HAPPENS: tuple[Callable[[Lot, str], tuple[str, Json]], ...] = (cordon, evict_by_taint, stop_kubelet)


@pytest.mark.parametrize("seed", range(12))
def test_at_every_moment_results_are_those_of_the_store(seed: int) -> None:
    play(scenario_of(Lot(seed), seed))


@st.composite
def scenarios(draw: st.DrawFn) -> Any:
    return scenario_of(Drawn(draw), draw(st.integers(0, 9)))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_at_every_moment_of_any_run_results_are_those_of_the_store(scenario: Json) -> None:
    play(scenario)


def test_such_runs_have_pods_that_end_and_containers_that_begin_again() -> None:
    kinds = Counter(type(fact) for seed in range(4) for fact in play(scenario_of(Lot(seed), seed)))
    assert kinds[PodFinished] > 5
    assert kinds[PodRestarted] > 5
