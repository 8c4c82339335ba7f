"""A server that is ended, or killed, and started again on the same folder."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from apiserver.http import Http
from commands import kubescene, started
from durability import play
from kubescene.apiserver.server import Server
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.cli.serve import cluster_with
from kubescene.cluster import ClusterOptions
from kubescene.store.disk import files as disk_files

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "01-first-scenario" / "scenario.yaml"


@contextmanager
def served(folder: Path, *, controllers: bool = False) -> Iterator[Http]:
    cluster = cluster_with(ClusterOptions(events=True), (), "wall", folder)
    server = Server(cluster, port=0, controllers=controllers, traffic=TrafficPages(folder))
    with server:
        client = Http(server.host, server.port)
        yield client
        client.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(**metadata: Any) -> dict[str, Any]:
    containers = [{"name": "app", "image": "app"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers},
    }


def test_nothing_that_was_answered_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    assert play(50, seed=2026, folder=tmp_path) > 50


def test_objects_are_as_they_were(tmp_path: Path) -> None:
    with served(tmp_path, controllers=True) as http:
        http.post(MAPS, config_map("kept", one="1"))
        before = http.get(f"{MAPS}/kept").body
        namespaces = http.get("/api/v1/namespaces").json["items"]
    with served(tmp_path, controllers=True) as http:
        assert http.get(f"{MAPS}/kept").body == before
        assert http.get("/api/v1/namespaces").json["items"] == namespaces
        assert http.post(MAPS, config_map("kept")).status == 409


def test_uids_and_drawn_names_are_not_given_again(tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        with served(tmp_path) as http:
            made = http.post(PODS, pod(generateName="web-")).json["metadata"]
            again = http.post(PODS, pod(name="one")).json["metadata"]
            for each in (made, again):
                assert each["uid"] not in seen
                seen.add(each["uid"])
                http.request("DELETE", f"{PODS}/{each['name']}?gracePeriodSeconds=0")
            assert made["name"] not in seen
            seen.add(made["name"])


def test_a_watch_goes_on_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as http:
        http.post(MAPS, config_map("before"))
        since = http.get(MAPS).json["metadata"]["resourceVersion"]
        http.post(MAPS, config_map("meanwhile"))
        http.request("DELETE", f"{MAPS}/before")
    with served(tmp_path) as http:
        http.post(MAPS, config_map("after"))
        with http.watch(f"{MAPS}?watch=true&resourceVersion={since}") as events:
            assert events.take(3) == [
                ("ADDED", "meanwhile"),
                ("DELETED", "before"),
                ("ADDED", "after"),
            ]
        # A revision that was never acknowledged, though somebody may have seen it.
        lost = f"{MAPS}?watch=true&resourceVersion={int(since) + 50}"
        [told] = http.get(lost).body.splitlines()
        assert json.loads(told)["object"]["code"] == 410


def test_custom_kinds_are_there_again(tmp_path: Path) -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cakes.bakery.example"},
        "spec": {
            "group": "bakery.example",
            "scope": "Cluster",
            "names": {
                "kind": "Cake",
                "plural": "cakes",
                "singular": "cake",
                "listKind": "CakeList",
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"layers": {"type": "integer", "default": 2}},
                        }
                    },
                }
            ],
        },
    }
    cakes = "/apis/bakery.example/v1/cakes"
    cake = {"apiVersion": "bakery.example/v1", "kind": "Cake", "metadata": {"name": "plain"}}
    with served(tmp_path) as http:
        http.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert http.post(cakes, cake).json["layers"] == 2
    with served(tmp_path) as http:
        assert http.get(f"{cakes}/plain").json["layers"] == 2
        other = {**cake, "metadata": {"name": "other"}, "layers": "many"}
        assert http.post(cakes, other).status == 422


def first_scenario() -> dict[str, Any]:
    import yaml

    loaded: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
    return loaded


def await_phase(http: Http, name: str, phase: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = http.get(f"{SCENARIOS}/{name}").json
        if found.get("status", {}).get("phase") == phase:
            return found


def test_a_scenario_its_world_and_its_run_outlive_the_server(tmp_path: Path) -> None:
    with served(tmp_path, controllers=True) as http:
        http.post(SCENARIOS, first_scenario())
        before = await_phase(http, "first-scenario", "Succeeded")
        pods = http.get(PODS).json["items"]
    with served(tmp_path, controllers=True) as http:
        assert http.get(f"{SCENARIOS}/first-scenario").json == before
        # The world rests as the scenario has left it, until somebody writes.
        assert http.get(PODS).json["items"] == pods
        reply = http.get("/simulator/v1/scenarios/first-scenario/summary")
        assert reply.status == 410
        assert "run scenario-1 has them" in reply.message
        assert http.get("/simulator/v1/runs/scenario-1").json["phase"] == "Succeeded"
        http.request("DELETE", f"{SCENARIOS}/first-scenario")
        http.post(SCENARIOS, first_scenario())
        again = await_phase(http, "first-scenario", "Succeeded")
        assert again["metadata"]["uid"] != before["metadata"]["uid"]
        assert again["status"] == before["status"]


def test_the_state_before_its_end_of_a_scenario_of_an_earlier_server_is_imported(
    tmp_path: Path,
) -> None:
    with served(tmp_path, controllers=True) as http:
        http.post(SCENARIOS, first_scenario())
        document = await_phase(http, "first-scenario", "Succeeded")
    document["status"]["phase"] = "Running"
    with served(tmp_path, controllers=True) as http:
        http.post("/simulator/v1/import", {"kind": "List", "items": [document]})
        found = await_phase(http, "first-scenario", "Failed")
    assert "restarted while the Scenario was running" in found["status"]["message"]


def test_what_a_scenario_made_that_lasts_goes_when_the_next_begins(tmp_path: Path) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "made"},
    }

    def scenario(name: str) -> dict[str, Any]:
        operations = [
            {"step": 1, "createOperation": {"object": role}},
            {"step": 1, "doneOperation": {}},
        ]
        return {**first_scenario(), "metadata": {"name": name}, "spec": {"operations": operations}}

    with served(tmp_path, controllers=True) as http:
        http.post(SCENARIOS, scenario("one"))
        await_phase(http, "one", "Succeeded")
    with served(tmp_path, controllers=True) as http:
        http.post(SCENARIOS, scenario("two"))
        await_phase(http, "two", "Succeeded")


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    with served(tmp_path):
        ended = kubescene("serve", "--port", "0", "--data-dir", tmp_path)
    assert ended.returncode == 2
    assert f"is in use by process {os.getpid()}: stop that server first" in ended.stderr


def test_a_damaged_world_is_not_served(tmp_path: Path) -> None:
    with served(tmp_path) as http:
        http.post(MAPS, config_map("one"))
        http.post(MAPS, config_map("two"))
    [file] = disk_files.numbered(tmp_path / "world", disk_files.CHANGES)
    data = bytearray(file.path.read_bytes())
    data[200] ^= 1
    file.path.write_bytes(data)
    for command in (("serve", "--port", "0", "--data-dir"), ("data", "verify")):
        ended = kubescene(*command, tmp_path)
        assert ended.returncode == 2
        assert f"{file.path} is damaged at byte " in ended.stderr


def test_commands_look_after_a_world(tmp_path: Path) -> None:
    with served(tmp_path) as http:
        for number in range(3):
            http.post(MAPS, config_map(f"map-{number}"))
    told = kubescene("data", "info", tmp_path).stdout
    assert "configmaps" in told
    assert [line.split() for line in told.splitlines() if "configmaps" in line] == [
        ["configmaps", "3"]
    ]
    assert kubescene("data", "verify", tmp_path).stdout.startswith("whole: ")
    assert kubescene("data", "compact", tmp_path).returncode == 0
    assert len(disk_files.numbered(tmp_path / "world", disk_files.SNAPSHOT)) == 1
    listed = json.loads(kubescene("data", "export", tmp_path).stdout)
    names = [it["metadata"]["name"] for it in listed["items"] if it["kind"] == "ConfigMap"]
    assert names == ["map-0", "map-1", "map-2"]
    with served(tmp_path) as http:
        assert len(http.get(MAPS).json["items"]) == 3


def test_a_folder_without_a_world_is_named(tmp_path: Path) -> None:
    ended = kubescene("data", "info", tmp_path)
    assert ended.returncode == 2
    assert f"there is no world in {tmp_path}" in ended.stderr


FULL = """
import json, resource, sys
from pathlib import Path
from kubescene.store.disk import journal
journal.RESERVED = 4096
sys.path.insert(0, sys.argv[2])
from apiserver.test_durable import MAPS, config_map, served
with served(Path(sys.argv[1])) as http:
    reserved = max(each.stat().st_size for each in Path(sys.argv[1]).glob("world/changes-*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (reserved + 50_000, resource.RLIM_INFINITY))
    count = 0
    while (reply := http.post(MAPS, config_map(f"map-{count}", x=f"{count}" * 2000))).status == 201:
        count += 1
    listed = len([it for it in http.get(MAPS).json["items"] if it["metadata"]["name"] != "x"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = http.post(MAPS, config_map("after")).status
    print(json.dumps([count, listed, reply.status, reply.message, after]))
"""


def test_a_full_disk_is_an_error_to_the_client(tmp_path: Path) -> None:
    tests = Path(__file__).parent.parent
    ended = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path, tests], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    count, listed, status, message, after = json.loads(ended.stdout)
    assert (count > 10, listed, status, after) == (True, count, 500, 201)
    assert "the world cannot be kept in" in message
    assert message.endswith("nothing was changed")
    with served(tmp_path) as http:
        assert len(http.get(MAPS).json["items"]) == count + 1


def test_the_command_ends_well(tmp_path: Path) -> None:
    ended = started("data", "info", tmp_path / "nowhere")
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
