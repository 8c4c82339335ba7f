"""The kind Outage, as a CustomResourceDefinition."""

from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

GROUP = "kubescene.dev"
OUTAGE = GroupVersionKind(GROUP, "v1alpha1", "Outage")
SILENT, GONE, RECLAIM = "NodesSilent", "NodesGone", "SpotReclaim"
SIMULATED = (SILENT, GONE, RECLAIM)
NOT_YET = ("ImagePull", "CpuStolen", "NoCapacity", "BootsSlow", "BootsFail", "MetricsGap")

_TEXT: JsonObject = {"type": "string"}
_WHOLE: JsonObject = {"type": "integer"}
_SELECTOR: JsonObject = {
    "type": "object",
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": _TEXT},
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": _TEXT,
                    "operator": {**_TEXT, "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                    "values": {"type": "array", "items": _TEXT},
                },
            },
        },
    },
}
_SPEC: JsonObject = {
    "type": "object",
    "description": "What goes wrong, where, when and for how long.",
    "required": ["what"],
    "properties": {
        "what": {"type": "string", "enum": [*SIMULATED, *NOT_YET]},
        "nodes": {**_SELECTOR, "description": "A label selector; empty: all nodes."},
        "pods": {**_SELECTOR, "description": "Not simulated yet."},
        "groups": {**_SELECTOR, "description": "Not simulated yet."},
        "share": {"type": "number", "description": "The share of them, above 0 and at most 1."},
        "count": {"type": "integer", "minimum": 1, "description": "How many of them."},
        "after": {**_TEXT, "description": "How long after its creation it begins."},
        "for": {**_TEXT, "description": "How long it lasts; absent: for good."},
        "notice": {**_TEXT, "description": "SpotReclaim: from the notice to the end."},
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("phase", "what", "began", "ends", "message"), _TEXT),
        "observedGeneration": {**_WHOLE, "description": "Which of its changes were seen."},
        "affected": {"type": "array", "items": _TEXT},
    },
}
DEFINITION: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"outages.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": OUTAGE.kind,
            "listKind": "OutageList",
            "plural": "outages",
            "singular": "outage",
            "shortNames": ["out"],
        },
        "versions": [
            {
                "name": OUTAGE.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "What", "type": "string", "jsonPath": ".spec.what"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                    {"name": "Began", "type": "string", "jsonPath": ".status.began"},
                    {"name": "Ends", "type": "string", "jsonPath": ".status.ends"},
                    {
                        "name": "Message",
                        "type": "string",
                        "jsonPath": ".status.message",
                        "priority": 1,
                    },
                ],
            }
        ],
    },
}
