"""``UPDATE_SCENARIO_RESULTS_STRATEGY`` delays the result, never the phases."""

from pathlib import Path

import pytest
import yaml

import kubescene
from kubescene.api.records.changes import Change
from kubescene.cluster import ClusterWorld
from kubescene.errors import ConfigurationError
from kubescene.scenario import Engine, ScenarioBuilder
from kubescene.scenario.phases import ResultsStrategy
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_node, make_pod
from kubescene.timeline import TimelineRecorder

TWO_STEPS = ScenarioBuilder("s").create(make_node("n").cpu("4")).step(2).create(make_pod("a"))
DONE = ScenarioBuilder("s").create(make_node("n").cpu("4")).step(2).done()
FAILS = ScenarioBuilder("s").create(make_node("n")).step(2).delete("v1", "Node", "m")


def shown(scenario: ScenarioBuilder, strategy: str) -> dict[str, set[str]]:
    """Which major steps a watch saw in the result, by the phase of the scenario."""
    cluster = ClusterWorld()
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    cluster.create(scenario)
    resource = cluster.scheme.resolve("scenarios").group_resource
    (record,) = cluster.store.list(resource)
    seen: dict[str, set[str]] = {}

    def watch(change: Change) -> None:
        status = change.record.decode()["status"]
        majors = status["scenarioResult"].get("timeline", {})
        seen.setdefault(status["phase"], set()).update(majors)

    cluster.store.subscribe(watch, [resource])
    Engine(
        cluster, ScenarioResource(cluster.store, record), recorder, ResultsStrategy(strategy)
    ).run()
    return seen


@pytest.mark.parametrize(
    ("scenario", "strategy", "expected"),
    [
        (TWO_STEPS, "AtMovingNextStep", {"Running": {"1", "2"}, "Paused": {"1", "2"}}),
        (TWO_STEPS, "OnPause", {"Running": set(), "Paused": {"1", "2"}}),
        (TWO_STEPS, "OnDone", {"Running": set(), "Paused": set()}),
        (DONE, "OnPause", {"Running": set(), "Succeeded": {"1", "2"}}),
        (DONE, "OnDone", {"Running": set(), "Succeeded": {"1", "2"}}),
        (FAILS, "OnDone", {"Running": set(), "Failed": {"1"}}),
    ],
)
def test_the_result_is_shown_when_the_strategy_says(
    scenario: ScenarioBuilder, strategy: str, expected: dict[str, set[str]]
) -> None:
    assert shown(scenario, strategy) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "AtMovingNextStep"), ("", "AtMovingNextStep"), ("OnPause", "OnPause")],
)
def test_the_strategy_comes_from_the_environment(value: str | None, expected: str) -> None:
    environment = {} if value is None else {"UPDATE_SCENARIO_RESULTS_STRATEGY": value}
    assert ResultsStrategy.of_environment(environment) == expected


def test_an_unknown_strategy_lists_the_three() -> None:
    with pytest.raises(ConfigurationError, match="AtMovingNextStep, OnPause, OnDone"):
        ResultsStrategy.of_environment({"UPDATE_SCENARIO_RESULTS_STRATEGY": "Never"})


@pytest.mark.parametrize("strategy", list(ResultsStrategy))
def test_the_file_shows_what_the_object_does(strategy: ResultsStrategy, tmp_path: Path) -> None:
    scenario = ScenarioBuilder("s").create(make_node("n"))
    run = kubescene.run(scenario, out=tmp_path, results=strategy, full_status=True)
    written = yaml.safe_load((tmp_path / "result.yaml").read_text())
    shown = run.scenario["status"]["scenarioResult"].get("timeline")
    assert (written["status"]["scenarioResult"].get("timeline") or {}) == (shown or {})
