"""``kubescene runs`` as a user types it."""

import json
from pathlib import Path

import pytest

import kubescene as library
from commands import kubescene
from kubescene.apiserver.server import Server
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.runs.catalogue import TRAFFIC_FILE, Runs
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.traffic import load_run, run
from kubescene.traffic.store import RunStore

STEP = Path(__file__).parents[1] / "examples" / "traffic" / "step.yaml"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with a scenario's run and a traffic run."""
    folder = tmp_path / "data"
    runs = Runs(folder)
    id = runs.begin("shop")
    built = ScenarioBuilder("shop").create(make_node("n").cpu("4"), make_pod("p").cpu("1")).done()
    found = library.run(built, out=runs.path(id))
    runs.end(id, found.phase, found.message)
    store = RunStore(folder / TRAFFIC_FILE)
    store.end(store.begin(load_run(STEP)), run(load_run(STEP)))
    store.close()
    return folder


def test_runs_are_listed(data: Path) -> None:
    done = kubescene("runs", "list", "--data-dir", data)
    header, *rows = (line.split() for line in done.stdout.splitlines())
    assert header == ["ID", "KIND", "NAME", "PHASE", "CREATED", "FINISHED", "SEED"]
    assert {(row[0], row[2], row[3]) for row in rows} == {
        ("scenario-1", "shop", "Succeeded"),
        ("traffic-1", "step", "Succeeded"),
    }
    listed = json.loads(
        kubescene("runs", "list", "-o", "json", KUBESCENE_DATA_DIR=str(data)).stdout
    )
    assert {each["id"] for each in listed} == {"scenario-1", "traffic-1"}
    only = kubescene("runs", "list", "--data-dir", data, "--kind", "traffic", "-o", "json")
    assert [each["id"] for each in json.loads(only.stdout)] == ["traffic-1"]


def test_a_run_is_shown_with_its_files(data: Path) -> None:
    shown = json.loads(
        kubescene("runs", "show", "scenario-1", "--data-dir", data, "-o", "json").stdout
    )
    assert (shown["name"], shown["phase"]) == ("shop", "Succeeded")
    assert {"name": "summary.json", "bytes": shown["files"][-2]["bytes"]} in shown["files"]
    done = kubescene("runs", "show", "traffic-1", "--data-dir", data)
    assert "files:     traffic.yaml, requests.npy, story.jsonl, summary.json" in done.stdout


def test_runs_are_deleted_all_or_none(data: Path) -> None:
    refused = kubescene("runs", "delete", "scenario-1", "scenario-9", "--data-dir", data)
    assert refused.returncode == 2
    assert "there is no run 'scenario-9'" in refused.stderr
    assert len(Runs(data).list()) == 2
    done = kubescene("runs", "delete", "scenario-1", "traffic-1", "--data-dir", data)
    assert (done.returncode, done.stdout) == (0, "run scenario-1 deleted\nrun traffic-1 deleted\n")
    assert Runs(data).list() == []


def test_whatever_reads_a_run_takes_its_id(data: Path, tmp_path: Path) -> None:
    folder = Runs(data).path("scenario-1")
    by_path = kubescene("results", folder)
    assert kubescene("results", f"{data}#scenario-1").stdout == by_path.stdout != ""
    assert kubescene("results", "scenario-1", KUBESCENE_DATA_DIR=str(data)).stdout == by_path.stdout
    explained = kubescene("explain", "p", "--run", "scenario-1", KUBESCENE_DATA_DIR=str(data))
    assert explained.returncode == 0, explained.stderr
    page = tmp_path / "page.html"
    made = kubescene("traffic", "report", f"{data}#traffic-1", "--out", page)
    assert (made.returncode, page.exists()) == (0, True)
    wrong = kubescene("results", f"{data}#traffic-1")
    assert "kubescene traffic report" in wrong.stderr
    missing = kubescene("results", f"{data}#scenario-9")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "there is no run 'scenario-9'" in missing.stderr


def test_without_a_place_there_is_advice(tmp_path: Path) -> None:
    done = kubescene("runs", "list")
    assert done.returncode == 2
    assert "--data-dir" in done.stderr
    done = kubescene("runs", "list", "--data-dir", tmp_path / "none")
    assert done.returncode == 2
    assert "there is no directory" in done.stderr


def test_the_runs_of_a_server_are_listed_shown_and_deleted(data: Path) -> None:
    with Server(port=0, controllers=False, traffic=TrafficPages(data)) as server:
        there = ("--server", server.url)
        here = kubescene("runs", "list", "--data-dir", data)
        assert kubescene("runs", "list", *there).stdout == here.stdout
        one = kubescene("runs", "show", "scenario-1", "--data-dir", data)
        assert kubescene("runs", "show", "scenario-1", *there).stdout == one.stdout
        by_id = kubescene("results", f"{server.url}#scenario-1")
        assert by_id.stdout == kubescene("results", f"{data}#scenario-1").stdout != ""
        assert kubescene("runs", "delete", "scenario-1", *there).returncode == 0
        missing = kubescene("runs", "delete", "scenario-1", *there)
        assert missing.returncode == 2
        assert "there is no run" in missing.stderr
    assert [each.id for each in Runs(data).list()] == ["traffic-1"]


@pytest.mark.parametrize("command", ["list", "show", "delete"])
def test_each_help_has_an_example(command: str) -> None:
    assert f"kubescene runs {command}" in kubescene("runs", command, "--help").stdout


def test_a_run_is_kept_by_its_id(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "shop.yaml"
    built = ScenarioBuilder("shop").create(make_node("n").cpu("4"), make_pod("p").cpu("1")).done()
    built.save(file)
    done = kubescene("run", file, "--data-dir", data, "--seed", "7")
    assert done.returncode == 0, done.stderr
    assert str(data / "runs" / "scenario-1") in done.stdout
    assert kubescene("traffic", "run", STEP, KUBESCENE_DATA_DIR=str(data)).returncode == 0
    found = {each.id: each for each in Runs(data).list()}
    assert sorted(found) == ["scenario-1", "traffic-1"]
    one = found["scenario-1"]
    assert (one.name, one.phase, one.message, one.seed) == ("shop", "Succeeded", "", 7)
    alone = tmp_path / "alone"
    assert kubescene("run", file, "--out", alone, "--seed", "7").returncode == 0
    for each in alone.iterdir():
        assert Runs(data).read("scenario-1", each.name) == each.read_bytes()


def test_bad_input_is_no_run_and_a_failed_one_is(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "shop.yaml"
    bad = ScenarioBuilder("bad").build() | {"spec": {"simulation": {"explain": "Everything"}}}
    file.write_text(json.dumps(bad))
    assert kubescene("run", file, "--data-dir", data).returncode == 2
    assert Runs(data).list() == []
    ScenarioBuilder("failing").delete("v1", "Pod", "nobody").done().save(file)
    assert kubescene("run", file, "--data-dir", data).returncode == 1
    (found,) = Runs(data).list()
    assert (found.id, found.name, found.phase) == ("scenario-1", "failing", "Failed")
    assert "nobody" in found.message
