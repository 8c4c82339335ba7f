"""What controllers, scheduler and kubelet say, in the words of their models."""

import pytest

from kubescene.actors import Actor
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.errors import BadRequestError
from kubescene.recording import NORMAL, Notice, regarding
from kubescene.registry.admission.chain import AdmissionChain, AdmissionRequest
from kubescene.scheduler.telling.notices import shortened
from kubescene.testing import make_deployment, make_node, make_pod, make_replica_set
from kubescene.types import JsonObject


@pytest.fixture
def world() -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(events=True))
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    return cluster


def said(cluster: ClusterWorld, kind: str) -> list[tuple[str, str, str]]:
    """Component, reason and message of what was said about objects of a kind, in order."""
    events = [it for it in cluster.list("events") if it["involvedObject"]["kind"] == kind]
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [
        (event.get("reportingComponent", ""), event["reason"], event["message"]) for event in events
    ]


def test_the_life_of_a_pod(world: ClusterWorld) -> None:
    world.create(make_pod("a"))
    world.settle()
    world.delete("pods", "a")
    world.settle()
    image = world_image()
    assert said(world, "Pod") == [
        ("default-scheduler", "Scheduled", "Successfully assigned default/a to n1"),
        (
            "kubelet",
            "Pulled",
            f'Container image "{image}" already present on machine and can be accessed by the pod',
        ),
        ("kubelet", "Created", "Container created"),
        ("kubelet", "Started", "Container started"),
        ("kubelet", "Killing", "Stopping container main"),
    ]


def world_image() -> str:
    image: str = make_pod("x").build()["spec"]["containers"][0]["image"]
    return image


def test_kubelets_say_where_they_are_and_which_container(world: ClusterWorld) -> None:
    world.create(make_pod("a"))
    (event,) = [it for it in world.settle().list("events") if it["reason"] == "Started"]
    assert event["source"] == {"component": "kubelet", "host": "n1"}
    assert event["involvedObject"]["fieldPath"] == "spec.containers{main}"


def test_a_pod_that_does_not_fit(world: ClusterWorld) -> None:
    world.create(make_pod("a").cpu("9"))
    world.settle()
    (event,) = world.list("events")
    assert (event["type"], event["action"]) == ("Warning", "Scheduling")
    assert event["reason"] == "FailedScheduling"
    assert event["message"] == world.pod("a").why_pending
    assert "0/1 nodes are available: 1 Insufficient cpu." in event["message"]


def test_long_messages_are_cut_to_what_a_note_holds() -> None:
    assert shortened("x" * 1024) == "x" * 1024
    assert shortened("x" * 1025) == "x" * 1020 + " ..."
    assert len(shortened("é" * 600).encode()) <= 1024


def test_a_replica_set_names_its_pods(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(2))
    names = [pod["metadata"]["name"] for pod in world.settle().list("pods")]
    world.scale("rs", "web", 1)
    world.settle()
    (kept,) = [pod["metadata"]["name"] for pod in world.list("pods")]
    (gone,) = set(names) - {kept}
    told = said(world, "ReplicaSet")
    assert sorted(told[:2]) == [
        ("replicaset-controller", "SuccessfulCreate", f"Created pod: {name}") for name in names
    ]
    assert told[2:] == [("replicaset-controller", "SuccessfulDelete", f"Deleted pod: {gone}")]


class Refuser:
    """Refuses pods."""

    name = "Refuser"

    def admit(self, request: AdmissionRequest) -> JsonObject:
        if request.is_create("Pod") or (request.is_create("ReplicaSet") and "d" in request.name):
            raise BadRequestError("not today")
        return request.obj


def test_a_replica_set_whose_pods_are_refused(world: ClusterWorld) -> None:
    chain = AdmissionChain([*world.registry.admission.plugins, Refuser()])
    world.registry.checks._admission = chain
    world.create(make_replica_set("web").replicas(2))
    world.settle()
    assert said(world, "ReplicaSet") == [
        ("replicaset-controller", "FailedCreate", "Error creating: not today")
    ]
    (event,) = world.list("events")
    assert event["type"] == "Warning"


def test_a_deployment_says_how_its_sets_change(world: ClusterWorld) -> None:
    world.create(make_deployment("web").replicas(2))
    world.settle()
    (replica_set,) = world.list("rs")
    name = replica_set["metadata"]["name"]
    world.scale("deployments", "web", 1)
    world.settle()
    world.patch("deployments", "web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}})
    world.settle()
    (other,) = {it["metadata"]["name"] for it in world.list("rs")} - {name}
    assert said(world, "Deployment") == [
        ("deployment-controller", "ScalingReplicaSet", message)
        for message in (
            f"Scaled up replica set {name} from 0 to 2",
            f"Scaled down replica set {name} from 2 to 1",
            f"Scaled up replica set {other} from 0 to 1",
            f"Scaled down replica set {name} from 1 to 0",
        )
    ]


def test_a_deployment_whose_set_is_refused(world: ClusterWorld) -> None:
    chain = AdmissionChain([*world.registry.admission.plugins, Refuser()])
    world.registry.checks._admission = chain
    world.create(make_deployment("d"))
    world.settle()
    ((reporter, reason, message),) = said(world, "Deployment")
    assert (reporter, reason) == ("deployment-controller", "ReplicaSetCreateError")
    assert message.startswith('Failed to create new replica set "d-')
    assert message.endswith('": not today')


def test_a_budget_without_pods(world: ClusterWorld) -> None:
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    world.create({**body, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}})
    world.settle()
    assert ("controllermanager", "NoPods", "No matching pods found") in said(
        world, "PodDisruptionBudget"
    )


