"""One world twice: embedded, and behind a real socket."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

import pytest

from client.worlds import DirectWorld, HttpWorld, World
from kubescene.apiserver.server import Server

Retire: TypeAlias = Callable[[Server], None]


@pytest.fixture(scope="session")
def retire() -> Iterator[Retire]:
    """Stops servers in the background: an orderly end takes as long as many a test."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        stopping: list[Future[None]] = []
        yield lambda server: stopping.append(pool.submit(server.stop))
        for each in stopping:
            each.result()


@pytest.fixture
def served(retire: Retire) -> Iterator[HttpWorld]:
    """A served cluster without controllers: nothing changes unless the test changes it."""
    world = HttpWorld()
    yield world
    world.close()
    retire(world.server)


@pytest.fixture(params=["direct", "http"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "direct":
        return DirectWorld()
    served: HttpWorld = request.getfixturevalue("served")
    return served
