"""Namespaces are emptied before they go: pods first, the rest after them."""

from typing import Any

from kubescene.api.kinds import NAMESPACE, POD, SERVICE_ACCOUNT
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.clock import SECOND
from kubescene.cluster import Cluster, ClusterOptions, ClusterWorld
from kubescene.controllers.builtin import table
from kubescene.controllers.builtin.namespaces.namespace import USUAL_DELAY
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.testing import make_replica_set
from widgets import widget_definition

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")


def namespace(name: str = "team") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "team", **metadata},
    }


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def node() -> dict[str, Any]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": capacity},
    }


def test_namespace_goes_with_everything_in_it(cluster: Cluster) -> None:
    client = cluster.client(cluster.actor)
    for obj in (namespace(), config_map(), node(), pod()):
        client.create(obj)
    cluster.settle()
    gone: list[str] = []

    def note(change: Change) -> None:
        if change.type is ChangeType.DELETED and change.record.namespace == "team":
            gone.append(change.record.resource.resource)

    cluster.store.subscribe(note)
    client.delete(ObjectRef(NAMESPACE, "team"))
    cluster.settle()
    assert client.find(ObjectRef(NAMESPACE, "team")) is None
    assert gone == ["pods", "configmaps", "serviceaccounts"]
    assert client.find(ObjectRef(SERVICE_ACCOUNT, "default", "team")) is None


def test_rest_waits_until_the_last_pod_has_stopped() -> None:
    cluster = Cluster(ClusterOptions(kubelet=KubeletDelays(terminate=20 * SECOND)))
    client = cluster.client(cluster.actor)
    for obj in (namespace(), config_map(), node(), pod()):
        client.create(obj)
    cluster.settle()
    client.delete(ObjectRef(NAMESPACE, "team"))
    cluster.settle()
    assert client.find(ObjectRef(POD, "p", "team")) is not None
    assert client.find(ObjectRef(CONFIG_MAP, "c", "team")) is not None
    cluster.event_queue.run(cluster.clock.now() + 30 * SECOND)
    cluster.settle()
    assert client.find(ObjectRef(NAMESPACE, "team")) is None


def test_finalizers_hold_the_namespace_and_are_told(cluster: Cluster) -> None:
    client = cluster.client(cluster.actor)
    client.create(namespace())
    client.create(config_map(finalizers=["example.com/hold"]))
    client.delete(ObjectRef(NAMESPACE, "team"))
    cluster.settle()
    conditions = client.get(ObjectRef(NAMESPACE, "team"))["status"]["conditions"]
    told = {it["type"]: it["message"] for it in conditions if it["status"] == "True"}
    assert told == {
        "NamespaceContentRemaining": (
            "Some resources are remaining: configmaps. has 1 resource instances"
        ),
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: "
            "example.com/hold in 1 resource instances"
        ),
    }
    client.patch(ObjectRef(CONFIG_MAP, "c", "team"), {"metadata": {"finalizers": None}})
    cluster.settle()
    assert client.find(ObjectRef(NAMESPACE, "team")) is None


def test_claim_stays_while_a_pod_uses_it(cluster: Cluster) -> None:
    client = cluster.client(cluster.actor)
    client.create(namespace())
    client.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "team"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    )
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    client.create(pod(volumes=[volume], schedulingGates=[{"name": "wait"}]))
    client.delete(ObjectRef(CLAIM, "data", "team"))
    cluster.settle()
    assert client.find(ObjectRef(CLAIM, "data", "team")) is not None
    client.delete(ObjectRef(POD, "p", "team"))
    cluster.settle()
    assert client.find(ObjectRef(CLAIM, "data", "team")) is None


def test_custom_objects_of_later_definitions_go_too(cluster: Cluster) -> None:
    client = cluster.client(cluster.actor)
    cluster.settle()
    client.create(widget_definition())
    client.create(namespace())
    metadata = {"name": "w", "namespace": "team"}
    client.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata})
    client.delete(ObjectRef(NAMESPACE, "team"))
    cluster.settle()
    assert client.list(GroupVersionKind("example.com", "v1", "Widget")) == []
    assert client.find(ObjectRef(NAMESPACE, "team")) is None


def waiting_world(kubelet: KubeletDelays | None = None) -> ClusterWorld:
    """A world that waits before it empties a namespace, with a node and something in "team"."""
    delays = kubelet or KubeletDelays()
    registered = ControllerRegistrations(table(delays=delays, namespace_delay=USUAL_DELAY))
    world = ClusterWorld(controllers=registered)
    for obj in (namespace(), config_map(), node()):
        world.create(obj)
    return world.settle()


def failures(world: ClusterWorld) -> dict[str, str]:
    conditions = world.get("Namespace", "team")["status"].get("conditions") or ()
    return {each["type"]: each["message"] for each in conditions if each["status"] == "True"}


def test_with_a_delay_nothing_is_deleted_before_it_is_over() -> None:
    world = waiting_world()
    world.delete("Namespace", "team")
    world.settle().advance(4.9)
    assert world.get("ConfigMap", "c", "team")
    assert "conditions" not in world.get("Namespace", "team")["status"]
    fork = world.fork()
    for each in (world, fork):
        each.advance(0.2)
        assert [it["metadata"]["name"] for it in each.list("Namespace")].count("team") == 0


def test_pods_that_outstay_their_grace_period_are_told() -> None:
    world = waiting_world(KubeletDelays(terminate=20 * SECOND))
    world.create(pod(nodeName="n", terminationGracePeriodSeconds=10))
    world.settle().delete("Namespace", "team")
    world.settle().advance("6s")
    assert failures(world) == {}
    world.advance("5s")
    message = (
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in "
        "namespace: team for gvr: /v1, Resource=pods"
    )
    assert failures(world) == {"NamespaceDeletionContentFailure": message}
    assert world.get("ConfigMap", "c", "team")
    world.advance("20s")
    assert [it["metadata"]["name"] for it in world.list("Namespace")].count("team") == 0


def test_pods_with_finalizers_may_take_their_time() -> None:
    world = waiting_world()
    held = pod(terminationGracePeriodSeconds=0)
    held["metadata"]["finalizers"] = ["example.com/hold"]
    world.create(held)
    world.settle().delete("Namespace", "team")
    world.settle().advance("30s")
    assert failures(world) == {}
    body = {"metadata": {"finalizers": None}}
    world.patch("Pod", "p", body, "team", patch_type="merge")
    world.settle()
    assert [it["metadata"]["name"] for it in world.list("Namespace")].count("team") == 0


def test_pods_that_cannot_be_replaced_any_more_are_no_failure() -> None:
    world = waiting_world(KubeletDelays(terminate=20 * SECOND))
    replica_set = make_replica_set("web", namespace="team").replicas(1).build()
    replica_set["spec"]["template"]["spec"]["nodeName"] = "n"
    world.create(replica_set)
    world.settle().delete("Namespace", "team")
    world.settle().advance("6s")
    status = world.get("ReplicaSet", "web", "team")["status"]
    assert status["replicas"] == 0
    assert "conditions" not in status
