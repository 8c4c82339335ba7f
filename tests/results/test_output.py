"""The ``--out`` directory: what a run leaves behind, and that it says what the run says."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

import kubescene
from kubescene.clock import ScenarioStep
from kubescene.errors import ConfigurationError, RecorderError
from kubescene.results import Summary
from kubescene.results.explaining import read_attempts
from kubescene.results.output import OutputDirectory
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.reading.files import load_yaml
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Fact, Instrument, PodScheduled, Timeline, TimelineLog
from kubescene.timeline.compacting import unfolded
from kubescene.timeline.files import Header
from kubescene.types import JsonObject
from run_directories import RUN_FILES, read_log

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-first-scenario" / "scenario.yaml"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results") / "not" / "there" / "yet"


@pytest.fixture(scope="module")
def run(out: Path) -> kubescene.Run:
    return kubescene.run(EXAMPLE, out=out, full_status=True)


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_the_directory_holds_exactly_these_files(run: kubescene.Run, out: Path) -> None:
    assert run.ok
    assert sorted(file.name for file in out.iterdir()) == RUN_FILES


def test_the_scenario_file_is_the_scenario(run: kubescene.Run, out: Path) -> None:
    text = (out / "result.yaml").read_text(encoding="utf-8")
    assert load_yaml(text, "scenario.yaml") == [run.scenario]
    assert yaml.safe_load(text) == run.scenario


def test_the_timeline_file_is_the_timeline_of_the_status(run: kubescene.Run, out: Path) -> None:
    timeline = run.scenario["status"]["scenarioResult"]["timeline"]
    told = [event for major in sorted(timeline, key=int) for event in timeline[major]]
    assert list(Timeline(read_log(out))) == told == list(run.timeline)


def test_the_summary_file_is_the_summary(run: kubescene.Run, out: Path) -> None:
    assert json.loads((out / "summary.json").read_text()) == run.summary.to_dict()


def test_every_attempt_is_explained(run: kubescene.Run, out: Path) -> None:
    _, *explanations = lines(out / "explanations.jsonl")
    assert [orjson.loads(row) for row in run.explanations] == explanations
    attempts = [e for e in run.timeline if e["operation"].startswith("Pod")]
    explained = [row for row in explanations if "pod" in row]
    assert [row["step"] for row in explained] == [e["step"] for e in attempts]
    assert "nodes" in explanations[0]
    assert "pod" not in explanations[0]


def test_an_explanation_gives_a_verdict_on_every_node(run: kubescene.Run, out: Path) -> None:
    nodes: list[str] = []
    for row in lines(out / "explanations.jsonl")[1:]:
        if "pod" not in row:
            nodes = row["nodes"]
            continue
        told = [*row["feasible"], *(each for group in row["filters"] for each in group["nodes"])]
        assert sorted(unfolded(told, len(nodes))) == list(range(len(nodes)))


def test_the_scenario_file_is_small_unless_asked_otherwise(tmp_path: Path) -> None:
    run = kubescene.run(EXAMPLE, out=tmp_path)
    (written,) = load_yaml((tmp_path / "result.yaml").read_text(encoding="utf-8"), "x")
    result = written["status"]["scenarioResult"]
    assert result == {"simulatorVersion": kubescene.__version__}
    whole = run.scenario
    del whole["status"]["scenarioResult"]["timeline"]
    assert written == whole


class Reader(Instrument):
    """Reads the directory of the run that it looks on."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.seen: list[tuple[int, list[str]]] = []

    def step_finished(self, step: ScenarioStep) -> None:
        attempts = read_attempts(self.run, "a")
        self.seen.append((len(read_log(self.run)), [attempt.node for attempt in attempts]))


def test_results_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n")).step(2).create(make_pod("a"))
    reader = Reader(tmp_path)
    kubescene.run(scenario, out=tmp_path, instruments=[reader])
    assert reader.seen == [(1, []), (4, ["n"])]


