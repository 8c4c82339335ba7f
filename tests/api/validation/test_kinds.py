"""What holds for kinds without rules of their own, and the entry points around the rules."""

from typing import Any

import pytest

from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.api.validation import (
    validate_binding,
    validate_create,
    validate_finalize,
    validate_update,
)

ROLE = ResourceType(
    GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    "clusterroles",
    namespaced=False,
)
ACCOUNT = ResourceType(
    GroupVersionKind("", "v1", "ServiceAccount"), "serviceaccounts", namespaced=True
)
CUSTOM = ResourceType(
    GroupVersionKind("example.com", "v1", "Pod"), "pods", namespaced=True, custom=True
)


def make(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}}


def messages(obj: dict[str, Any], kind: ResourceType, namespace: str | None = None) -> list[str]:
    return [error.message for error in validate_create(obj, kind, namespace=namespace)]


@pytest.mark.parametrize("name", ["system:node", "Admin", "a b"])
def test_roles_are_freely_named(name: str) -> None:
    assert messages(make(name), ROLE) == []


@pytest.mark.parametrize(
    ("name", "detail"),
    [("a/b", "may not contain '/'"), ("a%b", "may not contain '%'"), ("..", "may not be '..'")],
)
def test_roles_must_fit_into_a_path(name: str, detail: str) -> None:
    assert messages(make(name), ROLE) == [f'metadata.name: Invalid value: "{name}": {detail}']


def test_namespace_of_the_request_counts() -> None:
    assert messages(make("x"), ACCOUNT, "default") == []
    assert messages(make("x"), ACCOUNT) == ["metadata.namespace: Required value"]


def test_custom_kind_is_not_taken_for_a_builtin_one() -> None:
    assert messages(make("x", finalizers=["short"]), CUSTOM, "default") == []


def test_builtin_kinds_need_qualified_finalizers() -> None:
    assert messages(make("x", finalizers=["short"]), ACCOUNT, "default") == [
        'metadata.finalizers[0]: Invalid value: "short": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]


def test_update_needs_a_resource_version() -> None:
    old = make("x", namespace="default", resourceVersion="5")
    new = make("x", namespace="default")
    assert [error.message for error in validate_update(new, old, ACCOUNT)] == [
        'metadata.resourceVersion: Invalid value: "": must be specified for an update'
    ]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"name": "n"}, []),
        ({"kind": "Node", "name": "n"}, []),
        ({"kind": "Node"}, ["target.name: Required value"]),
        (
            {"kind": "Pod", "name": "n"},
            ['target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
        ),
    ],
    ids=["bare", "node", "nameless", "pod"],
)
def test_binding_targets_a_node(target: dict[str, str], expected: list[str]) -> None:
    assert [error.message for error in validate_binding({"target": target})] == expected


def test_finalizers_of_a_namespace_must_be_qualified() -> None:
    old = {**make("n", resourceVersion="5"), "spec": {"finalizers": ["kubernetes"]}}
    new = {**make("n", resourceVersion="5"), "spec": {"finalizers": ["mine"]}}
    assert [error.field for error in validate_finalize(new, old)] == ["spec.finalizers[0]"]
    assert validate_finalize({**new, "spec": {}}, old) == []


def test_faults_of_members_come_rule_by_rule() -> None:
    kind = GroupVersionKind("resource.k8s.io", "v1", "ResourceSlice")
    spec = {"sharedCounters": [{}, {}], "pool": {"name": "p", "resourceSliceCount": 1}}
    slices = ResourceType(kind, "resourceslices", namespaced=False)
    obj = {**make("s"), "spec": {**spec, "nodeName": "n"}}
    errors = validate_create(obj, slices, namespace=None)
    assert [error.field for error in errors] == [
        "spec.driver",
        "spec.sharedCounters[0].name",
        "spec.sharedCounters[1].name",
        "spec.sharedCounters[0].counters",
        "spec.sharedCounters[1].counters",
    ]
