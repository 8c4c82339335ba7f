"""One world twice: embedded, and behind a real socket."""

from collections.abc import Iterator

import pytest

from client.worlds import DirectWorld, HttpWorld, World
from stopping import Retire, retiring


@pytest.fixture(scope="session")
def retire() -> Iterator[Retire]:
    with retiring() as retire:
        yield retire


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
