"""Bodies and patches whose values have the wrong types, for every kind, from a seed."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from kubescene.api.schemas.builtin_types import ApiField, ApiType, api_type
from kubescene.api.scheme import GroupVersionKind, Scheme
from kubescene.clock.randomness import Stream

T = TypeVar("T")

SAMPLES = Path(__file__).parent.parent / "api" / "data" / "validation.jsonl.gz"

CONFUSED: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    18446744073709551615,
    1.5,
    1e300,
    "",
    "x",
    "\x00",
    "$patch",
    "9" * 70,
    [],
    [None],
    [[]],
    [{}],
    ["a", 1],
    {},
    {"": None},
    {"a": {}},
    {"name": []},
    {"f:data": "x"},
    {"$patch": "delete"},
    {"$patch": 1},
    {"$retainKeys": "x"},
    {"$setElementOrder/containers": [1]},
)
"""What stands where something else belongs."""

_PLAIN: dict[str, tuple[Any, ...]] = {
    "s": ("a", "b-c", "", "Always", "/x", "10.0.0.1"),
    "y": ("YQ==", ""),
    "i": (0, 1, 80),
    "l": (0, 1, 1 << 40),
    "f": (0.5, 1),
    "b": (True, False),
    "q": ("1", "2Gi", 1),
    "x": (1, "25%"),
    "t": ("2026-01-01T00:00:00Z",),
    "m": ("2026-01-01T00:00:00.000000Z",),
    "a": ({"a": 1}, 1, "a"),
}


_ENTRY = {
    "manager": "m",
    "operation": "Update",
    "fieldsType": "FieldsV1",
    "fieldsV1": {
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {'k:{"name":"c"}': {".": {}}},
    },
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"type": "string", "pattern": "^a", "enum": ["a"], "default": "a"}},
            "additionalProperties": False,
        },
        "list": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 5}},
                "anyOf": [{"required": ["k"]}],
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "map": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
    },
}


class Confusion:
    """Makes objects and patches; the same seed makes the same ones."""

    def __init__(self, seed: int, scheme: Scheme) -> None:
        self._stream = Stream(seed)
        self.kinds = [each.gvk for each in scheme if "create" in each.verbs]
        self._samples = dict(_samples())

    def choice(self, options: Sequence[T]) -> T:
        return options[self._stream.below(len(options))]

    def happens(self, percent: int) -> bool:
        return self._stream.below(100) < percent

    def sample(self, gvk: GroupVersionKind, name: str) -> dict[str, Any]:
        """An object with the right types, valid if there is an example of its kind."""
        known = self._samples.get("/".join(gvk))
        obj = json.loads(known) if known else self._typed(api_type(gvk), 0)
        if gvk.kind == "CustomResourceDefinition":
            obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = _SCHEMA
        obj = obj | {"apiVersion": gvk.api_version, "kind": gvk.kind}
        entry = {**_ENTRY, "apiVersion": gvk.api_version}
        return obj | {"metadata": {"name": name, "labels": {"app": "a"}, "managedFields": [entry]}}

    def confused(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object with one to three values of the wrong type, or fields it did not have."""
        obj = json.loads(json.dumps(obj))
        found = api_type(GroupVersionKind(*_split(obj)))
        for _ in range(self.choice((1, 2, 3))):
            if found is not None and self.happens(40):
                self._add(obj, found)
            else:
                self._spoil(obj)
        return obj

    def patch(self, obj: dict[str, Any]) -> dict[str, Any]:
        """A merge patch with one spoilt value, somewhere in the object."""
        path: list[str] = []
        here: Any = obj
        while isinstance(here, dict) and here and (not path or self.happens(80)):
            path.append(self.choice(sorted(here)))
            here = here[path[-1]]
        patch: Any = self._value()
        if isinstance(here, list) and here and self.happens(50):
            patch = [self.choice(here), self._value()]
        for name in reversed(path):
            patch = {name: patch}
        return patch if isinstance(patch, dict) else {"spec": patch}

    def status(self, gvk: GroupVersionKind) -> dict[str, Any]:
        """A patch of nothing but the status: of the right types, or with some spoilt values."""
        found = api_type(gvk)
        field = None if found is None else found.fields.get("status")
        status = self._typed(field.element, 1) if field is not None else {}
        for name in sorted(status):
            if self.happens(15):
                status[name] = self._value()
        return {"status": status if self.happens(95) else self._value()}

    def operations(self) -> list[dict[str, Any]]:
        """A JSON patch of one operation on some part of an object."""
        path = self.choice(("", "/spec", "/metadata", "/metadata/labels", "/status", "/data/k"))
        kind = self.choice(("add", "replace", "remove", "test", "copy", "move"))
        return [{"op": kind, "path": path, "from": "/metadata", "value": self._value()}]

    def _value(self) -> Any:
        return json.loads(json.dumps(self.choice(CONFUSED)))

    def _spoil(self, obj: dict[str, Any]) -> None:
        places = [place for place in _places(obj) if place[1] not in ("apiVersion", "kind")]
        container, key = self.choice(places)
        container[key] = self._value()

    def _add(self, obj: dict[str, Any], found: ApiType) -> None:
        """Put a typed or spoilt value into a field of the kind, at some depth."""
        name, field = "", ApiField("a")
        while found.fields:
            name = self.choice(sorted(found.fields))
            field = found.fields[name]
            if not (field.shape == "#" and field.element and self.happens(70)):
                break
            if not isinstance(obj.get(name), dict):
                obj[name] = {}
            obj, found = obj[name], field.element
        if name and name not in ("apiVersion", "kind"):
            obj[name] = self._value() if self.happens(50) else self._field(field, 0)

    def _typed(self, found: ApiType | None, depth: int) -> dict[str, Any]:
        if found is None or depth > 4:
            return {}
        names = [name for name in sorted(found.fields) if self.happens(50)]
        return {name: self._field(found.fields[name], depth) for name in names}

    def _field(self, field: ApiField, depth: int) -> Any:
        return self._shaped(field.shape, field, depth)

    def _shaped(self, shape: str, field: ApiField, depth: int) -> Any:
        if shape[0] == "[":
            return [self._shaped(shape[1:], field, depth) for _ in range(self.choice((0, 1, 2)))]
        if shape[0] == "{":
            return {"k": self._shaped(shape[1:], field, depth)}
        if shape[0] == "#":
            return self._typed(field.element, depth + 1)
        return self.choice(_PLAIN[shape[0]])


def _samples() -> Iterator[tuple[str, str]]:
    for line in gzip.decompress(SAMPLES.read_bytes()).splitlines():
        case = json.loads(line)
        if case["op"] == "create" and not case.get("errors"):
            yield "/".join(case["gvk"]), json.dumps(case["new"])


def _split(obj: dict[str, Any]) -> tuple[str, str, str]:
    group, _, version = obj["apiVersion"].rpartition("/")
    return group, version, obj["kind"]


def _places(value: Any) -> list[tuple[Any, Any]]:
    found = []
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(child, dict | list):
            found += _places(child)
    return found
