"""The kubelet stand-in: nodes are ready, assigned pods start, deleted pods stop."""

from typing import Any

import pytest

from kubescene.actors import ENGINE
from kubescene.api.kinds import NODE, POD
from kubescene.client import ObjectRef
from kubescene.clock import SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


def world(**delays: Any) -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(kubelet=KubeletDelays(**delays)))
    cluster.start(["kubelet"])
    return cluster


def conditions(obj: JsonObject) -> dict[str, str]:
    return {c["type"]: c["status"] for c in obj["status"].get("conditions", ())}


def phase(cluster: ClusterWorld, name: str = "a") -> Any:
    return cluster.get("pods", name)["status"]["phase"]


def advance(cluster: ClusterWorld, seconds: int) -> None:
    cluster.event_queue.run(cluster.clock.now() + seconds * SECOND)
    cluster.settle()


def test_a_new_node_becomes_ready() -> None:
    cluster = world()
    cluster.create(make_node("n"))
    node = cluster.settle().get("nodes", "n")
    assert conditions(node) == {"Ready": "True"}


def test_a_node_that_says_it_is_not_ready_is_believed() -> None:
    cluster = world()
    node = make_node("n").build()
    state = {"type": "Ready", "status": "False"}
    cluster.create({**node, "status": {**node["status"], "conditions": [state]}})
    assert conditions(cluster.settle().get("nodes", "n")) == {"Ready": "False"}


def test_an_assigned_pod_runs_and_is_ready() -> None:
    cluster = world()
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    pod = cluster.settle().get("pods", "a")
    assert pod["status"]["phase"] == "Running"
    assert conditions(pod) | {"PodScheduled": "True"} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    (status,) = pod["status"]["containerStatuses"]
    assert (status["name"], status["ready"], status["restartCount"]) == ("main", True, 0)


def assigned(*names: str) -> ClusterWorld:
    """A world whose kubelet has pods to start, all of them at once."""
    cluster = world()
    cluster.create(make_node("n"))
    cluster.settle()
    for name in names:
        cluster.create(make_pod(name).cpu("2" if name == "larger" else "1"))
        for image in ("another", "registry.k8s.io/pause:3.10") if name == "edited-twice" else ():
            cluster.patch(
                "pods", name, {"spec": {"containers": [{"name": "main", "image": image}]}}
            )
        cluster.client(ENGINE).bind(ObjectRef(POD, name, "default"), "n")
    return cluster.settle()


def test_what_starts_like_another_has_the_status_that_it_would_have_alone() -> None:
    names = ("plain", "alike", "larger", "edited-twice", "also-alike")
    together = assigned(*names)
    for name in names:
        status = assigned(name).get("pods", name)["status"]
        assert status["phase"] == "Running"
        assert together.get("pods", name)["status"] == status


@pytest.mark.parametrize("what", ["its node falls silent", "its node goes", "it is deleted"])
def test_a_pod_does_not_start_if_something_happens_before_its_kubelet_gets_to_it(what: str) -> None:
    cluster = assigned("first")
    cluster.create(make_node("m"))
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    engine = cluster.client(ENGINE)
    engine.bind(ObjectRef(POD, "a", "default"), "m")
    if what == "its node falls silent":
        unheard = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        engine.patch(ObjectRef(NODE, "m"), unheard, subresource="status")
    elif what == "its node goes":
        cluster.delete("nodes", "m")
    else:
        cluster.delete("pods", "a")
    cluster.settle()
    assert phase(cluster, "first") == "Running"
    changes = [it for it in cluster.store.history.since(0) if it.record.name == "a"]
    assert {change.record.phase for change in changes} == {"Pending"}


def test_an_unassigned_pod_is_left_alone() -> None:
    cluster = world()
    cluster.create(make_node("n"))
    cluster.create(make_pod("a"))
    assert phase(cluster.settle()) == "Pending"


def test_a_pod_assigned_to_a_missing_node_starts_when_the_node_comes() -> None:
    cluster = world()
    cluster.create(make_pod("a").on("n"))
    cluster.create(make_pod("b").on("elsewhere"))
    assert phase(cluster.settle()) == "Pending"
    cluster.create(make_node("n"))
    cluster.settle()
    assert (phase(cluster), phase(cluster, "b")) == ("Running", "Pending")


def test_a_deleted_pod_is_gone_at_the_next_settle() -> None:
    cluster = world()
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    cluster.settle().delete("pods", "a")
    assert cluster.get("pods", "a")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert cluster.settle().list("pods") == []


def test_a_deleted_pod_with_a_finalizer_stays_without_a_livelock() -> None:
    cluster = world()
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    cluster.settle()
    cluster.patch("pods", "a", {"metadata": {"finalizers": ["example.com/held"]}})
    cluster.delete("pods", "a")
    assert [pod["metadata"]["name"] for pod in cluster.settle(max_rounds=50).list("pods")] == ["a"]
    cluster.patch("pods", "a", {"metadata": {"finalizers": None}}, patch_type="merge")
    assert cluster.settle().list("pods") == []


@pytest.mark.parametrize(("waited", "expected"), [(9, "Pending"), (10, "Running")])
def test_a_start_delay_elapses_in_virtual_time(waited: int, expected: str) -> None:
    cluster = world(start=10 * SECOND)
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    cluster.settle()
    advance(cluster, waited)
    assert phase(cluster) == expected


