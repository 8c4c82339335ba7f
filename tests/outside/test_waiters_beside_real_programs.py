"""The shipped waiters beside the real kube-controller-manager and kube-scheduler.

Skipped where these programs are not there (see `real_programs`).
"""

import re
from copy import deepcopy
from typing import Any

import orjson
import pytest

from kubescene.actors import ENGINE
from kubescene.outside.waiters.choice import SchedulerWaiter
from kubescene.outside.waiters.workloads import WorkloadsWaiter
from kubescene.testing import make_deployment, make_node, make_pod, make_priority_class
from kubescene.types import JsonObject
from outside_runs import Played, create, done, scenario, stage
from real_programs import require_program

POD: JsonObject = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR: JsonObject = {"matchLabels": {"app": "x"}}


def workload(kind: str, **spec: Any) -> JsonObject:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    body = {"template": POD, **spec}
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "it"}, "spec": body}


JOB = workload("Job", completions=3, parallelism=2)
JOB["spec"]["template"] = {"spec": {**POD["spec"], "restartPolicy": "Never"}}
WORKLOADS = [
    pytest.param(make_deployment("it").replicas(5).build(), 5, id="Deployment"),
    pytest.param(
        workload("StatefulSet", replicas=3, serviceName="s", selector=SELECTOR), 3, id="StatefulSet"
    ),
    pytest.param(workload("DaemonSet", selector=SELECTOR), 2, id="DaemonSet"),
    pytest.param(JOB, 2, id="Job"),
]
KINDS = {"Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job"}
OURS = [{"name": each} for each in ("deployment", "replicaset", "job", "statefulset", "daemonset")]


def with_manager(operations: list[JsonObject]) -> tuple[Played, str]:
    """A scenario with the real controller manager, and what the waiter says in the end."""
    manager = require_program("kube-controller-manager")
    declared = {"name": "kcm", "kind": "bag", "waiter": {"name": "workloads"}, "timeout": "60s"}
    document = scenario(operations, declared)
    document["spec"]["controllers"]["presimulationControllers"] = {"disabled": OURS}
    with stage() as made:
        made.start("kcm", f"{manager} {{settings}}", "bag")
        run = made.play(document)
        reader = made.server.cluster.client(ENGINE)
        return run, made.server.engine.call(lambda: WorkloadsWaiter().unmet(reader))


@pytest.mark.parametrize(("obj", "pods"), WORKLOADS)
def test_the_controller_manager_comes_to_rest(obj: JsonObject, pods: int) -> None:
    nodes = [create(1, make_node(f"n{number}").cpu("8").build()) for number in range(2)]
    run, unmet = with_manager([*nodes, create(2, obj), done(3)])
    assert (run.phase, run.message, unmet) == ("Succeeded", "", "")
    assert len(bound(run)) == pods


def bound(run: Played) -> list[str]:
    return [name for _, kind, name in run.told_by("kube-scheduler") if kind == "PodScheduled"]


def patched(step: int, kind: str, spec: JsonObject) -> JsonObject:
    target = {"typeMeta": {"apiVersion": "apps/v1", "kind": kind}, "objectMeta": {"name": "it"}}
    patch = orjson.dumps({"spec": spec}).decode()
    return {"step": step, "patchOperation": {**target, "patch": patch}}


NEW_IMAGE: JsonObject = {"template": {"spec": {"containers": [{"name": "c", "image": "new"}]}}}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_a_rollout_and_a_change_of_size_are_waited_for(kind: str) -> None:
    (obj,) = [each.values[0] for each in WORKLOADS if each.id == kind]
    assert isinstance(obj, dict)
    first = deepcopy(obj)
    first["spec"]["template"]["spec"]["containers"] = [{"name": "c", "image": "old"}]
    nodes = [create(1, make_node(f"n{number}").cpu("8").build()) for number in range(2)]
    scaled = [] if kind == "DaemonSet" else [patched(4, kind, {"replicas": 2})]
    story = [*nodes, create(2, first), patched(3, kind, NEW_IMAGE), *scaled, done(5)]
    run, unmet = with_manager(story)
    assert (run.phase, run.message, unmet) == ("Succeeded", "", "")


