"""The waiter ``workloads``, rule by rule, and beside our own controllers."""

from copy import deepcopy
from typing import Any

import pytest

from held_objects import HeldObjects
from kubescene.actors import ENGINE
from kubescene.cluster import ClusterWorld
from kubescene.outside.waiters.workloads import WorkloadsWaiter, indexes_in
from kubescene.testing.builders import (
    DeploymentBuilder,
    make_deployment,
    make_node,
    make_replica_set,
)
from kubescene.types import JsonObject

WAITER = WorkloadsWaiter()
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def workload(kind: str, spec: JsonObject, status: JsonObject, **metadata: Any) -> JsonObject:
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "it", "namespace": "default", "uid": "u", "generation": 1, **metadata},
        "spec": spec,
        "status": {"observedGeneration": 1, **status},
    }


def pod(
    number: int, *, ready: bool = True, revision: str = "", leaving: bool = False
) -> JsonObject:
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"it-{number}",
            "namespace": "default",
            "ownerReferences": [{"uid": "u", "controller": True}],
            "labels": {"controller-revision-hash": revision},
            **(LEAVING if leaving else {}),
        },
        "spec": {},
        "status": {"phase": "Running" if ready else "Pending", "conditions": conditions},
    }


def ended(number: int, phase: str = "Succeeded") -> JsonObject:
    obj = pod(number)
    obj["status"]["phase"] = phase
    return obj


def unmet(*objects: JsonObject) -> str:
    told = WAITER.unmet(HeldObjects(objects))
    assert WAITER.condition(HeldObjects(objects)) is (told == "")
    return told


def pods(count: int, **more: Any) -> list[JsonObject]:
    return [pod(number, **more) for number in range(count)]


THREE = {"replicas": 3, "fullyLabeledReplicas": 3}


def replica_set(**status: Any) -> JsonObject:
    return workload("ReplicaSet", {"replicas": 3}, status)


FAILURE = [{"type": "ReplicaFailure", "status": "True"}]
REPLICA_SETS = [
    pytest.param([replica_set(**THREE), *pods(3)], "", id="all there"),
    pytest.param([replica_set(**THREE), *pods(3, ready=False)], "", id="need not be ready"),
    pytest.param([replica_set(), *pods(0)], "0 of 3 replicas", id="none yet"),
    pytest.param(
        [replica_set(replicas=3, fullyLabeledReplicas=2), *pods(3)],
        "2 of 3",
        id="one without label",
    ),
    pytest.param(
        [replica_set(replicas=2, fullyLabeledReplicas=2), *pods(3)],
        "3 pods, its status counts 2",
        id="not counted yet",
    ),
    pytest.param([replica_set(conditions=FAILURE)], "", id="cannot make them"),
    pytest.param(
        [replica_set(conditions=[{"type": "ReplicaFailure", "status": "False"}])],
        "0 of 3",
        id="can",
    ),
    pytest.param(
        [replica_set(observedGeneration=0, **THREE), *pods(3)], "generation 1", id="not seen"
    ),
    pytest.param(
        [replica_set(replicas=2, fullyLabeledReplicas=2), *pods(2), pod(3, leaving=True), ended(4)],
        "2 of 3 replicas",
        id="who leaves or has ended does not count",
    ),
    pytest.param([workload("ReplicaSet", {"replicas": 3}, {}, **LEAVING)], "", id="itself leaving"),
    pytest.param([workload("ReplicaSet", {}, {})], "0 of 1 replicas", id="one by default"),
]


@pytest.mark.parametrize(("objects", "why"), REPLICA_SETS)
def test_replica_set(objects: list[JsonObject], why: str) -> None:
    told = unmet(*objects)
    assert why in told
    assert bool(why) is bool(told)


def template(image: str) -> JsonObject:
    return {"spec": {"containers": [{"name": "c", "image": image}]}}


def deployment(spec: JsonObject | None = None, **status: Any) -> JsonObject:
    made = {"replicas": 3, "selector": {}, "template": template("new"), **(spec or {})}
    return workload("Deployment", made, {"replicas": 3, **status})


def owned_set(size: int, *, image: str = "new", counted: int = 3, desired: int = 3) -> JsonObject:
    return workload(
        "ReplicaSet",
        {"replicas": size, "template": template(image)},
        {"replicas": counted, "fullyLabeledReplicas": size, "availableReplicas": counted},
        name=f"it-{image}",
        uid=image,
        ownerReferences=[{"uid": "u", "controller": True}],
        annotations={"deployment.kubernetes.io/desired-replicas": str(desired)},
    )


