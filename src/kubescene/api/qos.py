"""The quality-of-service class of a pod, from its cpu and memory requests and limits."""

from collections.abc import Mapping
from typing import Any

from kubescene.api import quantity

_COMPUTE = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort; pod-level resources win where they are set."""
    parts = [spec["resources"]] if spec.get("resources") else _container_resources(spec)
    requests = [_positive(part.get("requests")) for part in parts]
    limits = [_positive(part.get("limits")) for part in parts]
    if not any(requests) and not any(limits):
        return "BestEffort"
    for asked, limited in zip(requests, limits, strict=True):
        if set(limited) != set(_COMPUTE) or any(
            name in asked and asked[name] != limited[name] for name in _COMPUTE
        ):
            return "Burstable"
    return "Guaranteed"


def _container_resources(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    return [container.get("resources") or {} for container in containers]


def _positive(amounts: Mapping[str, Any] | None) -> dict[str, int]:
    values = (
        (name, quantity.milli_value(amounts[name]))
        for name in _COMPUTE
        if amounts and name in amounts
    )
    return {name: value for name, value in values if value > 0}
