"""OpenAPI v2 is what kube-apiserver v1.36 makes of the same API, as JSON and as protobuf.

``data/swagger_custom.json`` holds a CustomResourceDefinition and the definitions that a real
kube-apiserver shows of it (texts of ``apiVersion``, ``kind`` and ``metadata`` left out);
``data/swagger_sample.pb`` the bytes that gnostic-models v0.7.0 makes of ``swagger_sample.json``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from apiserver.http import Http
from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import GroupVersionKind, ResourceType
from kubescene.apiserver.negotiation import JSON
from kubescene.apiserver.openapi.specs import PROTOBUF, OpenApi, swagger_type
from kubescene.apiserver.openapi.swagger_protobuf import encode
from kubescene.errors import NotAcceptableError
from kubescene.types import JsonObject

DATA = Path(__file__).parent / "data"
CUSTOM: JsonObject = orjson.loads((DATA / "swagger_custom.json").read_bytes())
AT_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
GVK = "x-kubernetes-group-version-kind"
CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def cron_tab(version: str, *subresources: str) -> ResourceType:
    return ResourceType(
        GroupVersionKind("stable.example.com", version, "CronTab"),
        plural="crontabs",
        namespaced=True,
        singular="crontab",
        subresources=frozenset(subresources),
        custom=True,
    )


@pytest.fixture(scope="module")
def openapi() -> OpenApi:
    scheme = builtin_scheme()
    scheme.register(cron_tab("v1", "status"))
    scheme.register(cron_tab("v1beta1"))
    return OpenApi(scheme, lambda: [CUSTOM["crd"]])


@pytest.fixture(scope="module")
def document(openapi: OpenApi) -> JsonObject:
    found: JsonObject = orjson.loads(openapi.swagger().reply(JSON).body)
    return found


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from references(part)


def resolved(document: JsonObject, parameters: list[JsonObject]) -> list[JsonObject]:
    shared = document["parameters"]
    return [shared[p["$ref"].split("/")[-1]] if "$ref" in p else p for p in parameters]


def test_it_has_the_paths_and_schemas_of_all_documents_of_v3(
    openapi: OpenApi, document: JsonObject
) -> None:
    paths: set[str] = set()
    schemas: set[str] = set()
    for key in orjson.loads(openapi.index().body)["paths"]:
        found = openapi.document(f"/openapi/v3/{key}")
        assert found is not None
        v3 = orjson.loads(found.body)
        paths |= set(v3["paths"])
        schemas |= set(v3["components"]["schemas"])
    assert document["swagger"] == "2.0"
    assert set(document["paths"]) == paths
    assert set(document["definitions"]) == schemas


def test_every_reference_leads_somewhere_and_nothing_stands_for_nobody(
    document: JsonObject,
) -> None:
    found = set(references(document))
    for section in ("definitions", "parameters"):
        named = {ref for ref in found if ref.startswith(f"#/{section}/")}
        assert named == {f"#/{section}/{name}" for name in document[section]}
        found -= named
    assert not found


def test_no_schema_says_what_v2_cannot_say(document: JsonObject) -> None:
    def keys(schema: JsonObject) -> Iterator[str]:
        yield from schema
        for part in schema.get("properties", {}).values():
            yield from keys(part)
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from keys(schema[key])

    said = {key for schema in document["definitions"].values() for key in keys(schema)}
    assert not said & {"allOf", "anyOf", "oneOf", "not", "nullable", "default"}


def test_an_operation_in_the_words_of_v2(document: JsonObject) -> None:
    item = document["paths"]["/api/v1/namespaces/{namespace}/bindings"]
    binding = {"$ref": f"#/definitions/{CORE}Binding"}
    post = item["post"]
    assert post["parameters"] == [
        {"name": "body", "in": "body", "schema": binding, "required": True}
    ]
    assert post["consumes"] == ["*/*"]
    assert post["produces"] == ["application/json", "application/yaml"]
    assert post["responses"]["201"] == {"description": "Created", "schema": binding}
    assert post["responses"]["401"] == {"description": "Unauthorized"}
    assert post["x-kubernetes-action"] == "post"
    assert post[GVK] == {"group": "", "version": "v1", "kind": "Binding"}
    assert "requestBody" not in post
    taken = {p["name"]: (p["in"], p["type"]) for p in resolved(document, item["parameters"])}
    assert taken["namespace"] == ("path", "string")
    assert taken["fieldManager"] == ("query", "string")


def test_kubectl_finds_dry_run_and_validation_in_the_operation_itself(
    document: JsonObject,
) -> None:
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    inline = {p["name"] for p in patch["parameters"] if "name" in p}
    assert inline == {"dryRun", "fieldValidation"}
    taken = {p["name"] for p in resolved(document, patch["parameters"])}
    assert taken == {"body", "dryRun", "fieldManager", "fieldValidation", "force"}
    assert "application/strategic-merge-patch+json" in patch["consumes"]


def test_built_in_schemas_as_kube_apiserver_has_them(document: JsonObject) -> None:
    schemas = document["definitions"]
    quantity = schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    port = schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert quantity["type"] == "string"
    assert (port["type"], port["format"]) == ("string", "int-or-string")
    metadata = schemas[f"{CORE}Pod"]["properties"]["metadata"]
    assert metadata["$ref"] == f"#/definitions/{META}ObjectMeta"
    assert metadata["description"]
    groups = {kind["group"] for kind in schemas[f"{META}DeleteOptions"][GVK]}
    assert {"", "apps", "batch"} < groups


def test_custom_kinds_as_kube_apiserver_shows_them(document: JsonObject) -> None:
    for name, expected in CUSTOM["definitions"].items():
        schema = orjson.loads(orjson.dumps(document["definitions"][name]))
        for field in ("apiVersion", "kind", "metadata"):
            schema.get("properties", {}).get(field, {}).pop("description", None)
        assert schema == expected


def test_a_field_that_may_be_null_is_neither_typed_nor_required() -> None:
    crd = orjson.loads(orjson.dumps(CUSTOM["crd"]))
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {
            "a": {"type": "string", "nullable": True},
            "b": {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {}},
            "c": {"type": "object", "nullable": True, "properties": {"a": {"type": "string"}}},
            "d": {"type": "array", "nullable": True, "items": {"type": "string"}},
        },
    }
    scheme = builtin_scheme()
    scheme.register(cron_tab("v1"))
    document = orjson.loads(OpenApi(scheme, lambda: [crd]).swagger().reply(JSON).body)
    assert document["definitions"]["com.example.stable.v1.CronTab"]["properties"]["spec"] == {
        "type": "object",
        "required": ["b"],
        "properties": {
            "a": {},
            "b": {"x-kubernetes-preserve-unknown-fields": True},
            "c": {},
            "d": {},
        },
    }


# -- protobuf ------------------------------------------------------------------------------------


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each length-delimited field; there must be no others."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        assert tag & 7 == 2
        length, at = varint(message, at)
        yield tag >> 3, message[at : at + length]
        at += length
    assert at == len(message)


def varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def entries(section: bytes, number: int) -> dict[str, bytes]:
    """The values by name of a map, which is a repeated message of both."""
    pairs = [dict(fields(content)) for found, content in fields(section) if found == number]
    return {pair[1].decode(): pair[2] for pair in pairs}


def test_protobuf_is_that_of_gnostic() -> None:
    sample = orjson.loads((DATA / "swagger_sample.json").read_bytes())
    assert encode(sample) == (DATA / "swagger_sample.pb").read_bytes()


def test_protobuf_says_the_same(openapi: OpenApi, document: JsonObject) -> None:
    sections = dict(fields(openapi.swagger().reply(PROTOBUF).body))
    assert sections[1] == b"2.0"
    assert set(entries(sections[8], 2)) == set(document["paths"])
    schemas = entries(sections[9], 1)
    assert set(schemas) == set(document["definitions"])
    pod = [content for number, content in fields(schemas[f"{CORE}Pod"]) if number == 31]
    extension = dict(fields(pod[0]))
    assert extension[1].decode() == GVK
    text = dict(fields(extension[2]))[2]
    assert yaml.safe_load(text) == document["definitions"][f"{CORE}Pod"][GVK]


def test_what_protobuf_has_no_field_for_is_not_dropped_silently() -> None:
    with pytest.raises(KeyError, match="host"):
        encode({"swagger": "2.0", "host": "example.com"})


# -- over HTTP -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (PROTOBUF, PROTOBUF),
        (AT_PROTOBUF, PROTOBUF),
        ("text/html,*/*;q=0.1", JSON),
        (f"application/json;q=0.5,{AT_PROTOBUF}", PROTOBUF),
        (f"{AT_PROTOBUF};q=0.1,application/json", JSON),
        (f"*/*, {PROTOBUF}", PROTOBUF),
        (f"application/json;q=x, {PROTOBUF};q=0.1", PROTOBUF),
        ("application/json;q=0", JSON),
        ("foo/*, */*", JSON),
        ("application/json;as=Table", JSON),
    ],
)
def test_the_form_is_negotiated_as_kube_apiserver_does(accept: str, expected: str) -> None:
    assert swagger_type(accept) == expected


@pytest.mark.parametrize("accept", ["text/html", "bogus", "application/vnd.kubernetes.protobuf"])
def test_what_there_is_not_is_406(accept: str) -> None:
    with pytest.raises(NotAcceptableError, match="application/json"):
        swagger_type(accept)


def test_both_forms_are_served_and_revalidated(http: Http) -> None:
    plain, packed = http.get("/openapi/v2"), http.get("/openapi/v2", AT_PROTOBUF)
    assert (plain.status, plain.all("content-type")) == (200, [JSON])
    assert (packed.status, packed.all("content-type")) == (200, [PROTOBUF])
    assert plain.json["info"]["version"].startswith("v1.")
    assert encode(plain.json) == packed.body
    assert plain.all("etag") == packed.all("etag")
    assert "Accept" in plain.all("vary")[0]
    again = http.request("GET", "/openapi/v2", headers={"If-None-Match": plain.all("etag")[0]})
    assert (again.status, again.body) == (304, b"")
    assert http.get("/openapi/v2", "text/html").status == 406
    assert http.post("/openapi/v2", {}).status == 405


def test_it_follows_the_definitions(http: Http) -> None:
    before = http.get("/openapi/v2")
    created = http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CUSTOM["crd"])
    assert created.status == 201
    after = http.get("/openapi/v2")
    added = set(after.json["definitions"]) - set(before.json["definitions"])
    assert added == set(CUSTOM["definitions"])
    assert before.all("etag") != after.all("etag")


def test_a_document_says_once_how_long_it_may_be_kept(http: Http) -> None:
    url = http.get("/openapi/v3").json["paths"]["apis/apps/v1"]["serverRelativeURL"]
    assert http.get(url).all("cache-control") == ["public, max-age=31536000, immutable"]
    assert http.get("/openapi/v2").all("cache-control") == ["no-cache, private"]
