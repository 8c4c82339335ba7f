"""Definitions make kinds appear, change and go; custom objects follow their schema."""

from typing import Any

import orjson
import pytest

from kubescene.actors import Actor
from kubescene.api.options import WriteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.schemas.definition_parts import conversion_in_vain
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import DirectClient, ObjectRef
from kubescene.errors import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnsupportedMediaTypeError,
)
from kubescene.registry import Registry

CRD = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
V1 = GroupVersionKind("example.com", "v1", "Widget")
V2 = GroupVersionKind("example.com", "v2", "Widget")
NAME = "widgets.example.com"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                "color": {"type": "string", "enum": ["red", "blue"]},
                "note": {"type": "string", "nullable": True},
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}


def version(name: str, *, schema: Any = None, storage: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema or SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            },
        },
        **more,
    }


def definition(*versions: dict[str, Any], **names: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": list(versions) or [version("v1")],
        },
    }


def widget(name: str = "w", api: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"example.com/{api}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


def ref(name: str = "w", gvk: GroupVersionKind = V1) -> ObjectRef:
    return ObjectRef(gvk, name, "default")


def conditions(client: DirectClient, name: str = NAME) -> dict[str, tuple[str, str]]:
    found = client.get(ObjectRef(CRD, name))["status"]["conditions"]
    return {it["type"]: (it["status"], it["reason"]) for it in found}


def test_kind_is_unknown_without_its_definition(client: DirectClient) -> None:
    with pytest.raises(BadRequestError, match='no kind "Widget" is registered'):
        client.create(widget())


def test_created_definition_is_established_at_once(
    client: DirectClient, registry: Registry
) -> None:
    before = registry.store.revision
    client.create(definition())
    assert registry.store.revision == before + 1
    assert conditions(client) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    status = client.get(ObjectRef(CRD, NAME))["status"]
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    found = registry.scheme.resolve("wd")
    assert (found.gvk, found.custom, found.namespaced) == (V1, True, True)
    assert found.subresources == {"status", "scale"}


def test_objects_are_pruned_defaulted_and_generation_counted(client: DirectClient) -> None:
    client.create(definition())
    client.create({**widget(unknown=1, note=None, color="red"), "status": {"replicas": 4}})
    obj = client.get(ref())
    assert obj["spec"] == {"note": None, "color": "red", "replicas": 1}
    assert "status" not in obj
    assert obj["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"replicas": "x"},
            'Widget.example.com "w" is invalid: spec.replicas: Invalid value: "string": '
            'spec.replicas in body must be of type integer: "string"',
        ),
        (
            {"color": "green"},
            'Widget.example.com "w" is invalid: spec.color: Unsupported value: "green": '
            'supported values: "red", "blue"',
        ),
    ],
)
def test_invalid_objects_are_refused(client: DirectClient, spec: Any, message: str) -> None:
    client.create(definition(version("v1", subresources={})))
    with pytest.raises(InvalidError) as caught:
        client.create(widget(**spec))
    assert caught.value.message == message


@pytest.mark.parametrize("held", ["one", "some"])
def test_embedded_objects_are_looked_at_wherever_they_are(client: DirectClient, held: str) -> None:
    whole = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    kinds = {"one": whole, "some": {"type": "array", "items": whole}}
    spec = {"type": "object", "properties": kinds}
    schema = {"type": "object", "properties": {"spec": spec}}
    client.create(definition(version("v1", schema=schema, subresources={})))
    sound: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    given: dict[str, Any] = {held: sound if held == "one" else [sound, sound]}
    client.create(widget("good", **given))
    bad: Any = {"apiVersion": "v1", "metadata": {"name": "p"}}
    given = {held: bad if held == "one" else [sound, bad]}
    with pytest.raises(InvalidError) as caught:
        client.create(widget("bad", **given))
    place = "spec.one.kind" if held == "one" else "spec.some[1].kind"
    assert f"{place}: Required value" in caught.value.message


