"""Worlds that clients are tested in, and the little that tests must know of their difference."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kubescene.actors import Actor
from kubescene.apiserver.server import Server
from kubescene.client import Client, DirectClient
from kubescene.client.http import HttpClient
from kubescene.clock import WallClock
from kubescene.cluster import ClusterWorld as ServedCluster

PATIENCE_S = 120.0

T = TypeVar("T")


class World(Protocol):
    """A cluster, and clients of it."""

    @property
    def cluster(self) -> ServedCluster: ...

    def client(self, name: str = "tester", wake: Callable[[], None] | None = None) -> Client: ...

    def run(self, command: Callable[[], T]) -> T:
        """Do something to the cluster, on the thread that owns it."""
        ...

    def until(self, client: Client, happened: Callable[[], Any]) -> None:
        """Let the client hear of what others did, until something has happened."""
        ...


class DirectWorld:
    """Embedded: what is written is heard at once."""

    def __init__(self) -> None:
        self.cluster = ServedCluster(clock=WallClock())
        # As every API server does.
        self.cluster.registry.track_fields = True

    def client(self, name: str = "tester", wake: Callable[[], None] | None = None) -> DirectClient:
        return DirectClient(self.cluster.registry, Actor(name), wake)

    def run(self, command: Callable[[], T]) -> T:
        return command()

    def until(self, client: Client, happened: Callable[[], Any]) -> None:
        del client
        assert happened()


class HttpWorld:
    """Served on a free port of this machine."""

    def __init__(self) -> None:
        self.server = Server(port=0, controllers=False)
        self.server.start()
        self._clients: list[HttpClient] = []

    @property
    def cluster(self) -> ServedCluster:
        return self.server.cluster

    def client(
        self, name: str = "tester", wake: Callable[[], None] | None = None, **options: Any
    ) -> HttpClient:
        url = f"{self.server.url}/as/{name}"
        client = HttpClient(url, Actor(name), wake, **options)
        self._clients.append(client)
        return client

    def run(self, command: Callable[[], T]) -> T:
        return self.server.engine.call(command)

    def until(self, client: Client, happened: Callable[[], Any]) -> None:
        assert isinstance(client, HttpClient)
        pump_until(client, happened)

    def close(self) -> None:
        for client in self._clients:
            client.close()


def pump_until(client: HttpClient, happened: Callable[[], Any]) -> None:
    """Fails if nothing at all is heard for `PATIENCE_S` although it has not happened."""
    while not happened():
        assert client.pump(PATIENCE_S), "nothing more was heard"
