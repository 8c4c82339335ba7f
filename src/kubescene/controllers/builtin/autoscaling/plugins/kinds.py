"""The kind PluginAutoscaler, as a CustomResourceDefinition."""

from kubescene.api.own_kinds import ANYTHING, GROUP, TEXT, definition, own_kind
from kubescene.controllers.registrations import OfferedDefinition
from kubescene.types import JsonObject

NAME = "pluginautoscaler"
PLUGIN_AUTOSCALER = own_kind("PluginAutoscaler")

_SPEC: JsonObject = {
    "type": "object",
    "description": "Who is asked about what, and how often.",
    "required": ["scaleTargetRef"],
    "properties": {
        "scaleTargetRef": {
            "type": "object",
            "required": ["kind", "name"],
            "properties": {"apiVersion": TEXT, "kind": TEXT, "name": TEXT},
            "description": "What is scaled: anything that has a scale.",
        },
        "type": {
            **TEXT,
            "description": "Which autoscaler is meant; follows from the object if it is ours.",
        },
        "object": {**ANYTHING, "description": "What configures the autoscaler, as it wants it."},
        "horizontalInterval": {**TEXT, "description": "How often it is asked how many pods."},
        "verticalInterval": {**TEXT, "description": "How often it is asked how large a pod is."},
        "container": {
            **TEXT,
            "description": "Which container it is told of, and sizes; absent: the whole pod.",
        },
    },
}
_AMOUNTS: JsonObject = {"type": "object", "additionalProperties": TEXT}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer"},
        "currentReplicas": {"type": "integer"},
        "desiredReplicas": {"type": "integer"},
        "lastScaleTime": TEXT,
        "reason": {**TEXT, "description": "What the autoscaler said when it scaled last."},
        "recommendation": {
            "type": "object",
            "description": "How large a pod should be, and between which bounds it may stay.",
            "properties": dict.fromkeys(("target", "lowerBound", "upperBound"), _AMOUNTS),
        },
        "admit": {"type": "boolean", "description": "Whether new pods get the target."},
        "sizeReason": {**TEXT, "description": "What the autoscaler said of the size."},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": dict.fromkeys(
                    ("type", "status", "reason", "message", "lastTransitionTime"), TEXT
                ),
            },
        },
    },
}
READY_STATUS = '.status.conditions[?(@.type=="Ready")]'


def load() -> JsonObject:
    """The definition of the kind."""
    return definition(
        PLUGIN_AUTOSCALER,
        _SPEC,
        _STATUS,
        columns=(
            ("Target", "string", ".spec.scaleTargetRef.name"),
            ("Current", "integer", ".status.currentReplicas"),
            ("Desired", "integer", ".status.desiredReplicas"),
            ("CPU", "string", ".status.recommendation.target.cpu"),
            ("Memory", "string", ".status.recommendation.target.memory"),
            ("Ready", "string", f"{READY_STATUS}.status"),
            ("Reason", "string", f"{READY_STATUS}.reason"),
        ),
        namespaced=True,
    )


OFFERS = (OfferedDefinition(GROUP, PLUGIN_AUTOSCALER.kind, load),)
