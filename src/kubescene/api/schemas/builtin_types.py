"""The shape of every built-in type: schemas for clients, field tables for ourselves.

Two files, both built by ``tools/schemas``. ``schemas.json.z`` holds the full OpenAPI v3 definitions
with their descriptions; only discovery and ``explain`` need it. ``fields.json.z`` holds, in a
hundredth of the memory, what decoding, patching and applying ask: which fields a type has, what
they hold, how lists and maps merge. Each is read once, on first use.

`ApiType` is one type of the field tables; it resolves its fields on first use, so a run pays only
for the kinds it touches. It is what `kubescene.api.patching.strategic` calls a ``TypeRef``.
"""

import zlib
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from kubescene.api.patching.strategic import FieldInfo
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject, JsonValue

REF_PREFIX = "#/components/schemas/"

_DATA = Path(__file__).parents[1] / "data"
_NO_FIELD = FieldInfo((), "", None)


def definitions() -> dict[str, JsonObject]:
    """All definitions by full name (``io.k8s.api.core.v1.Pod``), as OpenAPI v3 schemas."""
    return _definitions()


def definition(name: str) -> JsonObject:
    """One definition by full name; `KeyError` if there is none."""
    return _definitions()[name]


def resolve(schema: JsonObject) -> JsonObject:
    """The definition behind a ``$ref`` or a single ``allOf``; the schema itself if it has none."""
    reference = schema.get("$ref") or schema.get("allOf", [{}])[0].get("$ref")
    return definition(reference.removeprefix(REF_PREFIX)) if reference else schema


class ApiField(Struct, frozen=True):
    """What one field of a type holds.

    ``shape`` spells it: ``[`` a list of, ``{`` a map of, then ``#`` an object of type ``element``
    or a letter: s string, y base64 bytes, i int32, l int64, f double, b boolean, q Quantity,
    x IntOrString, t Time, m MicroTime, a anything.
    """

    shape: str
    element: "ApiType | None" = None
    strategies: tuple[str, ...] = ()
    merge_key: str = ""
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    default: JsonValue = None

    @property
    def is_atomic(self) -> bool:
        """Whether server-side apply owns the field as a whole."""
        if self.shape.startswith("["):
            return self.list_type in ("", "atomic")
        return self.map_type == "atomic" or (
            self.shape == "#" and self.element is not None and self.element.is_atomic
        )


class ApiType:
    """One object type of the built-in API, known by the full name of its definition."""

    def __init__(self, tables: "FieldTables", position: int) -> None:
        self._tables = tables
        self._position = position
        self.name: str = tables.names[position]
        self._patched: dict[str, FieldInfo] = {}

    def __repr__(self) -> str:
        return f"ApiType({self.name!r})"

    @property
    def short_name(self) -> str:
        """The Go name of the struct: ``PodSpec``."""
        return self.name.rpartition(".")[2]

    @property
    def go_name(self) -> str:
        """The Go name with its package: ``v1.PodSpec``."""
        return ".".join(self.name.split(".")[-2:])

    @property
    def is_atomic(self) -> bool:
        return self._position in self._tables.atomic

    @cached_property
    def fields(self) -> dict[str, ApiField]:
        """All fields of the type by JSON name."""
        rows = self._tables.fields[self._position]
        return {name: self._tables.field_type(row) for name, row in rows.items()}

    def field(self, name: str) -> FieldInfo:
        """How the field is patched; a field that the type does not have has no strategy."""
        found = self._patched.get(name)
        if found is None:
            found = self._patched[name] = self._field_info(name)
        return found

    def _field_info(self, name: str) -> FieldInfo:
        known = self.fields.get(name)
        if known is None:
            return _NO_FIELD
        return FieldInfo(known.strategies, known.merge_key, known.element)


class FieldTables:
    """The decoded field tables; hands out one `ApiType` for each type."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self.names: list[str] = tables["names"]
        self.fields: list[dict[str, Any]] = tables["fields"]
        self.atomic = frozenset(tables["atomic"])
        self.kinds: dict[str, int] = tables["kinds"]
        self._types: dict[int, ApiType] = {}

    def type_at(self, position: int) -> ApiType:
        found = self._types.get(position)
        if found is None:
            found = self._types[position] = ApiType(self, position)
        return found

    def field_type(self, row: str | list[Any]) -> ApiField:
        spelled, notes = (row, {}) if isinstance(row, str) else row
        shape, mark, position = spelled.partition("#")
        return ApiField(
            shape=shape + mark,
            element=self.type_at(int(position)) if position else None,
            strategies=tuple(filter(None, notes.get("patchStrategy", "").split(","))),
            merge_key=notes.get("patchMergeKey", ""),
            list_type=notes.get("listType", ""),
            list_map_keys=tuple(notes.get("listMapKeys", ())),
            map_type=notes.get("mapType", ""),
            default=notes.get("default"),
        )


def api_type(gvk: GroupVersionKind) -> ApiType | None:
    """The type of a built-in kind; None for others, which have no strategic merge."""
    tables = _field_tables()
    position = tables.kinds.get("/".join(gvk))
    return None if position is None else tables.type_at(position)


@cache
def _definitions() -> dict[str, JsonObject]:
    loaded: dict[str, JsonObject] = _load("schemas.json.z")
    return loaded


@cache
def _field_tables() -> FieldTables:
    return FieldTables(_load("fields.json.z"))


def _load(name: str) -> Any:
    return orjson.loads(zlib.decompress((_DATA / name).read_bytes()))
