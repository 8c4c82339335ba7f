"""NodePool and NodeClaim (karpenter.sh/v1), and the catalogue of instance types, as kinds."""

from collections.abc import Mapping

from kubescene.api.own_kinds import AMOUNT, ANYTHING, TEXT, definition, own_kind
from kubescene.api.scheme import GroupVersionKind
from kubescene.karpenter.nodepools import POLICIES
from kubescene.karpenter.requirements import DOMAIN, OPERATORS
from kubescene.types import JsonObject

NODE_POOL_KIND = GroupVersionKind(DOMAIN, "v1", "NodePool")
NODE_CLAIM_KIND = GroupVersionKind(DOMAIN, "v1", "NodeClaim")
CATALOGUE_KIND = own_kind("InstanceCatalogue")
_STRINGS: JsonObject = {"type": "object", "additionalProperties": TEXT}
_QUANTITIES: JsonObject = {
    "type": "object",
    "additionalProperties": {"x-kubernetes-int-or-string": True},
}
_NUMBER_OR_TEXT: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
_TAINTS: JsonObject = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["key", "effect"],
        "properties": {
            "key": TEXT,
            "value": TEXT,
            "timeAdded": TEXT,
            "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        },
    },
}
_REQUIREMENTS: JsonObject = {
    "type": "array",
    "maxItems": 100,
    "items": {
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": TEXT,
            "operator": {"type": "string", "enum": [*OPERATORS]},
            "values": {"type": "array", "items": TEXT},
            "minValues": {"type": "integer", "minimum": 1, "maximum": 50},
        },
    },
}
_CLASS: JsonObject = {
    "type": "object",
    "description": "Stored; the catalogue of instance types is that of the cluster.",
    "required": ["group", "kind", "name"],
    "properties": {"group": TEXT, "kind": TEXT, "name": TEXT},
}
_TIMES: Mapping[str, JsonObject] = {
    "terminationGracePeriod": {**TEXT, "description": "After so long, drains wait for nobody."},
    "expireAfter": {**TEXT, "default": "720h", "description": "A duration, or Never."},
}
_MACHINE: JsonObject = {
    "type": "object",
    "required": ["requirements"],
    "properties": {
        "requirements": _REQUIREMENTS,
        "taints": _TAINTS,
        "startupTaints": _TAINTS,
        "nodeClassRef": _CLASS,
        **_TIMES,
    },
}
_DISRUPTION: JsonObject = {
    "type": "object",
    "default": {"consolidateAfter": "0s"},
    "properties": {
        "consolidateAfter": {**TEXT, "default": "0s", "description": "A duration, or Never."},
        "consolidationPolicy": {
            "type": "string",
            "enum": [*POLICIES],
            "default": "WhenEmptyOrUnderutilized",
        },
        "budgets": {
            "type": "array",
            "maxItems": 50,
            "default": [{"nodes": "10%"}],
            "items": {
                "type": "object",
                "required": ["nodes"],
                "properties": {
                    "nodes": {**TEXT, "pattern": r"^((100|[0-9]{1,2})%|[0-9]+)$"},
                    "schedule": TEXT,
                    "duration": TEXT,
                    "reasons": {"type": "array", "items": TEXT},
                },
            },
        },
    },
}
_CONDITIONS: JsonObject = {"type": "array", "items": ANYTHING}
_POOL_SPEC: JsonObject = {
    "type": "object",
    "description": "Which machines may be ordered, how many, and when they are given up.",
    "required": ["template"],
    "properties": {
        "template": {
            "type": "object",
            "required": ["spec"],
            "properties": {
                "metadata": {
                    "type": "object",
                    "properties": {"labels": _STRINGS, "annotations": _STRINGS},
                },
                "spec": _MACHINE,
            },
        },
        "disruption": _DISRUPTION,
        "limits": _QUANTITIES,
        "weight": {"type": "integer", "minimum": 1, "maximum": 100},
        "replicas": {"type": "integer", "minimum": 0},
    },
}
_POOL_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "conditions": _CONDITIONS,
        "resources": _QUANTITIES,
        "nodes": {"type": "integer"},
    },
}
_CLAIM_SPEC: JsonObject = {
    "type": "object",
    "description": "One machine, and what it may be.",
    "required": ["requirements"],
    "properties": {
        **_MACHINE["properties"],
        "resources": {"type": "object", "properties": {"requests": _QUANTITIES}},
    },
}
_CLAIM_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("nodeName", "providerID", "imageID", "lastPodEventTime"), TEXT),
        "capacity": _QUANTITIES,
        "allocatable": _QUANTITIES,
        "conditions": _CONDITIONS,
    },
}
_TYPE: JsonObject = {
    "type": "object",
    "required": ["name", "capacity", "offers"],
    "properties": {
        "name": TEXT,
        "architecture": {**TEXT, "default": "amd64"},
        "operatingSystems": {"type": "array", "items": TEXT},
        "capacity": _QUANTITIES,
        "overhead": {**_QUANTITIES, "description": "What of it pods do not get."},
        "labels": _STRINGS,
        "offers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["zone", "price"],
                "properties": {
                    "zone": TEXT,
                    "capacityType": {
                        "type": "string",
                        "enum": ["on-demand", "spot"],
                        "default": "on-demand",
                    },
                    "price": {**_NUMBER_OR_TEXT, "description": "Per hour."},
                    "available": {"type": "boolean"},
                },
            },
        },
    },
}
_BOOT_PARTS = ("time", "registration", "ready")
_CATALOGUE_SPEC: JsonObject = {
    "type": "object",
    "description": "What a cloud offers; all catalogues of a cluster count together.",
    "required": ["instanceTypes"],
    "properties": {
        "currency": {**TEXT, "default": "USD"},
        "instanceTypes": {"type": "array", "minItems": 1, "maxItems": 5000, "items": _TYPE},
        "boot": {"type": "object", "properties": dict.fromkeys(_BOOT_PARTS, AMOUNT)},
        "shutdown": {"type": "object", "properties": {"time": AMOUNT}},
        "interruptions": {
            "type": "object",
            "description": "What becomes of spot machines.",
            "required": ["after"],
            "properties": {
                "after": {**AMOUNT, "description": "From the launch to the notice."},
                "notice": {**AMOUNT, "description": "From the notice to the end; 2m."},
            },
        },
    },
}
DEFINITIONS: tuple[JsonObject, ...] = (
    definition(
        NODE_POOL_KIND,
        _POOL_SPEC,
        _POOL_STATUS,
        columns=[
            ("NodeClass", "string", ".spec.template.spec.nodeClassRef.name"),
            ("Nodes", "string", ".status.nodes"),
            ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        ],
    ),
    definition(
        NODE_CLAIM_KIND,
        _CLAIM_SPEC,
        _CLAIM_STATUS,
        columns=[
            ("Type", "string", r".metadata.labels.node\.kubernetes\.io/instance-type"),
            ("Capacity", "string", r".metadata.labels.karpenter\.sh/capacity-type"),
            ("Zone", "string", r".metadata.labels.topology\.kubernetes\.io/zone"),
            ("Node", "string", ".status.nodeName"),
            ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        ],
    ),
    definition(
        CATALOGUE_KIND,
        _CATALOGUE_SPEC,
        {"type": "object", "properties": {"message": TEXT}},
        plural="instancecatalogues",
    ),
)
