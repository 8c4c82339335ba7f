"""Values of the wrong type, anywhere, in any verb: an answer in words, never an accident."""

from typing import Any

import pytest

from kubescene import Cluster
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.scheme import GroupVersionKind
from kubescene.errors import ApiError
from kubescene.registry import Registry
from registry.conftest import USER, make_registry
from registry.confusion import Confusion

OPTIONS = WriteOptions(field_manager="m", force=True)
VERBS = ("create", "update", "merge", "strategic", "json", "apply")
NAMES = ("a", "b", "foos.e.com")


class Writer:
    """Writes confused objects of all kinds into one world."""

    def __init__(self, registry: Registry, seed: int) -> None:
        registry.track_fields = True
        self._registry = registry
        self.confusion = Confusion(seed, registry.scheme)
        self.accepted = self.refused = 0

    def write(self, gvk: GroupVersionKind, rounds: int = 4) -> None:
        name = self.confusion.choice(NAMES)
        sample = self.confusion.sample(gvk, name)
        self._attempt("create", gvk, name, sample)
        for _ in range(rounds):
            obj = self.confusion.confused(sample)
            self._attempt(self.confusion.choice(VERBS), gvk, name, obj)
        if self.confusion.happens(30):
            self._attempt("delete", gvk, name, sample)

    def _attempt(self, verb: str, gvk: GroupVersionKind, name: str, obj: dict[str, Any]) -> None:
        try:
            self._do(verb, gvk, name, obj)
            self.accepted += 1
        except ApiError:
            self.refused += 1
        except Exception as error:
            raise AssertionError(f"{verb} of a {gvk.kind} failed: {obj}") from error

    def _do(self, verb: str, gvk: GroupVersionKind, name: str, obj: dict[str, Any]) -> None:
        registry, resource_type = self._registry, self._registry.type_of(gvk)
        place = "default" if resource_type.namespaced else ""
        part = self.confusion.choice(("", "status") if resource_type.has_status else ("",))
        patch: Any = obj
        match verb:
            case "create":
                registry.create(USER, obj, namespace=place, options=OPTIONS)
                return
            case "update":
                registry.update(USER, obj, namespace=place, subresource=part, options=OPTIONS)
                return
            case "delete":
                options = DeleteOptions(grace_period_s=0)
                registry.delete(USER, resource_type, place, name, options=options)
                return
            case "merge" | "strategic":
                patch = self.confusion.patch(obj)
            case "json":
                patch = self.confusion.operations()
        registry.patch(
            USER,
            resource_type,
            place,
            name,
            patch,
            PatchType.parse(verb),
            subresource=part,
            options=OPTIONS,
        )


@pytest.mark.parametrize("seed", range(2))
def test_a_registry_answers_in_words(seed: int) -> None:
    writer = Writer(make_registry(), seed)
    for _ in range(20):
        for gvk in writer.confusion.kinds:
            writer.write(gvk)
    assert min(writer.accepted, writer.refused) > 1000, "both ways were tried"


def test_definitions_are_answered_in_words() -> None:
    writer = Writer(make_registry(), 7)
    gvk = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    for _ in range(300):
        writer.write(gvk)


def test_controllers_live_with_what_is_accepted() -> None:
    cluster = Cluster()
    writer = Writer(cluster.registry, 3)
    watched = [gvk for gvk in writer.confusion.kinds if gvk.group in ("", "apps")]
    for _ in range(10):
        for gvk in watched:
            writer.write(gvk)
        cluster.settle()


def crd(**items: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "object", **items}}},
    }
    version = {"name": "v1", "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.e.com"},
        "spec": {
            "group": "e.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        (
            {"properties": "text"},
            "string into Go struct field JSONSchemaProps.properties of type map[string]v1.JSON",
        ),
        ({"required": 5}, "number into Go struct field JSONSchemaProps.required of type []string"),
        ({"properties": {"k": 5}}, "number into Go struct field JSONSchemaProps.properties of "),
        ({"items": {"items": {"type": []}}}, "array into Go struct field JSONSchemaProps.type of"),
        ({"items": [{"type": 1}]}, "number into Go struct field JSONSchemaProps.type of "),
        ({"additionalProperties": "x"}, "string into Go value of type v1.JSONSchemaProps"),
        ({"additionalProperties": {"type": 1}}, "number into Go struct field JSONSchemaProps.type"),
        ({"dependencies": {"a": {"type": 1}}}, "number into Go struct field JSONSchemaProps.type"),
        ({"allOf": [{"items": {"type": 1}}]}, "number into Go struct field JSONSchemaProps.type"),
        ({"not": {"items": {"type": 1}}}, "number into Go struct field JSONSchemaProps.type of "),
    ],
)
def test_schemas_below_unions_are_typed(
    registry: Registry, items: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ApiError) as caught:
        registry.create(USER, crd(**items))
    assert caught.value.code == 400
    assert f"json: cannot unmarshal {complaint}" in caught.value.message


def test_a_version_without_a_name_is_told(registry: Registry) -> None:
    definition = crd()
    del definition["spec"]["versions"][0]["name"]
    with pytest.raises(ApiError, match=r"spec\.versions\[0\]\.name") as caught:
        registry.create(USER, definition)
    assert caught.value.code == 422


@pytest.mark.parametrize(
    "fields",
    [{"f:data": "x"}, {"f:data": {"k:x": {}}}, {"f:data": {'k:"a"': {}}}, {"data": {}}, "x", [{}]],
)
def test_fields_that_cannot_be_read_are_nobodys(registry: Registry, fields: Any) -> None:
    registry.track_fields = True
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    metadata = {"name": "a", "managedFields": [{**entry, "fieldsV1": fields}]}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}}
    record = registry.create(USER, obj, namespace="default", options=OPTIONS)
    assert [each["fieldsV1"] for each in record.decode()["metadata"]["managedFields"]] == [
        {"f:data": {".": {}, "f:k": {}}}
    ]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("PersistentVolumeClaim", {"accessModes": ["ReadWriteOnce"]}),
        ("Service", {"ports": [{"port": 80}]}),
    ],
)
def test_a_spec_that_is_patched_away_is_an_empty_one(
    registry: Registry, kind: str, spec: dict[str, Any]
) -> None:
    if kind == "PersistentVolumeClaim":
        spec = spec | {"resources": {"requests": {"storage": "1Gi"}}}
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    registry.create(USER, obj, namespace="default")
    resource_type = registry.scheme.of_kind("v1", kind)
    with pytest.raises(ApiError) as caught:
        registry.patch(USER, resource_type, "default", "a", {"spec": None}, PatchType.MERGE)
    assert caught.value.code == 422
