"""OpenAPI v3 documents describe the API of kube-apiserver v1.36, and real kubectl reads them.

``data/openapi_v1_36.json`` holds `facts` of each document that Kubernetes publishes
(``api/openapi-spec/v3`` at v1.36.4): how many paths, operations and schemas it has, and digests
of their names, actions, kinds, parameters and properties.
"""

import gzip
import hashlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from kubescene.actors import Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.apiserver.kubernetes.discovery import DiscoveryDocuments
from kubescene.apiserver.openapi.pages import Definitions
from kubescene.apiserver.openapi.specs import OpenApi, OpenApiReply, accepts_gzip
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.types import JsonObject

PUBLISHED: dict[str, JsonObject] = orjson.loads(
    (Path(__file__).parent / "data" / "openapi_v1_36.json").read_bytes()
)
KUBECTL = shutil.which("kubectl")
GVK = "x-kubernetes-group-version-kind"
REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."

WIDGET = ResourceType(
    GroupVersionKind("example.dev", "v1", "Widget"),
    plural="widgets",
    namespaced=True,
    singular="widget",
    subresources=frozenset({"scale", "status"}),
    custom=True,
)
WIDGET_KEY = "apis/example.dev/v1"


def facts(document: Any) -> JsonObject:
    """What must be the same here and upstream; texts and media types may differ."""
    operations = sorted(
        " ".join((path, method, operation["operationId"], *_marks(item, operation)))
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    )
    schemas = sorted(
        f"{name} {sorted(schema.get('properties', ()))} {_kinds(schema.get(GVK, []))}"
        for name, schema in document["components"]["schemas"].items()
    )
    return {
        "paths": len(document["paths"]),
        "operations": [len(operations), _digest(operations)],
        "schemas": [len(schemas), _digest(schemas)],
    }


def _marks(item: JsonObject, operation: JsonObject) -> tuple[str, str, str]:
    listed = [*item.get("parameters", ()), *operation.get("parameters", ())]
    names = sorted(f"{p['in']}:{p['name']}:{p['schema']['type']}" for p in listed)
    kinds = _kinds([operation[GVK]] if GVK in operation else [])
    return operation.get("x-kubernetes-action", "-"), kinds, ",".join(names)


