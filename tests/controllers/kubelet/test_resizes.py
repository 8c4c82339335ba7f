"""Pods that are resized in place: room on the node, restarts, conditions and Events."""

from typing import Any

from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.kubelet.behaviour import read_workload
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


def world(*pods: tuple[str, str], behaviour: JsonObject | None = None, **container: Any) -> Cluster:
    workloads = () if behaviour is None else (read_workload(behaviour),)
    cluster = Cluster(ClusterOptions(events=True, workloads=workloads))
    cluster.create(make_node("n").cpu("4").memory("8Gi"))
    for name, cpu in pods:
        made = make_pod(name).cpu(cpu).build()
        made["spec"]["containers"][0] |= container
        cluster.create(made)
    return cluster.settle()


def resize(cluster: Cluster, cpu: str, name: str = "a") -> Cluster:
    resources = {"requests": {"cpu": cpu}}
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    cluster.patch("pods", name, patch, subresource="resize")
    return cluster.settle()


def given(cluster: Cluster, name: str = "a") -> tuple[str, str]:
    """What a pod's container was allocated, and what it has."""
    (told,) = cluster.get("pods", name)["status"]["containerStatuses"]
    return told["allocatedResources"]["cpu"], told["resources"]["requests"]["cpu"]


def conditions(cluster: Cluster) -> dict[str, JsonObject]:
    found = cluster.get("pods", "a")["status"]["conditions"]
    return {each["type"]: each for each in found if "Resize" in each["type"]}


def said(cluster: Cluster) -> list[tuple[str, str]]:
    events = cluster.list("events")
    return [(each["reason"], each["message"]) for each in events if "Resize" in each["reason"]]


SUMMARY = '{"containers":[{"name":"main","resources":{"requests":{"cpu":"3"}}}],"generation":2'


def test_a_resize_that_fits_is_granted_and_told() -> None:
    cluster = resize(world(("a", "1"), ("b", "1")), "3")
    assert (given(cluster), conditions(cluster)) == (("3", "3"), {})
    assert said(cluster) == [
        ("ResizeStarted", f"Pod resize started: {SUMMARY}}}"),
        ("ResizeCompleted", f"Pod resize completed: {SUMMARY}}}"),
    ]


