"""What a kind's create strategy adds, after defaulting and apart from it.

Defaulting happens on every read and write of an object; these happen once, when it is made.
"""

from kubescene.types import JsonObject

_FINALIZER = "kubernetes"


def prepare_namespace(namespace: JsonObject) -> JsonObject:
    """A new namespace is active, and waits for its content to be removed when deleted."""
    spec = namespace.get("spec") or {}
    finalizers = spec.get("finalizers") or []
    if _FINALIZER not in finalizers:
        finalizers = [*finalizers, _FINALIZER]
    return {
        **namespace,
        "spec": {**spec, "finalizers": finalizers},
        "status": {"phase": "Active"},
    }
