"""Same bytes: a scenario in a used server, over HTTP, gives what a run of its own gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kubescene
from apiserver.http import CONFIG_MAPS, Http, config_map, pod
from apiserver.scenarios import SCENARIOS, create, get, play, wait
from kubescene.apiserver.server import Server
from kubescene.scenario import ScenarioBuilder, load_scenario
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from playing import reads_files

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/*/scenario.yaml"))


@pytest.fixture(scope="module")
def used() -> Iterator[Http]:
    """A client of a server in which others have worked and played."""
    with Server(port=0) as server:
        http = Http(server.host, server.port)
        http.post("/api/v1/nodes", make_node("old").cpu("8").build())
        http.post("/api/v1/namespaces/default/pods", pod("old"))
        http.post(CONFIG_MAPS, config_map("old"))
        other = ScenarioBuilder("other").settings(seed=99, startTime="2040-01-01T00:00:00Z")
        other.create(make_node("n-$(INDEX)").cpu("9"), count=3)
        play(http, other.create(make_pod("p-$(INDEX)"), count=9).done())
        http.post(CONFIG_MAPS, config_map("after"))
        yield http
        http.close()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_an_example_in_a_used_server_equals_a_run_of_its_own(used: Http, path: Path) -> None:
    scenario = load_scenario(path)
    if reads_files(path):
        pytest.skip("reads files of its folder: local runs only")
    alone = kubescene.run(path)
    served = play(used, scenario)
    assert served == alone.scenario["status"]
    page = f"/simulator/v1/scenarios/{scenario['metadata']['name']}"
    assert used.get(f"{page}/summary").json == alone.summary.to_dict()
    used.delete(f"{SCENARIOS}/{scenario['metadata']['name']}")


def settings(**simulation: Any) -> JsonObject:
    builder = ScenarioBuilder("set").settings(**simulation)
    builder.create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=2)
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    return builder.create({**deployment, "spec": spec}).advance("1h").done().build()


@pytest.mark.parametrize(
    "simulation",
    [
        {"seed": 7},
        {"startTime": "2035-06-01T12:00:00Z"},
        {"kubelet": {"startDelay": "30s", "readyDelay": "1m"}},
        {"explain": "Off"},
    ],
    ids=["seed", "startTime", "kubelet", "explain"],
)
def test_settings_of_a_scenario_are_honoured_in_a_used_server(
    used: Http, simulation: dict[str, Any]
) -> None:
    scenario = settings(**simulation)
    alone = kubescene.run(scenario)
    plain = kubescene.run(settings())
    served = play(used, scenario)
    assert served == alone.scenario["status"]
    assert served != plain.scenario["status"]
    used.delete(f"{SCENARIOS}/set")
    # They go with the scenario: the next one has its own.
    assert play(used, settings()) == plain.scenario["status"]
    used.delete(f"{SCENARIOS}/set")


def test_the_same_scenario_played_twice_has_the_same_uid_of_everything(used: Http) -> None:
    statuses = []
    for _ in range(2):
        statuses.append(play(used, settings()))
        used.delete(f"{SCENARIOS}/set")
    assert statuses[0] == statuses[1]


def test_an_audience_changes_nothing(used: Http) -> None:
    alone = kubescene.run(settings())
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    with (
        used.watch(f"{SCENARIOS}?watch=true"),
        used.watch(f"{SCENARIOS}?watch=true", table),
        used.watch("/api/v1/namespaces/default/pods?watch=true"),
    ):
        create(used, settings())
        wait(used, "set")
    assert get(used, "set")["status"] == alone.scenario["status"]
    used.delete(f"{SCENARIOS}/set")
