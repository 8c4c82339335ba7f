"""Admission: what requests gain on their way in, and why some are turned away."""

from typing import Any

import pytest

from kubescene import Cluster
from kubescene.actors import Actor
from kubescene.api.kinds import NAMESPACE, POD, SERVICE_ACCOUNT
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.clock import SECOND
from kubescene.errors import ApiError, ForbiddenError, NotFoundError
from kubescene.registry import Registry
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.admission.plugins.runtime_class import merged_tolerations

CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": containers, **spec},
    }


def created(client: DirectClient, obj: dict[str, Any]) -> dict[str, Any]:
    return client.create(obj).decode()


def claim(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def storage_class(name: str, *, default: bool = True, **more: Any) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "x.example.com",
        **more,
    }


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def runtime_class(name: str = "kata", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "kata",
        **more,
    }


def test_plugins_run_in_the_order_of_kube_apiserver() -> None:
    assert [plugin.name for plugin in default_chain()] == [
        "NamespaceLifecycle",
        "LimitRanger",
        "ServiceAccount",
        "PodNodeSelector",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "DefaultIngressClass",
        "PodTopologyLabels",
        "VerticalPodAutoscaler",
        "PodResizeValidator",
        "NodeTemplate",
        "ResourceQuota",
    ]


# -- service accounts ----------------------------------------------------------------------


def test_every_namespace_has_a_default_account(client: DirectClient) -> None:
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    for namespace in ("default", "kube-system", "kube-public", "kube-node-lease", "team"):
        assert client.find(ObjectRef(SERVICE_ACCOUNT, "default", namespace)) is not None


def test_deleted_default_account_comes_back(client: DirectClient) -> None:
    ref = ObjectRef(SERVICE_ACCOUNT, "default", "default")
    before = client.get(ref)["metadata"]["uid"]
    client.delete(ref)
    assert client.get(ref)["metadata"]["uid"] != before


def test_pods_run_as_default_unless_they_say_otherwise(client: DirectClient) -> None:
    assert created(client, pod())["spec"]["serviceAccountName"] == "default"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}}
    client.create({**account, "imagePullSecrets": [{"name": "s"}]})
    spec = created(client, pod("q", serviceAccountName="bot"))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("bot", "bot")
    assert spec["imagePullSecrets"] == [{"name": "s"}]


# -- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            pod(serviceAccountName="ghost"),
            'pods "p" is forbidden: error looking up service account default/ghost: '
            'serviceaccount "ghost" not found',
            id="service account",
        ),
        pytest.param(
            pod(priorityClassName="ghost"),
            'pods "p" is forbidden: no PriorityClass with name ghost was found',
            id="priority class",
        ),
        pytest.param(
            pod(priority=7),
            'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod '
            "spec; priority admission controller computed 0 from the given PriorityClass name",
            id="priority",
        ),
        pytest.param(
            pod(preemptionPolicy="Never"),
            'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be '
            "provided in pod spec; priority admission controller computed PreemptLowerPriority "
            "from the given PriorityClass name",
            id="preemption policy",
        ),
        pytest.param(
            pod(runtimeClassName="ghost"),
            'pods "p" is forbidden: pod rejected: RuntimeClass "ghost" not found',
            id="runtime class",
        ),
        pytest.param(
            pod(overhead={"cpu": "1"}),
            'pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding '
            "RuntimeClass defined Overhead",
            id="overhead",
        ),
    ],
)
def test_refusals(client: DirectClient, obj: dict[str, Any], message: str) -> None:
    with pytest.raises(ForbiddenError) as caught:
        client.create(obj)
    assert caught.value.message == message


def test_refusal_of_an_unnamed_pod_shows_its_prefix(client: DirectClient) -> None:
    unnamed = pod(priorityClassName="ghost")
    unnamed["metadata"] = {"generateName": "web-"}
    with pytest.raises(ForbiddenError, match='pods "web-" is forbidden: no PriorityClass'):
        client.create(unnamed)


def test_nothing_is_created_in_a_missing_namespace(client: DirectClient) -> None:
    lost = pod()
    lost["metadata"]["namespace"] = "nowhere"
    with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
        client.create(lost)


def test_nothing_is_created_in_a_terminating_namespace(client: DirectClient) -> None:
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    client.delete(ObjectRef(NAMESPACE, "going"))
    late = pod()
    late["metadata"]["namespace"] = "going"
    with pytest.raises(ForbiddenError) as caught:
        client.create(late)
    assert caught.value.message == (
        'pods "p" is forbidden: unable to create new content in namespace going because it is '
        "being terminated"
    )
    assert caught.value.causes[0].reason == "NamespaceTerminating"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_system_namespaces_are_immortal(client: DirectClient, name: str) -> None:
    with pytest.raises(ForbiddenError, match="this namespace may not be deleted"):
        client.delete(ObjectRef(NAMESPACE, name))


# -- priority ------------------------------------------------------------------------------


