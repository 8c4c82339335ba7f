"""`kubescene compare`, and `kubescene run` with two scheduler configurations."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import kubescene
from apiserver.http import Http
from apiserver.scenarios import play
from kubescene.api.text.yaml_text import dump_yaml
from kubescene.apiserver.server import Server
from kubescene.cli.app import app
from kubescene.cli.components import scheduler_with
from kubescene.clock import WallClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.errors import ConfigurationError, KubesceneError
from kubescene.scenario import ScenarioBuilder
from kubescene.scheduler import CycleState, NodeInfo, PodInfo, SchedulerOptions, ScorePlugin
from kubescene.scheduler.configuration.added_plugins import with_plugin
from kubescene.scheduler.configuration.sources import scheduler_options
from kubescene.testing import make_node, make_pod

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
STRATEGY = {"scoringStrategy": {"type": "MostAllocated"}}
PACK = {**HEADER, "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": STRATEGY}]}]}


def scenario(explain: str = "Auto") -> ScenarioBuilder:
    builder = ScenarioBuilder("spread").settings(explain=explain)
    builder.create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=2).step(2)
    return builder.create(make_pod("p-$(INDEX)").cpu("500m").memory("1Gi"), count=4).done()


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "150"})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``a`` and ``b`` differ, ``same`` is like ``a``; ``silent-*`` keep no explanations."""
    folder = tmp_path_factory.mktemp("runs")
    for name, explain, scheduler in (
        ("a", "Auto", None),
        ("same", "Auto", None),
        ("b", "Auto", PACK),
        ("silent-a", "Off", None),
        ("silent-b", "Off", PACK),
    ):
        kubescene.run(scenario(explain), out=folder / name, scheduler=scheduler)
    return folder


def refused(result: Result) -> str:
    assert isinstance(result.exception, ConfigurationError), result.output
    return str(result.exception)


def test_equal_runs_exit_with_0_and_a_single_line(runs: Path) -> None:
    result = command("compare", runs / "a", runs / "same")
    assert result.exit_code == 0
    assert len(result.stdout.replace(str(runs), "").splitlines()) <= 3
    assert "no difference" in result.stdout


def test_different_runs_exit_with_1_and_name_the_plugin(runs: Path) -> None:
    result = command("compare", runs / "a", runs / "b")
    assert result.exit_code == 1
    assert "2 pods went elsewhere; moved by NodeResourcesFit 2" in result.stdout


def test_the_format_is_what_the_file_is_called(runs: Path, tmp_path: Path) -> None:
    for name in ("c.md", "c.json", "c.txt"):
        result = command("compare", runs / "a", runs / "b", "--out", tmp_path / name)
        assert (result.exit_code, result.stdout) == (1, "")
    assert (tmp_path / "c.md").read_text().startswith("### ")
    assert json.loads((tmp_path / "c.json").read_text())["divergence"]["pod"] == "default/p-1"
    assert "went elsewhere" in (tmp_path / "c.txt").read_text()
    on_screen = command("compare", runs / "a", runs / "b", "--format", "json").stdout
    assert on_screen == (tmp_path / "c.json").read_text()


def test_a_run_is_not_compared_with_itself(runs: Path) -> None:
    told = refused(command("compare", runs / "a", runs / "." / "a"))
    assert "are the same run: name the --out directories of two runs" in told


def test_what_is_no_run_is_named(runs: Path, tmp_path: Path) -> None:
    assert str(tmp_path / "none") in refused(command("compare", runs / "a", tmp_path / "none"))
    assert "timeline.jsonl" in refused(command("compare", runs / "a", tmp_path))


def damaged(runs: Path, tmp_path: Path, change: bytes, into: bytes) -> Path:
    copy = Path(shutil.copytree(runs / "b", tmp_path / "damaged"))
    timeline = copy / "timeline.jsonl"
    data = timeline.read_bytes()
    assert change in data
    timeline.write_bytes(data.replace(change, into, 1))
    return copy


def test_a_damaged_line_is_named(runs: Path, tmp_path: Path) -> None:
    copy = damaged(runs, tmp_path, b'{"fact":"PodScheduled"', b'{"fact":"PodScheduled')
    told = refused(command("compare", runs / "a", copy))
    assert f"{copy / 'timeline.jsonl'}, line " in told


