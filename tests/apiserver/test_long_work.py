"""What takes long is done in pieces: others have their turn in between."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, Http, config_map
from kubescene.actors import Actor
from kubescene.apiserver import responses
from kubescene.apiserver.kubernetes import writes
from kubescene.apiserver.responses import Response
from kubescene.apiserver.server import Server
from kubescene.cluster import ClusterWorld


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 25])
def test_a_large_reply_is_sent_piece_by_piece(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "PIECE", 10)
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    body = bytes(range(size))
    asyncio.run(Response(body).send(send))
    pieces = sent[1:]
    assert b"".join(each["body"] for each in pieces) == body
    assert all(len(each["body"]) <= 10 for each in pieces)
    assert [each.get("more_body", False) for each in pieces] == [True] * (len(pieces) - 1) + [False]


def test_a_large_collection_is_deleted_in_several_commands(
    http: Http, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "DELETED_AT_ONCE", 3)
    for number in range(8):
        http.request("POST", CONFIG_MAPS, config_map(f"m-{number}"))
    deletions, submit = [0], server.engine.submit
    delete = server.cluster.registry.delete

    async def counted(command: Any) -> Any:
        deletions.append(0)
        return await submit(command)

    def noted(*arguments: Any, **options: Any) -> Any:
        deletions[-1] += 1
        return delete(*arguments, **options)

    monkeypatch.setattr(server.engine, "submit", counted)
    monkeypatch.setattr(server.cluster.registry, "delete", noted)
    reply = http.request("DELETE", CONFIG_MAPS)
    assert len(reply.json["items"]) == 8
    assert [each for each in deletions if each] == [3, 3, 2]


def test_controllers_go_before_objects_do() -> None:
    world = ClusterWorld()
    world.start(list(world.registrations))
    client = world.client(Actor("author"))
    for number in range(3):
        client.create(config_map(f"m-{number}") | {"apiVersion": "v1", "kind": "ConfigMap"})
    before = world.count_objects()
    assert world.clear(2)
    assert (list(world.slots), world.count_objects()) == ([], before)
    assert world.clear(2)
    assert world.count_objects() == before - 2
