"""What updater and admission read of a pod object."""

from collections.abc import Sequence
from typing import NamedTuple

from kubescene.api.validation.names import dns_label
from kubescene.autoscalers.vertical.limit_ranges import resource_list
from kubescene.autoscalers.vertical.objects import ResourceList
from kubescene.types import JsonObject

OBSERVED_CONTAINERS = "vpaObservedContainers"
_SEPARATOR = ", "


class Resources(NamedTuple):
    """What a container has; None where a list is absent."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


def containers(pod: JsonObject) -> Sequence[JsonObject]:
    return (pod.get("spec") or {}).get("containers") or ()


def statuses(pod: JsonObject) -> Sequence[JsonObject]:
    return (pod.get("status") or {}).get("containerStatuses") or ()


def resources(container: str, pod: JsonObject) -> Resources:
    """What a container really has: by its status, else by its spec."""
    status = next((each for each in statuses(pod) if each.get("name") == container), {})
    if status.get("resources") is not None:
        return _resources(status["resources"])
    spec = next((each for each in containers(pod) if each["name"] == container), {})
    return declared(spec)


def declared(container: JsonObject) -> Resources:
    """What a container has by its spec."""
    return _resources(container.get("resources") or {})


def observed_containers(pod: JsonObject) -> frozenset[str] | None:
    """The containers that the pod had when it was admitted; None where nobody wrote them down."""
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(OBSERVED_CONTAINERS)
    if text is None:
        return None
    names = text.split(_SEPARATOR) if text else []
    return None if any(map(dns_label, names)) else frozenset(names)


def observed_text(pod: JsonObject) -> str:
    return _SEPARATOR.join(each["name"] for each in containers(pod))


def _resources(given: JsonObject) -> Resources:
    return Resources(resource_list(given.get("requests")), resource_list(given.get("limits")))
