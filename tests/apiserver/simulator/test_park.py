"""``POST /simulator/v1/park``: what is left of those who waited."""

from apiserver.http import Http
from apiserver.scenarios import play
from kubescene.apiserver.server import Server
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node


def test_who_waited_in_vain_is_not_kept(live_server: Server, live: Http) -> None:
    assert play(live, ScenarioBuilder("paused").create(make_node("a")))["phase"] == "Paused"
    reply = live.post("/simulator/v1/park?timeoutSeconds=1", {"name": "nobody"})
    assert reply.status == 200, reply.body
    assert not reply.json["go"]
    assert not live_server.app.turnstile._waiting
