"""Merging and pruning of applied configurations. Whole sequences against upstream are in
``tests/registry/test_server_side_apply.py``.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.field_ownership.field_sets import FieldSet
from kubescene.api.field_ownership.field_shapes import FieldShape, kind_shape
from kubescene.api.field_ownership.field_walks import field_set
from kubescene.api.field_ownership.managed_fields import Managers, OwnedWrite
from kubescene.api.patching.apply import (
    ApplyConflictError,
    apply,
    complaints,
    merged,
    with_structs,
    without,
)
from kubescene.api.scheme import GroupVersionKind


def shape_of(group: str, version: str, kind: str) -> FieldShape:
    found = kind_shape(GroupVersionKind(group, version, kind))
    assert found is not None
    return found


DEPLOYMENT = shape_of("apps", "v1", "Deployment")
CONFIG_MAP = shape_of("", "v1", "ConfigMap")


def with_containers(names: str) -> dict[str, Any]:
    containers = [{"name": name} for name in names]
    return {"spec": {"template": {"spec": {"containers": containers}}}}


def names_in(obj: dict[str, Any]) -> str:
    return "".join(each["name"] for each in obj["spec"]["template"]["spec"]["containers"])


@pytest.mark.parametrize(
    ("live", "config", "outcome"),
    [
        ("abc", "abc", "abc"),
        ("abc", "", "abc"),
        ("", "ab", "ab"),
        ("abc", "d", "abcd"),
        ("abc", "ca", "bca"),
        ("abc", "dca", "bdca"),
        ("abcd", "dxb", "acdxb"),
        ("ab", "ba", "ba"),
        ("axb", "ba", "xba"),
    ],
)
def test_items_keep_the_stated_order(live: str, config: str, outcome: str) -> None:
    result = merged(with_containers(live), with_containers(config), DEPLOYMENT)
    assert names_in(result) == outcome


@settings(deadline=None, max_examples=200)
@given(st.permutations("abcdef"), st.permutations("cdefgh"), st.integers(0, 6), st.integers(0, 6))
def test_merging_loses_and_doubles_nothing(
    left: list[str], right: list[str], some: int, more: int
) -> None:
    live, config = "".join(left[:some]), "".join(right[:more])
    result = names_in(merged(with_containers(live), with_containers(config), DEPLOYMENT))
    assert sorted(result) == sorted(set(live + config))
    assert "".join(name for name in result if name in config) == config


def test_inputs_are_left_alone() -> None:
    live, config = with_containers("ab"), with_containers("bc")
    merged(live, config, DEPLOYMENT)
    assert (live, config) == (with_containers("ab"), with_containers("bc"))


@pytest.mark.parametrize(
    ("live", "config", "outcome"),
    [
        ({"data": {"a": "1"}}, {"data": {"b": "2"}}, {"data": {"a": "1", "b": "2"}}),
        ({"data": {"a": "1"}}, {"data": {}}, {"data": {"a": "1"}}),
        ({"data": {"a": "1"}}, {"data": None}, {"data": {"a": "1"}}),
        ({}, {"data": {}}, {"data": {}}),
    ],
    ids=["both", "empty", "null", "new"],
)
def test_maps_merge_by_key(live: Any, config: Any, outcome: Any) -> None:
    assert merged(live, config, CONFIG_MAP) == outcome


def test_pruning_by_a_set_removes_its_members() -> None:
    obj = {"data": {"a": "1", "b": "2"}, "immutable": True}
    gone: FieldSet = {"f:data": {"f:a": {}}, "f:immutable": {}}
    assert without(obj, gone, CONFIG_MAP) == {"data": {"b": "2"}}


def test_structs_of_stated_fields_become_members() -> None:
    fields = field_set({"spec": {"strategy": {"type": "x"}}}, DEPLOYMENT)
    assert with_structs(fields, DEPLOYMENT) == {
        "f:spec": {".": {}, "f:strategy": {".": {}, "f:type": {}}}
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"spec": {"replicas": 1}}, []),
        ({"spec": {"replicaz": 1}}, [".spec.replicaz: field not declared in schema"]),
        ({"spec": []}, [".spec: expected map, got &{[]}"]),
        (
            {"spec": {"template": {"spec": {"containers": {"a": [1, None]}}}}},
            [".spec.template.spec.containers: expected list, got &{map[a:[1 <nil>]]}"],
        ),
        (
            with_containers("cc"),
            ['.spec.template.spec.containers: duplicate entries for key [name="c"]'],
        ),
        (
            {"spec": {"template": {"spec": {"containers": ["c"]}}}},
            [
                ".spec.template.spec.containers: element 0: associative list with keys may not "
                "have non-map elements"
            ],
        ),
    ],
    ids=["fine", "unknown", "list-for-map", "map-for-list", "duplicate", "scalar-item"],
)
def test_complaints_about_a_configuration(config: Any, expected: list[str]) -> None:
    assert complaints(config, DEPLOYMENT) == expected


# -- owners --------------------------------------------------------------------------------


class OneVersion:
    def shape(self, api_version: str) -> FieldShape | None:
        return CONFIG_MAP

    def convert(self, obj: dict[str, Any], api_version: str) -> dict[str, Any] | None:
        return obj


def apply_data(
    managers: Managers, live: Any, manager: str, data: Any, *, force: bool = False
) -> Any:
    writer = OwnedWrite(manager, "v1", f"by {manager}")
    return apply(managers, live, {"data": data}, writer, OneVersion(), force=force)


def test_manager_that_only_shares_has_no_time() -> None:
    first = apply_data({}, {}, "one", {"a": "1"})
    second = apply_data(first.managers, first.obj, "two", {"a": "1"})
    assert second.obj is None
    assert {entry.manager: entry.time for entry in second.managers.values()} == {
        "one": "by one",
        "two": "",
    }


def test_conflicts_are_told_by_manager() -> None:
    first = apply_data({}, {}, "one", {"a": "1", "b": "1"})
    second = apply_data(first.managers, first.obj, "two", {"c": "1"})
    with pytest.raises(ApplyConflictError) as caught:
        apply_data(second.managers, second.obj, "three", {"a": "2", "b": "2", "c": "2"})
    assert str(caught.value) == (
        'Apply failed with 3 conflicts: conflicts with "one":\n- .data.a\n- .data.b\n'
        'conflicts with "two":\n- .data.c'
    )


def test_forced_out_manager_leaves() -> None:
    first = apply_data({}, {}, "one", {"a": "1"})
    second = apply_data(first.managers, first.obj, "two", {"a": "2"}, force=True)
    assert [entry.manager for entry in second.managers.values()] == ["two"]