def of_sets(*sets: JsonObject) -> list[JsonObject]:
    """The pods that ReplicaSets say they have."""
    found = []
    for each in sets:
        for number in range(each["status"]["replicas"]):
            made = pod(number)
            made["metadata"]["ownerReferences"][0]["uid"] = each["metadata"]["uid"]
            found.append(made)
    return found


PROGRESS_STOPPED = [{"type": "Progressing", "status": "False"}]
DEPLOYMENTS = [
    pytest.param(deployment(), [owned_set(3)], "", id="complete"),
    pytest.param(deployment(replicas=2), [owned_set(3)], "its status counts 2", id="not counted"),
    pytest.param(deployment(replicas=0), [], "0 of 3 of the new template", id="no set"),
    pytest.param(
        deployment(replicas=0, conditions=PROGRESS_STOPPED), [], "", id="cannot make a set"
    ),
    pytest.param(
        deployment(replicas=1, conditions=PROGRESS_STOPPED),
        [owned_set(1, counted=1)],
        "1 of 3",
        id="too slow, and can go on",
    ),
    pytest.param(deployment(), [owned_set(3, desired=2)], "it was scaled", id="scaled"),
    pytest.param(
        deployment({"paused": True}), [owned_set(3, image="old")], "", id="paused, other template"
    ),
    pytest.param(
        deployment({"paused": True, "replicas": 2}),
        [owned_set(3, image="old")],
        "do not have their sizes",
        id="scaled while paused",
    ),
    pytest.param(
        deployment(), [owned_set(3, image="old")], "can go on: 0 of 3", id="a new template"
    ),
]


@pytest.mark.parametrize(("obj", "sets", "why"), DEPLOYMENTS)
def test_deployment(obj: JsonObject, sets: list[JsonObject], why: str) -> None:
    told = unmet(obj, *sets, *of_sets(*sets))
    assert why in told
    assert bool(why) is bool(told)


def stateful_set(spec: JsonObject | None = None, **status: Any) -> JsonObject:
    return workload(
        "StatefulSet", {"replicas": 2, **(spec or {})}, {"updateRevision": "", **status}
    )


PARALLEL = {"podManagementPolicy": "Parallel"}
STATEFUL_SETS = [
    pytest.param([stateful_set(replicas=2), *pods(2)], "", id="all there"),
    pytest.param([stateful_set(replicas=1), *pods(1)], "1 of 2 pods", id="the next one's turn"),
    pytest.param(
        [stateful_set(replicas=1), *pods(1, ready=False)], "", id="the first is not ready"
    ),
    pytest.param([stateful_set()], "0 of 2 pods", id="none yet"),
    pytest.param(
        [stateful_set(PARALLEL, replicas=1), *pods(1, ready=False)], "1 of 2", id="in parallel"
    ),
    pytest.param([stateful_set(replicas=3), *pods(3)], "3 of 2 pods", id="one too many"),
    pytest.param(
        [stateful_set(replicas=2), pod(0), pod(1, leaving=True)], "", id="waits for one to be gone"
    ),
    pytest.param([stateful_set(replicas=1), *pods(2)], "its status counts 1", id="not counted"),
    pytest.param(
        [stateful_set(replicas=2, updateRevision="b"), *pods(2, revision="a")],
        "2 pods of an old revision",
        id="to be updated",
    ),
    pytest.param(
        [stateful_set(replicas=2, updateRevision="b"), pod(0), pod(1, ready=False, revision="b")],
        "",
        id="an update waits for a pod",
    ),
    pytest.param(
        [
            stateful_set(PARALLEL, replicas=2, updateRevision="b"),
            pod(0),
            pod(1, ready=False, revision="b"),
        ],
        "",
        id="an update in parallel waits for a pod",
    ),
    pytest.param(
        [
            stateful_set(
                {"updateStrategy": {"rollingUpdate": {"partition": 1}}},
                replicas=2,
                updateRevision="b",
            ),
            pod(0, revision="a"),
            pod(1, revision="b"),
        ],
        "",
        id="below the partition",
    ),
    pytest.param(
        [
            stateful_set({"updateStrategy": {"type": "OnDelete"}}, replicas=2, updateRevision="b"),
            *pods(2, revision="a"),
        ],
        "",
        id="on delete",
    ),
]