@pytest.mark.parametrize(
    "text", ["a: [b", "text", "spec: 5", "spec: {operations: 7}", "spec: {simulation: x}"]
)
def test_a_damaged_scenario_is_named(runs: Path, tmp_path: Path, text: str) -> None:
    copy = Path(shutil.copytree(runs / "b", tmp_path / "damaged"))
    (copy / "result.yaml").write_text(text)
    result = command("compare", runs / "a", copy)
    assert isinstance(result.exception, KubesceneError)
    assert str(copy) in str(result.exception)


def test_another_version_of_the_timeline_is_refused(runs: Path, tmp_path: Path) -> None:
    copy = damaged(runs, tmp_path, b'"version":1', b'"version":2')
    assert "version 2" in refused(command("compare", runs / "a", copy))


def test_another_version_of_kubescene_is_the_first_difference(runs: Path, tmp_path: Path) -> None:
    version = f'"kubescene":"{kubescene.__version__}"'.encode()
    copy = damaged(runs, tmp_path, version, b'"kubescene":"9.9.9"')
    found = json.loads(command("compare", runs / "a", copy, "--format", "json").stdout)
    assert found["inputs"][0]["what"] == "version of Kubescene"
    assert found["inputs"][0]["b"] == "9.9.9"


def test_a_run_that_was_cut_short_is_read_to_its_end_with_a_warning(
    runs: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(runs / "a", tmp_path / "cut"))
    lines = (copy / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "timeline.jsonl").write_bytes(b"".join(lines[:-6]) + lines[-6][:40])
    for name in ("summary.json", "pods.index", "result.yaml"):
        (copy / name).unlink()
    result = command("compare", runs / "a", copy)
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert "warning: B: " in told
    assert "the scenario is not there, so it is not compared" in told


def test_timelines_alone_are_compared_without_pretending_to_know_more(runs: Path) -> None:
    result = command("compare", runs / "a" / "timeline.jsonl", runs / "b" / "timeline.jsonl")
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert "What they were given is not known for both" in told
    assert "is a timeline alone: name the run directory to have attempts explained" in told
    assert "2 pods went elsewhere" in told


def test_a_difference_that_no_directory_tells_is_said_to_be_unknown(tmp_path: Path) -> None:
    """A plugin of the same name, with other code."""
    builder = ScenarioBuilder("code").create(make_node("n-$(INDEX)").cpu("4"), count=3).step(2)
    builder.create(make_pod("p-1").cpu("1")).done()
    for name, wanted in (("a", "n-1"), ("b", "n-2")):
        plugin = type("Mine", (Wanting,), {"wanted": wanted})
        scheduler = with_plugin(SchedulerOptions(), plugin)
        kubescene.run(builder, out=tmp_path / name, scheduler=scheduler)
    told = " ".join(command("compare", tmp_path / "a", tmp_path / "b").stdout.split())
    assert "the code of plugins" in told
    assert "something that a run does not keep made the difference" in told
    assert "moved by Mine 1" in told


def test_a_run_that_was_cut_short_is_the_difference_itself(tmp_path: Path) -> None:
    builder = ScenarioBuilder("cut").create(make_node("n").cpu("4")).step(2)
    kubescene.run(builder.create(make_pod("p").cpu("1")).done(), out=tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    timeline = tmp_path / "b" / "timeline.jsonl"
    timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:3]))
    told = " ".join(command("compare", tmp_path / "a", tmp_path / "b").stdout.split())
    assert f"what {tmp_path / 'b'} did not come to counts as different" in told
    assert "something that a run does not keep" not in told


class Wanting(ScorePlugin):
    name = "Mine"
    wanted = ""

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.name == self.wanted else 0


def test_a_damaged_explanation_is_told_and_the_rest_compared(runs: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(runs / "b", tmp_path / "broken"))
    (copy / "explanations.jsonl").write_bytes(b"nonsense\n")
    result = command("compare", runs / "a", copy)
    assert result.exit_code == 1
    told = " ".join(result.stdout.split())
    assert "these are not explanations as this Kubescene reads them" in told
    assert "2 pods went elsewhere" in told


