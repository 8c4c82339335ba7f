"""Long lists in forms that have to be decoded: others are served meanwhile."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml

from apiserver.http import config_map
from kubescene import Cluster
from kubescene.api.records import Record
from kubescene.api.text import pieces
from kubescene.apiserver.kubernetes import rendering
from kubescene.apiserver.kubernetes.rendering import MANY_DECODED, ListMeta, Renderer
from kubescene.apiserver.negotiation import negotiate
from kubescene.apiserver.responses import Response
from kubescene.types import JsonValue

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
YAML = "application/yaml"
MEMBERS = {TABLE: "rows", METADATA: "items", YAML: "items"}


def world(count: int) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        cluster.create(config_map(f"c{number:05}"))
    return cluster


def render(cluster: Cluster, accept: str) -> Response:
    """The list of all config maps."""
    resource_type = cluster.scheme.of_kind("v1", "ConfigMap")
    records = cluster.store.list(resource_type.group_resource)
    renderer, form = Renderer(cluster.registry), negotiate(accept)
    return asyncio.run(renderer.list_response(records, resource_type, form, ListMeta(7)))


def read(response: Response) -> Any:
    return yaml.safe_load(response.body)


@pytest.mark.parametrize("accept", MEMBERS)
@pytest.mark.parametrize("count", [0, 1, 2, MANY_DECODED, MANY_DECODED + 1])
def test_a_list_is_written_object_by_object_beside_the_event_loop(
    accept: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    threads: set[bool] = set()

    def noted(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            done.append(name)
            threads.add(threading.current_thread() is threading.main_thread())
            return plain(*arguments, **options)

        return call

    cluster = world(count)
    monkeypatch.setattr(Renderer, "decode", noted("decode", Renderer.decode))
    if accept == YAML:
        monkeypatch.setattr(rendering, "_yaml_item", noted("decode", rendering._yaml_item))
    response = render(cluster, accept)
    assert done == ["decode"] * count
    assert threads == ({count <= MANY_DECODED} if count else set())
    document = read(response)
    assert document["metadata"]["resourceVersion"] == "7"
    objects = [each.get("object", each) for each in document[MEMBERS[accept]]]
    assert [obj["metadata"]["name"] for obj in objects] == [f"c{n:05}" for n in range(count)]


@pytest.mark.parametrize("accept", [METADATA, TABLE])
def test_an_object_is_written_before_the_next_one_is_read(
    accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    decode, dumps = Renderer.decode, orjson.dumps

    class Noting:
        @staticmethod
        def dumps(value: Any) -> bytes:
            done.append("written")
            return dumps(value)

    def noted(*arguments: Any) -> Any:
        done.append("read")
        return decode(*arguments)

    cluster = world(3)
    monkeypatch.setattr(Renderer, "decode", noted)
    monkeypatch.setattr(rendering, "orjson", Noting)
    render(cluster, accept)
    assert done == ["written", *["read", "written"] * 3]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_in_yaml_is_what_the_writer_makes_of_the_whole(count: int) -> None:
    text = render(world(count), YAML).body.decode()
    document = yaml.safe_load(text)
    assert text == yaml.safe_dump(document, sort_keys=True, default_flow_style=False)
    assert len(document["items"]) == count


AWKWARD = "".join(map(chr, (*range(0x200), 0x2028, 0x2029, 0xFEFF, 0xFFFD, 0xFFFE, 0x1F600)))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_is_large_is_written_in_one_line_in_yaml(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And escaped piece by piece, wherever the pieces end.

    To lay out a Scenario of fifty megabytes takes minutes, and gigabytes; to read one is to keep
    Python's lock for a second.
    """
    cluster = world(count)
    cluster.create({**config_map("long"), "data": {"a": AWKWARD, "b": "é - x: {y}"}})
    plain = read(render(cluster, YAML))
    laid_out: list[JsonValue] = []
    lay_out = rendering._yaml

    def noted(value: JsonValue) -> bytes:
        laid_out.append(value)
        return lay_out(value)

    monkeypatch.setattr(rendering, "_yaml", noted)
    monkeypatch.setattr(rendering, "LONG_YAML", 1000)
    monkeypatch.setattr(pieces, "PIECE", 7)
    monkeypatch.setattr(Record, "decode", None)
    assert read(render(cluster, YAML)) == plain
    assert len(laid_out) == 1 + count
    resource_type = cluster.scheme.of_kind("v1", "ConfigMap")
    one = cluster.store.list(resource_type.group_resource)[-1]
    alone = Renderer(cluster.registry).object_response(one, resource_type, negotiate(YAML))
    assert read(alone)["data"]["a"] == AWKWARD
    assert len(laid_out) == 1 + count


