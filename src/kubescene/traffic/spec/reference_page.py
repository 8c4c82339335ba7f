"""The reference page of the TrafficRun, written from the structs of `spec`."""

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_origin

import msgspec

from kubescene.flows.reading import bare_type
from kubescene.flows.units import Cpu, Memory, Origin, Timeout, TrafficDuration
from kubescene.traffic.spec.fields import API_VERSION, KIND, TrafficSpec

INTRODUCTION = f"""\
# The TrafficRun, field by field

<!-- Made from traffic/spec and flows: pytest tests/traffic/test_reference.py --update -->

A file holds one object with `apiVersion: {API_VERSION}`, `kind: {KIND}`, `metadata.name` and the
`spec` below. Everything that is not listed is a fault. Durations are written as `90s` or `1h30m`,
CPU as `500m`, memory as `256Mi`. Every field has a default, mostly that of Skenario's form.
[The guide](../guides/traffic.md) says how to use it.
"""
WORDS = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    TrafficDuration: "duration",
    Timeout: "duration, or `never`",
    Origin: "seconds, duration or RFC 3339 time",
    Cpu: "CPU",
    Memory: "memory",
    dict: "object",
}


def reference_page() -> str:
    """The page in Markdown."""
    return "\n".join([INTRODUCTION, *_sections(TrafficSpec, "spec")])


def _sections(struct: type[msgspec.Struct], path: str) -> Iterator[str]:
    rows = [_row(field) for field in msgspec.structs.fields(struct)]
    head = "| field | type | default |\n|---|---|---|"
    yield f"## {path}\n\n{_about(struct)}\n\n{head}\n" + "\n".join(rows) + "\n"
    for field in msgspec.structs.fields(struct):
        inner, listed = bare_type(field.type)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _sections(inner, f"{path}.{field.encode_name}{'[]' if listed else ''}")


def _about(kind: type) -> str:
    text = inspect.getdoc(kind) or ""
    return text.replace("``", "`")


def _row(field: msgspec.structs.FieldInfo) -> str:
    return f"| `{field.encode_name}` | {_type(field.type)} | {_default(field)} |"


def _type(kind: Any) -> str:
    inner, listed = bare_type(kind)
    if isinstance(inner, type) and issubclass(inner, Enum):
        words = ", ".join(f"`{each.value}`" for each in inner)
    elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
        words = "object"
    else:
        words = WORDS[get_origin(inner) or inner]
    return f"list of {words}" if listed else words


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if value is msgspec.NODEFAULT:
        return "needed" if field.default_factory is msgspec.NODEFAULT else ""
    if value in (None, (), "") or isinstance(value, msgspec.Struct):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value.value if isinstance(value, Enum) else value}`"
