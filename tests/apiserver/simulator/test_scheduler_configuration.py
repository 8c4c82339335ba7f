"""GET and POST of the scheduler's configuration on a served world."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from apiserver.http import Http, pod
from kubescene.apiserver.server import Server
from kubescene.clock import VirtualClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PodInfo,
    SchedulerOptions,
    Status,
)
from kubescene.types import JsonObject

PATH = "/simulator/v1/schedulerconfiguration"
PODS = "/api/v1/namespaces/default/pods"
V1 = "kubescheduler.config.k8s.io/v1"
HEADER = {"apiVersion": V1, "kind": "KubeSchedulerConfiguration"}
ONLY_B = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}
    ]
}
ADDED = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ONLY_B}}
TO_B = {**HEADER, "profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": ADDED}]}]}


def node(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
    }


@pytest.fixture
def server() -> Iterator[Server]:
    cluster = ClusterWorld(ClusterOptions(events=True), clock=VirtualClock())
    with Server(cluster, port=0) as server:
        yield server


@pytest.fixture
def http(server: Server) -> Iterator[Http]:
    host, _, port = server.url.removeprefix("http://").partition(":")
    client = Http(host, int(port))
    yield client
    client.close()


def placed(http: Http, name: str) -> str:
    """Where a new pod goes: time moves once every controller has come to rest."""
    assert http.post(PODS, pod(name)).status == 201
    assert http.post("/simulator/v1/advance", {"duration": "1s"}).status == 200
    found: str = http.get(f"{PODS}/{name}").json["spec"].get("nodeName", "")
    return found


def test_the_configuration_in_force_is_shown_complete(http: Http) -> None:
    shown = http.get(PATH).json
    assert shown["kind"] == "KubeSchedulerConfiguration"
    assert shown["parallelism"] == 16
    enabled = shown["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert {"name": "TaintToleration", "weight": 3} in enabled


def test_a_new_configuration_takes_effect_and_is_shown(http: Http) -> None:
    for name in "ab":
        http.post("/api/v1/nodes", node(name))
    assert placed(http, "before") == "a"
    answer = http.post(PATH, TO_B)
    assert answer.status == 202
    assert http.get(PATH).json == answer.json
    assert [placed(http, f"after-{at}") for at in range(3)] == ["b"] * 3
    assert http.get(f"{PODS}/before").json["spec"]["nodeName"] == "a"


def test_a_pod_that_waited_is_tried_by_the_new_scheduler(http: Http) -> None:
    http.post("/api/v1/nodes", node("a"))
    http.post(PATH, TO_B)
    assert placed(http, "p") == ""
    http.post(PATH, HEADER)
    http.post("/simulator/v1/advance", {"duration": "1s"})
    assert http.get(f"{PODS}/p").json["spec"]["nodeName"] == "a"


def test_yaml_is_read_too(http: Http) -> None:
    text = f"apiVersion: {V1}\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 77\n"
    answer = http.request("POST", PATH, text.encode(), content_type="application/yaml")
    assert (answer.status, answer.json["podMaxBackoffSeconds"]) == (202, 77)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({**HEADER, "nonsense": 1}, "nonsense"),
        (
            {**HEADER, "profiles": [{"plugins": {"filter": {"enabled": [{"name": "X"}]}}}]},
            "profiles[0].plugins.filter.enabled[0]",
        ),
        ({**HEADER, "parallelism": 0}, "parallelism"),
        ({"kind": "KubeSchedulerConfiguration"}, "apiVersion"),
    ],
)
def test_a_bad_configuration_is_refused_with_its_path_and_changes_nothing(
    http: Http, config: JsonObject, path: str
) -> None:
    before = http.get(PATH).body
    refused = http.post(PATH, config)
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert refused.json["details"]["causes"][0]["field"] == path
    assert path in refused.message
    assert http.get(PATH).body == before


def test_what_a_web_page_could_send_is_refused(http: Http) -> None:
    assert http.request("POST", PATH, b"{}", content_type="text/plain").status == 415
    assert http.put(PATH, HEADER).status == 405


def test_no_client_makes_the_server_call_an_address(http: Http) -> None:
    extender = {"urlPrefix": "http://127.0.0.1:9", "filterVerb": "filter"}
    refused = http.post(PATH, {**HEADER, "extenders": [extender]})
    assert refused.status == 403
    assert "--allow-extenders" in refused.message


class Demanding(FilterPlugin):
    """Cannot be made without an argument."""

    name = "Demanding"

    def __init__(self, arguments: Mapping[str, Any], handle: Handle) -> None:
        del handle
        self.only = arguments["only"]

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == self.only else Status.unschedulable("no")


def test_a_plugin_that_cannot_be_made_leaves_the_scheduler_that_runs() -> None:
    known = SchedulerOptions(plugins={"Demanding": Demanding})
    cluster = ClusterWorld(ClusterOptions(scheduler=known), clock=VirtualClock())
    plugins = {"multiPoint": {"enabled": [{"name": "Demanding"}]}}
    with Server(cluster, port=0) as server:
        http = Http(server.host, server.port)
        for name in "ab":
            http.post("/api/v1/nodes", node(name))
        before = http.get(PATH).body
        refused = http.post(PATH, {**HEADER, "profiles": [{"plugins": plugins}]})
        assert (refused.status, refused.reason) == (422, "Invalid")
        assert "initializing plugin \"Demanding\": KeyError: 'only'" in refused.message
        assert http.get(PATH).body == before
        assert placed(http, "p") == "a"
        given = {"plugins": plugins, "pluginConfig": [{"name": "Demanding", "args": {"only": "b"}}]}
        assert http.post(PATH, {**HEADER, "profiles": [given]}).status == 202
        assert [placed(http, f"q{at}") for at in range(3)] == ["b"] * 3
        http.close()


def test_a_dry_run_says_what_it_would_be_and_changes_nothing(http: Http) -> None:
    before = http.get(PATH).json
    reply = http.post(f"{PATH}?dryRun=All", TO_B)
    assert reply.status == 200
    assert reply.json != before
    assert http.get(PATH).json == before
    wrong = {**HEADER, "profiles": [{"plugins": {"score": {"enabled": [{"name": "Nobody"}]}}}]}
    assert http.post(f"{PATH}?dryRun=All", wrong).status == 422
    assert http.post(PATH, TO_B).json == reply.json
