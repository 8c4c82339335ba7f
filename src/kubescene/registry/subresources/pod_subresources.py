"""``pods/resize`` and ``pods/ephemeralcontainers``: which part of a pod each may change.

Whatever else a request says is dropped, not refused: it changes one part and keeps the rest of the
stored pod, as the strategies of kube-apiserver do.
"""

from kubescene.registry.objects import with_part
from kubescene.types import JsonObject

RESIZE = "resize"
EPHEMERAL_CONTAINERS = "ephemeralcontainers"
POD_PARTS = frozenset({RESIZE, EPHEMERAL_CONTAINERS})
"""Subresources of pods that are written as a pod and mean one part of it."""

_RESIZABLE = ("resources", "resizePolicy")


def narrowed(new: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
    """The stored pod with the one part that the subresource is about."""
    before, now = old["spec"], new.get("spec") or {}
    if subresource == EPHEMERAL_CONTAINERS:
        return {**old, "spec": with_part(before, "ephemeralContainers", _added(now))}
    names = ("containers", "initContainers")
    if any(len(now.get(name) or ()) != len(before.get(name) or ()) for name in names):
        # Validation says what is wrong with that.
        return {**new, "metadata": old["metadata"], "status": old.get("status", {})}
    spec = with_part(before, "resources", now.get("resources"))
    for name in names:
        if before.get(name):
            spec[name] = resized_containers(now[name], before[name])
    return {**old, "spec": spec}


def resized_containers(now: list[JsonObject], before: list[JsonObject]) -> list[JsonObject]:
    """The stored containers with the resources asked for; renamed ones are left to validation."""
    pairs = list(zip(now, before, strict=True))
    if any(new.get("name") != old.get("name") for new, old in pairs):
        return now
    return [_resized(new, old) for new, old in pairs]


def _resized(new: JsonObject, old: JsonObject) -> JsonObject:
    for field in _RESIZABLE:
        old = with_part(old, field, new.get(field))
    return old


def _added(spec: JsonObject) -> list[JsonObject] | None:
    return spec.get("ephemeralContainers") or None