def test_a_resize_waits_until_there_is_room() -> None:
    cluster = resize(world(("a", "1"), ("b", "2")), "3")
    missing = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert given(cluster) == ("1", "1")
    assert conditions(cluster) == {
        "PodResizePending": {
            "type": "PodResizePending",
            "status": "True",
            "reason": "Deferred",
            "message": missing,
            "observedGeneration": 2,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    }
    message = f'Pod resize Deferred: {SUMMARY},"error":"{missing}"}}'
    assert said(cluster) == [("ResizeDeferred", message)]
    cluster.advance("1m")
    assert given(cluster) == ("1", "1")
    cluster.delete("pods", "b")
    cluster.settle()
    assert (given(cluster), conditions(cluster)) == (("3", "3"), {})


def test_a_pod_that_shrinks_makes_room_for_one_that_waits() -> None:
    cluster = resize(world(("a", "1"), ("b", "2")), "3")
    assert given(cluster) == ("1", "1")
    resize(cluster, "1", name="b")
    assert (given(cluster, "b"), given(cluster)) == (("1", "1"), ("3", "3"))


def test_a_resize_that_is_taken_back_waits_no_more() -> None:
    cluster = resize(resize(world(("a", "1"), ("b", "2")), "3"), "1")
    assert (given(cluster), conditions(cluster)) == (("1", "1"), {})


def test_a_resize_may_take_its_time() -> None:
    cluster = resize(world(("a", "1"), behaviour={"resizeTime": "5s"}), "3")
    assert given(cluster) == ("3", "1")
    assert [*conditions(cluster)] == ["PodResizeInProgress"]
    cluster.advance("4s")
    assert given(cluster) == ("3", "1")
    cluster.advance("1s")
    assert (given(cluster), conditions(cluster)) == (("3", "3"), {})


def test_a_container_may_have_to_begin_anew() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    cluster = resize(world(("a", "1"), resizePolicy=policy), "3")
    (told,) = cluster.get("pods", "a")["status"]["containerStatuses"]
    assert (told["restartCount"], told["lastState"]["terminated"]["exitCode"]) == (1, 143)
    assert "running" in told["state"]
    killed = [each["message"] for each in cluster.list("events") if each["reason"] == "Killing"]
    assert killed == ["Container main resize requires restart"]


def test_what_a_pod_was_given_stays_when_its_resize_is_deferred_again() -> None:
    cluster = resize(resize(world(("a", "1"), ("b", "2")), "3"), "4")
    assert given(cluster) == ("1", "1")
    assert conditions(cluster)["PodResizePending"]["observedGeneration"] == 3
    assert [reason for reason, _ in said(cluster)] == ["ResizeDeferred", "ResizeDeferred"]


def test_pods_that_have_ended_take_no_room() -> None:
    cluster = world(("a", "1"), ("b", "2"))
    cluster.patch("pods", "b", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert given(resize(cluster.settle(), "3")) == ("3", "3")


def test_a_pod_that_waits_takes_the_room_that_it_was_given() -> None:
    cluster = resize(world(("a", "1"), ("b", "1"), ("c", "1")), "4", name="b")
    assert given(cluster, "b") == ("1", "1")
    assert given(resize(cluster, "2")) == ("2", "2")


def test_who_waits_gets_room_by_priority_and_quality_then_by_time() -> None:
    """The order of a kubelet's sortPendingResizes."""
    cluster = world(("big", "3"))
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 10,
        }
    )
    sizes = {"cpu": "100m", "memory": "1Mi"}
    for name, high, guaranteed in (
        ("first", False, False),
        ("second", False, True),
        ("third", True, False),
        ("last", False, False),
    ):
        made = make_pod(name).build()
        made["spec"] |= {"priorityClassName": "high"} if high else {}
        resources = {"requests": sizes, **({"limits": sizes} if guaranteed else {})}
        made["spec"]["containers"][0]["resources"] = resources
        cluster.create(made)
    cluster.settle()
    for name in ("first", "second", "third", "last"):
        wanted = {"cpu": "900m", "memory": "1Mi"}
        resources = {"requests": wanted, **({"limits": wanted} if name == "second" else {})}
        patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
        cluster.patch("pods", name, patch, subresource="resize")
        cluster.settle()
    got = []
    for room in ("2", "1", "500m", "100m"):
        resize(cluster, room, "big")
        names = ("first", "second", "third", "last")
        got.append([name for name in names if given(cluster, name)[0] == "900m"])
    assert got == [
        ["second", "third"],
        ["first", "second", "third"],
        ["first", "second", "third"],
        ["first", "second", "third", "last"],
    ]


# -- of pods as a whole --------------------------------------------------------------------


def as_a_whole(name: str, cpu: str) -> JsonObject:
    made = make_pod(name).on("n").build()
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": "8", "memory": "1Gi"}}
    containers = [{"name": "main", "image": "i"}]
    return {**made, "spec": {**made["spec"], "containers": containers, "resources": resources}}


def resized_as_a_whole(cluster: Cluster, name: str, cpu: str) -> JsonObject:
    change = {"spec": {"resources": {"requests": {"cpu": cpu}}}}
    cluster.patch("pods", name, change, subresource="resize")
    cluster.settle()
    found: JsonObject = cluster.get("pods", name)["status"]
    return found


def pending_of(status: JsonObject) -> list[tuple[str, str]]:
    conditions = status["conditions"]
    return [(e["reason"], e["message"]) for e in conditions if e["type"] == "PodResizePending"]


def test_a_pod_is_resized_as_a_whole_if_there_is_room_for_it() -> None:
    """v1.36 does so by default (InPlacePodLevelResourcesVerticalScaling)."""
    cluster = Cluster()
    cluster.create(make_node("n").cpu("4").memory("8Gi"))
    for name in ("a", "b"):
        cluster.create(as_a_whole(name, "1500m"))
    cluster.settle()
    told = resized_as_a_whole(cluster, "a", "2")
    assert told["allocatedResources"] == {"cpu": "2", "memory": "1Gi"}
    assert told["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}
    assert pending_of(told) == []
    waits = resized_as_a_whole(cluster, "b", "3")
    message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
    assert pending_of(waits) == [("Deferred", message)]
    assert waits["allocatedResources"] == {"cpu": "1500m", "memory": "1Gi"}
    assert pending_of(resized_as_a_whole(cluster, "a", "2400m")) == []
    # What was given counts for others, and the first that makes room lets it have more.
    resized_as_a_whole(cluster, "a", "500m")
    given = cluster.get("pods", "b")["status"]
    assert pending_of(given) == []
    assert given["allocatedResources"]["cpu"] == "3"