# -- when nobody listens -------------------------------------------------------------------------


def test_a_library_run_writes_no_events() -> None:
    cluster = ClusterWorld()
    cluster.create(make_node("n1").cpu("4").memory("8Gi"))
    cluster.create(make_deployment("web").replicas(3))
    assert cluster.settle().list("events") == []
    assert "event-expiry" not in cluster.registrations


def test_events_change_nothing_else() -> None:
    """The same objects, uids included, with and without; where they are, addresses are shown."""
    worlds = []
    for events in (False, True):
        cluster = ClusterWorld(ClusterOptions(events=events))
        cluster.create(make_node("n1").cpu("4").memory("8Gi"))
        cluster.create(make_deployment("web").replicas(3))
        cluster.create(make_pod("big").cpu("9"))
        worlds.append(cluster.settle())
    for kind in ("pods", "replicasets", "deployments", "nodes"):
        without, with_events = ([shape(it) for it in cluster.list(kind)] for cluster in worlds)
        assert without == with_events


def shape(obj: JsonObject) -> JsonObject:
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    hidden = {"podIP", "podIPs", "hostIP", "hostIPs", "addresses"}
    status = {k: v for k, v in obj["status"].items() if k not in hidden}
    return {**obj, "metadata": metadata, "status": status}


def test_the_same_world_gives_the_same_events() -> None:
    exports = []
    for _ in range(2):
        cluster = ClusterWorld(ClusterOptions(events=True))
        cluster.create(make_node("n1").cpu("4").memory("8Gi"))
        cluster.create(make_deployment("web").replicas(30))
        cluster.settle()
        exports.append(cluster.export())
    assert exports[0] == exports[1]


def test_a_fork_goes_on_alike(world: ClusterWorld) -> None:
    names = [name for name in world.registrations if name != "kube-scheduler"]
    world.start(names)
    template = make_pod("x").on("n1")
    world.create(make_deployment("old").replicas(3).template(template))
    world.settle()
    fork = world.fork()
    for each in (world, fork):
        each.create(make_deployment("web").replicas(20).template(template))
        each.advance("20m")
        each.delete("deployments", "web")
        each.advance("10m")
    assert world.export() == fork.export()
    assert fork.list("events")


def test_a_world_begun_anew_gives_the_same_names(world: ClusterWorld) -> None:
    found = []
    for _ in range(2):
        world.begin_anew()
        world.create(make_node("n1").cpu("4").memory("8Gi"))
        world.create(make_pod("a"))
        world.settle()
        found.append([event["metadata"]["name"] for event in world.list("events")])
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_writing_events_wakes_nobody(world: ClusterWorld) -> None:
    pod = world.create(make_pod("a"))
    world.settle()
    recorder = world.context(Actor("tester")).recorder
    recorder.tell(Notice(regarding(pod), NORMAL, "Greeted", "hello", "tester"))
    assert len(world.list("events")) == 5
    assert [slot.name for slot in world.slots if slot.awake] == []


# -- an hour later -------------------------------------------------------------------------------


def test_events_go_an_hour_after_they_were_last_written(world: ClusterWorld) -> None:
    world.create(make_pod("a"))
    world.settle()
    assert len(world.list("events")) == 4
    world.advance("30m")
    (event,) = [it for it in world.list("events") if it["reason"] == "Started"]
    world.patch("events", event["metadata"]["name"], {"message": "still there"})
    world.advance("30m")
    assert [it["message"] for it in world.list("events")] == ["still there"]
    world.advance("29m59s")
    assert len(world.list("events")) == 1
    world.advance("1s")
    assert world.list("events") == []


def test_events_that_went_before_are_not_missed(world: ClusterWorld) -> None:
    world.create(make_pod("a"))
    for event in world.settle().list("events"):
        world.delete("events", event["metadata"]["name"])
    world.advance("2h")
    assert world.list("events") == []


def test_a_slow_kubelet_speaks_when_it_starts() -> None:
    slow = ClusterWorld(ClusterOptions(events=True, kubelet=KubeletDelays(start=5_000_000_000)))
    slow.create(make_node("n1").cpu("4").memory("8Gi"))
    slow.create(make_pod("a"))
    slow.settle()
    assert [reason for _, reason, _ in said(slow, "Pod")] == ["Scheduled"]
    slow.advance("5s")
    assert len(said(slow, "Pod")) == 4


def test_stopping_is_said_once_and_when_it_begins() -> None:
    slow = ClusterWorld(ClusterOptions(events=True, kubelet=KubeletDelays(terminate=5_000_000_000)))
    slow.create(make_node("n1").cpu("4").memory("8Gi"))
    slow.create(make_pod("a"))
    slow.settle()
    slow.delete("pods", "a")
    slow.settle()
    slow.patch("pods", "a", {"metadata": {"labels": {"a": "b"}}})
    slow.advance("5s")
    assert slow.list("pods") == []
    (event,) = [it for it in slow.list("events") if it["reason"] == "Killing"]
    assert (event["count"], event["firstTimestamp"]) == (1, "2026-01-01T00:00:00Z")


def test_what_never_started_is_not_stopped() -> None:
    slow = ClusterWorld(ClusterOptions(events=True, kubelet=KubeletDelays(start=5_000_000_000)))
    slow.create(make_node("n1").cpu("4").memory("8Gi"))
    slow.create(make_pod("a"))
    slow.settle()
    slow.delete("pods", "a")
    assert slow.settle().list("pods") == []
    assert [reason for _, reason, _ in said(slow, "Pod")] == ["Scheduled"]
