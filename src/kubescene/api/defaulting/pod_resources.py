"""Requests that follow from limits, of containers and of whole pods.

A container that states a limit but no request asks for the limit. When a pod states resources of
its own, what it leaves open follows from its containers: the pod's request is what the
containers need together, and only where none of them asks for the resource it is the
pod's limit. Huge pages cannot be overcommitted, so there the pod's limit comes first.

What containers need together: all regular ones and sidecars at once, or, if more, the largest
init container beside the sidecars started before it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from kubescene.api.quantity import Quantity, parse
from kubescene.types import JsonObject

_HUGE_PAGES = "hugepages-"
_Amounts = dict[str, Quantity]


def requests_from_limits(container: JsonObject) -> JsonObject:
    """A container that asks for its limits where it does not say otherwise."""
    resources = container.get("resources")
    limits = resources.get("limits") if resources else None
    if not resources or not limits:
        return container
    requests = resources.get("requests") or {}
    if limits.keys() <= requests.keys():
        return container
    missing = {name: amount for name, amount in limits.items() if name not in requests}
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}


def default_pod_resources(spec: JsonObject) -> JsonObject:
    """The spec with its own (pod-level) limits and requests completed."""
    resources = spec["resources"]
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return spec
    limits = _huge_page_limits(spec, limits, requests)
    if limits:
        requests = _pod_requests(spec, limits, requests)
    wanted = {"limits": limits, "requests": requests}
    missing = {side: it for side, it in wanted.items() if it and it != resources.get(side)}
    return {**spec, "resources": {**resources, **missing}} if missing else spec


def _huge_page_limits(spec: JsonObject, limits: JsonObject, requests: JsonObject) -> JsonObject:
    needed = {
        name: str(amount)
        for name, amount in _together(spec, "limits").items()
        if name.startswith(_HUGE_PAGES) and name not in limits and name not in requests
    }
    return {**limits, **needed}


def _pod_requests(spec: JsonObject, limits: JsonObject, requests: JsonObject) -> JsonObject:
    needed = {
        name: str(amount)
        for name, amount in _together(spec, "requests").items()
        if name in {"cpu", "memory"}
    }
    allowed = {name: amount for name, amount in limits.items() if _is_pod_level(name)}
    return {**allowed, **needed, **requests}


def _is_pod_level(name: str) -> bool:
    return name in {"cpu", "memory"} or name.startswith(_HUGE_PAGES)


def _together(spec: JsonObject, side: str) -> _Amounts:
    """What all containers need of each resource, on the side of ``limits`` or ``requests``."""
    total: _Amounts = {}
    for amounts in _amounts(spec.get("containers") or (), side):
        _add(total, amounts)
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    init_containers = spec.get("initContainers") or ()
    for container, amounts in zip(init_containers, _amounts(init_containers, side), strict=True):
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(peak, sidecars)
        else:
            _add(amounts, sidecars)
            _raise(peak, amounts)
    _raise(total, peak)
    return total


def _amounts(containers: Iterable[JsonObject], side: str) -> Iterator[_Amounts]:
    for container in containers:
        stated: dict[str, Any] = (container.get("resources") or {}).get(side) or {}
        yield {name: parse(amount) for name, amount in stated.items()}


def _add(total: _Amounts, amounts: _Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(level: _Amounts, amounts: _Amounts) -> None:
    for name, amount in amounts.items():
        if name not in level or amount > level[name]:
            level[name] = amount
