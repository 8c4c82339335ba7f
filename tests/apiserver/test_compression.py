"""Large replies are packed for those who can unpack them; ``/metrics``."""

import gzip
import json

import pytest

from apiserver.http import Http
from kubescene.apiserver.responses import SMALLEST, accepts_gzip

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, size: int) -> dict[str, object]:
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"x": "y" * size},
    }


def header(headers: list[tuple[str, str]], name: str) -> str:
    return {key.lower(): value for key, value in headers}.get(name, "")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("GZIP ; q=1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("br", False),
        ("", False),
    ],
)
def test_who_accepts_gzip(given: str, expected: bool) -> None:
    assert accepts_gzip(given) is expected


def test_a_large_list_is_packed_if_the_client_wants_that(http: Http) -> None:
    for name in ("a", "b"):
        http.post(MAPS, config_map(name, SMALLEST))
    plain = http.get(MAPS)
    packed = http.request("GET", MAPS, headers={"Accept-Encoding": "gzip"})
    assert header(plain.headers, "content-encoding") == ""
    assert header(packed.headers, "content-encoding") == "gzip"
    assert header(packed.headers, "vary") == "Accept-Encoding"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) // 10


def test_a_small_reply_is_sent_as_it_is(http: Http) -> None:
    http.post(MAPS, config_map("a", SMALLEST // 2))
    reply = http.request("GET", f"{MAPS}/a", headers={"Accept-Encoding": "gzip"})
    assert header(reply.headers, "content-encoding") == ""
    assert json.loads(reply.body)["metadata"]["name"] == "a"


def test_metrics_tell_what_is_stored(http: Http) -> None:
    http.post(MAPS, config_map("a", 1))
    reply = http.get("/metrics")
    assert reply.status == 200
    assert header(reply.headers, "content-type").startswith("text/plain; version=0.0.4")
    lines = reply.body.decode().splitlines()
    assert 'apiserver_storage_objects{group="",resource="configmaps"} 1' in lines
    assert 'apiserver_storage_objects{group="",resource="namespaces"} 4' in lines
    assert http.post("/metrics", {}).status == 405