def test_runs_that_explain_nothing_are_played_again_if_asked(runs: Path) -> None:
    silent = [runs / "silent-a", runs / "silent-b"]
    without = command("compare", *silent)
    assert "--replay" in without.stdout
    assert "moved by" not in without.stdout.split("went elsewhere")[1].splitlines()[0]
    again = command("compare", *silent, "--replay")
    assert again.exit_code == 1
    assert "2 pods went elsewhere; moved by NodeResourcesFit 2" in again.stdout
    assert "--replay" not in again.stdout
    assert "again, to have it explained" in " ".join(again.stderr.split())


def test_a_replay_needs_the_plugin_and_keeps_it_where_it_stood(tmp_path: Path) -> None:
    builder = ScenarioBuilder("numbers").settings(explain="Off")
    builder.create(make_node("n-$(INDEX)").cpu("4"), count=3).step(2)
    builder.create(make_pod("p-2").cpu("1")).done()
    plugin = "node_number:NodeNumber"
    kubescene.run(builder, out=tmp_path / "a")
    kubescene.run(builder, out=tmp_path / "b", scheduler=scheduler_with([plugin]))
    pair = (tmp_path / "a", tmp_path / "b")
    assert "default-scheduler: NodeNumber" in command("compare", *pair).stdout
    told = refused(command("compare", *pair, "--replay"))
    assert 'ScorePlugin "NodeNumber" does not exist; name the --plugin' in told
    again = command("compare", *pair, "--replay", "--plugin", plugin)
    assert "moved by NodeNumber 1" in again.stdout
    assert "NodeNumber (only in B) rates" in " ".join(again.stdout.split())


def test_a_replay_that_goes_another_way_is_not_believed(runs: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(runs / "silent-b", tmp_path / "other"))
    result = copy / "result.yaml"
    result.write_text(result.read_text().replace("MostAllocated", "LeastAllocated"))
    told = refused(command("compare", runs / "silent-a", copy, "--replay"))
    assert "goes another way" in told


def opinions(a: Path, b: Path) -> dict[str, tuple[str, str | None]]:
    shown = command("compare", a, b, "--what-if", "--format", "json").stdout
    placed = json.loads(shown)["placed"]
    return {each["pod"]: (each["cause"], each.get("opinion")) for each in placed}


def test_the_other_scheduler_is_asked_about_pods_that_follow(runs: Path, tmp_path: Path) -> None:
    assert opinions(runs / "a", runs / "b") == {
        "default/p-1": ("Scheduler", None),
        "default/p-3": ("Consequence", "n-0"),
    }
    shown = command("compare", runs / "a", runs / "b", "--what-if").stdout
    assert "moved in any case" in shown
    assert "B's scheduler moves 1 of 1 in A's cluster, too" in " ".join(shown.split())


def test_pods_that_only_follow_stay_with_the_other_scheduler_in_the_first_cluster(
    tmp_path: Path,
) -> None:
    for name, nodes in (("a", 3), ("b", 2)):
        builder = ScenarioBuilder("less")
        builder.create(make_node("n-$(INDEX)").cpu("4").memory("8Gi"), count=nodes).step(2)
        builder.create(make_pod("p-$(INDEX)").cpu("500m").memory("1Gi"), count=5).done()
        kubescene.run(builder, out=tmp_path / name)
    found = opinions(tmp_path / "a", tmp_path / "b")
    assert found == {
        "default/p-2": ("Scenario", None),
        "default/p-3": ("Consequence", "n-0"),
        "default/p-4": ("Consequence", "n-1"),
    }
    assert "follows only" in command("compare", tmp_path / "a", tmp_path / "b", "--what-if").stdout


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, content in (("s", scenario().build()), ("one", HEADER), ("two", PACK)):
        (tmp_path / f"{name}.yaml").write_text(dump_yaml(content))
    return tmp_path


def both(files: Path, first: str, second: str, *more: object) -> Result:
    configs = [files / f"{name}.yaml" for name in (first, second)]
    given = [word for each in configs for word in ("--scheduler-config", each)]
    return command("run", files / "s.yaml", *given, *more)


def test_two_configurations_are_played_and_compared(files: Path) -> None:
    result = both(files, "one", "two")
    assert result.exit_code == 1
    assert "2 pods went elsewhere; moved by NodeResourcesFit 2" in result.stdout
    assert both(files, "one", "one").exit_code == 0
    assert both(files, "one", "two", "--quiet").stdout == ""