def test_negative_replicas_are_refused_by_the_scale_path(client: DirectClient) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    client.create(definition(version("v1", schema=schema)))
    with pytest.raises(InvalidError, match="should be a non-negative integer"):
        client.create(widget(replicas=-1))


def test_status_and_spec_are_written_apart(client: DirectClient) -> None:
    client.create(definition())
    client.create(widget())
    client.patch(ref(), {"spec": {"color": "red"}, "status": {"replicas": 9}})
    assert "status" not in client.get(ref())
    assert client.get(ref())["metadata"]["generation"] == 2
    client.patch(
        ref(),
        {"spec": {"color": "blue"}, "status": {"replicas": 3}, "metadata": {"labels": {"a": "b"}}},
        subresource="status",
    )
    obj = client.get(ref())
    assert (obj["spec"]["color"], obj["status"]) == ("red", {"replicas": 3})
    assert obj["metadata"]["generation"] == 2
    assert "labels" not in obj["metadata"]
    client.patch(ref(), {"metadata": {"labels": {"a": "b"}}})
    assert client.get(ref())["metadata"]["generation"] == 2


def test_status_without_subresource_is_part_of_the_object(client: DirectClient) -> None:
    client.create(definition(version("v1", subresources={})))
    client.create({**widget(), "status": {"replicas": 1}})
    client.patch(ref(), {"status": {"replicas": 2}})
    obj = client.get(ref())
    assert (obj["status"], obj["metadata"]["generation"]) == ({"replicas": 2}, 2)


def test_invalid_status_names_the_field(client: DirectClient) -> None:
    client.create(definition())
    client.create(widget())
    with pytest.raises(InvalidError, match=r'status\.replicas: Invalid value: "string"'):
        client.patch(ref(), {"status": {"replicas": "x"}}, subresource="status")


def test_an_unchanged_status_may_be_what_the_schema_no_longer_allows(client: DirectClient) -> None:
    def bounded(most: int) -> dict[str, Any]:
        integer = {"type": "integer", "maximum": most}
        status = {"type": "object", "properties": {"replicas": integer, "ready": integer}}
        return version("v1", schema={"type": "object", "properties": {"status": status}})

    client.create(definition(bounded(9)))
    client.create(widget())
    client.patch(ref(), {"status": {"replicas": 9}}, subresource="status")
    client.patch(
        ObjectRef(CRD, NAME), {"spec": {"versions": [bounded(5)]}}, patch_type=PatchType.MERGE
    )
    client.patch(ref(), {"status": {"ready": 1}}, subresource="status")
    assert client.get(ref())["status"] == {"replicas": 9, "ready": 1}
    with pytest.raises(InvalidError, match=r"status\.replicas"):
        client.patch(ref(), {"status": {"replicas": 8}}, subresource="status")


def test_strategic_patches_are_for_built_in_kinds(client: DirectClient) -> None:
    client.create(definition())
    client.create(widget())
    with pytest.raises(UnsupportedMediaTypeError):
        client.patch(ref(), {"spec": {}}, patch_type=PatchType.STRATEGIC)


def test_all_served_versions_share_one_store(client: DirectClient, registry: Registry) -> None:
    other = {**SCHEMA, "properties": {"spec": {"type": "object", "properties": {}}}}
    client.create(definition(version("v1", storage=False), version("v2", schema=other)))
    record = client.create(widget(color="red"))
    v1, v2 = registry.type_of(V1), registry.type_of(V2)
    assert orjson.loads(record.data)["apiVersion"] == "example.com/v2"
    assert registry.present(record, v2) is record.data
    seen = orjson.loads(registry.present(record, v1))
    assert seen["apiVersion"] == "example.com/v1"
    # What the stored version does not know is lost on the way, as with a real server.
    assert (seen["spec"], registry.decoded(record, v2)["spec"]) == ({}, {})
    client.patch(ref(gvk=V1), {"metadata": {"labels": {"a": "b"}}})
    assert client.get(ref(gvk=V2))["metadata"]["labels"] == {"a": "b"}


