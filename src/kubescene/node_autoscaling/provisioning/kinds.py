"""ProvisioningRequest (autoscaling.x-k8s.io) as a kind."""

from kubescene.api.own_kinds import TEXT, definition
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

GROUP = "autoscaling.x-k8s.io"
PROVISIONING_REQUEST = GroupVersionKind(GROUP, "v1", "ProvisioningRequest")
CHECK_CAPACITY = f"check-capacity.{GROUP}"
BEST_EFFORT_ATOMIC = f"best-effort-atomic-scale-up.{GROUP}"
CLASSES = (CHECK_CAPACITY, BEST_EFFORT_ATOMIC)
"""Those that the autoscaler answers; others are for programs of clouds."""
_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_NAME: JsonObject = {**TEXT, "maxLength": 253, "pattern": rf"^{_NAME}(\.{_NAME})*$"}
_FIXED = [{"rule": "self == oldSelf", "message": "Value is immutable"}]
_POD_SET: JsonObject = {
    "type": "object",
    "required": ["count", "podTemplateRef"],
    "properties": {
        "count": {"type": "integer", "format": "int32", "minimum": 1},
        "podTemplateRef": {
            "type": "object",
            "description": "A PodTemplate of the same namespace.",
            "required": ["name"],
            "properties": {"name": _DNS_NAME},
        },
    },
}
_SPEC: JsonObject = {
    "type": "object",
    "description": "So many pods of these templates; it cannot be changed.",
    "required": ["podSets", "provisioningClassName"],
    "properties": {
        "podSets": {
            "type": "array",
            "minItems": 1,
            "maxItems": 32,
            "items": _POD_SET,
            "x-kubernetes-validations": _FIXED,
        },
        "provisioningClassName": {
            **_DNS_NAME,
            "description": "Who is to find room, and how.",
            "x-kubernetes-validations": _FIXED,
        },
        "parameters": {
            "type": "object",
            "maxProperties": 100,
            "additionalProperties": {**TEXT, "maxLength": 255},
            "x-kubernetes-validations": _FIXED,
        },
    },
}
_CONDITION: JsonObject = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "type": {**TEXT, "maxLength": 316},
        "status": {**TEXT, "enum": ["True", "False", "Unknown"]},
        "reason": {
            **TEXT,
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {**TEXT, "maxLength": 32768},
        "lastTransitionTime": {**TEXT, "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "provisioningClassDetails": {
            "type": "object",
            "maxProperties": 64,
            "additionalProperties": {**TEXT, "maxLength": 32768},
        },
    },
}


def request_definition() -> JsonObject:
    """The definition, with the deprecated version that clients may still ask for."""
    made = definition(
        PROVISIONING_REQUEST,
        _SPEC,
        _STATUS,
        short=("provreq", "provreqs"),
        columns=[("Age", "date", ".metadata.creationTimestamp")],
        namespaced=True,
    )
    versions = made["spec"]["versions"]
    beta = {
        **versions[0],
        "name": "v1beta1",
        "storage": False,
        "deprecated": True,
        "deprecationWarning": "autoscaling.k8s.io/v1beta1 API is deprecated",
    }
    versions.append(beta)
    return made