@pytest.mark.parametrize(
    ("delay", "grace", "waited", "left"),
    [
        pytest.param(20, 30, 19, 1, id="not yet"),
        pytest.param(20, 30, 20, 0, id="over"),
        pytest.param(60, 30, 30, 0, id="never longer than its grace"),
    ],
)
def test_a_pod_takes_its_time_to_stop(delay: int, grace: int, waited: int, left: int) -> None:
    cluster = world(terminate=delay * SECOND)
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    cluster.settle().delete("pods", "a", grace_period_s=grace)
    cluster.settle()
    advance(cluster, waited)
    assert len(cluster.list("pods")) == left


# -- pods that change while they run -------------------------------------------------------------


def test_a_resize_is_granted_at_once() -> None:
    cluster = ClusterWorld()
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a").cpu("1"))
    pod = cluster.settle().get("pods", "a")
    assert "resources" not in pod["status"]["containerStatuses"][0]
    started = pod["status"]["containerStatuses"][0]["state"]
    resources = {"requests": {"cpu": "2"}}
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    cluster.patch("pods", "a", patch, subresource="resize")
    (status,) = cluster.settle().get("pods", "a")["status"]["containerStatuses"]
    assert (status["resources"], status["allocatedResources"]) == (resources, {"cpu": "2"})
    assert status["state"] == started


def test_a_resize_makes_room_for_others_or_takes_it() -> None:
    cluster = ClusterWorld()
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a").cpu("3"))
    cluster.create(make_pod("b").cpu("2"))
    assert cluster.settle().pod("b").is_pending
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    cluster.patch("pods", "a", patch, subresource="resize")
    assert cluster.settle().pod("b").node == "n1"


def test_a_pod_that_was_changed_before_it_started_becomes_ready() -> None:
    """Taking a gate away counts as a change, and so does a resize."""
    cluster = ClusterWorld(ClusterOptions(kubelet=KubeletDelays(ready=10 * SECOND)))
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    gated = make_pod("a").cpu("1").build()
    gated["spec"]["schedulingGates"] = [{"name": "wait"}]
    cluster.create(gated)
    cluster.settle()
    cluster.patch("pods", "a", {"spec": {"schedulingGates": None}}, patch_type="merge")
    cluster.settle()
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    cluster.patch("pods", "a", patch, subresource="resize")
    cluster.advance("10s")
    pod = cluster.get("pods", "a")
    assert conditions(pod)["Ready"] == "True"
    (status,) = pod["status"]["containerStatuses"]
    assert (status["ready"], status["allocatedResources"]) == (True, {"cpu": "2"})


def test_an_ephemeral_container_runs_at_once() -> None:
    cluster = ClusterWorld()
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    cluster.create(make_pod("a"))
    cluster.settle()
    for name in ("first", "second"):
        patch = {"spec": {"ephemeralContainers": [{"name": name, "image": "busybox"}]}}
        cluster.patch("pods", "a", patch, subresource="ephemeralcontainers")
        cluster.settle()
    pod = cluster.get("pods", "a")
    told = pod["status"]["ephemeralContainerStatuses"]
    assert [it["name"] for it in told] == ["first", "second"]
    assert all("running" in it["state"] for it in told)
    assert pod["status"]["phase"] == "Running"


def test_nobody_sees_a_pod_go_while_it_is_ready() -> None:
    cluster = world()
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    seen: list[JsonObject] = []
    cluster.settle()
    cluster.store.subscribe(lambda change: seen.append(change.object))
    cluster.delete("pods", "a")
    assert cluster.settle().list("pods") == []
    _, ended, gone = seen
    assert ended["status"]["phase"] == gone["status"]["phase"] == "Succeeded"
    assert {conditions(ended)[name] for name in ("Ready", "ContainersReady")} == {"False"}
    [container] = ended["status"]["containerStatuses"]
    assert (container["ready"], container["started"]) == (False, False)
    assert container["state"]["terminated"]["exitCode"] == 0
    assert container["state"]["terminated"]["startedAt"] == ended["status"]["startTime"]


def test_a_pod_that_never_ran_goes_without_ado() -> None:
    cluster = world(start=10 * SECOND)
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    cluster.settle()
    before = cluster.store.revision
    cluster.delete("pods", "a")
    assert cluster.settle().list("pods") == []
    assert cluster.store.revision == before + 2, "marked, and removed"


@pytest.mark.parametrize("held", [False, True], ids=["pending", "terminating"])
def test_another_pod_of_the_same_name_is_left_alone_until_it_is_assigned(held: bool) -> None:
    cluster = world(start=10 * SECOND)
    cluster.create(make_node("n"))
    cluster.create(make_pod("a").on("n"))
    cluster.settle()
    cluster.delete("pods", "a", grace_period_s=0)
    pod = make_pod("a").build()
    if held:
        pod["metadata"]["finalizers"] = ["example.com/held"]
    cluster.create(pod)
    if held:
        cluster.delete("pods", "a")
    advance(cluster, 20)
    assert phase(cluster) == "Pending"


def test_what_does_not_change_keeps_its_time() -> None:
    delays = KubeletDelays(ready=10 * SECOND, terminate=5 * SECOND)
    cluster = ClusterWorld(ClusterOptions(kubelet=delays))
    cluster.create(make_node("n").cpu("4"))
    pod = make_pod("p").build()
    pod["metadata"]["finalizers"] = ["example.com/stay"]
    cluster.create(pod)
    cluster.settle()
    before = times(cluster)
    cluster.advance("20s")
    ready = times(cluster)
    assert {name for name in ready if ready[name] != before[name]} == {"Ready", "ContainersReady"}
    started = cluster.get("pods", "p")["status"]["containerStatuses"][0]["state"]["running"]
    assert started["startedAt"] == before["Initialized"]


def times(cluster: ClusterWorld) -> dict[str, str]:
    conditions = cluster.get("pods", "p")["status"]["conditions"]
    return {each["type"]: each["lastTransitionTime"] for each in conditions}
