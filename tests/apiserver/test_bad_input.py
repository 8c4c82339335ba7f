"""Whatever is sent, the answer is a Status, nothing is written, and the server lives."""

import json
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.http import CONFIG_MAPS, PODS, Http, config_map, pod
from kubescene.apiserver.server import Server

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def nested(depth: int) -> bytes:
    return b'{"metadata":{"name":"a"},"data":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


BILLION_LAUGHS = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (char, char, b",".join([b"*%c" % (char - 1)] * 10))
    for char in range(ord("b"), ord("k"))
)


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", JSON, 400),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b"null", JSON, 400),
        (b'"text"', JSON, 400),
        (b"{'a': 1}", JSON, 400),
        (b'{"metadata": NaN}', JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (b'{"metadata":{"name":"\xff"}}', JSON, 400),
        (nested(500), JSON, 400),
        (nested(100_000), JSON, 400),
        (b"[" * 1_000_000, JSON, 400),
        (b'{"metadata":5}', JSON, 400),
        (b'{"metadata":{"name":5}}', JSON, 400),
        (b'{"metadata":{"name":"a"},"data":[]}', JSON, 400),
        (b'{"metadata":{"name":"a"},"data":{"k":1}}', JSON, 400),
        (b'{"apiVersion":1,"metadata":{"name":"a"}}', JSON, 400),
        (b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', JSON, 400),
        (b'{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"a"}}', JSON, 400),
        (b'{"metadata":{"name":"a","namespace":"other"}}', JSON, 400),
        (b'{"metadata":{"name":"a","resourceVersion":"5"}}', JSON, 400),
        (b'{"metadata":{}}', JSON, 422),
        (b'{"metadata":{"name":"Not Legal"}}', JSON, 422),
        (b'{"metadata":{"name":"../../etc"}}', JSON, 422),
        (b'{"metadata":{"name":"a"},"data":{"bad key":"v"}}', JSON, 422),
        (b"a: [", YAML, 400),
        (b"- a\n- b\n", YAML, 400),
        (b"a: 1\n---\nb: 2\n", YAML, 400),
        (b"!!python/object/apply:os.system ['true']", YAML, 400),
        (b"a: &a [*a]", YAML, 400),
        (b"metadata: {name: a}\n? [1, 2]\n: x\n", YAML, 400),
        (b"metadata: !!binary aGVsbG8=", YAML, 400),
        (BILLION_LAUGHS, YAML, 400),
        (b"[" * 100_000, YAML, 400),
        (b"metadata: {name: a}\ndata: {~: x}\n", YAML, 400),
        (b"metadata: {name: a}\ndata: {k: !!int ''}\n", YAML, 400),
        (b"metadata: {name: a}\ndata: {k: !!bool x}\n", YAML, 400),
        (b"metadata: {name: a}\ndata: {k: !!timestamp x}\n", YAML, 400),
        (b"metadata: {name: a}\ndata: {k: 1e999}\n", YAML, 400),
        (b"metadata: {name: a}\ndata: {k: " + b"9" * 5000 + b"}\n", YAML, 400),
        (b'{"metadata":{"name":"a"},"data":{"k":' + b"9" * 5000 + b"}}", JSON, 400),
        (b'{"metadata":{"name":"\\ud800"}}', JSON, 400),
        (b"", PROTOBUF, 400),
        (b"k8s\x00", PROTOBUF, 400),
        (b"k8s\x00\x0a\xff\xff\xff\xff\x0f", PROTOBUF, 400),
        (b"not protobuf", PROTOBUF, 400),
        (b"\xd9\xd9\xf7\xa0", "application/cbor", 415),
        (b"{}", "text/plain", 415),
        (b"a=b", "application/x-www-form-urlencoded", 415),
    ],
)
def test_broken_body_is_refused(http: Http, body: bytes, content_type: str, status: int) -> None:
    before = http.get("/api/v1/configmaps").json
    reply = http.post(CONFIG_MAPS, body, content_type=content_type)
    assert reply.status == status, reply.body[:300]
    assert reply.json["kind"] == "Status"
    assert reply.json["code"] == status
    assert reply.json["reason"]
    assert "Traceback" not in reply.message
    assert http.get("/api/v1/configmaps").json == before


