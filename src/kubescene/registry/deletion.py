"""Deletion as a decision: gone now, or marked and waiting.

An object with finalizers, or a pod that was given time to stop, is marked with a deletion
timestamp and stays; the finalizer's owner or the kubelet finishes it. Everything else goes at once.
"""

from collections.abc import Mapping
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.api.scheme import ResourceType
from kubescene.clock import LAST_INSTANT, format_time, go_seconds
from kubescene.registry.objects import with_metadata
from kubescene.types import JsonObject

DEFAULT_GRACE_S = 30
PROPAGATION_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
TERMINAL = ("Succeeded", "Failed")
ORPHANS_BY_DEFAULT = {("batch/v1", "Job"), ("v1", "ReplicationController")}


def marked(obj: JsonObject, grace_s: int, now: int) -> JsonObject:
    """The object with its deletion timestamp; a later deletion can only shorten the grace."""
    metadata = obj["metadata"]
    known = metadata.get("deletionGracePeriodSeconds")
    if metadata.get("deletionTimestamp") and known is not None and known <= grace_s:
        return obj
    return with_metadata(
        obj,
        deletionTimestamp=format_time(end_of_grace(now, grace_s)),
        deletionGracePeriodSeconds=grace_s,
        generation=metadata["generation"] + 1 if "generation" in metadata else None,
    )


def end_of_grace(now: int, grace_s: int) -> int:
    """When the grace ends. Any number of seconds is taken, and added as Go adds them.

    Only what no timestamp can say is cut off.
    """
    return min(now + go_seconds(grace_s), LAST_INSTANT)


def grace_of(obj: JsonObject, resource_type: ResourceType, asked: int | None) -> int:
    """Seconds until the object may be taken away."""
    if resource_type.kind != "Pod" or resource_type.gvk.group:
        return 0
    if not obj["spec"].get("nodeName") or _is_terminal(obj):
        return 0
    wish = (
        obj["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
        if asked is None
        else asked
    )
    return max(int(wish), 0)


def with_propagation(obj: JsonObject, policy: str) -> JsonObject:
    """The object with the finalizer that its deletion policy asks for.

    The policy that is given counts; else a finalizer the object has already; else the default of
    its kind. Nothing belongs to a Scenario, and the collector, who takes these finalizers away,
    stands still in the world that one has left: it goes at once.
    """
    if (obj.get("apiVersion"), obj.get("kind")) == (SCENARIO.api_version, SCENARIO.kind):
        policy = "Background"
    finalizers = list(obj["metadata"].get("finalizers") or ())
    others = [it for it in finalizers if it not in PROPAGATION_FINALIZERS.values()]
    if not policy and len(others) == len(finalizers):
        policy = default_policy(obj)
    if not policy:
        return obj
    finalizer = PROPAGATION_FINALIZERS.get(policy)
    wanted = [*others, finalizer] if finalizer else others
    if sorted(wanted) == sorted(finalizers):
        return obj
    return with_metadata(obj, finalizers=wanted or None)


def default_policy(obj: JsonObject) -> str:
    """What becomes of dependents if nobody says: for the oldest kinds they stay."""
    kept = (obj.get("apiVersion"), obj.get("kind")) in ORPHANS_BY_DEFAULT
    return "Orphan" if kept else "Background"


def must_wait(obj: JsonObject, grace_s: int) -> bool:
    return grace_s > 0 or is_held(obj)


def is_held(obj: JsonObject) -> bool:
    """Whether a finalizer keeps the object."""
    spec: Mapping[str, Any] = obj.get("spec") or {}
    held_by_spec = obj.get("kind") == "Namespace" and bool(spec.get("finalizers"))
    return bool(obj["metadata"].get("finalizers")) or held_by_spec


def is_finished(obj: JsonObject) -> bool:
    """Whether a marked object has nothing left to wait for."""
    metadata = obj["metadata"]
    return (
        bool(metadata.get("deletionTimestamp"))
        and not metadata.get("deletionGracePeriodSeconds")
        and not is_held(obj)
    )


def _is_terminal(pod: JsonObject) -> bool:
    return (pod.get("status") or {}).get("phase") in TERMINAL
