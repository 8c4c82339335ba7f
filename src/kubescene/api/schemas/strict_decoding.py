"""Decoding as strictly as kube-apiserver does: unknown fields, and values of the wrong type.

An object passes most of the time, so it is first walked with tables compiled from the field tables
of its kind, which answer only yes or no to both checks at once. Only an object that fails is walked
again, slowly, to say where. Kinds that no built-in schema describes always pass: their own
definitions judge them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

from kubescene.api.schemas import scalars
from kubescene.api.schemas.builtin_types import ApiField, ApiType, api_type
from kubescene.api.scheme import GroupVersionKind
from kubescene.errors import BadRequestError
from kubescene.types import JsonObject, JsonValue

_MAX_REPORTED = 100
_MAX_LOOKED_AT = 10_000
_MISSING: Any = object()

_OBJECT, _LIST, _MAP = range(3)
_NESTING = {"#": _OBJECT, "[#": _LIST, "{#": _MAP}

_SCALARS = frozenset({bool, int, float, str})
_LARGEST = {"i": scalars.INT32[1], "l": scalars.INT64[1]}

_Check: TypeAlias = Callable[[Any], bool]


def unknown_fields(obj: JsonObject, gvk: GroupVersionKind) -> list[str]:
    """Paths of fields that the kind does not have, such as ``spec.containers[0].foo``.

    In the order of the document; after a hundred nobody reads on.
    """
    tables = _tables_of_kind(gvk)
    if tables is None or not _has_unknown(obj, tables):
        return []
    return list(islice(_unknown_paths(obj, tables, ""), _MAX_REPORTED))


def known_fields(gvk: GroupVersionKind, path: Sequence[str | int]) -> list[str]:
    """The fields that stand beside the last step of a path, such as ``("spec", "nodeSelectr")``."""
    known, steps = api_type(gvk), iter(path[:-1])
    for step in steps:
        field = known.fields.get(str(step)) if known is not None else None
        if field is None:
            return []
        known = field.element
        if field.shape in ("[#", "{#"):
            next(steps, None)  # a number, or a key that anybody may choose
    return [] if known is None else list(known.fields)


def strict_error(gvk: GroupVersionKind, complaints: Sequence[str]) -> BadRequestError:
    """The refusal of an object by strict field validation, naming everything that is wrong."""
    return not_handled(gvk, f"strict decoding error: {', '.join(complaints)}")


def prune_unknown(obj: JsonObject, gvk: GroupVersionKind) -> JsonObject:
    """The object without unknown fields; the very same object if it has none."""
    tables = _tables_of_kind(gvk)
    pruned: JsonObject = obj if tables is None else _pruned(obj, tables)
    return pruned


def checked(
    obj: JsonObject, gvk: GroupVersionKind, told_as: GroupVersionKind | None = None
) -> JsonObject:
    """`check_types`, then `prune_unknown`."""
    tables = _tables_of_kind(gvk)
    if tables is None or _is_sound(obj, tables):
        return obj
    check_types(obj, gvk, told_as)
    return prune_unknown(obj, gvk)


def check_types(
    obj: JsonObject, gvk: GroupVersionKind, told_as: GroupVersionKind | None = None
) -> None:
    """400 if a value is not of the type of its field, in the words of kube-apiserver's decoder.

    ``told_as`` is the kind that the words speak of, if it is another one.
    """
    tables = _tables_of_kind(gvk)
    if tables is None or _is_sound(obj, tables):
        return
    if complaint := complaint_about(obj, tables.api_type):
        raise not_handled(told_as or gvk, complaint)


def are_sound_scalars(members: JsonObject, gvk: GroupVersionKind, part: str) -> bool:
    """Whether these are fields of one part of a kind, all scalars and of the right types.

    A quick yes for what `check_types` and `prune_unknown` leave as it is, with no nulls.
    """
    tables = _tables_of_kind(gvk)
    below = None if tables is None else tables.known.get(part)
    if below is None or below[0] != _OBJECT:
        return False
    known, inner = below[1].known, below[1]
    for name, value in members.items():
        if type(value) not in _SCALARS or known.get(name, _MISSING) is not None:
            return False
    return _is_sound(members, inner)


@cache
def largest_integers(gvk: GroupVersionKind, part: str) -> Mapping[str, int]:
    """The integer fields of one part of a kind, and the largest value that each may have."""
    whole = api_type(gvk)
    inner = None if whole is None else whole.fields[part].element
    if inner is None:
        return {}
    fields = inner.fields.items()
    return {name: _LARGEST[field.shape] for name, field in fields if field.shape in _LARGEST}


def complaint_about(value: JsonValue, api_type: ApiType) -> str:
    """What is wrong with the first wrong value of an object of a type; empty if nothing is."""
    return _complaint(value, ApiField("#", api_type), _FieldPlace("", ""))


def wrong_values(
    obj: JsonObject, gvk: GroupVersionKind
) -> Iterator[tuple[tuple[str | int, ...], JsonValue, str]]:
    """Every value that is not of the type of its field: its place, itself, and what is wrong.

    kube-apiserver tells of the first one, and not always where that is. Slow: each is looked at
    alone, as the one value of an object.
    """
    tables = _tables_of_kind(gvk)
    if tables is None:
        return
    for path, value in islice(_values(obj, ()), _MAX_LOOKED_AT):
        alone = value
        for step in reversed(path):
            alone = [alone] if isinstance(step, int) else {step: alone}
        if path and (complaint := complaint_about(alone, tables.api_type)):
            yield path, value, complaint


def _values(
    value: JsonValue, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], JsonValue]]:
    """What holds nothing itself, each with its place."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _values(each, (*path, name))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from _values(each, (*path, index))
    else:
        yield path, value