def definition(*paths: str) -> dict[str, Any]:
    columns = [
        {"name": f"C{number}", "type": "string", "jsonPath": path}
        for number, path in enumerate(paths)
    ]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bigs.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"plural": "bigs", "singular": "big", "kind": "Big", "listKind": "BigList"},
            "versions": [version],
        },
    }


LARGE_OBJECT = {
    "apiVersion": "x.io/v1",
    "kind": "Big",
    "metadata": {"name": "b", "labels": {"a": "b"}},
    "spec": {"size": "10", "parts": ["part"] * 500},
    "status": {"phase": "Ready", "told": {"at": "7"}, "log": {"1": ["line"] * 1000}},
    "statuses": {"more": "8"},
}


@pytest.mark.parametrize(
    ("paths", "cells", "whole"),
    [
        ([".status.phase", ".status.told.at"], ["Ready", "7"], False),
        ([".metadata.labels.a"], ["b"], False),
        ([".status.log.1[0]"], ["line"], False),
        ([".status.nothing"], [None], False),
        ([".status['phase']"], ["Ready"], False),
        ([".spec.size"], ["10"], True),
        ([".status.phase", ".statuses.more"], ["Ready", "8"], True),
    ],
)
def test_of_a_large_object_a_table_reads_what_it_shows(
    paths: list[str], cells: list[str], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a Scenario is that was imported, or that a server found on disk when it began."""
    cluster = Cluster()
    cluster.create(definition(*paths))
    cluster.settle()
    cluster.create(LARGE_OBJECT)
    resource_type = cluster.scheme.of_kind("x.io/v1", "Big")
    records = cluster.store.list(resource_type.group_resource)
    renderer = Renderer(cluster.registry)

    def shown(accept: str) -> Any:
        form = negotiate(accept)
        response = renderer.list_response(records, resource_type, form, ListMeta(7))
        return read(asyncio.run(response))

    plain = shown(TABLE), shown(METADATA)
    assert plain[0]["rows"][0]["cells"] == ["b", *cells]
    monkeypatch.setattr(pieces, "PIECE", 300)
    decoded: list[str] = []
    decode = Record.decode

    def noted(record: Record) -> Any:
        decoded.append(threading.current_thread().name)
        return decode(record)

    monkeypatch.setattr(Record, "decode", noted)
    assert (shown(TABLE), shown(METADATA)) == plain
    assert bool(decoded) == whole
    assert "MainThread" not in decoded
    monkeypatch.setattr(rendering, "essence", None)
    assert (shown(TABLE), shown(METADATA)) == plain, "it is remembered"


def test_of_another_version_it_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, both = Cluster(), definition(".status.phase")
    (first,) = both["spec"]["versions"]
    both["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    cluster.create(both)
    cluster.settle()
    cluster.create(LARGE_OBJECT)
    monkeypatch.setattr(pieces, "PIECE", 300)
    for version in ("x.io/v1", "x.io/v2"):
        resource_type = cluster.scheme.of_kind(version, "Big")
        record = cluster.store.list(resource_type.group_resource)[0]
        renderer, form = Renderer(cluster.registry), negotiate(METADATA)
        found = renderer.decoded_for(record, resource_type, form, "")
        assert found["apiVersion"] == version
