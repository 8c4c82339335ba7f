"""Namespaces are emptied before they go: pods first, the rest after them."""

from typing import Any

from kubescene.api.kinds import NAMESPACE, POD, SERVICE_ACCOUNT
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.clock import SECOND
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.kubelet import KubeletDelays
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