def test_both_runs_and_their_comparison_are_written(files: Path) -> None:
    out = files / "out"
    assert both(files, "one", "two", "--out", out).exit_code == 1
    names = sorted(path.name for path in out.iterdir())
    assert names == ["a", "b", "comparison.json", "comparison.md"]
    assert command("compare", out / "a", out / "b").exit_code == 1
    found = json.loads((out / "comparison.json").read_text())
    assert found["a"]["name"] == str(files / "one.yaml")


def test_what_makes_no_sense_with_two_configurations_is_refused(files: Path) -> None:
    assert "3 times" in refused(both(files, "one", "two", "--scheduler-config", files / "two.yaml"))
    assert "--interactive" in refused(both(files, "one", "two", "--interactive"))
    assert "--remedies" in refused(both(files, "one", "two", "--remedies"))


def test_expectations_that_do_not_hold_are_told_with_their_configuration(files: Path) -> None:
    expecting = scenario().build()
    expectation = {"name": "all bound", "expression": "measures.nodes_empty == 0"}
    expecting["spec"]["expectations"] = [expectation]
    (files / "s.yaml").write_text(dump_yaml(expecting))
    result = both(files, "one", "two")
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if line.startswith("kubescene: ")]
    assert told[0].endswith("two.yaml expectations do not hold:")
    assert "expectation 'all bound' does not hold" in told[1]
    assert len(told) == 2


def test_one_configuration_stays_as_it_was(files: Path) -> None:
    result = command("run", files / "s.yaml", "--scheduler-config", files / "two.yaml")
    assert result.exit_code == 0
    assert "spread  Succeeded" in result.stdout


def test_a_run_that_fails_says_with_which_configuration(files: Path) -> None:
    broken = scenario().build()
    broken["spec"]["operations"][1]["createOperation"]["object"]["metadata"]["name"] = "Not Valid"
    (files / "s.yaml").write_text(dump_yaml(broken))
    result = both(files, "one", "two")
    assert result.exit_code in (1, 2)
    assert f"with {files / 'one.yaml'}: " in result.stderr


# -- servers -----------------------------------------------------------------------------------


@pytest.fixture
def served() -> Iterator[str]:
    """A server that has played the scenario of the other tests, under two names."""
    with Server(port=0) as server:
        http = Http(server.host, server.port)
        play(http, scenario())
        again = scenario().build()
        again["metadata"]["name"] = "again"
        play(http, again)
        http.close()
        yield server.url


def test_runs_of_servers_are_compared_like_directories(served: str, runs: Path) -> None:
    result = command("compare", f"{served}#spread", runs / "b")
    assert result.exit_code == 1, result.output
    assert "2 pods went elsewhere; moved by NodeResourcesFit 2" in result.stdout
    assert f"{served}#spread" in result.stdout
    assert command("compare", f"{served}#spread", f"{served}#again").exit_code == 0


def test_what_a_server_was_started_with_is_compared_too(served: str, runs: Path) -> None:
    options = ClusterOptions(events=True, scheduler=scheduler_options(PACK))
    with Server(ClusterWorld(options, clock=WallClock()), port=0) as packing:
        http = Http(packing.host, packing.port)
        play(http, scenario())
        http.close()
        told = command("compare", f"{served}#spread", packing.url).stdout
        same = command("compare", runs / "b", packing.url)
    assert "NodeResourcesFit, args.scoringStrategy.type" in told
    assert same.exit_code == 0
    assert "were given" not in same.stdout


def test_the_same_scenario_of_a_server_is_no_comparison(served: str) -> None:
    told = refused(command("compare", f"{served}#spread", f"{served}#spread"))
    assert "are the same run: name the --out directories of two runs, or two scenarios" in told


def test_one_of_several_scenarios_must_be_named(served: str, runs: Path) -> None:
    assert "again, spread" in refused(command("compare", served, runs / "a"))


def test_a_page_of_a_server_s_run_needs_a_place(served: str, tmp_path: Path) -> None:
    asked = ("report", "--server", served, "--scenario", "spread")
    assert "say with --out where the page goes" in refused(command(*asked))
    assert command(*asked, "--out", tmp_path / "page.html").exit_code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<h1>spread</h1>" in page
    assert command("report", f"{served}#spread", "--out", "-").stdout == page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("report", "http://x", "--server", "http://y"), "is a server already"),
        (("results", "out", "--scenario", "s"), "--scenario goes with --server"),
        (("report",), "name either a run directory or --server"),
    ],
)
def test_a_run_is_named_once(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(command(*arguments))