def test_versions_that_are_not_served_cannot_be_reached(client: DirectClient) -> None:
    client.create(definition(version("v1"), version("v2", storage=False, served=False)))
    with pytest.raises(BadRequestError):
        client.create(widget(api="v2"))


def test_new_storage_version_is_noted_and_old_objects_stay_readable(
    client: DirectClient, registry: Registry
) -> None:
    client.create(definition())
    record = client.create(widget(color="red"))
    versions = [version("v1", storage=False), version("v2")]
    client.patch(ObjectRef(CRD, NAME), {"spec": {"versions": versions}})
    assert client.get(ObjectRef(CRD, NAME))["status"]["storedVersions"] == ["v1", "v2"]
    seen = orjson.loads(registry.present(record, registry.type_of(V2)))
    assert (seen["apiVersion"], seen["spec"]["color"]) == ("example.com/v2", "red")


def test_new_defaults_show_on_old_objects(client: DirectClient, registry: Registry) -> None:
    client.create(definition())
    record = client.create(widget())
    schema = orjson.loads(orjson.dumps(SCHEMA))
    schema["properties"]["spec"]["properties"]["size"] = {"type": "string", "default": "M"}
    client.patch(ObjectRef(CRD, NAME), {"spec": {"versions": [version("v1", schema=schema)]}})
    seen = orjson.loads(registry.present(record, registry.type_of(V1)))
    assert seen["spec"] == {"replicas": 1, "size": "M"}


def test_second_definition_with_a_taken_name_waits(
    client: DirectClient, registry: Registry
) -> None:
    client.create(definition())
    client.create(definition(plural="gadgets", kind="Gadget", singular="gadget"))
    assert conditions(client, "gadgets.example.com") == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    status = client.get(ObjectRef(CRD, "gadgets.example.com"))["status"]
    assert status["conditions"][0]["message"] == '"wd" is already in use'
    with pytest.raises(NotFoundError):
        registry.scheme.of_path("example.com", "v1", "gadgets")
    client.delete(ObjectRef(CRD, NAME))
    assert conditions(client, "gadgets.example.com")["Established"][0] == "True"
    assert registry.scheme.of_path("example.com", "v1", "gadgets").kind == "Gadget"


def test_deleted_definition_takes_its_objects_along(
    client: DirectClient, registry: Registry
) -> None:
    client.create(definition())
    client.create(widget("a"))
    client.create(widget("b"))
    resource = registry.type_of(V1).group_resource
    client.delete(ObjectRef(CRD, NAME))
    assert registry.store.count(resource) == 0
    assert client.find(ObjectRef(CRD, NAME)) is None
    with pytest.raises(BadRequestError):
        client.create(widget())


def test_definition_waits_for_objects_with_finalizers(
    client: DirectClient, registry: Registry
) -> None:
    client.create(definition())
    held = widget()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    client.create(held)
    client.delete(ObjectRef(CRD, NAME))
    assert conditions(client)["Terminating"] == ("True", "InstanceDeletionInProgress")
    with pytest.raises(ForbiddenError, match="custom resource definition is terminating"):
        client.create(widget("other"))
    client.patch(ref(), {"metadata": {"finalizers": None}})
    assert client.find(ObjectRef(CRD, NAME)) is None
    assert registry.custom.of(V1) is None


def test_kinds_of_the_server_cannot_be_replaced(client: DirectClient, registry: Registry) -> None:
    pod = registry.scheme.of_kind("v1", "Pod")
    client.create(definition())
    client.delete(ObjectRef(CRD, NAME))
    assert registry.scheme.of_kind("v1", "Pod") is pod


def test_bottomless_schema_is_refused(client: DirectClient) -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(InvalidError, match="must not be nested more than 100 levels deep"):
        client.create(definition(version("v1", schema=schema)))


def test_established_names_cannot_change(client: DirectClient) -> None:
    client.create(definition())
    with pytest.raises(InvalidError, match=r"spec\.names\.kind"):
        client.patch(ObjectRef(CRD, NAME), {"spec": {"names": {"kind": "Other"}}})


