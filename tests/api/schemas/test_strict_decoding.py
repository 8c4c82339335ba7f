"""Unknown fields and wrong types, as kube-apiserver's decoder reports them.

``data/decoding.jsonl.gz`` holds objects with what the strict decoder of kube-apiserver v1.36.4
said about them: nothing, unknown fields, or a value of the wrong type.
"""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.schemas import scalars, strict_decoding
from kubescene.api.schemas.builtin_types import ApiField
from kubescene.api.schemas.strict_decoding import (
    check_types,
    prune_unknown,
    strict_error,
    unknown_fields,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.errors import BadRequestError
from kubescene.types import JsonObject

POD = GroupVersionKind("", "v1", "Pod")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
WIDGET = GroupVersionKind("example.com", "v1", "Widget")

PREFIX = 'Pod in version "v1" cannot be handled as a Pod: '


def pod() -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "labels": {"app": "x"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "nginx",
                    "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"cpu": "100m", "memory": 1073741824}},
                    "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 10},
                }
            ],
            "terminationGracePeriodSeconds": 30,
            "hostNetwork": False,
            "nodeSelector": {"zone": "a"},
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        },
    }


def changed(path: list[Any], value: Any) -> JsonObject:
    obj = pod()
    at: Any = obj
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return obj


def reject_unknown(obj: JsonObject, gvk: GroupVersionKind) -> None:
    """Strict field validation, as the registry puts it together."""
    if paths := unknown_fields(obj, gvk):
        raise strict_error(gvk, [f'unknown field "{path}"' for path in paths])


def test_a_good_object_passes_everything() -> None:
    good = pod()
    assert unknown_fields(good, POD) == []
    assert prune_unknown(good, POD) is good
    check_types(good, POD)
    reject_unknown(good, POD)


@pytest.mark.parametrize(
    ("path", "reported"),
    [
        (["foo"], "foo"),
        (["Spec"], "Spec"),
        (["spec", "foo"], "spec.foo"),
        (["spec", "containers", 0, "foo"], "spec.containers[0].foo"),
        (["spec", "containers", 0, "ports", 0, "x"], "spec.containers[0].ports[0].x"),
        (
            ["spec", "containers", 0, "livenessProbe", "httpGet", "y"],
            "spec.containers[0].livenessProbe.httpGet.y",
        ),
        (["spec", "volumes", 0, "emptyDir", "z"], "spec.volumes[0].emptyDir.z"),
        (["metadata", "foo"], "metadata.foo"),
    ],
    ids=str,
)
def test_unknown_fields_are_found_and_pruned(path: list[Any], reported: str) -> None:
    obj = changed(path, {"any": "thing"})
    before = copy.deepcopy(obj)
    assert unknown_fields(obj, POD) == [reported]
    assert prune_unknown(obj, POD) == pod()
    assert obj == before


@pytest.mark.parametrize(
    "path",
    [
        ["metadata", "labels", "anything"],
        ["metadata", "managedFields", 0, "fieldsV1", "f:metadata"],
        ["spec", "nodeSelector", "anything"],
        ["spec", "containers", 0, "resources", "requests", "example.com/gpu"],
    ],
    ids=str,
)
def test_maps_and_raw_values_take_any_key(path: list[Any]) -> None:
    assert unknown_fields(changed(path, "1"), POD) == []


def test_pruning_copies_only_what_it_changes() -> None:
    obj = changed(["spec", "foo"], 1)
    pruned = prune_unknown(obj, POD)
    assert pruned["metadata"] is obj["metadata"]
    assert pruned["spec"]["containers"][0] is obj["spec"]["containers"][0]


def test_maps_of_objects_are_entered_by_key() -> None:
    crd = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    schema = {"type": "object", "properties": {"spec": {"type": "object", "typo": 1}}}
    obj = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    path = "spec.versions[0].schema.openAPIV3Schema.properties.spec.typo"
    assert unknown_fields(obj, crd) == [path]


def test_strict_validation_names_all_in_document_order() -> None:
    obj = changed(["spec", "containers", 0, "foo"], 1)
    obj["bar"] = 2
    with pytest.raises(BadRequestError) as caught:
        reject_unknown(obj, POD)
    assert caught.value.message == (
        PREFIX
        + 'strict decoding error: unknown field "spec.containers[0].foo", unknown field "bar"'
    )


def test_after_a_hundred_unknown_fields_nobody_reads_on() -> None:
    assert len(unknown_fields({f"x{i}": 1 for i in range(150)}, POD)) == 100


def test_kinds_without_schema_always_pass() -> None:
    obj = {"spec": {"whatever": [1, "a"]}}
    assert unknown_fields(obj, WIDGET) == []
    assert prune_unknown(obj, WIDGET) is obj
    check_types(obj, WIDGET)


def decoded(obj: JsonObject) -> str:
    """What strict decoding says, without the name of the Go type that the JSON does not show."""
    gvk = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    try:
        check_types(obj, gvk)
        reject_unknown(obj, gvk)
    except BadRequestError as error:
        return error.message.partition(": ")[2].partition(" of type ")[0]
    return ""


def test_errors_are_those_of_kube_apiserver() -> None:
    packed = (Path(__file__).parents[1] / "data" / "decoding.jsonl.gz").read_bytes()
    cases = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    assert len(cases) > 150
    assert [decoded(case["object"]) for case in cases] == [case["error"] for case in cases]


