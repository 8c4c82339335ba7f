"""Sets of fields, and who owns them after updates."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.field_ownership import field_sets, managed_fields
from kubescene.api.field_ownership.field_managers import manager_of
from kubescene.api.field_ownership.field_sets import FieldSet
from kubescene.api.field_ownership.field_shapes import FieldShape, kind_shape
from kubescene.api.field_ownership.field_walks import compare, field_set
from kubescene.api.field_ownership.managed_fields import ManagerId, Managers, OwnedWrite
from kubescene.api.scheme import GroupVersionKind


def shape_of(group: str, version: str, kind: str) -> FieldShape:
    found = kind_shape(GroupVersionKind(group, version, kind))
    assert found is not None
    return found


POD = shape_of("", "v1", "Pod")
CONFIG_MAP = shape_of("", "v1", "ConfigMap")

Paths = frozenset[tuple[str, ...]]

paths = st.frozensets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}']), min_size=1, max_size=3).map(tuple)
)


# -- sets ----------------------------------------------------------------------------------


def set_of(places: Paths) -> FieldSet:
    """The tree of some paths, built without the algebra under test."""
    tree: FieldSet = {}
    for path in sorted(places):
        place = tree
        for key in path:
            place = place.setdefault(key, {})
        place["."] = {}
    return slim(tree)


def slim(tree: FieldSet) -> FieldSet:
    """Members without anything below them lose their dot."""
    return {
        key: {} if set(below) <= {"."} else slim(below) if key != "." else {}
        for key, below in tree.items()
    }


def paths_in(fields: FieldSet) -> Paths:
    return frozenset(field_sets.members(fields))


@settings(deadline=None, max_examples=200)
@given(paths, paths)
def test_algebra_is_that_of_sets_of_paths(left: Paths, right: Paths) -> None:
    one, other = set_of(left), set_of(right)
    assert paths_in(one) == left
    assert field_sets.union(one, other) == set_of(left | right)
    assert field_sets.difference(one, other) == set_of(left - right)
    assert field_sets.intersection(one, other) == set_of(left & right)


@settings(deadline=None, max_examples=200)
@given(paths, paths)
def test_excluding_takes_along_what_is_below(left: Paths, right: Paths) -> None:
    below = {path for path in left if any(path[:n] in right for n in range(1, len(path) + 1))}
    assert field_sets.excluding(set_of(left), set_of(right)) == set_of(left - below)


@given(paths)
def test_contains_knows_members_only(places: Paths) -> None:
    fields = set_of(places)
    assert all(field_sets.contains(fields, path) for path in places)
    assert not field_sets.contains(fields, ("f:z",))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:containers", 'k:{"name":"c"}', "f:image"), '.containers[name="c"].image'),
        (("f:ports", 'k:{"port":80,"protocol":"TCP"}'), '.ports[port=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
    ],
    ids=["field", "key", "two-keys", "value"],
)
def test_paths_are_shown_as_kubernetes_shows_them(path: tuple[str, ...], text: str) -> None:
    assert field_sets.shown(path) == text


def test_numbers_in_keys_are_ordered_as_numbers() -> None:
    ports: FieldSet = {f'k:{{"port":{port}}}': {} for port in (443, 80, 8080)}
    shown = [field_sets.shown(path) for path in field_sets.members(ports)]
    assert shown == ["[port=80]", "[port=443]", "[port=8080]"]


def test_keys_escape_html_as_go_does() -> None:
    assert field_sets.item_key({"name": "<a&b>"}) == 'k:{"name":"\\u003ca\\u0026b\\u003e"}'


# -- walks ---------------------------------------------------------------------------------


def test_fields_of_an_object_follow_its_shape() -> None:
    pod = {
        "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]},
        "spec": {
            "nodeSelector": {"a": "b"},
            "containers": [{"name": "c", "ports": [{"containerPort": 80}], "command": ["x"]}],
            "securityContext": {},
        },
    }
    assert field_set(pod, POD) == {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"x/y"': {}}},
        "f:spec": {
            "f:nodeSelector": {},
            "f:containers": {
                'k:{"name":"c"}': {
                    ".": {},
                    "f:name": {},
                    "f:command": {},
                    "f:ports": {
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                    },
                }
            },
            "f:securityContext": {},
        },
    }


def test_comparison_tells_removed_modified_and_added() -> None:
    old = {"data": {"a": "1", "b": "2"}}
    new = {"data": {"a": "1", "b": "3", "c": "4"}, "immutable": True}
    changes = compare(old, new, CONFIG_MAP)
    assert changes.removed == {}
    assert changes.modified == {"f:data": {"f:b": {}}}
    assert changes.added == {"f:data": {"f:c": {}}, "f:immutable": {}}


def test_duplicates_in_a_stored_list_are_owned_together() -> None:
    old = {"spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]}]}}
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    new = {"spec": {"containers": [{"name": "c", "env": twice}]}}
    changes = compare(old, new, POD)
    env: FieldSet = {"f:env": {'k:{"name":"A"}': {}}}
    assert changes.added == {"f:spec": {"f:containers": {'k:{"name":"c"}': env}}}


# -- updates -------------------------------------------------------------------------------


class OneVersion:
    """A kind with nothing but v1."""

    def shape(self, api_version: str) -> FieldShape | None:
        return CONFIG_MAP if api_version == "v1" else None

    def convert(self, obj: dict[str, Any], api_version: str) -> dict[str, Any] | None:
        return obj if api_version == "v1" else None


def updated(managers: Managers, old: Any, new: Any, writer: OwnedWrite) -> Managers:
    return managed_fields.updated(managers, {"data": old}, {"data": new}, writer, OneVersion())


def test_writer_takes_what_it_changes() -> None:
    first = updated({}, {}, {"a": "1", "b": "1"}, OwnedWrite("one", "v1", "t1"))
    second = updated(
        first, {"a": "1", "b": "1"}, {"a": "2", "b": "1"}, OwnedWrite("two", "v1", "t2")
    )
    owned = {identity.manager: entry.fields for identity, entry in second.items()}
    assert owned == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_write_that_changes_nothing_leaves_no_trace() -> None:
    first = updated({}, {}, {"a": "1"}, OwnedWrite("one", "v1", "t1"))
    assert updated(first, {"a": "1"}, {"a": "1"}, OwnedWrite("one", "v1", "t2")) == first


def test_entries_of_versions_that_are_gone_go() -> None:
    gone = managed_fields.ManagedFieldsEntry("old", "Update", "v1beta1", {"f:data": {}})
    result = updated({gone.id: gone}, {}, {"a": "1"}, OwnedWrite("one", "v1", "t"))
    assert [identity.manager for identity in result] == ["one"]


def test_oldest_of_many_updaters_are_merged() -> None:
    managers: Managers = {}
    data: dict[str, str] = {}
    for number in range(12):
        old, data = data, {**data, f"k{number}": "v"}
        managers = updated(managers, old, data, OwnedWrite(f"m{number:02}", "v1", f"t{number:02}"))
    bucket = managers[ManagerId("ancient-changes", "Update", "v1")]
    assert len(managers) == 10
    assert bucket.fields == {"f:data": {"f:k0": {}, "f:k1": {}, "f:k2": {}}}


def test_entries_survive_the_wire_with_appliers_first() -> None:
    entries = [
        managed_fields.ManagedFieldsEntry("b", "Update", "v1", {"f:data": {}}, "status", "t1"),
        managed_fields.ManagedFieldsEntry("a", "Update", "v1", {"f:data": {}}, time="t2"),
        managed_fields.ManagedFieldsEntry("z", "Apply", "v1", {"f:data": {}}, time="t3"),
    ]
    managers = {entry.id: entry for entry in entries}
    wire = managed_fields.encode(managers)
    assert [entry["manager"] for entry in wire] == ["z", "b", "a"]
    assert managed_fields.decode(wire) == managers


@pytest.mark.parametrize(
    "entry",
    [{}, {"operation": "Apply"}, {"operation": "Apply", "apiVersion": "v1"}, "text"],
    ids=["empty", "no-version", "no-type", "no-object"],
)
def test_unreadable_entries_are_told(entry: Any) -> None:
    assert managed_fields.decode([entry]) is None


@pytest.mark.parametrize(
    ("name", "manager"),
    [
        ("kubectl/v1.33.0 (linux/amd64)", "kubectl"),
        ("kube-scheduler", "kube-scheduler"),
        ("a\x00b", "ab"),
        ("x" * 200, "x" * 128),
    ],
    ids=["user-agent", "plain", "unprintable", "long"],
)
def test_manager_is_the_first_part_of_a_name(name: str, manager: str) -> None:
    assert manager_of(name) == manager
