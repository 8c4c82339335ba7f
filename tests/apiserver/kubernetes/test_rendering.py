"""Long lists in forms that have to be decoded: others are served meanwhile."""

import asyncio

import orjson
import pytest

from apiserver.http import config_map
from kubescene import Cluster
from kubescene.apiserver.kubernetes.rendering import SLICE, ListMeta, Renderer
from kubescene.apiserver.negotiation import negotiate
from kubescene.apiserver.responses import Response

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
COUNT = 4 * SLICE + 1


async def render(cluster: Cluster, accept: str) -> tuple[Response, int]:
    """The list of all config maps, and how many turns somebody else got."""
    turns, done = 0, False

    async def somebody_else() -> None:
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(somebody_else())
    resource_type = cluster.scheme.of_kind("v1", "ConfigMap")
    records = cluster.store.list(resource_type.group_resource)
    response = await Renderer(cluster.registry).list_response(
        records, resource_type, negotiate(accept), ListMeta(7)
    )
    done = True
    await other
    return response, turns


@pytest.mark.parametrize(("accept", "member"), [(TABLE, "rows"), (METADATA, "items")])
def test_others_are_served_while_a_long_list_is_written(accept: str, member: str) -> None:
    cluster = Cluster()
    for number in range(COUNT):
        cluster.create(config_map(f"c{number:05}"))
    response, turns = asyncio.run(render(cluster, accept))
    document = orjson.loads(response.body)
    assert turns >= COUNT // SLICE
    assert document["metadata"]["resourceVersion"] == "7"
    objects = [each.get("object", each) for each in document[member]]
    assert [obj["metadata"]["name"] for obj in objects] == [f"c{n:05}" for n in range(COUNT)]
