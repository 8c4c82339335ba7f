"""The catalogue of runs over HTTP, with a data directory and without."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import orjson
import pytest

import kubescene
from apiserver.http import Http
from apiserver.scenarios import SCENARIOS, create, play
from kubescene.apiserver.server import Server
from kubescene.apiserver.traffic.pages import TrafficPages
from kubescene.errors import ConfigurationError
from kubescene.runs.catalogue import Runs
from kubescene.runs.opened import OpenedRuns
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

RUNS = "/simulator/v1/runs"
FILES = ("explanations.jsonl", "result.yaml", "summary.json", "timeline.jsonl")


def shop(name: str = "shop") -> ScenarioBuilder:
    return ScenarioBuilder(name).create(make_node("n").cpu("4"), make_pod("p").cpu("1")).done()


@contextmanager
def served(folder: Path | None) -> Iterator[Http]:
    with Server(port=0, controllers=False, traffic=TrafficPages(folder)) as server:
        http = Http("127.0.0.1", server.port)
        try:
            yield http
        finally:
            http.close()


@pytest.fixture(params=["directory", "memory"])
def http(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Http]:
    with served(tmp_path / "data" if request.param == "directory" else None) as http:
        yield http


def ended(http: Http, id: str) -> dict[str, object]:
    """The run once it is kept, which happens in the background."""
    while True:
        found = http.get(f"{RUNS}/{id}").json
        if found["phase"] != "Running":
            return dict(found)
        Event().wait(0.02)


def test_a_scenario_and_a_traffic_run_are_in_one_list(http: Http) -> None:
    play(http, shop())
    assert http.post("/run", {"run_for": 10_000_000_000}).status == 200
    scenario = ended(http, "scenario-1")
    listed = http.get(RUNS).json["runs"]
    assert {each["id"] for each in listed} == {"scenario-1", "traffic-1"}
    assert [each["id"] for each in http.get(f"{RUNS}?kind=traffic").json["runs"]] == ["traffic-1"]
    assert len(http.get(f"{RUNS}?limit=1").json["runs"]) == 1
    assert (scenario["kind"], scenario["name"]) == ("scenario", "shop")
    assert (scenario["phase"], scenario["seed"]) == ("Succeeded", 0)
    assert str(scenario["created"]) <= str(scenario["finished"])


def test_files_are_those_of_a_run_of_its_own(http: Http, tmp_path: Path) -> None:
    play(http, shop())
    run = ended(http, "scenario-1")
    files = run["files"]
    assert isinstance(files, list)
    assert set(FILES) <= {each["name"] for each in files}
    kubescene.run(shop(), out=tmp_path / "alone")
    for name in ("timeline.jsonl", "explanations.jsonl", "summary.json"):
        reply = http.get(f"{RUNS}/scenario-1/files/{name}")
        assert reply.body == (tmp_path / "alone" / name).read_bytes()
    assert http.get(f"{RUNS}/scenario-1/files/run.json").status == 404
    assert http.get(f"{RUNS}/scenario-1/files/..%2Frun.json").status == 404


def test_a_run_is_deleted_once(http: Http) -> None:
    play(http, shop())
    http.post("/run", {"run_for": 10_000_000_000})
    ended(http, "scenario-1")
    assert http.delete(f"{RUNS}/scenario-1").status == 200
    assert http.delete(f"{RUNS}/scenario-1").status == 404
    assert http.get(f"{RUNS}/scenario-1").status == 404
    assert http.delete(f"{RUNS}/traffic-1").status == 200
    assert http.get("/runs/1").status == 404
    assert http.get(RUNS).json == {"runs": []}
    assert http.get(f"{SCENARIOS}/shop").status == 200  # the object is its author's


@pytest.mark.parametrize(
    ("query", "code"), [("?kind=x", 400), ("?limit=0", 200), ("?limit=9999", 400)]
)
def test_what_cannot_be_asked_is_refused(http: Http, query: str, code: int) -> None:
    assert http.get(RUNS + query).status == code
    assert http.get(f"{RUNS}/nonsense").status == 404
    assert http.delete(f"{RUNS}/scenario-7").status == 404


def test_a_run_under_way_is_listed_and_not_deleted(http: Http) -> None:
    paused = ScenarioBuilder("paused").create(make_node("n").cpu("4"))
    assert play(http, paused)["phase"] == "Paused"
    (found,) = http.get(RUNS).json["runs"]
    assert (found["name"], found["phase"]) == ("paused", "Running")
    assert http.delete(f"{RUNS}/{found['id']}").status == 409
    http.delete(f"{SCENARIOS}/paused")


def test_bad_input_is_no_run(tmp_path: Path) -> None:
    """And takes no number, however much is still to be written in the background."""
    bad = ScenarioBuilder("bad").build() | {"spec": {"simulation": {"explain": "Everything"}}}
    is_written = Event()
    with Server(port=0, controllers=False, traffic=TrafficPages(tmp_path)) as server:
        http = Http("127.0.0.1", server.port)
        try:
            server.scenarios.finished.later(is_written.wait)
            create(http, bad)
            play(http, shop())
            is_written.set()
            ended(http, "scenario-1")
            assert [each["name"] for each in http.get(RUNS).json["runs"]] == ["shop"]
        finally:
            is_written.set()
            http.close()


def test_runs_survive_the_server(tmp_path: Path) -> None:
    with served(tmp_path) as http:
        play(http, shop())
        http.post("/run", {"run_for": 10_000_000_000})
        assert play(http, ScenarioBuilder("cut").create(make_node("x")))["phase"] == "Paused"
    with served(tmp_path) as http:
        found = {each["name"]: each for each in http.get(RUNS).json["runs"]}
        assert found["shop"]["phase"] == "Succeeded"
        assert (found["cut"]["phase"], found["cut"]["message"]) == (
            "Failed",
            "the server ended before the run did",
        )
        summary = orjson.loads(http.get(f"{RUNS}/{found['shop']['id']}/files/summary.json").body)
        assert summary["scenario"] == "shop"
        play(http, shop("again"))
        assert ended(http, "scenario-3")["name"] == "again"
    assert len(Runs(tmp_path).list()) == 4


def test_records_that_are_no_longer_at_hand_are_in_the_catalogue(tmp_path: Path) -> None:
    pages = TrafficPages(tmp_path)
    with Server(port=0, controllers=False, traffic=pages) as server:
        server.scenarios.finished.most_runs = 1
        http = Http("127.0.0.1", server.port)
        play(http, shop("first"))
        play(http, shop("second"))
        gone = http.get("/simulator/v1/scenarios/first/summary")
        assert gone.status == 410
        assert "run scenario-1 has them" in gone.message
        ended(http, "scenario-1")
        assert http.get(f"{RUNS}/scenario-1/files/timeline.jsonl").status == 200
        http.close()


def test_runs_that_were_opened_are_read_like_others_and_never_deleted(tmp_path: Path) -> None:
    kubescene.run(shop(), out=tmp_path / "run")
    (tmp_path / "run" / "report.html").write_text("<script>fetch('/api')</script>")
    with Server(port=0, opened=OpenedRuns([tmp_path / "run"])) as server:
        http = Http("127.0.0.1", server.port)
        [listed] = http.get(RUNS).json["runs"]
        assert (listed["id"], listed["name"], listed["phase"]) == ("opened-1", "shop", "Succeeded")
        found = http.get(f"{RUNS}/opened-1").json
        assert {*FILES, "report.html"} <= {each["name"] for each in found["files"]}
        timeline = http.get(f"{RUNS}/opened-1/files/timeline.jsonl").body
        assert timeline == (tmp_path / "run" / "timeline.jsonl").read_bytes()
        page = http.get(f"{RUNS}/opened-1/files/report.html")
        assert page.all("content-security-policy") == [
            "sandbox allow-scripts; frame-ancestors 'none'"
        ]
        scenario = http.get(f"{RUNS}/opened-1/scenario").json
        assert kubescene.run(scenario).summary == kubescene.run(shop()).summary
        assert http.get(f"{RUNS}/opened-1/over-time").json == {}
        assert b"<!doctype html>" in http.get(f"{RUNS}/opened-1/report").body
        assert http.delete(f"{RUNS}/opened-1").status == 409
        assert http.get(f"{RUNS}/opened-2").status == 404
        assert http.get(f"{RUNS}/opened-1/files/..%2Frun%2Fsummary.json").status == 404
        http.close()
    with pytest.raises(ConfigurationError, match="no run directory"):
        OpenedRuns([tmp_path])


def test_only_a_scenario_that_is_played_is_held(http: Http) -> None:
    place = "/simulator/v1/scenarios/shop"
    assert http.post(f"{place}/hold", {}).status == 409
    play(http, shop())
    reply = http.post(f"{place}/hold", {})
    assert (reply.status, reply.json["message"]) == (409, 'scenario "shop" is not being played now')
    progress = http.get(f"{place}/progress").json
    assert (progress["run"], progress["held"]) == ("scenario-1", False)
