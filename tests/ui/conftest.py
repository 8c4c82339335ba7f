"""A browser for all tests of pages, and servers to look at."""

from collections.abc import Iterator

import pytest

from browser import Browser, chromium
from kubescene.apiserver.server import Server
from kubescene.testing import make_deployment, make_node, make_pod
from ui.walking import HOSTILE


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = chromium()
    assert program is not None
    with Browser(program) as running:
        yield running


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(port=0)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def populated(server: Server) -> Server:
    """Six nodes in two zones, a Deployment that fits, a pod that does not, a closed node."""
    cluster = server.cluster

    def fill() -> None:
        for number in range(6):
            node = make_node(f"node-{number}").cpu("8").memory("32Gi").zone("ab"[number % 2])
            cluster.create(node)
        cluster.create(make_deployment("web").replicas(9))
        cluster.create(make_pod("large").cpu("9").annotate({"example/hostile": HOSTILE}))
        cluster.patch("nodes", "node-5", {"spec": {"unschedulable": True}})

    server.engine.call(fill)
    return server
