"""Defaults of dynamic resource allocation.

A request asks for exactly one device unless it says otherwise. The time at which a device was
tainted is filled in by whoever has the clock, not here.
"""

from typing import Any

from kubescene.api.defaulting.resources import canonical_quantity
from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    within,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_GROUP = "resource.k8s.io"


def default_claim(claim: JsonObject) -> JsonObject:
    """A ResourceClaim."""
    claim = at(claim, ("spec", "devices"), _requests)
    return at(claim, ("status", "allocation", "devices"), _results)


def default_claim_template(template: JsonObject) -> JsonObject:
    """A ResourceClaimTemplate."""
    return at(template, ("spec", "spec", "devices"), _requests)


def default_slice(resource_slice: JsonObject) -> JsonObject:
    """A ResourceSlice: quantities in canonical form."""
    resource_slice = at(resource_slice, ("spec",), lambda it: within_each(it, "devices", _device))
    return at(resource_slice, ("spec",), lambda it: within_each(it, "sharedCounters", _counters))


def _requests(devices: JsonObject) -> JsonObject:
    return within_each(devices, "requests", _request)


def _request(request: JsonObject) -> JsonObject:
    return within_each(within(request, "exactly", _devices), "firstAvailable", _devices)


def _devices(request: JsonObject) -> JsonObject:
    request = filled(request, {"allocationMode": "ExactCount"})
    if request["allocationMode"] == "ExactCount":
        request = filled(request, {"count": 1})
    request = at(request, ("capacity", "requests"), _quantities)
    return within_each(request, "tolerations", _toleration)


def _results(devices: JsonObject) -> JsonObject:
    return within_each(devices, "results", _result)


def _result(result: JsonObject) -> JsonObject:
    result = within(result, "consumedCapacity", _quantities)
    return within_each(result, "tolerations", _toleration)


def _toleration(toleration: JsonObject) -> JsonObject:
    return filled(toleration, {"operator": "Equal"})


def _device(device: JsonObject) -> JsonObject:
    device = within_each(within(device, "capacity", _values), "consumesCounters", _counters)
    return within(device, "nodeAllocatableResourceMappings", _mappings)


def _counters(counters: JsonObject) -> JsonObject:
    return within(counters, "counters", _values)


def _values(entries: JsonObject) -> JsonObject:
    return _each_value(entries, lambda entry: within(entry, "value", canonical_quantity))


def _mappings(mappings: JsonObject) -> JsonObject:
    return _each_value(mappings, lambda it: filled_unset(it, {"allocationMultiplier": "1"}))


def _quantities(amounts: JsonObject) -> JsonObject:
    return _each_value(amounts, canonical_quantity)


def _each_value(entries: JsonObject, default: Any) -> JsonObject:
    done = {key: default(entry) for key, entry in entries.items()}
    return entries if done == entries else done


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind(_GROUP, version, kind): default
    for version in ("v1", "v1beta2")
    for kind, default in (
        ("ResourceClaim", default_claim),
        ("ResourceClaimTemplate", default_claim_template),
        ("ResourceSlice", default_slice),
    )
}
