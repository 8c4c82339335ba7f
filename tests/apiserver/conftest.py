"""A real server on a free port, and a client that sees every byte of the protocol."""

import os
from collections.abc import Iterator

import pytest

from apiserver.http import Http
from kubescene.apiserver.server import Server
from stopping import Retire, retiring
from watchdog import guarded


@pytest.fixture(autouse=True)
def watchdog(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Threads that wait for each other for good end the run, and say where they stand."""
    with capfd.disabled():
        stderr = os.dup(2)
    with guarded(stderr):
        yield
    os.close(stderr)


@pytest.fixture(scope="session")
def retire() -> Iterator[Retire]:
    with retiring() as retire:
        yield retire


@pytest.fixture
def server(retire: Retire) -> Iterator[Server]:
    """A served cluster without controllers: nothing changes unless the test changes it."""
    running = Server(port=0, controllers=False)
    running.start()
    yield running
    retire(running)


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    client = Http(server.host, server.port)
    yield client
    client.close()


@pytest.fixture
def live_server(retire: Retire) -> Iterator[Server]:
    """A served cluster whose controllers run."""
    running = Server(port=0)
    running.start()
    yield running
    retire(running)


@pytest.fixture
def live(live_server: Server) -> Iterator[Http]:
    """A client of a served cluster whose controllers run."""
    client = Http(live_server.host, live_server.port)
    yield client
    client.close()


@pytest.fixture
def small_window(server: Server) -> None:
    """Let the server forget all but its newest ten changes."""
    history = server.cluster.store.history
    server.engine.call(lambda: setattr(history, "window", 10))