def test_priority_comes_from_the_class(client: DirectClient) -> None:
    client.create(priority_class("high", 1000, preemptionPolicy="Never"))
    spec = created(client, pod(priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_global_default_applies_to_pods_without_a_class(client: DirectClient) -> None:
    client.create(priority_class("usual", 5, globalDefault=True))
    spec = created(client, pod())["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (5, "usual")


def test_second_global_default_is_refused(client: DirectClient) -> None:
    client.create(priority_class("usual", 5, globalDefault=True))
    with pytest.raises(ForbiddenError) as caught:
        client.create(priority_class("other", 6, globalDefault=True))
    assert caught.value.message == (
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already '
        "marked as default. Only one default can exist"
    )
    usual = ObjectRef(GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass"), "usual")
    client.patch(usual, {"metadata": {"labels": {"a": "b"}}})


def test_resolved_priority_survives_an_update_without_it(client: DirectClient) -> None:
    client.create(priority_class("high", 1000))
    full = created(client, pod(priorityClassName="high"))
    spec = {k: v for k, v in full["spec"].items() if k not in ("priority", "preemptionPolicy")}
    client.update({**full, "spec": spec})
    assert client.get(ObjectRef(POD, "p", "default"))["spec"]["priority"] == 1000


# -- storage -------------------------------------------------------------------------------


def test_newest_default_class_then_first_name(client: DirectClient, registry: Registry) -> None:
    client.create(storage_class("old"))
    registry.clock.wait_until(registry.clock.now() + 10 * SECOND)
    client.create(storage_class("new-b"))
    client.create(storage_class("new-a"))
    client.create(storage_class("plain", default=False))
    assert created(client, claim())["spec"]["storageClassName"] == "new-a"


def test_claims_that_ask_for_no_class_get_none(client: DirectClient) -> None:
    client.create(storage_class("std"))
    assert created(client, claim(storageClassName=""))["spec"]["storageClassName"] == ""


def test_claims_and_volumes_are_protected(client: DirectClient) -> None:
    assert created(client, claim())["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        },
    }
    assert created(client, volume)["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_unbound_claims_do_not_grow(client: DirectClient) -> None:
    client.create(claim())
    patch = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    with pytest.raises(ApiError):
        client.patch(ObjectRef(CLAIM, "c", "default"), patch)


# -- runtime classes -----------------------------------------------------------------------


def test_runtime_class_adds_overhead_and_placement(client: DirectClient) -> None:
    toleration = {"key": "kata", "operator": "Exists", "effect": "NoSchedule"}
    client.create(
        runtime_class(
            overhead={"podFixed": {"cpu": "250m"}},
            scheduling={"nodeSelector": {"runtime": "kata"}, "tolerations": [toleration]},
        )
    )
    spec = created(client, pod(runtimeClassName="kata", nodeSelector={"zone": "a"}))["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"zone": "a", "runtime": "kata"}
    assert toleration in spec["tolerations"]


def test_conflicting_node_selector_is_refused(client: DirectClient) -> None:
    client.create(runtime_class(scheduling={"nodeSelector": {"runtime": "kata"}}))
    with pytest.raises(ForbiddenError) as caught:
        client.create(pod(runtimeClassName="kata", nodeSelector={"runtime": "runc"}))
    assert caught.value.message.endswith(
        "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; "
        "pod.spec.nodeSelector[runtime] = runc"
    )


@pytest.mark.parametrize(
    ("tolerations", "kept"),
    [
        pytest.param(
            [
                {"key": "a", "operator": "Equal", "value": "1"},
                {"key": "a", "operator": "Exists"},
            ],
            [1],
            id="exists includes equal",
        ),
        pytest.param(
            [{"operator": "Exists"}, {"key": "a", "operator": "Exists"}], [0], id="every key"
        ),
        pytest.param(
            [
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
            ],
            [1],
            id="longer includes shorter",
        ),
        pytest.param(
            [
                {
                    "key": "a",
                    "operator": "Equal",
                    "value": "v",
                    "effect": "NoExecute",
                    "tolerationSeconds": 5,
                },
                {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            ],
            [1],
            id="as long includes",
        ),
        pytest.param(
            [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}],
            [0],
            id="equal",
        ),
    ],
)
def test_merged_tolerations(tolerations: list[dict[str, Any]], kept: list[int]) -> None:
    assert merged_tolerations(tolerations) == [tolerations[index] for index in kept]


# -- pods ----------------------------------------------------------------------------------


def test_not_ready_nodes_are_tolerated_for_five_minutes(client: DirectClient) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    tolerations = created(client, pod(tolerations=[own]))["spec"]["tolerations"]
    assert tolerations[0] == own
    assert [it["key"] for it in tolerations[1:]] == ["node.kubernetes.io/unreachable"]


def test_pod_created_on_a_node_carries_its_topology(client: DirectClient) -> None:
    labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
    client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}})
    assert created(client, pod(nodeName="n"))["metadata"]["labels"] == {
        "topology.kubernetes.io/zone": "z"
    }
    assert "labels" not in created(client, pod("q", nodeName="ghost"))["metadata"]


def test_binding_brings_labels_of_binding_and_node(
    client: DirectClient, registry: Registry
) -> None:
    labels = {"topology.kubernetes.io/region": "r"}
    client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}})
    client.create(pod())
    body = {
        "metadata": {"labels": {"a": "b", "topology.kubernetes.io/region": "wrong"}},
        "target": {"kind": "Node", "name": "n"},
    }
    record = registry.bind(client.actor, "default", "p", body)
    assert record.labels == {"a": "b", "topology.kubernetes.io/region": "r"}


def test_only_a_bound_claim_whose_class_allows_it_grows(cluster: Cluster) -> None:
    def claim(size: str) -> dict[str, Any]:
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "s"}
        wanted = {"resources": {"requests": {"storage": size}}}
        metadata = {"name": "c"}
        made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        return {**made, "spec": {**spec, **wanted}}

    ref = ObjectRef(CLAIM, "c", "default")
    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "s"},
            "provisioner": "x.y/z",
            "allowVolumeExpansion": True,
        }
    )
    cluster.create(claim("1Gi"))
    client = cluster.client(Actor("user"))
    grown = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    with pytest.raises(ApiError, match="immutable after creation"):
        client.patch(ref, grown)
    client.patch(ref, {"spec": {"volumeName": "v"}})
    client.patch(ref, {"status": {"phase": "Bound"}}, subresource="status")
    client.patch(ref, grown)
    stored = client.get(ref)["spec"]
    assert stored["resources"] == {"requests": {"storage": "2Gi"}}


CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
