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
    """To lay out a Scenario of fifty megabytes takes minutes, and gigabytes."""
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
    assert read(render(cluster, YAML)) == plain
    assert len(laid_out) == 1 + count
    resource_type = cluster.scheme.of_kind("v1", "ConfigMap")
    one = cluster.store.list(resource_type.group_resource)[-1]
    alone = Renderer(cluster.registry).object_response(one, resource_type, negotiate(YAML))
    assert read(alone)["data"]["a"] == AWKWARD
    assert len(laid_out) == 1 + count