def test_update_checks_the_version_it_was_read_at(client: DirectClient, registry: Registry) -> None:
    client.create(definition())
    client.create(widget())
    stale = client.get(ref())
    client.patch(ref(), {"spec": {"color": "red"}})
    with pytest.raises(ConflictError):
        client.update({**stale, "spec": {"color": "blue"}})
    fresh = client.get(ref())
    client.update({**fresh, "spec": {"color": "blue"}})
    assert client.get(ref())["spec"] == {"color": "blue", "replicas": 1}
    assert registry.custom.unknown_fields({"spec": {"x": 1}}, V1) == ["spec.x"]


def test_metadata_of_custom_objects_is_typed(client: DirectClient) -> None:
    client.create(definition())
    bad = widget()
    bad["metadata"]["labels"] = {"a": 1}
    with pytest.raises(BadRequestError, match="cannot unmarshal number"):
        client.create(bad)


def test_dry_run_changes_no_kinds(client: DirectClient, registry: Registry) -> None:
    registry.create(Actor("user"), definition(), options=WriteOptions(dry_run=True))
    assert V1 not in registry.scheme


ITEMS = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param(
            {"type": "integer", "default": "x"},
            'default: Invalid value: "string":  in body must be of type integer: "string"',
            id="default of the wrong type",
        ),
        pytest.param(
            {"type": "object", "default": {"x": 1}},
            'default: Invalid value: {"x":1}: must not have unknown fields',
            id="default with unknown fields",
        ),
        pytest.param({"type": "array"}, "items: Required value: must be specified", id="items"),
        pytest.param(
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity becomes quadratic",
            id="unique items",
        ),
        pytest.param(
            {"type": "array", "x-kubernetes-list-type": "map", "items": ITEMS},
            "x-kubernetes-list-map-keys: Required value: must not be empty if "
            "x-kubernetes-list-type is map",
            id="map without keys",
        ),
        pytest.param(
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": ITEMS,
            },
            "items.properties[name].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property",
            id="optional key",
        ),
        pytest.param(
            {"type": "string", "x-kubernetes-preserve-unknown-fields": False},
            "x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
            id="preserve false",
        ),
    ],
)
def test_schemas_have_to_be_structural(client: DirectClient, field: Any, message: str) -> None:
    schema = {"type": "object", "properties": {"a": field}}
    with pytest.raises(InvalidError) as caught:
        client.create(definition(version("v1", schema=schema)))
    prefix = "spec.validation.openAPIV3Schema.properties[a]."
    assert caught.value.message == (
        f'CustomResourceDefinition.apiextensions.k8s.io "{NAME}" is invalid: {prefix}{message}'
    )


def test_community_groups_need_approval(client: DirectClient) -> None:
    protected = definition()
    protected["spec"]["group"] = "stable.k8s.io"
    protected["metadata"]["name"] = "widgets.stable.k8s.io"
    with pytest.raises(InvalidError, match="protected groups must have approval annotation"):
        client.create(protected)
    protected["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    client.create(protected)


def test_deeply_nested_object_is_a_bad_request(client: DirectClient) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    client.create(definition(version("v1", schema=schema)))
    value: Any = {}
    for _ in range(2000):
        value = {"a": value}
    with pytest.raises(BadRequestError, match="nested too deeply"):
        client.create(widget(deep=value))


@pytest.mark.parametrize(
    ("strategy", "versions", "is_told"),
    [
        ("Webhook", [(True, True), (True, False)], True),
        ("Webhook", [(False, True), (True, False)], True),
        ("Webhook", [(True, True), (False, False)], False),
        ("Webhook", [(True, True)], False),
        ("None", [(True, True), (True, False)], False),
    ],
)
def test_only_who_counts_on_a_webhook_is_told_that_nobody_calls_it(
    strategy: str, versions: list[tuple[bool, bool]], is_told: bool
) -> None:
    """Each version says whether it is served, and whether it is the stored one."""
    told = conversion_in_vain(
        {
            "conversion": {"strategy": strategy},
            "versions": [{"served": served, "storage": storage} for served, storage in versions],
        }
    )
    assert bool(told) == is_told
