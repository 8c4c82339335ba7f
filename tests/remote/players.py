"""A controller of scenarios in the test's own thread: it plays until what was created is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.client import ObjectRef
from kubescene.client.http import HttpClient
from kubescene.remote.cluster import RemoteCluster
from kubescene.remote.player import Player
from kubescene.types import JsonObject
from remote.api_servers import ApiServer, client_of, endpoint_of

ENDED = ("Paused", "Succeeded", "Failed")


class Stage:
    """A player, the cluster it plays in, and a client of somebody else."""

    def __init__(self, cluster: RemoteCluster, player: Player, user: HttpClient) -> None:
        self.cluster = cluster
        self.player = player
        self.user = user

    def play(self, scenario: JsonObject) -> JsonObject:
        """Create it and play until it has come to an end or to a pause; the object then."""
        self.user.create(scenario)
        return self.go_on(scenario["metadata"]["name"])

    def go_on(self, name: str) -> JsonObject:
        while self.player.turn(0.2) or self.phase(name) not in ENDED:
            pass
        return self.user.get(ObjectRef(SCENARIO, name))

    def phase(self, name: str) -> str:
        found = self.user.find(ObjectRef(SCENARIO, name)) or {}
        return str((found.get("status") or {}).get("phase") or "")


@contextmanager
def staged(server: ApiServer, out: Path, **options: Any) -> Iterator[Stage]:
    cluster = RemoteCluster(endpoint_of(server.kubeconfig))
    player = Player(cluster, out, **options)
    try:
        with client_of(server.outsider) as user:
            player.scenarios.begin()
            yield Stage(cluster, player, user)
    finally:
        player.close()
        cluster.close()