@pytest.mark.parametrize(("objects", "why"), STATEFUL_SETS)
def test_stateful_set(objects: list[JsonObject], why: str) -> None:
    told = unmet(*objects)
    assert why in told
    assert bool(why) is bool(told)


def daemon_set(spec: JsonObject | None = None, **status: Any) -> JsonObject:
    return workload("DaemonSet", spec or {}, {"desiredNumberScheduled": 2, **status})


DAEMON_SETS = [
    pytest.param(
        [daemon_set(currentNumberScheduled=2, updatedNumberScheduled=2)], "", id="on all nodes"
    ),
    pytest.param([daemon_set(currentNumberScheduled=1)], "pods for 1 of 2 nodes", id="on one"),
    pytest.param(
        [daemon_set(currentNumberScheduled=2, updatedNumberScheduled=1), *pods(2)],
        "1 of 2 pods updated",
        id="to be updated",
    ),
    pytest.param(
        [daemon_set(currentNumberScheduled=2, updatedNumberScheduled=1), *pods(2, ready=False)],
        "",
        id="an update waits for a pod",
    ),
    pytest.param(
        [daemon_set(currentNumberScheduled=2), pod(0), pod(1, leaving=True)],
        "",
        id="an update waits for a pod to be gone",
    ),
    pytest.param(
        [daemon_set({"updateStrategy": {"type": "OnDelete"}}, currentNumberScheduled=2)],
        "",
        id="on delete",
    ),
    pytest.param([daemon_set(observedGeneration=0)], "generation 1", id="not seen"),
]


@pytest.mark.parametrize(("objects", "why"), DAEMON_SETS)
def test_daemon_set(objects: list[JsonObject], why: str) -> None:
    told = unmet(*objects)
    assert why in told
    assert bool(why) is bool(told)


def job(spec: JsonObject | None = None, **status: Any) -> JsonObject:
    return workload("Job", {"completions": 3, "parallelism": 2, **(spec or {})}, status)


def condition(name: str) -> list[JsonObject]:
    return [{"type": name, "status": "True"}]


QUEUE = {"completions": None}
JOBS = [
    pytest.param([job(active=2), *pods(2)], "", id="as many as may run"),
    pytest.param([job()], "0 of 2 active pods", id="none yet"),
    pytest.param([job(active=1), *pods(2)], "its status counts 1", id="not counted"),
    pytest.param([job(active=1, succeeded=2), pod(0)], "", id="the last one"),
    pytest.param([job(succeeded=3)], "does not say that it is complete", id="to be completed"),
    pytest.param([job(succeeded=3), pod(0, leaving=True)], "", id="complete when all are gone"),
    pytest.param([job(succeeded=3, conditions=condition("Complete"))], "", id="complete"),
    pytest.param([job(conditions=condition("Failed"))], "", id="failed"),
    pytest.param([job(conditions=condition("Failed")), pod(0)], "it is over", id="ends its pods"),
    pytest.param(
        [job(active=2, uncountedTerminatedPods={"failed": ["u"]}), *pods(2)],
        "not counted yet",
        id="uncounted",
    ),
    pytest.param([job({"suspend": True})], "", id="suspended"),
    pytest.param([job({"suspend": True}, active=1), pod(0)], "1 of 0", id="to be suspended"),
    pytest.param([job(QUEUE, active=1, succeeded=1), pod(0)], "", id="a queue runs out"),
    pytest.param([job(QUEUE, active=1), pod(0)], "1 of 2", id="a queue begins"),
    pytest.param([job(QUEUE, succeeded=1)], "complete", id="a queue is empty"),
    pytest.param([job(active=1, failedIndexes="0-1"), pod(2)], "", id="indexes that failed"),
    pytest.param(
        [job({"podReplacementPolicy": "Failed"}, active=1), pod(0), pod(1, leaving=True)],
        "",
        id="replaced when gone",
    ),
    pytest.param([job(active=1), pod(0), pod(1, leaving=True)], "1 of 2", id="replaced at once"),
    pytest.param([job({"managedBy": "example.com/me"})], "", id="somebody else's"),
]


@pytest.mark.parametrize(("objects", "why"), JOBS)
def test_job(objects: list[JsonObject], why: str) -> None:
    told = unmet(*objects)
    assert why in told
    assert bool(why) is bool(told)


@pytest.mark.parametrize(
    ("text", "count"), [(None, 0), ("", 0), ("4", 1), ("1,3-5", 4), ("0-9,11", 11)]
)
def test_indexes(text: str | None, count: int) -> None:
    assert indexes_in(text) == count