CONTAINER: list[Any] = ["spec", "containers", 0]


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (
            ["spec", "terminationGracePeriodSeconds"],
            "30",
            "json: cannot unmarshal string into Go struct field "
            "PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            ["spec", "terminationGracePeriodSeconds"],
            1.5,
            "json: cannot unmarshal number 1.5 into Go struct field "
            "PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            ["spec", "terminationGracePeriodSeconds"],
            True,
            "json: cannot unmarshal bool into Go struct field "
            "PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (
            ["metadata", "labels", "n"],
            1,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels "
            "of type string",
        ),
        (
            ["metadata", "labels"],
            ["a"],
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels "
            "of type map[string]string",
        ),
        (
            ["spec"],
            "x",
            "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            ["spec", "containers"],
            {},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers "
            "of type []v1.Container",
        ),
        (
            ["spec", "hostNetwork"],
            "true",
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork "
            "of type bool",
        ),
        (
            [*CONTAINER, "ports", 0, "containerPort"],
            2**31,
            "json: cannot unmarshal number 2147483648 into Go struct field "
            "ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            [*CONTAINER, "image"],
            7,
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image "
            "of type string",
        ),
        (
            [*CONTAINER, "resources", "requests", "cpu"],
            "lots",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            [*CONTAINER, "livenessProbe", "httpGet", "port"],
            False,
            "json: cannot unmarshal bool into Go struct field "
            "HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32",
        ),
        (
            ["metadata", "creationTimestamp"],
            "yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": '
            'cannot parse "yesterday" as "2006"',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_wrong_types_are_refused(path: list[Any], value: Any, complaint: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        check_types(changed(path, value), POD)
    assert caught.value.message == PREFIX + complaint


@pytest.mark.parametrize(
    "path",
    [["spec"], ["metadata", "labels"], ["spec", "containers", 0, "image"], ["spec", "priority"]],
    ids=str,
)
def test_null_is_of_every_type(path: list[Any]) -> None:
    check_types(changed(path, None), POD)


def test_the_first_wrong_value_is_told() -> None:
    obj = {"spec": {"replicas": "3", "selector": 1}}
    with pytest.raises(BadRequestError, match=r"DeploymentSpec\.spec\.replicas of type int32"):
        check_types(obj, DEPLOYMENT)


def test_secrets_hold_base64() -> None:
    secret = GroupVersionKind("", "v1", "Secret")
    check_types({"data": {"a": "aGVsbG8=", "b": "aGVs\nbG8=", "c": ""}}, secret)
    with pytest.raises(BadRequestError, match="illegal base64 data at input byte 5"):
        check_types({"data": {"a": "hello world"}}, secret)


@pytest.mark.parametrize(
    ("read", "value", "complaint"),
    [
        (scalars.time, "2026-02-28T23:59:59Z", ""),
        (scalars.time, "2024-02-29T23:59:59.123+02:00", ""),
        (
            scalars.time,
            "2026-02-29T00:00:00Z",
            'parsing time "2026-02-29T00:00:00Z": day out of range',
        ),
        (
            scalars.time,
            "2026-01-01T00:00:00",
            'parsing time "2026-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": '
            'cannot parse "" as "Z07:00"',
        ),
        (
            scalars.time,
            "2026-01-01T00:00:00Zulu",
            'parsing time "2026-01-01T00:00:00Zulu": extra text: "ulu"',
        ),
        (scalars.micro_time, "2026-01-01T00:00:00.000001Z", ""),
        (
            scalars.micro_time,
            "2026-01-01T00:00:00Z",
            'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": '
            'cannot parse "Z" as ".000000"',
        ),
        (scalars.int_or_string, "25%", ""),
        (scalars.int_or_string, 8080, ""),
        (scalars.double, 3, ""),
        (scalars.double, 0.5, ""),
        (scalars.double, "0.5", "string"),
        (scalars.amount, 0.5, ""),
        (scalars.amount, {}, "quantities must match the regular expression "
         "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
    ],
)  # fmt: skip
def test_scalars(read: Any, value: Any, complaint: str) -> None:
    assert read(value) == complaint


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "image", "ports", "env", "volumes", "containers", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "foo"]), JSON, max_size=4))
def test_pruned_objects_have_no_unknown_fields_and_nothing_crashes(obj: JsonObject) -> None:
    before = copy.deepcopy(obj)
    pruned = prune_unknown(obj, POD)
    assert unknown_fields(pruned, POD) == []
    assert (pruned is obj) == (not unknown_fields(obj, POD))
    assert obj == before


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status"]), JSON, max_size=3))
def test_the_quick_check_and_the_slow_walk_agree(obj: JsonObject) -> None:
    """Whatever the quick check refuses, the slow walks can explain."""
    tables = strict_decoding._tables_of_kind(POD)
    assert tables is not None
    place = strict_decoding._FieldPlace("", "")
    complaint = strict_decoding._complaint(obj, ApiField("#", tables.api_type), place)
    is_sound = complaint == "" and not strict_decoding._has_unknown(obj, tables)
    assert strict_decoding._is_sound(obj, tables) == is_sound