class Gap(OutputDirectory):
    """On a disk that is full when a pod is bound, and has room again afterwards."""

    def write_line(self, fact: Fact) -> None:
        if isinstance(fact, PodScheduled):
            raise OSError(28, "No space left on device")
        super().write_line(fact)


def test_a_gap_in_the_timeline_leaves_no_summary(tmp_path: Path) -> None:
    output, log = Gap(tmp_path, Header()), TimelineLog()
    log.follow(output.record)
    facts = list(kubescene.run(EXAMPLE).log)
    placed = next(place for place, fact in enumerate(facts) if isinstance(fact, PodScheduled))
    for fact in facts[:placed]:
        log.append(fact)
    log.append(facts[placed])
    with pytest.raises(RecorderError, match=r"could not be written at step .* No space left"):
        output.step_finished(facts[placed].step)
    with pytest.raises(RecorderError, match=r"results could not be written .* No space left"):
        output.finish({"status": {}}, None, Summary())
    output.close()
    assert not (tmp_path / "summary.json").exists()


AWKWARD = ["\u2028\u2029\x85", "\x7f\x00\t\n", "ü € 🙂", "'\"\\", "yes", "1e3", "12:30", "# no", ""]


def awkward() -> JsonObject:
    data = {f"k{n}": text for n, text in enumerate(AWKWARD)}
    numbers = {"note": json.dumps([1e-07, 1e22, -0.5, 2**53, True, None])}
    metadata = {"name": "awkward", "annotations": numbers}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(ScenarioBuilder("s"), id="no operations"),
        pytest.param(ScenarioBuilder("s").create(awkward()), id="awkward text"),
        pytest.param(ScenarioBuilder("s").settings(seed=3).done(), id="settings"),
        pytest.param(ScenarioBuilder("s").step(2).create(make_pod("a"), id="ü\u2028"), id="ids"),
        pytest.param(
            ScenarioBuilder("s")
            .create(make_node("n"))
            .step(12)
            .delete("v1", "Node", "m", id="é\n\x85\u2028x: #"),
            id="failed",
        ),
    ],
)
def test_any_scenario_is_written_as_it_is(scenario: ScenarioBuilder, tmp_path: Path) -> None:
    run = kubescene.run(scenario, out=tmp_path, full_status=True)
    text = (tmp_path / "result.yaml").read_text(encoding="utf-8")
    assert load_yaml(text, "scenario.yaml") == [run.scenario]


def test_a_scenario_that_is_at_fault_leaves_nothing_behind(tmp_path: Path) -> None:
    run = kubescene.run(ScenarioBuilder("s").simulate(), out=tmp_path)
    assert (run.phase, run.bad_input) == ("Failed", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("spec", [{}, {"operations": []}, {"events": []}], ids=str)
def test_an_empty_spec_is_written_as_it_is(spec: JsonObject, tmp_path: Path) -> None:
    run = kubescene.run(
        {**ScenarioBuilder("s").build(), "spec": spec}, out=tmp_path, full_status=True
    )
    text = (tmp_path / "result.yaml").read_text(encoding="utf-8")
    assert load_yaml(text, "x") == [run.scenario]
    assert run.scenario["spec"] == spec


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("mine")
    with pytest.raises(ConfigurationError, match=r"cannot write results to .*file: File exists"):
        kubescene.run(ScenarioBuilder("s"), out=blocked)
    assert blocked.read_text() == "mine"


def test_an_old_summary_goes_before_the_run_begins(tmp_path: Path) -> None:
    pods = ScenarioBuilder("s").create(make_pod("p-$(INDEX)"), count=50)
    kubescene.run(pods, out=tmp_path)
    (tmp_path / "explanations.jsonl").unlink()
    (tmp_path / "explanations.jsonl").symlink_to("/dev/full")
    with pytest.raises(kubescene.KubesceneError):
        kubescene.run(pods, out=tmp_path)
    assert not (tmp_path / "summary.json").exists()
