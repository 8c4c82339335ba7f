"""Dynamic resource allocation between resource.k8s.io/v1beta1 and its later versions.

v1beta1 writes a request for exactly one class flat and wraps a device's properties in ``basic``;
later versions wrap the former in ``exactly`` and write the latter flat.
"""

from collections.abc import Callable

from kubescene.types import JsonObject

_EXACT = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)


def requests_wrapped(obj: JsonObject) -> JsonObject:
    """A claim or claim template of v1beta1 as later versions write it."""
    return _with_requests(obj, _wrapped)


def requests_flat(obj: JsonObject) -> JsonObject:
    """A claim or claim template as v1beta1 writes it."""
    return _with_requests(obj, _flat)


def devices_flat(resource_slice: JsonObject) -> JsonObject:
    """A slice of v1beta1 as later versions write it."""
    return _with_devices(
        resource_slice, lambda it: {**_without(it, ("basic",)), **(it.get("basic") or {})}
    )


def devices_wrapped(resource_slice: JsonObject) -> JsonObject:
    """A slice as v1beta1 writes it."""
    return _with_devices(
        resource_slice, lambda it: {"name": it.get("name", ""), "basic": _without(it, ("name",))}
    )


def _wrapped(request: JsonObject) -> JsonObject:
    exact = {name: request[name] for name in _EXACT if name in request}
    rest = _without(request, _EXACT)
    return {**rest, "exactly": exact} if exact else rest


def _flat(request: JsonObject) -> JsonObject:
    return {**_without(request, ("exactly",)), **(request.get("exactly") or {})}


def _without(obj: JsonObject, names: tuple[str, ...]) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in names}


def _with_requests(obj: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    spec = obj.get("spec") or {}
    if obj.get("kind") == "ResourceClaimTemplate":
        inner = spec.get("spec") or {}
        return {**obj, "spec": {**spec, "spec": _changed(inner, change)}}
    return {**obj, "spec": _changed(spec, change)}


def _changed(spec: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    requests = [change(request) for request in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


def _with_devices(obj: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    spec = obj.get("spec") or {}
    if not spec.get("devices"):
        return obj
    return {**obj, "spec": {**spec, "devices": [change(device) for device in spec["devices"]]}}
