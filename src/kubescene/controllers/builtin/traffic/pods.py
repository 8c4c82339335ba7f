"""Pods as requests see them: whether they serve, with how much CPU and memory."""

from collections.abc import Iterable
from fractions import Fraction

from msgspec import Struct

from kubescene.api.quantity import milli_value
from kubescene.clock import parse_time
from kubescene.controllers.builtin.outages.effects import STEALS
from kubescene.types import JsonObject

RUNNING = "Running"


class ServingPod(Struct, frozen=True):
    """A pod, and its container that serves. Amounts are millicores and bytes, 0 for no limit."""

    uid: str
    name: str
    node: str
    created: int
    is_ready: bool
    deadline: int | None
    """When whoever is inside is killed, of a pod that was deleted."""
    container: str
    cpu_limit: int
    cpu_request: int
    memory_limit: int
    restarts: int
    """How often the container was started again, -1 if it does not run."""


def serving_pod(pod: JsonObject, container: str) -> ServingPod:
    """A pod of which ``container`` serves, the first if that is empty or not there."""
    metadata, status, containers = pod["metadata"], pod.get("status") or {}, _containers(pod)
    named = next((each for each in containers if each["name"] == container), containers[0])
    own: JsonObject = next(
        (each for each in status.get("containerStatuses") or () if each["name"] == named["name"]),
        {},
    )
    deleted = metadata.get("deletionTimestamp")
    # Those of the status are what a pod that was resized really has.
    resources = own.get("resources") or named.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    runs = "running" in (own.get("state") or {}) if own else status.get("phase") == RUNNING
    return ServingPod(
        metadata["uid"],
        metadata["name"],
        pod["spec"].get("nodeName") or "",
        parse_time(metadata["creationTimestamp"]),
        _is_ready(status.get("conditions") or ()),
        None if deleted is None else parse_time(deleted),
        named["name"],
        _amount(limits, "cpu"),
        _amount(requests, "cpu"),
        _amount(limits, "memory") // 1000,
        int(own.get("restartCount") or 0) if runs else -1,
    )


def node_capacity(node: JsonObject) -> int:
    """Millicores that pods may use."""
    status = node.get("status") or {}
    offered = _amount(status.get("allocatable") or status.get("capacity") or {}, "cpu")
    for name, share in (node["metadata"].get("annotations") or {}).items():
        if name.startswith(STEALS):
            offered -= int(offered * Fraction(share))
    return offered


def _containers(pod: JsonObject) -> list[JsonObject]:
    spec = pod["spec"]
    return spec.get("containers") or [{"name": ""}]


def _is_ready(conditions: Iterable[JsonObject]) -> bool:
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _amount(amounts: JsonObject, resource: str) -> int:
    given = amounts.get(resource)
    return 0 if given is None else milli_value(str(given))
