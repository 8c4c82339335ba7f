"""When ``status.scenarioResult`` is brought up to date."""

import pytest

import kubescene
from kubescene.errors import ConfigurationError
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.phases import ResultsStrategy
from kubescene.testing import make_node


def visible_steps(run: kubescene.Run) -> list[str]:
    return list(run.scenario["status"]["scenarioResult"]["timeline"])


def play(results: ResultsStrategy, *, done: bool) -> kubescene.Run:
    scenario = ScenarioBuilder("s").create(make_node("a")).step(2).create(make_node("b"))
    return kubescene.run(scenario.done() if done else scenario, results=results)


@pytest.mark.parametrize(
    ("strategy", "done", "visible"),
    [
        (ResultsStrategy.AT_MOVING_NEXT_STEP, False, ["1", "2"]),
        (ResultsStrategy.ON_PAUSE, False, ["1", "2"]),
        (ResultsStrategy.ON_DONE, False, []),
        (ResultsStrategy.ON_DONE, True, ["1", "2"]),
    ],
    ids=str,
)
def test_results_are_shown_when_the_strategy_says(
    strategy: ResultsStrategy, done: bool, visible: list[str]
) -> None:
    run = play(strategy, done=done)
    assert visible_steps(run) == visible
    assert len(run.timeline) == 2 + done


def test_the_environment_chooses_the_strategy() -> None:
    variable = {"UPDATE_SCENARIO_RESULTS_STRATEGY": "OnDone"}
    assert ResultsStrategy.of_environment(variable) is ResultsStrategy.ON_DONE
    assert ResultsStrategy.of_environment({}) is ResultsStrategy.AT_MOVING_NEXT_STEP


def test_an_unknown_strategy_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="AtMovingNextStep, OnPause, OnDone"):
        ResultsStrategy.of_environment({"UPDATE_SCENARIO_RESULTS_STRATEGY": "Always"})
