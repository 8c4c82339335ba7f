"""Whether a value fits the table of fields, at a glance.

Nearly every scenario does, and a large one has a hundred thousand values. So they are first held
against a form of the table that is made for looking things up; what does not plainly fit, and what
is spelled in two ways, is left to `misfits`, which knows what to say.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kubescene.scenario.fields.table import SCENARIO_FIELDS, Field, FieldType

_TYPES: Mapping[FieldType, type] = {
    FieldType.TEXT: str,
    FieldType.WHOLE: int,
    FieldType.FLAG: bool,
    FieldType.OBJECT: dict,
    FieldType.LIST: list,
    FieldType.AMOUNT: object,
}

_AMOUNTS = (str, int, float, dict)
"""What an amount or a distribution may be."""


class MemberShape(NamedTuple):
    """A field, with its members by every name that they may have."""

    type: type
    members: Mapping[str, "MemberShape"]
    required: tuple[str, ...]
    items: "MemberShape | None"
    choices: tuple[str, ...]
    least: int
    most: int
    is_open: bool
    is_map: bool
    others: tuple[str, ...]
    """All the names of the field, if there are several."""


def shape_of(field: Field) -> MemberShape:
    names = {each.name: (each.name, *each.also) for each in field.fields}
    shapes = {each.name: shape_of(each) for each in field.fields}
    return MemberShape(
        type=_TYPES[field.type],
        members={name: shapes[own] for own, all_names in names.items() for name in all_names},
        required=tuple(each.name for each in field.fields if each.required),
        items=None if field.items is None else shape_of(field.items),
        choices=field.choices,
        least=field.least or -(2**63),
        most=field.most or 2**63 - 1,
        is_open=field.open,
        is_map=field.is_map,
        others=(field.name, *field.also) if field.also else (),
    )


@lru_cache
def scenario_shape() -> MemberShape:
    """The shape of a Scenario."""
    return shape_of(SCENARIO_FIELDS)


def fits(value: Any, shape: MemberShape) -> bool:
    """Whether there is surely nothing to say about a value. What is null is absent."""
    if value is None:
        return True
    kind: Any = type(value)
    if shape.type is object:
        return kind in _AMOUNTS
    if kind is not shape.type:
        return False
    if kind is dict:
        return _members_fit(value, shape)
    if kind is str:
        return not shape.choices or value in shape.choices
    if kind is int:
        return shape.least <= int(value) <= shape.most
    return kind is bool or _items_fit(value, shape.items)


def _items_fit(items: list[Any], shape: MemberShape | None) -> bool:
    return shape is None or all(item is not None and fits(item, shape) for item in items)


def _members_fit(value: dict[str, Any], shape: MemberShape) -> bool:
    if shape.is_map:
        return all(type(each) is str for each in value.values())
    members = shape.members
    for name, each in value.items():
        member = members.get(name)
        if member is None:
            if not shape.is_open:
                return False
        elif not fits(each, member) or (member.others and _is_twice(value, member)):
            return False
    return all(value.get(name) not in (None, "") for name in shape.required)


def _is_twice(value: dict[str, Any], member: MemberShape) -> bool:
    return sum(name in value for name in member.others) > 1