def _kinds(listed: list[JsonObject]) -> str:
    return ",".join(f"{k['group']}/{k['version']}/{k['kind']}" for k in listed)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def widget_definition(*, resource_version: str = "1", description: str = "A widget.") -> JsonObject:
    template = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "description": "How big.", "default": 3},
            "template": template,
        },
    }
    schema = {"description": description, "type": "object", "properties": {"spec": spec}}
    return {
        "metadata": {"name": "widgets.example.dev", "resourceVersion": resource_version},
        "spec": {
            "group": "example.dev",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}},
                {"name": "v1alpha1", "served": False, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


@pytest.fixture
def scheme() -> Scheme:
    return builtin_scheme()


@pytest.fixture
def openapi(scheme: Scheme) -> OpenApi:
    return OpenApi(scheme)


def reply(openapi: OpenApi, key: str, *, encoding: str = "") -> OpenApiReply:
    found = openapi.document(f"/openapi/v3/{key}", accept_encoding=encoding)
    assert found is not None
    return found


def get(openapi: OpenApi, key: str) -> Any:
    return orjson.loads(reply(openapi, key).body)


def index(openapi: OpenApi) -> dict[str, str]:
    paths = orjson.loads(openapi.index().body)["paths"]
    return {key: location["serverRelativeURL"] for key, location in paths.items()}


@pytest.mark.parametrize("key", PUBLISHED)
def test_documents_have_the_operations_and_schemas_of_kubernetes(
    openapi: OpenApi, key: str
) -> None:
    assert facts(get(openapi, key)) == PUBLISHED[key]


def test_the_index_lists_every_document_with_its_hash(openapi: OpenApi) -> None:
    listed = index(openapi)
    assert set(listed) == set(PUBLISHED)
    for key, url in listed.items():
        body = reply(openapi, key).body
        assert url == f"/openapi/v3/{key}?hash={hashlib.sha512(body).hexdigest().upper()}"


@pytest.mark.parametrize("key", ["api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1"])
def test_every_reference_leads_somewhere(openapi: OpenApi, key: str) -> None:
    document = get(openapi, key)
    targets = {part.split('"')[0] for part in reply(openapi, key).body.decode().split(REF)[1:]}
    assert targets == set(document["components"]["schemas"])


def test_a_patch_marks_that_the_server_validates_fields(openapi: OpenApi) -> None:
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = get(openapi, "apis/apps/v1")["paths"][path]["patch"]
    assert patch[GVK] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in {p["name"] for p in patch["parameters"]}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


@pytest.mark.parametrize(
    "path",
    ["/openapi/v3/apis/nope/v1", "/openapi/v2/api", "/openapi/v3/", "/openapi/v3/api/v1/pods", "/"],
)
def test_unknown_paths_have_no_document(openapi: OpenApi, path: str) -> None:
    assert openapi.document(path) is None


def test_a_document_asked_for_by_its_hash_never_expires(openapi: OpenApi) -> None:
    true_hash = index(openapi)["apis/apps/v1"].partition("?hash=")[2]
    path = "/openapi/v3/apis/apps/v1"
    current = openapi.document(path, requested_hash=true_hash)
    outdated = openapi.document(path, requested_hash="ABC")
    assert current is not None
    assert outdated is not None
    assert "immutable" in current.headers()["Cache-Control"]
    assert outdated.headers()["Cache-Control"] == "no-cache, private"
    assert current.headers()["ETag"] == outdated.headers()["ETag"] == f'"{true_hash}"'
    assert current.headers()["Content-Type"] == "application/json"


def test_a_client_that_reads_gzip_gets_gzip(openapi: OpenApi) -> None:
    plain = reply(openapi, "api/v1")
    zipped = reply(openapi, "api/v1", encoding="gzip")
    assert zipped.headers()["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers()
    assert gzip.decompress(zipped.body) == plain.body
    assert len(zipped.body) * 5 < len(plain.body)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("identity", False),
        ("deflate, gzip;q=0.5", True),
        ("gzip; q=0", False),
        ("gzip;q=0.000", False),
        ("br, *", True),
        ("*;q=0, gzip", True),
        ("gzip;q=0, *", False),
    ],
)
def test_encodings_are_negotiated(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


def test_built_in_documents_are_shared_between_servers() -> None:
    first, second = (reply(OpenApi(builtin_scheme()), "apis/batch/v1") for _ in range(2))
    assert first.body is second.body


def test_custom_kinds_get_the_fields_of_every_object(scheme: Scheme) -> None:
    scheme.register(WIDGET)
    document = get(OpenApi(scheme, lambda: [widget_definition()]), WIDGET_KEY)
    widget = document["components"]["schemas"]["dev.example.v1.Widget"]
    assert widget[GVK] == [WIDGET.gvk._asdict()]
    assert set(widget["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert widget["properties"]["metadata"]["allOf"] == [{"$ref": f"{REF}{META}ObjectMeta"}]
    spec = widget["properties"]["spec"]
    assert spec["properties"]["size"]["default"] == 3
    assert set(spec["properties"]["template"]["properties"]) == {"apiVersion", "kind", "metadata"}


def test_custom_kinds_get_a_list_and_the_operations_of_their_subresources(scheme: Scheme) -> None:
    scheme.register(WIDGET)
    document = get(OpenApi(scheme, lambda: [widget_definition()]), WIDGET_KEY)
    listed = document["components"]["schemas"]["dev.example.v1.WidgetList"]
    assert listed["properties"]["items"]["items"] == {"$ref": f"{REF}dev.example.v1.Widget"}
    assert listed[GVK] == [{"group": "example.dev", "version": "v1", "kind": "WidgetList"}]
    root, item = "/apis/example.dev/v1", "namespaces/{namespace}/widgets/{name}"
    assert set(document["paths"]) == {
        f"{root}/",
        f"{root}/widgets",
        f"{root}/namespaces/{{namespace}}/widgets",
        f"{root}/{item}",
        f"{root}/{item}/scale",
        f"{root}/{item}/status",
    }
    patch = document["paths"][f"{root}/{item}"]["patch"]
    assert patch["operationId"] == "patchExampleDevV1NamespacedWidget"
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_definitions_are_not_changed(scheme: Scheme) -> None:
    scheme.register(WIDGET)
    definition = widget_definition()
    get(OpenApi(scheme, lambda: [definition]), WIDGET_KEY)
    assert definition == widget_definition()


def test_documents_follow_their_definitions(scheme: Scheme) -> None:
    definitions: list[JsonObject] = []
    openapi = OpenApi(scheme, lambda: definitions)
    before = index(openapi)
    assert WIDGET_KEY not in before

    scheme.register(WIDGET)
    undescribed = index(openapi)
    assert get(openapi, WIDGET_KEY)["components"]["schemas"]["dev.example.v1.Widget"] == {
        "type": "object",
        GVK: [WIDGET.gvk._asdict()],
    }

    definitions[:] = [widget_definition()]
    described = index(openapi)
    definitions[:] = [widget_definition(resource_version="2", description="Changed.")]
    changed = index(openapi)
    hashes = {listed[WIDGET_KEY] for listed in (undescribed, described, changed)}
    assert len(hashes) == 3
    assert before.items() < changed.items()

    scheme.unregister(WIDGET.gvk)
    assert index(openapi) == before
    assert openapi.document(f"/openapi/v3/{WIDGET_KEY}") is None


# -- real kubectl against a server of documents only ---------------------------------------------


class DocumentHandler(BaseHTTPRequestHandler):
    """Serves discovery and OpenAPI, nothing else."""

    discovery: DiscoveryDocuments
    openapi: OpenApi

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        headers, body = self._find(url.path, parse_qs(url.query).get("hash", [""])[0])
        self.send_response(200 if headers else 404)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _find(self, path: str, requested_hash: str) -> tuple[dict[str, str], bytes]:
        encoding = self.headers.get("Accept-Encoding", "")
        if path == "/openapi/v3":
            listed = self.openapi.index(accept_encoding=encoding)
            return listed.headers(), listed.body
        document = self.openapi.document(
            path, accept_encoding=encoding, requested_hash=requested_hash
        )
        if document is not None:
            return document.headers(), document.body
        found = self.discovery.document(path, self.headers.get("Accept", ""))
        return ({"Content-Type": found.content_type}, found.body) if found else ({}, b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Tests speak for themselves."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    scheme = builtin_scheme(prereleases=False)
    scheme.register(WIDGET)

    class Handler(DocumentHandler):
        discovery = DiscoveryDocuments(scheme)
        openapi = OpenApi(scheme, lambda: [widget_definition()])

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def kubectl(address: str, cache: Path, *arguments: str) -> str:
    assert KUBECTL is not None
    options = ["--server", address, "--cache-dir", str(cache), "--kubeconfig", "/dev/null"]
    done = subprocess.run(
        [KUBECTL, *options, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.conformance
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["api-resources", "-o", "name"], "deployments.apps", id="api-resources"),
        pytest.param(["api-resources", "-o", "name"], "widgets.example.dev", id="custom resource"),
        pytest.param(
            ["explain", "pod.spec.containers"], "FIELD: containers <[]Container>", id="explain"
        ),
        pytest.param(
            ["explain", "deployment", "--recursive"],
            "terminationGracePeriodSeconds",
            id="recursive",
        ),
        pytest.param(["explain", "widget.spec"], "size\t<integer> -required-", id="explain custom"),
    ],
)
def test_kubectl_reads_the_documents(
    address: str, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    assert expected in kubectl(address, tmp_path, *arguments)


def test_parameters_of_a_path_are_required_and_others_are_not(openapi: OpenApi) -> None:
    paths = get(openapi, "api/v1")["paths"]
    items = [paths["/api/v1/namespaces/{namespace}/pods/{name}"], *paths.values()]
    found = {
        (each["in"], each.get("required", False))
        for item in items
        for each in item.get("parameters", ())
    }
    assert found == {("path", True), ("query", False)}


def test_definitions_are_decoded_when_they_have_changed_and_not_again() -> None:
    world = ClusterWorld()
    definitions, before = Definitions(world.store), len(Definitions(world.store)())
    author = Actor("author")
    version, kind = DEFINITION
    made = {"apiVersion": version, "kind": kind, **widget_definition()}
    made["metadata"] = {"name": made["metadata"]["name"]}
    versions = [{**each, "served": True, "storage": True} for each in made["spec"]["versions"]]
    made["spec"] = {**made["spec"], "scope": "Namespaced", "versions": versions[:1]}
    world.registry.create(author, made)
    found = definitions()
    assert len(found) == before + 1
    assert definitions() is found
    ref = ObjectRef(world.registry.scheme.of_kind(*DEFINITION).gvk, made["metadata"]["name"])
    world.client(author).patch(ref, {"metadata": {"labels": {"a": "b"}}})
    labels = [each["metadata"].get("labels") for each in definitions()]
    assert labels.count({"a": "b"}) == 1


DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
