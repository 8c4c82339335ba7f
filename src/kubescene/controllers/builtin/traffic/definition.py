"""The kind Traffic, as a CustomResourceDefinition."""

from kubescene.api.own_kinds import ANYTHING, COUNT, TEXT, definition, own_kind
from kubescene.types import JsonObject

TRAFFIC = own_kind("Traffic")
_SCALAR: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
_WHOLE: JsonObject = {"type": "integer"}
_SPEC: JsonObject = {
    "type": "object",
    "description": "Which requests come, what they need, and who serves them.",
    "required": ["to"],
    "properties": {
        "to": {
            "type": "object",
            "description": "One of them: the pods that serve.",
            "properties": {
                "service": {**TEXT, "description": "The name of a Service."},
                "deployment": {**TEXT, "description": "The name of a Deployment."},
                "scale": {
                    "type": "object",
                    "required": ["apiVersion", "kind", "name"],
                    "properties": dict.fromkeys(("apiVersion", "kind", "name"), TEXT),
                    "description": "Any object that has a scale.",
                },
                "selector": {**ANYTHING, "description": "A label selector."},
            },
        },
        "arrivals": {**ANYTHING, "description": "As spec.traffic of a TrafficRun."},
        "request": {
            "type": "object",
            "description": "What each of them needs.",
            "properties": {
                **dict.fromkeys(("cpuTime", "ioTime", "timeout", "cpu"), _SCALAR),
                "demand": {"type": "string", "enum": ["constant", "exponential"]},
            },
        },
        "routing": {"type": "string", "enum": ["roundRobin", "random", "leastConnections"]},
        "limit": {**COUNT, "description": "At most so many share a pod; 0 is no bound."},
        "container": {**TEXT, "description": "Who serves; the first if it is not said."},
        "memory": {
            "type": "object",
            "description": "What the container uses.",
            "properties": dict.fromkeys(("base", "perRequest"), _SCALAR),
        },
        "begin": {"type": "string", "enum": ["WhenReady", "AtOnce"]},
        "whenNone": {"type": "string", "enum": ["refuse", "wait"]},
        "objective": {
            "type": "object",
            "properties": {"responseTime": _SCALAR, "percentile": {"type": "number"}},
        },
    },
}
_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("target", "rps", "p99", "message"), TEXT),
        **dict.fromkeys(("ready", "requests", "failed", "observedGeneration"), _WHOLE),
    },
}
DEFINITION = definition(
    TRAFFIC,
    _SPEC,
    _STATUS,
    plural="traffics",
    short=("trf",),
    columns=(
        ("Target", "string", ".status.target"),
        ("Ready", "integer", ".status.ready"),
        ("RPS", "string", ".status.rps"),
        ("P99", "string", ".status.p99"),
        ("Failed", "integer", ".status.failed"),
        ("Message", "string", ".status.message"),
    ),
    namespaced=True,
)