@pytest.mark.parametrize(
    ("patch", "kind", "status"),
    [
        (b"{", "merge-patch+json", 400),
        (b"[]", "merge-patch+json", 400),
        (b"5", "strategic-merge-patch+json", 400),
        (b"{}", "json-patch+json", 400),
        (b'[{"op":"fly","path":"/a"}]', "json-patch+json", 400),
        (b'[{"op":"remove","path":"/nope"}]', "json-patch+json", 422),
        (b'{"kind":"Pod"}', "merge-patch+json", 400),
        (b'{"metadata":null}', "merge-patch+json", 400),
        (b'{"metadata":{"name":"b"}}', "merge-patch+json", 400),
        (b'{"metadata":{"uid":"other"}}', "merge-patch+json", 409),
        (b'{"data":{"k":5}}', "merge-patch+json", 400),
        (b'{"data":5}', "strategic-merge-patch+json", 400),
        # Upstream calls this its own error, and its words are kept.
        (b'{"data":{"$patch":"explode"}}', "strategic-merge-patch+json", 500),
        (nested(300), "merge-patch+json", 400),
        (BILLION_LAUGHS, "apply-patch+yaml", 400),
        (b"data: {k: !!bool x}", "apply-patch+yaml", 400),
    ],
)
def test_broken_patch_changes_nothing(http: Http, patch: bytes, kind: str, status: int) -> None:
    before = http.post(CONFIG_MAPS, config_map("a", k="v")).json
    reply = http.patch(f"{CONFIG_MAPS}/a", patch, kind)
    assert reply.json["kind"] == "Status", reply.body[:300]
    # Upstream answers some of these with 422; what matters is that it is the client's fault.
    assert reply.status == status or (status == 400 and reply.status == 422), reply.body[:300]
    assert http.get(f"{CONFIG_MAPS}/a").json == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{CONFIG_MAPS}/a"),
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("TRACE", CONFIG_MAPS),
        ("OPTIONS", f"{CONFIG_MAPS}/a"),
        ("POST", "/api/v1/pods"),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        ("POST", "/api/v1/componentstatuses"),
        ("PATCH", f"{PODS}/a/binding"),
        ("POST", "/version"),
        ("DELETE", "/apis"),
    ],
)
def test_wrong_method_is_405(http: Http, method: str, path: str) -> None:
    reply = http.request(method, path, {})
    assert (reply.status, reply.reason) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/api/v2",
        "/api/v1/widgets",
        "/apis/nope/v1/pods",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/pods/a/b/c",
        "/api/v1/namespaces/default/pods/a/shell",
        "/api/v1//pods",
        "/openapi/v3/apis/nope/v1",
        "/as//api",
    ],
)
def test_unknown_path_is_404(http: Http, path: str) -> None:
    reply = http.get(path)
    assert (reply.status, reply.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("path", ["/version", "/version/", "/api/", "/apis/apps/v1/", "/healthz/"])
def test_trailing_slash_makes_no_difference(http: Http, path: str) -> None:
    assert http.get(path).body == http.get(path.rstrip("/")).body
    assert http.get(path).status == 200


class TestSize:
    @pytest.fixture
    def small(self) -> Any:
        with Server(port=0, controllers=False, max_body=10_000) as server:
            client = Http(server.host, server.port)
            yield client
            client.close()

    def test_announced_body_is_too_large(self, small: Http) -> None:
        reply = small.post(CONFIG_MAPS, config_map("a", k="x" * 20_000))
        assert (reply.status, reply.reason) == (413, "RequestEntityTooLarge")
        assert reply.message == (
            "Request entity too large: limit is 10000 (kubescene serve --max-body raises it)"
        )

    def test_endless_body_is_too_large(self, small: Http) -> None:
        with socket.create_connection((small.host, small.port)) as raw:
            head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\n"
            head += "Transfer-Encoding: chunked\r\n\r\n"
            raw.sendall(head.encode() + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 4)
            assert raw.recv(12) == b"HTTP/1.1 413"
        assert small.get("/healthz").body == b"ok"

    def test_abandoned_request_harms_nobody(self, small: Http) -> None:
        with socket.create_connection((small.host, small.port)) as raw:
            raw.sendall(f"POST {CONFIG_MAPS} HTTP/1.1\r\nContent-Length: 99\r\n\r\n{{".encode())
        assert small.get("/healthz").body == b"ok"

    def test_no_http_harms_nobody(self, small: Http) -> None:
        with socket.create_connection((small.host, small.port)) as raw:
            raw.sendall(b"\x16\x03\x01 this is not http\r\n\r\n")
            assert raw.recv(12) in (b"HTTP/1.1 400", b"")
        assert small.get("/healthz").body == b"ok"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["spec", "metadata", "name", "containers", "image", "status", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=st.dictionaries(st.sampled_from(["spec", "metadata", "status"]), JSON_VALUES))
def test_any_json_gets_a_client_error_or_is_created(http: Http, changes: Any) -> None:
    reply = http.post(PODS, json.dumps({**pod("a"), **changes}).encode())
    assert reply.status in (201, 400, 403, 409, 422), reply.body
    if reply.status == 201:
        assert http.delete(f"{PODS}/{reply.json['metadata']['name']}").status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/batch/v1/namespaces/default/jobs", {"metadata": None}),
        ("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a", "labels": 5}}),
        ("/api/v1/nodes", {"metadata": {"name": "a", "ownerReferences": [None]}}),
        ("/apis/apps/v1/namespaces/default/replicasets", {"spec": {"template": []}}),
    ],
    ids=["nameless-job", "labels", "owners", "template"],
)
def test_missing_parts_are_the_clients_fault(http: Http, path: str, body: Any) -> None:
    assert http.post(path, body).status in (400, 422)


def test_unforeseen_failure_is_a_500_and_is_logged(
    server: Server, http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("a secret detail")

    server.cluster.registry.create = explode  # type: ignore[method-assign, assignment]
    reply = http.post(CONFIG_MAPS, config_map("a"))
    assert (reply.status, reply.reason) == (500, "InternalError")
    assert "secret" not in reply.message
    assert "a secret detail" in caplog.text
    assert http.get("/healthz").status == 200
