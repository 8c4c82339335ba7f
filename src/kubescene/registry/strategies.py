"""Per-kind rules of the generic registry: what a client may not decide.

Which kinds count generations, what status a new object starts with, and which half of an object a
request may touch: the main resource keeps the stored status, the status subresource keeps the
stored spec.
"""

from typing import Any

from kubescene.api.scheme import ResourceType
from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

COUNTS_GENERATIONS = frozenset(
    {
        "CertificateSigningRequest",
        "CronJob",
        "CustomResourceDefinition",
        "DaemonSet",
        "Deployment",
        "FlowSchema",
        "Ingress",
        "IngressClass",
        "Job",
        "MutatingAdmissionPolicy",
        "MutatingWebhookConfiguration",
        "NetworkPolicy",
        "Pod",
        "PodDisruptionBudget",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
        "ValidatingAdmissionPolicy",
        "ValidatingWebhookConfiguration",
    }
)

KEEPS_STATUS_ON_CREATE = frozenset({"Node", "APIService"})
"""Kinds whose author may state a status with the object; everyone else starts empty."""

INITIAL_STATUS: dict[str, JsonObject] = {
    "Namespace": {"phase": "Active"},
    "PersistentVolume": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "PodDisruptionBudget": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "DaemonSet": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "Service": {"loadBalancer": {}},
    "HorizontalPodAutoscaler": {"desiredReplicas": 0},
}

_OUTSIDE_SPEC = frozenset({"apiVersion", "kind", "metadata", "status"})
_METADATA = frozenset({"metadata"})


def counts_generations(resource_type: ResourceType) -> bool:
    return resource_type.custom or resource_type.kind in COUNTS_GENERATIONS


def initial_status(obj: JsonObject, resource_type: ResourceType) -> JsonObject:
    """A copy with the status that a new object of its kind has; pods have their own way."""
    kind = resource_type.kind
    if resource_type.has_status is False or kind in KEEPS_STATUS_ON_CREATE:
        return obj
    if resource_type.custom:
        return with_part(obj, "status", None) if "status" in obj else obj
    return with_part(obj, "status", INITIAL_STATUS.get(kind, {}))


def generation_moves(new: JsonObject, old: JsonObject, resource_type: ResourceType) -> bool:
    """Whether a change of the main resource is one of what is desired.

    Custom kinds count everything but metadata (their status, if it is apart, has been kept).
    Annotations of a Deployment count, since its replica sets take them over.
    """
    if not counts_generations(resource_type):
        return False
    if resource_type.kind == "Deployment" and not resource_type.custom:
        before = old["metadata"].get("annotations") or {}
        if (new["metadata"].get("annotations") or {}) != before:
            return True
    aside = _METADATA if resource_type.custom else _OUTSIDE_SPEC
    names = [name for name in (*new, *old) if name not in aside]
    return any(new.get(name) != old.get(name) for name in names)


def keep_status(new: JsonObject, old: JsonObject) -> JsonObject:
    """For a write to the main resource: the stored status stays."""
    return with_part(new, "status", old.get("status"))


def keep_spec(new: JsonObject, old: JsonObject, resource_type: ResourceType) -> JsonObject:
    """For a write to the status subresource: everything but the status stays.

    Built-in kinds let labels and annotations through with the status (Deployments keep their
    labels), custom ones do not.
    """
    result = with_part(old, "status", new.get("status"))
    if resource_type.custom:
        return result
    before, sent = old["metadata"], new["metadata"]
    metadata: dict[str, Any] = before
    fields = ("annotations",) if resource_type.kind == "Deployment" else ("labels", "annotations")
    for field in fields:
        value, known = sent.get(field), before.get(field)
        if (value == known and known) or not (value or field in before):
            continue
        metadata = dict(metadata)
        if value:
            metadata[field] = value
        else:
            del metadata[field]
    return result if metadata is before else with_part(result, "metadata", metadata)
