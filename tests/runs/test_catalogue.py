"""All runs of a directory, of scenarios and of traffic, found again by whoever opens it later."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

import kubescene
from kubescene.errors import ConflictError, NotFoundError, RunStoreError
from kubescene.results.sources import RunSource
from kubescene.runs.catalogue import FAILED, RUNNING, TRAFFIC_FILE, RunKind, Runs, is_id
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.traffic import TrafficResult, load_run, run
from kubescene.traffic.store import RunStore

STEP = Path(__file__).parents[2] / "examples" / "traffic" / "step.yaml"


def played(runs: Runs, name: str = "shop") -> str:
    """A scenario that was played into the catalogue."""
    id = runs.begin(name, seed=7)
    built = ScenarioBuilder(name).create(make_node("n").cpu("4"), make_pod("p").cpu("1")).done()
    found = kubescene.run(built, out=runs.path(id), seed=7)
    runs.end(id, found.phase, found.message)
    return id


def simulated(folder: Path) -> str:
    """A traffic run in the same directory."""
    store = RunStore(folder / TRAFFIC_FILE)
    asked = load_run(STEP)
    id = store.begin(asked)
    store.end(id, run(asked))
    store.close()
    return f"traffic-{id}"


def test_both_kinds_of_runs_are_listed_and_found_after_a_restart(tmp_path: Path) -> None:
    first = played(Runs(tmp_path))
    second = simulated(tmp_path)
    again = Runs(tmp_path)
    assert {each.id for each in again.list()} == {first, second}
    assert [each.id for each in again.list(RunKind.TRAFFIC)] == [second]
    entry = again.get(first)
    assert (entry.kind, entry.name, entry.phase, entry.seed) == ("scenario", "shop", "Succeeded", 7)
    assert entry.created <= entry.finished
    assert again.get(second).name == "step"


def test_what_happened_in_a_run_can_be_read(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    scenario, traffic = runs.open(played(runs)), runs.open(simulated(tmp_path))
    assert isinstance(scenario, RunSource)
    assert scenario.measures()["pods_bound"] == 1
    assert isinstance(traffic, TrafficResult)
    assert traffic.summary == run(load_run(STEP)).summary


def test_files_are_those_of_a_run_of_its_own(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "data")
    traffic = simulated(runs.folder)
    run(load_run(STEP)).save(tmp_path / "alone")
    for each in (tmp_path / "alone").iterdir():
        assert runs.read(traffic, each.name) == each.read_bytes()
        assert runs.files(traffic)[each.name] == each.stat().st_size
    scenario = played(runs)
    assert {"summary.json", "timeline.jsonl", "result.yaml"} <= set(runs.files(scenario))
    assert "run.json" not in runs.files(scenario)
    assert json.loads(runs.read(scenario, "summary.json"))["phase"] == "Succeeded"


@pytest.mark.parametrize("name", ["../run.json", "run.json", "none", "../../x"])
def test_only_files_of_the_run_are_read(tmp_path: Path, name: str) -> None:
    runs = Runs(tmp_path)
    for id in (played(runs), simulated(tmp_path)):
        with pytest.raises(NotFoundError, match="has no file"):
            runs.read(id, name)


@pytest.mark.parametrize("id", ["scenario-9", "traffic-9", "scenario-01", "nonsense", "../x", ""])
def test_who_is_not_there_is_not_found(tmp_path: Path, id: str) -> None:
    runs = Runs(tmp_path)
    for ask in (runs.get, runs.open, runs.path, runs.files, runs.delete):
        with pytest.raises(NotFoundError):
            ask(id)


def test_a_number_is_never_given_twice(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    first, second = played(runs), played(runs)
    assert (first, second) == ("scenario-1", "scenario-2")
    runs.delete(second)
    assert played(Runs(tmp_path)) == "scenario-3"
    traffic = simulated(tmp_path)
    runs.delete(traffic)
    assert simulated(tmp_path) == "traffic-2"
    assert {each.id for each in runs.list()} == {first, "scenario-3", "traffic-2"}


def test_a_run_that_is_under_way_is_not_deleted(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    id = runs.begin("long")
    assert runs.get(id).phase == RUNNING
    with pytest.raises(ConflictError, match="under way"):
        runs.delete(id)
    runs.discard(id)
    assert runs.list() == []


def test_what_was_never_played_takes_no_number(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.discard(runs.begin("bad"))
    assert played(runs) == "scenario-1"
    runs.discard(runs.begin("worse"))
    runs.delete("scenario-1")
    runs.discard(runs.begin("bad again"))
    assert played(runs) == "scenario-2"


def test_both_kinds_say_when_they_ended(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    played(runs)
    simulated(tmp_path)
    assert all(each.created <= each.finished for each in runs.list())
    under_way = runs.begin("long")
    assert runs.get(under_way).finished == ""


def test_a_run_whose_process_is_gone_has_failed(tmp_path: Path) -> None:
    code = "import sys; from kubescene.runs.catalogue import Runs; Runs(sys.argv[1]).begin('cut')"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    (found,) = Runs(tmp_path).list()
    assert (found.name, found.phase) == ("cut", FAILED)
    assert "ended before the run did" in found.message
    Runs(tmp_path).delete(found.id)


def test_a_damaged_entry_does_not_hide_the_others(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    first, second = played(runs), played(runs)
    (runs.path(first) / "run.json").write_text("{")
    assert {(each.id, each.phase) for each in runs.list()} == {
        (first, FAILED),
        (second, "Succeeded"),
    }
    runs.delete(first)


def test_many_may_begin_at_once(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [Thread(target=lambda: found.append(Runs(tmp_path).begin("x"))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [f"scenario-{number}" for number in range(1, 9)]


def test_a_store_of_before_is_part_of_the_catalogue(tmp_path: Path) -> None:
    """One that ``traffic run --store`` made, put where a server keeps its runs."""
    store = RunStore(tmp_path / "old.db")
    store.end(store.begin(load_run(STEP)), run(load_run(STEP)))
    store.close()
    (tmp_path / "data").mkdir()
    shutil.copy(tmp_path / "old.db", tmp_path / "data" / TRAFFIC_FILE)
    assert [each.id for each in Runs(tmp_path / "data").list()] == ["traffic-1"]


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunStoreError, match="runs cannot be kept here"):
        Runs(tmp_path / "file").begin("x")


def test_ids_are_told_from_paths() -> None:
    assert [is_id(text) for text in ("scenario-1", "traffic-12", "out", "scenario-0", "7")] == [
        True,
        True,
        False,
        False,
        False,
    ]
