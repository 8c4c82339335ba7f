"""Validation against kube-apiserver itself.

``data/validation.jsonl.gz`` holds what the registry strategies of kube-apiserver v1.36.3 answer,
with default feature gates, to some 1,750 objects: valid ones with one or a few fields changed,
created, updated, or updated through ``status``. Objects are recorded as validation sees them, after
defaulting and preparation. Errors are kept once each, up to the first line break (what follows it
is a diff of the server's inner form).
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.api.validation import (
    FieldError,
    validate_create,
    validate_status_update,
    validate_update,
)
from kubescene.registry.custom_resources import definition_errors

DATA = Path(__file__).parents[1] / "data" / "validation.jsonl.gz"
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()
]
CLUSTER_SCOPED = {
    "CustomResourceDefinition",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
}

_TEMPLATE = "the value shown is a whole pod template, which we print in its wire form"
_VERSIONS = "the value shown contains whole schemas, which we print in their wire form"
KNOWN_DIFFERENCES = {
    "Job/update/template": _TEMPLATE,
    "Job/update/running-nodeselector": _TEMPLATE,
    "Job/update/running-resources": _TEMPLATE,
    "Job/update/started-nodeselector": _TEMPLATE,
    "Job/update/started-resources": _TEMPLATE,
    "Job/update/suspended-image": _TEMPLATE,
    "CustomResourceDefinition/create/twostorage": _VERSIONS,
    "CustomResourceDefinition/create/dup": _VERSIONS,
}


def resource_type(group: str, version: str, kind: str) -> ResourceType:
    gvk = GroupVersionKind(group, version, kind)
    return ResourceType(gvk, kind.lower() + "s", namespaced=kind not in CLUSTER_SCOPED)


def validate(case: dict[str, Any]) -> list[FieldError]:
    kind = resource_type(*case["gvk"])
    is_definition = kind.gvk.kind == "CustomResourceDefinition"
    match case["op"]:
        case "create":
            schemas = definition_errors(case["new"], None) if is_definition else []
            return [*validate_create(case["new"], kind, namespace=None), *schemas]
        case "update":
            schemas = definition_errors(case["new"], case["old"]) if is_definition else []
            return [*validate_update(case["new"], case["old"], kind), *schemas]
        case _:
            return validate_status_update(case["new"], case["old"], kind)


def upstream(case: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(error["type"], error["field"], error["message"]) for error in case["errors"]}


def ours(case: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (error.type.reason, error.field, error.message.partition("\n")[0])
        for error in validate(case)
    }


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"])
        for case in CASES
        if case["name"] not in KNOWN_DIFFERENCES
    ],
)
def test_says_what_the_server_says(case: dict[str, Any]) -> None:
    assert ours(case) == upstream(case)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case["name"]) for case in CASES if case["name"] in KNOWN_DIFFERENCES],
)
def test_known_differences_are_in_the_shown_value_only(case: dict[str, Any]) -> None:
    def without_value(found: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
        return {(kind, field, message.rpartition(": ")[2]) for kind, field, message in found}

    assert ours(case) != upstream(case)
    assert without_value(ours(case)) == without_value(upstream(case))


def test_every_known_difference_is_a_case() -> None:
    assert set(KNOWN_DIFFERENCES) <= {case["name"] for case in CASES}


def test_errors_come_in_the_order_of_the_server() -> None:
    """Maps have no order upstream, so a few cases may differ; most must not."""
    several = [case for case in CASES if len(case["errors"]) > 1]
    alike = 0
    for case in several:
        found = dict.fromkeys(error.message.partition("\n")[0] for error in validate(case))
        alike += list(found) == [error["message"] for error in case["errors"]]
    assert alike / len(several) > 0.95


def test_objects_are_left_as_they_are() -> None:
    for case in CASES:
        before = json.dumps([case["new"], case.get("old")])
        validate(case)
        assert json.dumps([case["new"], case.get("old")]) == before, case["name"]
