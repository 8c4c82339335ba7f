"""The shipped schemas and field tables."""

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubescene.api.builtin import builtin_scheme
from kubescene.api.patching.patches import strategic_merge
from kubescene.api.schemas import builtin_types
from kubescene.api.schemas.builtin_types import ApiType, api_type
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

DATA = Path(builtin_types.__file__).parents[1] / "data"
ANNOTATION_COUNTS = {
    "x-kubernetes-patch-merge-key": 68,
    "x-kubernetes-patch-strategy": 72,
    "x-kubernetes-list-type": 407,
    "x-kubernetes-list-map-keys": 80,
    "x-kubernetes-map-type": 42,
    "x-kubernetes-unions": 8,
    "x-kubernetes-group-version-kind": 193,
    "default": 24,
}


def pod_type() -> ApiType:
    found = api_type(GroupVersionKind("", "v1", "Pod"))
    assert found is not None
    return found


def element(of: ApiType, *names: str) -> ApiType:
    for name in names:
        found = of.fields[name].element
        assert found is not None
        of = found
    return of


def nodes(value: Any, *, names_are_keys: bool = False) -> Iterator[JsonObject]:
    """All schema nodes below a definition (properties named like keywords are no keywords)."""
    if isinstance(value, list):
        for item in value:
            yield from nodes(item)
    elif isinstance(value, dict):
        if not names_are_keys:
            yield value
        for key, item in value.items():
            below = key in ("properties",) and not names_are_keys
            if key not in ("default", "x-kubernetes-group-version-kind") or names_are_keys:
                yield from nodes(item, names_are_keys=below)


def test_all_definitions_of_v1_36_are_there() -> None:
    assert len(builtin_types.definitions()) == 771


@pytest.mark.parametrize(
    ("keyword", "count"), ANNOTATION_COUNTS.items(), ids=list(ANNOTATION_COUNTS)
)
def test_annotations_are_as_many_as_upstream(keyword: str, count: int) -> None:
    found = sum(keyword in node for d in builtin_types.definitions().values() for node in nodes(d))
    assert found == count


def test_alterations_of_the_source_package_are_undone() -> None:
    every = [node for d in builtin_types.definitions().values() for node in nodes(d)]
    assert not any(isinstance(node.get("type"), list) for node in every)
    assert not any("enum" in node for node in every)
    references = {node["$ref"] for node in every if "$ref" in node}
    names = {reference.removeprefix(builtin_types.REF_PREFIX) for reference in references}
    assert names <= builtin_types.definitions().keys()


def test_siblings_of_a_reference_stand_around_all_of() -> None:
    spec = builtin_types.definition("io.k8s.api.core.v1.Pod")["properties"]["spec"]
    assert spec["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert spec["description"].startswith("Specification of the desired behavior of the pod.")
    assert builtin_types.resolve(spec) is builtin_types.definition("io.k8s.api.core.v1.PodSpec")


def test_quantity_and_int_or_string_have_their_two_forms() -> None:
    quantity = builtin_types.definition("io.k8s.apimachinery.pkg.api.resource.Quantity")
    assert quantity["oneOf"] == [{"type": "string"}, {"type": "number"}]
    port = builtin_types.definition("io.k8s.apimachinery.pkg.util.intstr.IntOrString")
    assert port["format"] == "int-or-string"


def test_every_served_kind_has_a_definition_and_a_type() -> None:
    for resource_type in builtin_scheme():
        found = api_type(resource_type.gvk)
        assert found is not None, resource_type
        assert found.name.endswith(f".{resource_type.gvk.version}.{resource_type.kind}")
        assert "metadata" in builtin_types.definition(found.name)["properties"]


@pytest.mark.parametrize(
    "gvk",
    [
        GroupVersionKind("autoscaling", "v1", "Scale"),
        GroupVersionKind("", "v1", "Binding"),
        GroupVersionKind("policy", "v1", "Eviction"),
        GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest"),
        GroupVersionKind("", "v1", "DeleteOptions"),
        GroupVersionKind("", "v1", "Status"),
        GroupVersionKind("", "v1", "PodList"),
    ],
    ids=lambda gvk: gvk.kind,
)
def test_bodies_beside_resources_are_described_too(gvk: GroupVersionKind) -> None:
    found = api_type(gvk)
    assert found is not None
    assert found.name in builtin_types.definitions()


def test_every_kind_with_a_list_is_served() -> None:
    """A kind with a list form has a REST mapping; the scheme must know it."""
    kinds = {
        GroupVersionKind(gvk["group"], gvk["version"], gvk["kind"])
        for definition in builtin_types.definitions().values()
        for gvk in definition.get("x-kubernetes-group-version-kind", ())
    }
    listed = {gvk for gvk in kinds if gvk._replace(kind=f"{gvk.kind}List") in kinds}
    listed.remove(GroupVersionKind("", "v1", "APIGroup"))  # discovery, not storage
    assert len(listed) == 88
    assert listed <= {t.gvk for t in builtin_scheme()}


def test_unknown_kinds_have_no_type() -> None:
    gvk = GroupVersionKind("example.com", "v1", "Widget")
    assert api_type(gvk) is None


@pytest.mark.parametrize(
    ("path", "field", "strategies", "merge_key"),
    [
        ((), "spec", (), ""),
        (("spec",), "containers", ("merge",), "name"),
        (("spec",), "volumes", ("merge", "retainKeys"), "name"),
        (("spec",), "tolerations", (), ""),
        (("spec",), "hostAliases", ("merge",), "ip"),
        (("spec",), "topologySpreadConstraints", ("merge",), "topologyKey"),
        (("spec", "containers"), "ports", ("merge",), "containerPort"),
        (("spec", "containers"), "env", ("merge",), "name"),
        (("spec", "containers"), "volumeMounts", ("merge",), "mountPath"),
        (("spec", "containers"), "command", (), ""),
        (("status",), "conditions", ("merge",), "type"),
        (("metadata",), "finalizers", ("merge",), ""),
        (("metadata",), "ownerReferences", ("merge",), "uid"),
        (("spec",), "noSuchField", (), ""),
    ],
    ids=str,
)
def test_merge_strategies(
    path: tuple[str, ...], field: str, strategies: tuple[str, ...], merge_key: str
) -> None:
    info = element(pod_type(), *path).field(field)
    assert (info.strategies, info.merge_key) == (strategies, merge_key)


def test_merge_types_are_what_strategic_merge_asks_for() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}}
    patch = {"spec": {"containers": [{"name": "b", "image": "3"}], "nodeName": "n"}}
    assert strategic_merge(before, patch, pod_type()) == {
        "spec": {
            "containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}],
            "nodeName": "n",
        }
    }