def test_a_message_names_a_few_and_counts_the_rest() -> None:
    sets = [deepcopy(replica_set()) for _ in range(9)]
    for number, each in enumerate(sets):
        each["metadata"]["name"] = f"set-{number}"
    told = WAITER.unmet(HeldObjects(sets))
    assert "ReplicaSet default/set-4: 0 of 3 replicas" in told
    assert told.endswith("; and 4 more")
    assert "set-5" not in told


# -- beside our own controllers ----------------------------------------------------------------


def makers_rest(cluster: ClusterWorld) -> int:
    """Lets the makers of pods go round by round; how often the waiter was not content.

    Once it is, whatever they still do changes neither sizes nor pods.
    """
    reader, crank, waited = cluster.client(ENGINE), cluster.crank, 0
    slots = [slot for slot in cluster.slots if slot.name in MAKERS]
    patience = crank.patience(1000)
    while True:
        content, before = WAITER.condition(reader), sizes(cluster)
        waited += not content
        if not crank.round(slots, patience):
            break
        assert not content or sizes(cluster) == before
    assert WAITER.condition(reader), WAITER.unmet(reader)
    return waited


def rest(cluster: ClusterWorld) -> int:
    """The makers rest before every round of the others; how often they had to be waited for."""
    others = [slot for slot in cluster.slots if slot.name not in MAKERS]
    patience, standstills = cluster.crank.patience(1000), 0
    while True:
        standstills += bool(makers_rest(cluster))
        if not cluster.crank.round(others, patience):
            return standstills


def sizes(cluster: ClusterWorld) -> list[Any]:
    sets = [(each["metadata"]["name"], each["spec"]["replicas"]) for each in cluster.list("rs")]
    return [*sets, sorted(each["metadata"]["name"] for each in cluster.list("pods"))]


MAKERS = ("deployment", "replicaset")


def world() -> ClusterWorld:
    cluster = ClusterWorld()
    cluster.start(tuple(cluster.registrations))
    for number in range(3):
        cluster.create(make_node(f"n{number}").cpu("8").pods("50"))
    return cluster


def changed_image(cluster: ClusterWorld) -> None:
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "new"}]
    cluster.patch("deployments", "web", image, patch_type="json")
    assert not WAITER.condition(cluster.client(ENGINE))


def test_it_is_content_when_a_deployment_has_come_to_rest_and_not_before() -> None:
    cluster = world()
    cluster.create(make_deployment("web").replicas(4))
    assert makers_rest(cluster) > 1
    assert rest(cluster) == 0
    assert len(cluster.list("pods")) == 4


@pytest.mark.parametrize(
    "strategy",
    [make_deployment("web"), make_deployment("web").recreate()],
    ids=["roll", "recreate"],
)
def test_a_rollout_comes_to_rest_at_every_standstill(strategy: DeploymentBuilder) -> None:
    cluster = world()
    cluster.create(strategy.replicas(5))
    cluster.settle()
    changed_image(cluster)
    assert rest(cluster) >= 2
    assert sorted(each["spec"]["replicas"] for each in cluster.list("rs")) == [0, 5]


def test_a_rollout_that_is_stuck_is_at_rest() -> None:
    cluster = world()
    cluster.create(make_deployment("web").replicas(4).rolling(max_surge=1, max_unavailable=1))
    cluster.settle()
    for number in range(3):
        cluster.patch("nodes", f"n{number}", {"spec": {"unschedulable": True}})
    changed_image(cluster)
    rest(cluster)
    assert sorted(each["spec"]["replicas"] for each in cluster.list("rs")) == [2, 3]


@pytest.mark.parametrize(
    "change",
    [{"replicas": 7}, {"replicas": 0}, {"paused": True, "replicas": 2}],
    ids=["up", "to nothing", "while paused"],
)
def test_a_change_of_a_deployment_is_waited_for(change: JsonObject) -> None:
    cluster = world()
    cluster.create(make_deployment("web").replicas(3))
    cluster.settle()
    cluster.patch("deployments", "web", {"spec": change})
    assert "generation" in WAITER.unmet(cluster.client(ENGINE))
    assert rest(cluster) >= 1
    assert len(cluster.list("pods")) == change["replicas"]


def test_a_replica_set_alone_is_waited_for() -> None:
    cluster = world()
    cluster.create(make_replica_set("set").replicas(2))
    assert WAITER.unmet(cluster.client(ENGINE)).startswith("ReplicaSet default/set: ")
    assert makers_rest(cluster) >= 1
