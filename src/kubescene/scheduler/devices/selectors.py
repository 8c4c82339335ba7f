"""CEL selectors of devices. An expression is compiled once, and held against a device once."""

from typing import Any

from kubescene.cel import EvaluationError
from kubescene.cel.device_selectors import compiled
from kubescene.cel.kubernetes import parse_semver
from kubescene.cel.nodes import DefaultMap
from kubescene.cel.values import type_name
from kubescene.scheduler.devices.slices import Device
from kubescene.types import ReadOnlyObject


class DeviceSelectorError(Exception):
    """An expression that cannot be used, at all or on this device; the text says what is wrong."""


def selects(expression: str, device: Device) -> bool:
    """Whether a selector takes a device; raises `DeviceSelectorError`."""
    try:
        answer = device.selected[expression]
    except KeyError:
        answer = device.selected[expression] = _answer(expression, device)
    if isinstance(answer, str):
        raise DeviceSelectorError(answer)
    return bool(answer)


def _answer(expression: str, device: Device) -> bool | str:
    program = compiled(expression)
    if isinstance(program, str):
        return f"CEL compile error: {program}"
    try:
        found = program.evaluate({"device": device.compiled(_as_value)})
    except EvaluationError as error:
        return f"CEL runtime error: {error}"
    if type(found) is bool:
        return found
    kind = type_name(found)
    text = f"unsupported native conversion from {kind} to 'bool'"
    return f"CEL runtime error: CEL result of type {kind} could not be converted to bool: {text}"


def _as_value(device: Device) -> dict[str, Any]:
    """The device as expressions see it: attributes and capacity by domain."""
    driver = device.id.driver
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in device.attributes.items():
        domain, identifier = _qualified(name, driver)
        attributes.setdefault(domain, {})[identifier] = _attribute(name, attribute)
    capacity: dict[str, dict[str, Any]] = {}
    for name, each in device.capacity.items():
        domain, identifier = _qualified(name, driver)
        capacity.setdefault(domain, {})[identifier] = each.value
    return {
        "driver": driver,
        "allowMultipleAllocations": device.is_shareable,
        "attributes": DefaultMap(attributes, {}),
        "capacity": DefaultMap(capacity, {}),
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _attribute(name: str, attribute: ReadOnlyObject) -> Any:
    for kind in ("int", "bool", "string"):
        if kind in attribute:
            return attribute[kind]
    if "version" not in attribute:
        raise EvaluationError(f"attribute {name}: unsupported attribute value")
    version = parse_semver(attribute["version"])
    if version is None:
        raise EvaluationError(f"attribute {name}: parse semantic version")
    return version