def test_patched_fields_lead_to_the_types_below_them() -> None:
    containers = element(pod_type(), "spec").field("containers")
    assert containers.element is element(pod_type(), "spec", "containers")
    assert element(pod_type(), "spec").field("nodeSelector").element is None


def test_types_may_contain_themselves() -> None:
    crd = api_type(GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    assert crd is not None
    props = element(crd, "spec", "versions", "schema", "openAPIV3Schema")
    assert element(props, "properties") is props


def test_lists_and_maps_tell_how_apply_merges_them() -> None:
    container = element(pod_type(), "spec", "containers")
    ports = container.fields["ports"]
    assert (ports.list_type, ports.list_map_keys) == ("map", ("containerPort", "protocol"))
    assert not ports.is_atomic
    assert container.fields["command"].is_atomic
    assert element(container, "ports").fields["protocol"].default == "TCP"
    deployment = api_type(GroupVersionKind("apps", "v1", "Deployment"))
    assert deployment is not None
    assert element(deployment, "spec").fields["selector"].is_atomic
    assert element(pod_type(), "spec").fields["nodeSelector"].map_type == "atomic"
    assert element(pod_type(), "metadata").fields["finalizers"].list_type == "set"
    assert not element(pod_type(), "metadata").fields["labels"].is_atomic


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("nodeName", "s"),
        ("priority", "i"),
        ("terminationGracePeriodSeconds", "l"),
        ("hostNetwork", "b"),
        ("overhead", "{q"),
        ("containers", "[#"),
        ("securityContext", "#"),
        ("nodeSelector", "{s"),
    ],
)
def test_shapes(path: str, shape: str) -> None:
    assert element(pod_type(), "spec").fields[path].shape == shape


def test_field_tables_agree_with_the_definitions() -> None:
    """Every field of every definition is in the tables, and nothing else."""
    tables = json.loads(zlib.decompress((DATA / "fields.json.z").read_bytes()))
    for name, fields in zip(tables["names"], tables["fields"], strict=True):
        assert list(fields) == list(builtin_types.definition(name).get("properties", {})), name


def test_files_are_written_in_a_fixed_order() -> None:
    loaded = json.loads(zlib.decompress((DATA / "schemas.json.z").read_bytes()))
    assert list(loaded) == sorted(loaded)
    for name, definition in loaded.items():
        fields = list(definition.get("properties", {}))
        assert fields == sorted(fields), name


def test_loading_twice_gives_the_same_objects() -> None:
    assert builtin_types.definitions() is builtin_types.definitions()
    assert pod_type() is pod_type()
