"""Extenders of a served world: they may call back, and no client may bring its own."""

from collections.abc import Iterator

import pytest

from apiserver.http import Http, pod
from apiserver.scenarios import create, get, play, wait
from kubescene.apiserver.server import Server
from kubescene.clock import WallClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler.configuration import read_configuration
from kubescene.testing.builders import make_node, make_pod
from kubescene.types import JsonObject
from scheduler.extender_process import FakeExtender, fake_extender

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PATH = "/simulator/v1/schedulerconfiguration"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeExtender]:
    with fake_extender() as extender:
        yield extender


@pytest.fixture
def server() -> Iterator[Server]:
    cluster = ClusterWorld(ClusterOptions(events=True), clock=WallClock())
    with Server(cluster, port=0, allow_extenders=True) as server:
        yield server


def connected(server: Server) -> Http:
    return Http(server.host, server.port)


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    client = connected(server)
    yield client
    client.close()


def node(name: str) -> JsonObject:
    return make_node(name).cpu("4").memory("8Gi").build()


def bound(http: Http, name: str) -> JsonObject:
    """The pod once it has a node."""
    with http.watch(f"{PODS}?watch=true&resourceVersion=0") as events:
        while True:
            found: JsonObject = events.next()["object"]
            if found["metadata"]["name"] == name and found["spec"].get("nodeName"):
                return found


@pytest.mark.parametrize("verb", ["filter", "bind"])
def test_an_extender_that_calls_back_does_not_block_the_world(
    fake: FakeExtender, server: Server, http: Http, verb: str
) -> None:
    url = fake.url(f"calling/{server.host}:{server.port}")
    extender = {"urlPrefix": url, f"{verb}Verb": verb, "nodeCacheCapable": True}
    assert http.post(PATH, {**HEADER, "extenders": [extender]}).status == 202
    for name in "ab":
        http.post("/api/v1/nodes", node(name))
    http.post(PODS, pod("p"))
    where = bound(http, "p")["spec"]["nodeName"]
    if verb == "filter":
        assert where == "b"
        assert http.get("/api/v1/namespaces/default/configmaps/seen-p").status == 200
    else:
        assert [call["body"]["Node"] for call in fake.calls("calling")[-1:]] == [where]


def test_a_stalling_extender_holds_up_no_request(fake: FakeExtender, http: Http) -> None:
    slow = {"urlPrefix": fake.url("slow"), "filterVerb": "filter", "httpTimeout": "20s"}
    http.post(PATH, {**HEADER, "extenders": [slow]})
    http.post("/api/v1/nodes", node("a"))
    http.post(PODS, pod("p"))
    assert http.post(PODS, pod("q")).status == 201
    assert http.get(f"{PODS}/p").json["spec"].get("nodeName") is None
    assert http.post(PATH, HEADER).status == 202  # the scheduler begins anew, without it
    assert bound(http, "p")["spec"]["nodeName"] == "a"


def with_extender(fake: FakeExtender) -> ScenarioBuilder:
    extender = {"urlPrefix": fake.url("good"), "filterVerb": "filter", "nodeCacheCapable": True}
    scenario = ScenarioBuilder("s").settings(schedulerConfig={**HEADER, "extenders": [extender]})
    for name in "abc":
        scenario.create(make_node(name).cpu("4").memory("8Gi"))
    return scenario.create(make_pod("p").cpu("1")).done()


def test_a_scenario_may_bring_an_extender_where_that_is_allowed(
    fake: FakeExtender, http: Http
) -> None:
    assert play(http, with_extender(fake))["phase"] == "Succeeded"
    assert http.get(f"{PODS}/p").json["spec"]["nodeName"] == "c"


def test_a_scenario_may_not_bring_an_extender_otherwise(fake: FakeExtender) -> None:
    before = len(fake.calls())
    with Server(port=0) as server:
        http = connected(server)
        found = play(http, with_extender(fake))
        assert found["phase"] == "Failed"
        assert "spec.simulation.schedulerConfig.extenders" in found["message"]
        assert "--allow-extenders" in found["message"]
        assert play(http, ScenarioBuilder("next").done())["phase"] == "Succeeded"
        http.close()
    assert len(fake.calls()) == before


def test_what_the_server_was_started_with_may_be_posted_again(fake: FakeExtender) -> None:
    extender = {"urlPrefix": fake.url("good"), "filterVerb": "filter", "nodeCacheCapable": True}
    scheduler = read_configuration({**HEADER, "extenders": [extender]})
    with Server(
        ClusterWorld(ClusterOptions(scheduler=scheduler), clock=WallClock()), port=0
    ) as server:
        http = connected(server)
        in_force = http.get(PATH).json
        assert http.post(PATH, {**in_force, "podMaxBackoffSeconds": 20}).status == 202
        other = {**extender, "urlPrefix": fake.url("lying")}
        assert http.post(PATH, {**in_force, "extenders": [other]}).status == 403
        http.close()


def test_a_new_configuration_fails_the_scenario_that_is_under_way(http: Http) -> None:
    create(http, ScenarioBuilder("s").create(node("a")))
    wait(http, "s", "Paused")
    assert http.post(PATH, {**HEADER, "podMaxBackoffSeconds": 30}).status == 202
    found = get(http, "s")["status"]
    assert found["phase"] == "Failed"
    assert "scheduler configuration" in found["message"]
    assert http.get(PATH).json["podMaxBackoffSeconds"] == 30


def test_an_unknown_plugin_fails_a_scenario_and_leaves_the_server_unharmed(http: Http) -> None:
    plugins = {"score": {"enabled": [{"name": "Nope"}]}}
    bad = ScenarioBuilder("bad").settings(
        schedulerConfig={**HEADER, "profiles": [{"plugins": plugins}]}
    )
    found = play(http, bad.done())
    assert found["phase"] == "Failed"
    assert "profiles[0].plugins.score.enabled[0]" in found["message"]
    assert play(http, ScenarioBuilder("next").create(node("a")).done())["phase"] == "Succeeded"
