"""Values of one's own: a copy by text is the same value, or there is none."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.api.copies import json_copy
from kubescene.api.text.reading import MAX_DEPTH, Bounds, JsonCheck

MANY = 10**6
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
VALUES = st.recursive(
    SCALARS | st.integers() | st.binary() | st.just((1,)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@dataclass
class Pair:
    a: int = 1


def nested(levels: int, kind: type) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if kind is list else {"a": value}
    return value


def is_json(value: Any) -> bool:
    try:
        JsonCheck(Bounds(), values=MANY).check(value)
    except ValueError:
        return False
    return True


@given(VALUES)
def test_whatever_is_json_is_copied_and_nothing_else(value: Any) -> None:
    copy = json_copy(value, values=MANY)
    assert (copy is not None) == is_json(value)
    if copy is not None:
        assert repr(copy.value) == repr(value)
        assert orjson.loads(copy.text) == value


@pytest.mark.parametrize(
    "odd",
    [
        (1,),
        {"a": float("nan")},
        [float("-inf")],
        2**64,
        -(2**63) - 1,
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        {None: 2},
        b"a",
        {1, 2},
        1j,
        datetime(2026, 1, 1),
        Colour.RED,
        Pair(),
        pytest.param(object(), id="object"),
    ],
    ids=ascii,
)
def test_what_is_not_json_has_no_copy(odd: Any) -> None:
    assert json_copy({"a": [odd]}, values=MANY) is None


def test_a_copy_has_plain_types() -> None:
    given = OrderedDict(a=Number.ONE)
    copy = json_copy(given, values=MANY)
    assert copy is not None
    assert type(copy.value) is dict
    assert type(copy.value["a"]) is int


def test_a_copy_shares_nothing() -> None:
    shared = {"a": [1]}
    copy = json_copy([shared, shared], values=MANY)
    assert copy is not None
    one, other = copy.value
    assert one is not other
    assert one is not shared
    assert one["a"] is not other["a"]


@pytest.mark.parametrize("kind", [list, dict])
def test_only_so_many_levels_are_copied(kind: type) -> None:
    assert json_copy(nested(MAX_DEPTH, kind), values=MANY) is not None
    assert json_copy(nested(MAX_DEPTH + 1, kind), values=MANY) is None


def test_an_endless_value_has_no_copy() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert json_copy(endless, values=MANY) is None


def test_what_may_hold_too_many_values_has_no_copy() -> None:
    assert json_copy([1, 1, 1], values=7) is not None
    assert json_copy([1, 1, 1], values=6) is None