def not_handled(gvk: GroupVersionKind, complaint: str) -> BadRequestError:
    return BadRequestError(
        f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {complaint}'
    )


class _Tables:
    """Compiled tables of one type, each made when first read (types may contain themselves).

    ``known`` maps a field to None, or to the nesting and tables of the objects below it.
    ``expected`` maps a field to a Python type that settles it, or to a check of its value.
    """

    __slots__ = ("api_type", "expected", "known")
    known: dict[str, tuple[int, "_Tables"] | None]
    expected: dict[str, type | _Check]

    def __init__(self, api_type: ApiType) -> None:
        self.api_type = api_type

    def __getattr__(self, name: str) -> Any:
        compiled = _COMPILERS[name](self.api_type)
        setattr(self, name, compiled)
        return compiled


@cache
def _tables_of_kind(gvk: GroupVersionKind) -> _Tables | None:
    found = api_type(gvk)
    return None if found is None else _tables_of(found)


@cache
def _tables_of(api_type: ApiType) -> _Tables:
    return _Tables(api_type)


def _compile_known(api_type: ApiType) -> dict[str, tuple[int, _Tables] | None]:
    return {
        name: (_NESTING[field.shape], _tables_of(field.element)) if field.element else None
        for name, field in api_type.fields.items()
    }


def _compile_expected(api_type: ApiType) -> dict[str, type | _Check]:
    return {
        name: _expectation(field.shape, field.element) for name, field in api_type.fields.items()
    }


def _expectation(shape: str, element: ApiType | None) -> type | _Check:
    if shape == "s":
        return str
    return bool if shape == "b" else _check_of(shape, element)


_COMPILERS = {"known": _compile_known, "expected": _compile_expected}


def _has_unknown(obj: JsonValue, tables: _Tables) -> bool:
    if type(obj) is not dict:
        return False
    look_up = tables.known.get
    for key, value in obj.items():
        below = look_up(key, _MISSING)
        if below is None:
            continue
        if below is _MISSING:
            return True
        nesting, inner = below
        if nesting == _OBJECT:
            if _has_unknown(value, inner):
                return True
        elif any(_has_unknown(item, inner) for _, item in _nested(value, nesting)):
            return True
    return False


def _nested(value: JsonValue, nesting: int) -> Iterator[tuple[Any, Any]]:
    """Keys and objects below a field; nothing where the value is of another type."""
    if nesting == _OBJECT:
        yield "", value
    elif nesting == _LIST and type(value) is list:
        yield from enumerate(value)
    elif nesting == _MAP and type(value) is dict:
        yield from value.items()


def _unknown_paths(obj: JsonValue, tables: _Tables, path: str) -> Iterator[str]:
    if type(obj) is not dict:
        return
    for key, value in obj.items():
        here = f"{path}.{key}" if path else key
        below = tables.known.get(key, _MISSING)
        if below is _MISSING:
            yield here
        elif below is not None:
            nesting, inner = below
            for name, item in _nested(value, nesting):
                yield from _unknown_paths(item, inner, here + _step(name, nesting))


