"""The kind Outage, as a CustomResourceDefinition."""

from kubescene.api.own_kinds import TEXT, definition, own_kind
from kubescene.types import JsonObject

OUTAGE = own_kind("Outage")
SILENT, GONE, RECLAIM = "NodesSilent", "NodesGone", "SpotReclaim"
PULL, STOLEN, GAP = "ImagePull", "CpuStolen", "MetricsGap"
NO_CAPACITY, BOOTS_SLOW, BOOTS_FAIL = "NoCapacity", "BootsSlow", "BootsFail"
OF_GROUPS = (NO_CAPACITY, BOOTS_SLOW, BOOTS_FAIL)
"""What goes wrong with orders of NodeGroups, not with nodes."""
ALL = (SILENT, GONE, RECLAIM, PULL, STOLEN, GAP, *OF_GROUPS)

_WHOLE: JsonObject = {"type": "integer"}
_SELECTOR: JsonObject = {
    "type": "object",
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": TEXT},
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": TEXT,
                    "operator": {**TEXT, "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                    "values": {"type": "array", "items": TEXT},
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
        "what": {"type": "string", "enum": [*ALL]},
        "nodes": {**_SELECTOR, "description": "A label selector; empty: all nodes."},
        "pods": {**_SELECTOR, "description": "ImagePull: whose images; absent: all pods."},
        "namespace": {**TEXT, "description": "ImagePull: of pods there alone."},
        "pullTime": {**TEXT, "description": "ImagePull: so much longer a pull takes."},
        "pullError": {**TEXT, "description": "ImagePull: pulls fail with these words."},
        "cpuShare": {
            "type": "number",
            "description": "CpuStolen: the share of CPU that is gone, above 0 and below 1.",
        },
        "groups": {**_SELECTOR, "description": "NodeGroups with these labels, or their nodes."},
        "bootFactor": {
            "type": "number",
            "description": "BootsSlow: boots take so many times as long, above 0.",
        },
        "failShare": {
            "type": "number",
            "description": "BootsFail: the share of orders that fail, above 0 and at most 1.",
        },
        "code": {**TEXT, "description": "NoCapacity, BootsFail: the code of the error."},
        "message": {**TEXT, "description": "NoCapacity, BootsFail: what the error says."},
        "share": {"type": "number", "description": "The share of them, above 0 and at most 1."},
        "count": {"type": "integer", "minimum": 1, "description": "How many of them."},
        "after": {**TEXT, "description": "How long after its creation it begins."},
        "for": {**TEXT, "description": "How long it lasts; absent: for good."},
        "notice": {**TEXT, "description": "SpotReclaim: from the notice to the end."},
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("phase", "what", "began", "ends", "message"), TEXT),
        "observedGeneration": {**_WHOLE, "description": "Which of its changes were seen."},
        "affected": {"type": "array", "items": TEXT},
    },
}
DEFINITION = definition(
    OUTAGE,
    _SPEC,
    _STATUS,
    short=("out",),
    columns=(
        ("What", "string", ".spec.what"),
        ("Phase", "string", ".status.phase"),
        ("Began", "string", ".status.began"),
        ("Ends", "string", ".status.ends"),
        ("Message", "string", ".status.message"),
    ),
)
