"""What a real API server tells of its API in OpenAPI v2, ours tells as well."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.kubectl import MISSING, find_kubectls
from kubescene.api.builtin import builtin_scheme
from kubescene.apiserver.negotiation import JSON
from kubescene.apiserver.openapi.specs import OpenApi
from kubescene.types import JsonObject
from remote.api_servers import RealServer

pytestmark = pytest.mark.xdist_group("real-api-server")

OWN_TEXTS = frozenset({"description", "enum"})
"""Texts are ours; which values a field may have is in theirs, and checked where objects are."""
TOKENS = {"/.well-known/openid-configuration/", "/openid/v1/jwks/"}
"""Service account tokens are not simulated."""


@pytest.fixture(scope="module")
def real(real_server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> JsonObject:
    if not (found := find_kubectls()):
        pytest.skip(MISSING)
    cache: Path = tmp_path_factory.mktemp("cache")
    text = found[0].towards(real_server.outsider, cache)("get", "--raw", "/openapi/v2")
    document: JsonObject = orjson.loads(text)
    return document


@pytest.fixture(scope="module")
def ours() -> JsonObject:
    document: JsonObject = orjson.loads(OpenApi(builtin_scheme()).swagger().reply(JSON).body)
    return document


def without_texts(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_texts(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_texts(field) for name, field in value.items()}
        if key == "properties"
        else without_texts(value)
        for key, value in schema.items()
        if key not in OWN_TEXTS
    }


def resolved(document: JsonObject, parameters: list[JsonObject]) -> list[tuple[Any, ...]]:
    shared = document["parameters"]
    found = [shared[p["$ref"].split("/")[-1]] if "$ref" in p else p for p in parameters]
    return sorted(
        (p["in"], p["name"], p.get("type") or p["schema"]["$ref"], p.get("required", False))
        for p in found
    )


def facts(document: JsonObject, item: JsonObject) -> JsonObject:
    """All of a path but texts and media types, of which the real one has more."""
    told: JsonObject = {"parameters": resolved(document, item.get("parameters", []))}
    for method, operation in item.items():
        if method != "parameters":
            kept = {"operationId", "tags", "x-kubernetes-action", "x-kubernetes-group-version-kind"}
            told[method] = {key: operation[key] for key in kept if key in operation}
            told[method]["parameters"] = resolved(document, operation.get("parameters", []))
            told[method]["responses"] = without_texts(operation["responses"])
    return told


def test_definitions(real: JsonObject, ours: JsonObject) -> None:
    builtin = {n: s for n, s in real["definitions"].items() if n.startswith("io.k8s.")}
    assert len(builtin) > 500
    for name, schema in builtin.items():
        expected, found = without_texts(schema), without_texts(ours["definitions"][name])
        for each in (expected, found):
            kinds = each.pop("x-kubernetes-group-version-kind", [])
            each["kinds"] = sorted(tuple(sorted(kind.items())) for kind in kinds)
        assert found == expected, name


def test_operations(real: JsonObject, ours: JsonObject) -> None:
    groups = {"", *builtin_scheme().groups()}
    builtin = {path for path in real["paths"] if group_of(path) in groups} - TOKENS
    assert len(builtin) > 400
    for path in builtin:
        assert facts(ours, ours["paths"][path]) == facts(real, real["paths"][path]), path


def group_of(path: str) -> str:
    """The group of a path below ``/apis/``; others may have come with other tests."""
    root, group = path.split("/")[1:3]
    return group if root == "apis" else ""
