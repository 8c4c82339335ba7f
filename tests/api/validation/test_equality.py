"""When two pieces of an object mean the same."""

from typing import Any

import pytest

from kubescene.api.validation.equality import same, show_difference


@pytest.mark.parametrize(
    ("new", "old", "field"),
    [
        (None, [], "volumes"),
        ({}, None, "nodeSelector"),
        ({"a": None}, {}, ""),
        ({"a": ""}, {}, ""),
        ({"hostNetwork": False}, {}, ""),
        ({"cpu": "1"}, {"cpu": "1000m"}, "requests"),
        ({"sizeLimit": "1Gi"}, {"sizeLimit": "1024Mi"}, ""),
    ],
    ids=["list", "map", "null", "text", "flag", "amounts", "amount"],
)
def test_absent_empty_and_zero_are_the_same(new: Any, old: Any, field: str) -> None:
    assert same(new, old, field)
    assert same(old, new, field)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"runAsNonRoot": False}, {}),
        ({"tolerationSeconds": 0}, {}),
        ({"emptyDir": {}}, {}),
        ({"args": ["a"]}, {"args": ["a", "b"]}),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}),
        ({"requests": {"cpu": "0"}}, {"requests": {}}),
    ],
    ids=["flag", "count", "struct", "list", "amount", "key"],
)
def test_what_can_be_told_apart_differs(new: Any, old: Any) -> None:
    assert not same(new, old)
    assert not same(old, new)


def test_difference_shows_both_sides() -> None:
    shown = show_difference({"a": 1}, {"a": 2})
    assert "-" + ' "a": 1' in shown
    assert "+" + ' "a": 2' in shown