def _step(name: Any, nesting: int) -> str:
    if nesting == _OBJECT:
        return ""
    return f"[{name}]" if nesting == _LIST else f".{name}"


def _pruned(obj: JsonValue, tables: _Tables) -> JsonValue:
    if not _has_unknown(obj, tables):
        return obj
    kept = {}
    for key, value in obj.items():
        below = tables.known.get(key, _MISSING)
        if below is not _MISSING:
            kept[key] = value if below is None else _pruned_below(value, *below)
    return kept


def _pruned_below(value: JsonValue, nesting: int, tables: _Tables) -> JsonValue:
    if nesting == _LIST and type(value) is list:
        return [_pruned(item, tables) for item in value]
    if nesting == _MAP and type(value) is dict:
        return {key: _pruned(item, tables) for key, item in value.items()}
    return _pruned(value, tables) if nesting == _OBJECT else value


def _is_sound(value: JsonValue, tables: _Tables) -> bool:
    """Whether all fields are known and of the right types."""
    if type(value) is not dict:
        return value is None
    look_up = tables.expected.get
    for key, item in value.items():
        expected = look_up(key)
        if type(item) is expected:
            continue
        if expected is None:
            return False
        if item is not None and (isinstance(expected, type) or not expected(item)):
            return False
    return True


@cache
def _check_of(shape: str, element: ApiType | None) -> _Check:
    """Whether a value has this shape; null always has."""
    if shape == "#" and element is not None:
        tables = _tables_of(element)
        return lambda value: _is_sound(value, tables)
    if shape.startswith("["):
        inner = _check_of(shape[1:], element)
        return lambda value: type(value) is list and all(map(inner, value))
    if shape.startswith("{"):
        inner = _check_of(shape[1:], element)
        return lambda value: type(value) is dict and all(map(inner, value.values()))
    read = scalars.READERS[shape]
    return lambda value: value is None or not read(value)


class _FieldPlace:
    """Where a value stands, as Go tells it: innermost struct, and field names from the root."""

    __slots__ = ("path", "struct")

    def __init__(self, struct: str, path: str) -> None:
        self.struct = struct
        self.path = path

    def below(self, struct: str, field: str) -> "_FieldPlace":
        return _FieldPlace(struct, f"{self.path}.{field}" if self.path else field)

    def __str__(self) -> str:
        return f"struct field {self.struct}.{self.path}" if self.path else "value"


def _complaint(value: JsonValue, field: ApiField, place: _FieldPlace) -> str:
    """What is wrong with the first wrong value; empty if nothing is."""
    if value is None:
        return ""
    if field.shape[0] in "[{#":
        return _container_complaint(value, field, place)
    complaint = scalars.READERS[field.shape](value)
    if isinstance(complaint, scalars.Mismatch):
        return _mismatch(complaint, complaint.go_type, place)
    return complaint


def _container_complaint(value: JsonValue, field: ApiField, place: _FieldPlace) -> str:
    if type(value) is not (list if field.shape[0] == "[" else dict):
        return _mismatch(scalars.described(value), _go_type(field.shape, field.element), place)
    for item, inner, where in _parts(value, field, place):
        if complaint := _complaint(item, inner, where):
            return complaint
    return ""


def _parts(
    value: JsonValue, field: ApiField, place: _FieldPlace
) -> Iterator[tuple[JsonValue, ApiField, _FieldPlace]]:
    if field.shape == "#" and field.element is not None:
        for key, item in value.items():
            if inner := field.element.fields.get(key):
                yield item, inner, place.below(field.element.short_name, key)
        return
    inner = ApiField(field.shape[1:], field.element)
    for item in value if type(value) is list else value.values():
        yield item, inner, place


def _mismatch(described: str, go_type: str, place: _FieldPlace) -> str:
    return f"json: cannot unmarshal {described} into Go {place} of type {go_type}"


def _go_type(shape: str, element: ApiType | None) -> str:
    if shape == "#":
        return element.go_name if element else "interface {}"
    if shape.startswith("["):
        return f"[]{_go_type(shape[1:], element)}"
    if shape.startswith("{"):
        return f"map[string]{_go_type(shape[1:], element)}"
    return scalars.GO_TYPES[shape]
