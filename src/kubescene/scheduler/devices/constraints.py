"""Constraints between the devices of a claim. They follow the search: add, remove in reverse."""

from typing import Any, Protocol

from kubescene.scheduler.devices.requests import DeviceRequest
from kubescene.scheduler.devices.slices import Device
from kubescene.types import ReadOnlyObject

_KINDS = ("string", "int", "bool", "version")


class Constraint(Protocol):
    """What must hold for all devices of some requests together."""

    def add(self, request: DeviceRequest, device: Device) -> bool:
        """Whether one more device is possible; if so, it counts from now on."""
        ...

    def remove(self, request: DeviceRequest, device: Device) -> None: ...


class MatchAttribute:
    """All devices have the attribute, with the same value."""

    __slots__ = ("_attribute", "_count", "_names", "_value")

    def __init__(self, attribute: str, names: frozenset[str]) -> None:
        self._attribute = attribute
        self._names = names
        self._value: Any = None
        self._count = 0

    def add(self, request: DeviceRequest, device: Device) -> bool:
        if not request.is_meant_by(self._names):
            return True
        value = _value(device, self._attribute)
        if value is None or (self._count and (value != self._value or value[0] == "")):
            return False
        if not self._count:
            self._value = value
        self._count += 1
        return True

    def remove(self, request: DeviceRequest, device: Device) -> None:
        if request.is_meant_by(self._names):
            self._count -= 1


class DistinctAttribute:
    """All devices have the attribute, with different values.

    As in kube-scheduler only the newest device of a request is remembered: of a request for
    several devices, later requests are compared with the last one.
    """

    __slots__ = ("_attribute", "_count", "_names", "_values")

    def __init__(self, attribute: str, names: frozenset[str]) -> None:
        self._attribute = attribute
        self._names = names
        self._values: dict[str, Any] = {}
        self._count = 0

    def add(self, request: DeviceRequest, device: Device) -> bool:
        if not request.is_meant_by(self._names):
            return True
        value = _value(device, self._attribute)
        if value is None:
            return False
        if self._count and (value in self._values.values() or (value[0] == "" and self._values)):
            return False
        self._values[request.base] = value
        self._count += 1
        return True

    def remove(self, request: DeviceRequest, device: Device) -> None:
        if request.is_meant_by(self._names):
            self._values.pop(request.base, None)
            self._count -= 1


def make_constraint(spec: ReadOnlyObject) -> Constraint | None:
    """The constraint of an entry of ``constraints``; None if it says nothing that we know."""
    names = frozenset(spec.get("requests") or ())
    if spec.get("matchAttribute") is not None:
        return MatchAttribute(spec["matchAttribute"], names)
    if spec.get("distinctAttribute") is not None:
        return DistinctAttribute(spec["distinctAttribute"], names)
    return None


def _value(device: Device, name: str) -> tuple[str, Any] | None:
    """Kind and value of an attribute; a kind that is not known is empty."""
    attribute = device.attribute(name)
    if attribute is None:
        return None
    kind = next((each for each in _KINDS if each in attribute), "")
    return kind, attribute.get(kind)
