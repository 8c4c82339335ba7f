"""What ownership of fields needs to know of a type: where it divides, and by what.

A `FieldShape` is one place of a type. A ``LEAF`` is owned as a whole: scalars, atomic lists, atomic
maps. A ``MAP`` is owned by its members, be they the fields of a struct or the entries of a map.
A ``LIST`` is owned by items known by keys, a ``SET`` by items known by value. ``FREE`` is what no
schema describes: objects divide, everything else is a leaf.

Shapes are made from the field tables of built-in kinds and from the schemas of custom ones, when
they are first asked for; types that contain themselves are therefore no problem.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import cache

from kubescene.api.schemas.builtin_types import ApiField, ApiType, api_type
from kubescene.api.schemas.structural import Structural
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject, JsonValue

_ZERO_VALUES: dict[str, JsonValue] = {"s": "", "i": 0, "l": 0}
_OPTIONAL_KEYS = frozenset({"shareID"})
_ITEMS_WITH_OPTIONAL_KEYS = frozenset(
    {
        "FlowSchemaCondition",
        "ObjectReference",
        "PriorityLevelConfigurationCondition",
        "ServerStorageVersion",
    }
)
"""Keys that may be absent: an item without one differs from an item with an empty one."""


class FieldDivision(IntEnum):
    LEAF = 0
    MAP = 1
    LIST = 2
    SET = 3
    FREE = 4


class FieldShape:
    """One place.

    ``element`` is the shape of items, or of members that are not named fields. ``omits_empty`` is
    true of lists and maps of built-in kinds: a decoded object does not have them if they are empty.
    """

    __slots__ = ("_fields", "_named", "defaults", "division", "element", "keys", "omits_empty")

    def __init__(
        self,
        division: FieldDivision,
        *,
        named: "Callable[[], dict[str, FieldShape]] | None" = None,
        element: "FieldShape | None" = None,
        keys: tuple[str, ...] = (),
        defaults: JsonObject | None = None,
        omits_empty: bool = False,
    ) -> None:
        self.division = division
        self.omits_empty = omits_empty
        self.element = element
        self.keys = tuple(sorted(keys))
        self.defaults = defaults or {}
        self._named = named
        self._fields: dict[str, FieldShape] | None = None

    @property
    def fields(self) -> "dict[str, FieldShape]":
        """The named fields of a struct; empty for maps."""
        if self._fields is None:
            self._fields = self._named() if self._named else {}
        return self._fields

    def below(self, name: str) -> "FieldShape":
        """The shape of a member; a leaf if the type does not know it."""
        return self.fields.get(name) or self.element or LEAF

    def knows(self, name: str) -> bool:
        return self.element is not None or name in self.fields


LEAF = FieldShape(FieldDivision.LEAF)
ATOMIC = FieldShape(FieldDivision.LEAF, omits_empty=True)
FREE = FieldShape(FieldDivision.FREE)
FREE.element = FREE


# -- built-in kinds ------------------------------------------------------------------------


@cache
def kind_shape(gvk: GroupVersionKind) -> FieldShape | None:
    """The shape of a built-in kind; None if no schema describes it."""
    found = api_type(gvk)
    return None if found is None else _type_shape(found)


@cache
def _type_shape(described: ApiType) -> FieldShape:
    if described.is_atomic:
        return LEAF
    return FieldShape(FieldDivision.MAP, named=lambda: _field_shapes(described))


def _field_shapes(described: ApiType) -> dict[str, FieldShape]:
    return {name: _field_shape(field) for name, field in described.fields.items()}


def _field_shape(field: ApiField) -> FieldShape:
    if field.is_atomic:
        return LEAF if field.shape == "#" else ATOMIC
    return _spelled(field.shape, field)


def _spelled(spelling: str, field: ApiField) -> FieldShape:
    first, rest = spelling[0], spelling[1:]
    if first == "#" and field.element is not None:
        return _type_shape(field.element)
    if first == "{":
        return FieldShape(FieldDivision.MAP, element=_spelled(rest, field), omits_empty=True)
    if first == "[" and field.list_type == "set":
        return FieldShape(FieldDivision.SET, element=LEAF, omits_empty=True)
    if first == "[" and field.list_type == "map" and field.element is not None:
        keys, item = field.list_map_keys, field.element
        return _keyed(_type_shape(item), keys, _key_defaults(item, keys), omits_empty=True)
    return LEAF


def _key_defaults(item: ApiType, keys: tuple[str, ...]) -> dict[str, JsonValue]:
    """What keys are taken to be in items that lack them: their default, else Go's zero value."""
    found: dict[str, JsonValue] = {}
    if item.short_name in _ITEMS_WITH_OPTIONAL_KEYS:
        return found
    for key in keys:
        field = item.fields.get(key)
        if field is not None and key not in _OPTIONAL_KEYS:
            zero = _ZERO_VALUES.get(field.shape)
            found[key] = zero if field.default is None else field.default
    return found


# -- custom kinds --------------------------------------------------------------------------


def custom_shape(root: Structural) -> FieldShape:
    """The shape of a custom kind."""
    if not root.properties and root.preserves:
        return FieldShape(FieldDivision.MAP, named=_object_fields, element=FREE)
    return FieldShape(
        FieldDivision.MAP,
        named=lambda: {**_properties(root), **_object_fields()},
        element=FREE if root.preserves else None,
    )


def _object_fields() -> dict[str, FieldShape]:
    metadata = kind_shape(GroupVersionKind("", "v1", "ConfigMap"))
    assert metadata is not None
    return {"apiVersion": LEAF, "kind": LEAF, "metadata": metadata.fields["metadata"]}


def _properties(node: Structural) -> dict[str, FieldShape]:
    return {name: _structural(child) for name, child in node.properties.items()}


def _structural(node: Structural) -> FieldShape:
    schema = node.schema
    if schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-map-type") == "atomic":
        return LEAF
    if schema.get("type") == "array":
        return _structural_list(node)
    if schema.get("type") == "object":
        return _structural_object(node)
    return FREE if node.preserves else LEAF


def _structural_object(node: Structural) -> FieldShape:
    element = _structural(node.additional) if node.additional is not None else None
    if element is None and (node.preserves or node.has_additional):
        element = FREE
    if node.embedded:
        return FieldShape(
            FieldDivision.MAP,
            named=lambda: {**_properties(node), **_object_fields()},
            element=element,
        )
    return FieldShape(FieldDivision.MAP, named=lambda: _properties(node), element=element)


def _structural_list(node: Structural) -> FieldShape:
    items = node.items
    if items is None:
        return LEAF
    if node.list_type == "set" and items.schema.get("type") not in ("object", "array"):
        return FieldShape(FieldDivision.SET, element=LEAF)
    if node.list_type == "map":
        known = items.properties
        defaults = {key: known[key].default for key in node.list_map_keys if key in known}
        return _keyed(_structural(items), node.list_map_keys, defaults)
    return LEAF


def _keyed(
    element: FieldShape,
    keys: tuple[str, ...],
    defaults: dict[str, JsonValue],
    *,
    omits_empty: bool = False,
) -> FieldShape:
    given = {key: value for key, value in defaults.items() if value is not None}
    return FieldShape(
        FieldDivision.LIST, element=element, keys=keys, defaults=given, omits_empty=omits_empty
    )
