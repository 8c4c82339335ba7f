"""A real server on a free port, and a client that sees every byte of the protocol."""

from collections import deque
from collections.abc import Iterator

import pytest

from apiserver.http import Http
from kubescene.apiserver.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    """A served cluster without controllers: nothing changes unless the test changes it."""
    with Server(port=0, controllers=False) as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    client = Http(server.host, server.port)
    yield client
    client.close()


@pytest.fixture
def live() -> Iterator[Http]:
    """A client of a served cluster whose controllers run."""
    with Server(port=0) as running:
        client = Http(running.host, running.port)
        yield client
        client.close()


@pytest.fixture
def small_window(server: Server) -> None:
    """Let the server forget all but its newest ten changes."""
    history = server.cluster.store.history
    server.engine.call(lambda: setattr(history, "_changes", deque(history._changes, maxlen=10)))
