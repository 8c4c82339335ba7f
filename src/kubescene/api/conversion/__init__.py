"""Objects between the versions in which a resource is served and the one in which it is stored.

Most versions of a kind differ in their name only; `convert` then rewrites ``apiVersion``. Where
fields moved, a row of the table does the rest. Inputs are not changed.
"""

from collections.abc import Callable
from typing import TypeAlias

from kubescene.api.conversion import autoscalers, devices
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.types import JsonObject

Conversion: TypeAlias = Callable[[JsonObject], JsonObject]

_TO_EVENTS_GROUP = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_TO_CORE = {new: old for old, new in _TO_EVENTS_GROUP.items()}


def convert(obj: JsonObject, from_gvk: GroupVersionKind, to_gvk: GroupVersionKind) -> JsonObject:
    """The object in another version of its kind; itself if that is the one it has."""
    if from_gvk == to_gvk:
        return obj
    conversion = _CONVERSIONS.get((from_gvk, to_gvk))
    converted = obj if conversion is None else conversion(obj)
    return {**converted, "apiVersion": to_gvk.api_version, "kind": to_gvk.kind}


def event_to_events_group(event: JsonObject) -> JsonObject:
    """A core event as events.k8s.io spells it."""
    return {_TO_EVENTS_GROUP.get(name, name): value for name, value in event.items()}


def event_to_core(event: JsonObject) -> JsonObject:
    """An event of events.k8s.io as the core group spells it."""
    return {_TO_CORE.get(name, name): value for name, value in event.items()}


_V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
_V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
_CORE_EVENT = GroupVersionKind("", "v1", "Event")
_NEW_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
_DEVICE_GROUP = "resource.k8s.io"

_CONVERSIONS: dict[tuple[GroupVersionKind, GroupVersionKind], Conversion] = {
    (_V1, _V2): autoscalers.to_v2,
    (_V2, _V1): autoscalers.to_v1,
    (_CORE_EVENT, _NEW_EVENT): event_to_events_group,
    (_NEW_EVENT, _CORE_EVENT): event_to_core,
}
for _kind, _later, _earlier in (
    ("ResourceClaim", devices.requests_wrapped, devices.requests_flat),
    ("ResourceClaimTemplate", devices.requests_wrapped, devices.requests_flat),
    ("ResourceSlice", devices.devices_flat, devices.devices_wrapped),
):
    _first = GroupVersionKind(_DEVICE_GROUP, "v1beta1", _kind)
    for _version in ("v1", "v1beta2"):
        _other = GroupVersionKind(_DEVICE_GROUP, _version, _kind)
        _CONVERSIONS[_first, _other] = _later
        _CONVERSIONS[_other, _first] = _earlier


def to_storage(obj: JsonObject, resource_type: ResourceType) -> JsonObject:
    """The object in the version that is stored; itself if that is its own."""
    return convert(obj, resource_type.gvk, resource_type.storage_gvk)


def from_storage(obj: JsonObject, resource_type: ResourceType) -> JsonObject:
    """A stored object in the version of ``resource_type``; itself if it has that already."""
    stored = GroupVersionKind.of(obj.get("apiVersion", ""), obj.get("kind", ""))
    return convert(obj, stored, resource_type.gvk)