def test_a_rollout_that_is_stuck_is_at_rest() -> None:
    nodes = [create(1, make_node("n").cpu("1").build())]
    small = make_deployment("it").replicas(2).template(make_pod("p").cpu("400m")).build()
    large: JsonObject = {"template": {"spec": make_pod("p").cpu("4").build()["spec"]}}
    story = [*nodes, create(2, small), patched(3, "Deployment", large), done(4)]
    run, unmet = with_manager(story)
    assert (run.phase, run.message, unmet) == ("Succeeded", "", "")
    assert len(bound(run)) == 2


def test_the_scheduler_has_tried_every_pod_and_its_status_promises_the_same_bytes() -> None:
    scheduler = require_program("kube-scheduler")
    declared = {
        "name": "kube-scheduler",
        "kind": "scheduler",
        "waiter": {"name": "kube-scheduler"},
        "timeout": "60s",
    }
    pods = [create(2, make_pod(name).cpu(cpu).build()) for name, cpu in (("a", "1"), ("b", "99"))]
    document = scenario([create(1, make_node("n").cpu("4").build()), *pods, done(3)], declared)
    with stage() as made:
        made.start("kube-scheduler", f"{scheduler} {{settings}}", "scheduler")
        run = made.play(document)
        reader = made.server.cluster.client(ENGINE)
        unmet = made.server.engine.call(lambda: SchedulerWaiter().unmet(reader))
    assert (run.phase, run.message, unmet) == ("Succeeded", "", "")
    assert bound(run) == ["a"]
    (told,) = run.status["outside"]
    assert told["judgedBy"] == ["park-pod", "still", "waiter kube-scheduler"]
    assert told["sameBytes"] is True


def test_a_scheduler_that_preempted_promises_nothing() -> None:
    """Which of two equal nodes is emptied, kube-scheduler leaves to chance."""
    scheduler = require_program("kube-scheduler")
    declared = {"name": "kube-scheduler", "kind": "scheduler", "timeout": "60s"}
    story = [create(1, make_priority_class("high", 10).build())]
    story += [create(1, make_node(name).cpu("4").build()) for name in ("n", "m")]
    story += [create(2, make_pod(name).cpu("3").build()) for name in ("a", "b")]
    story += [create(3, make_pod("c").cpu("3").priority_class("high").build()), done(4)]
    with stage() as made:
        made.start("kube-scheduler", f"{scheduler} {{settings}}", "scheduler")
        run = made.play(scenario(story, declared))
    assert (run.phase, run.message, len(bound(run))) == ("Succeeded", "", 3)
    (told,) = run.status["outside"]
    assert told["sameBytes"] is False
    assert told["message"] == "it preempted: kube-scheduler chooses among equal victims by chance"


def test_nothing_that_they_write_has_the_machines_time() -> None:
    manager, scheduler = map(require_program, ("kube-controller-manager", "kube-scheduler"))
    nodes = [create(1, make_node(f"n{number}").cpu("8").build()) for number in range(2)]
    objects = [deepcopy(each.values[0]) for each in WORKLOADS]
    story = [*nodes, create(1, make_pod("large").cpu("99").build())]
    for obj in objects:
        assert isinstance(obj, dict)
        obj["metadata"]["name"] = obj["kind"].lower()
        story.append(create(2, obj))
    both: list[JsonObject] = [
        {"name": "kcm", "kind": "bag", "waiter": {"name": "workloads"}, "timeout": "60s"},
        {"name": "kube-scheduler", "kind": "scheduler", "timeout": "60s"},
    ]
    document = scenario([*story, done(3)], *both)
    document["spec"]["controllers"]["presimulationControllers"] = {"disabled": OURS}
    with stage() as made:
        made.start("kcm", f"{manager} {{settings}}", "bag")
        made.start("kube-scheduler", f"{scheduler} {{settings}}", "scheduler")
        run = made.play(document)
        exported = orjson.loads(made.server.engine.call(made.server.cluster.export))
    assert (run.phase, run.message) == ("Succeeded", "")
    written = [each for each in exported["items"] if each["kind"] in KINDS]
    assert {each["kind"] for each in written} == KINDS
    days = re.findall(rb"(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d[.\d]*Z", orjson.dumps(written))
    assert set(days) == {b"2026-01-01"}
