"""Searching settings: ranges, conditions, what is best and what is on the frontier."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import kubescene as command
from kubescene.errors import ConfigurationError
from kubescene.experiments.estimates import estimate
from kubescene.experiments.goals import Goal, TuningTrial, measure_named, parse_condition
from kubescene.experiments.ranges import Axis, count_of, grid, parse_ranges, random_points
from kubescene.experiments.tuning import TuningResult, tune
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=2..5", (2, 3, 4, 5)),
        ("a=2..9/3", (2, 5, 8)),
        ("a=0.5..0.7/0.1", (0.5, 0.6, 0.7)),
        ("a=100m..300m/100m", ("100m", "200m", "300m")),
        ("a=30s..90s/30s", ("30s", "60s", "90s")),
        ("a=x,y", ("x", "y")),
        ("a=1,[2,3]", (1, [2, 3])),
        ("a=-2..0", (-2, -1, 0)),
    ],
)
def test_ranges(text: str, values: tuple[Any, ...]) -> None:
    [axis] = parse_ranges([text])
    assert axis.values == values
    assert [type(each) for each in axis.values] == [type(each) for each in values]


def test_numbers_between_have_a_hundred_steps() -> None:
    [axis] = parse_ranges(["a=0.5..0.9"])
    assert (axis.values[0], axis.values[-1], len(axis.values)) == (0.5, 0.9, 101)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "nothing to vary"),
        (["a"], "--vary 'a' must be written as path=value,value"),
        (["a=5..2"], "the range is empty"),
        (["a=1m..5"], "the same unit"),
        (["a=0..1000000"], "a longer step"),
        (["a=1..2", "a=3,4"], "given twice"),
    ],
)
def test_ranges_that_make_no_sense(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_ranges(texts)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("p99_ms < 300", 300),
        ("p99_ms<0.3s", 300),
        ("response_p99_s <= 300 ms", 0.3),
        ("cpu_used_share > 40%", 0.4),
        ("requests_failed == 0", 0),
    ],
)
def test_conditions(text: str, bound: float) -> None:
    assert parse_condition(text).bound == pytest.approx(bound)


def test_milliseconds_of_the_table_are_the_measures_in_seconds() -> None:
    assert measure_named("p99_ms") == ("response_p99_s", 1000)
    assert measure_named("served_p50_ms_default_web") == ("response_served_p50_s_default_web", 1000)
    assert measure_named("cost") == ("cost", 1)


@pytest.mark.parametrize("text", ["p99_ms", "p99_ms < fast", "< 3", "a < 3; import os", "a != 3"])
def test_conditions_that_make_no_sense(text: str) -> None:
    with pytest.raises(ConfigurationError, match="must be a measure"):
        parse_condition(text)


def trial(held: int = 1, **values: float) -> TuningTrial:
    told = {name: estimate([value]) for name, value in values.items()}
    return TuningTrial(settings={"a": "1"}, runs=1, held=held, failed=0, error="", values=told)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_nothing_is_better_than_the_frontier_and_all_else_is_worse(pairs: list[Any]) -> None:
    goal = Goal("cost", (parse_condition("late < 5"),))
    trials = [trial(int(late < 5), cost=cost, late=late) for cost, late in pairs]
    found = TuningResult(goal, trials, len(trials), "grid")
    front = {(each.values["cost"].mean, each.values["late"].mean) for each in found.frontier}
    for cost, late in pairs:
        better = [(c, w) for c, w in pairs if c <= cost and w <= late and (c, w) != (cost, late)]
        assert ((cost, late) in front) is not bool(better)
    kept = [cost for cost, late in pairs if late < 5]
    best = found.best
    assert (best is None) is (not kept)
    assert best is None or best.values["cost"].mean == min(kept)


def test_what_is_to_be_large_is_best_where_it_is_largest() -> None:
    goal = Goal("share", (parse_condition("free >= 2"),), most=True)
    trials = [trial(share=1, free=9), trial(share=5, free=2), trial(share=3, free=1, held=0)]
    found = TuningResult(goal, trials, 3, "grid")
    assert found.best is trials[1]
    assert found.frontier == [trials[1], trials[0]]


def test_a_draw_is_alike_everywhere_and_never_twice() -> None:
    axes = [Axis("a", tuple(range(10))), Axis("b", tuple("xyz"))]
    found = random_points(axes, 12, 7)
    assert found == random_points(axes, 12, 7) != random_points(axes, 12, 8)
    assert len(set(found)) == 12
    assert sorted(random_points(axes, 99, 1)) == sorted(grid(axes))
    assert count_of(axes) == 30


def packing() -> JsonObject:
    """Pods of some size on a node of 4 cores: as many as fit are bound."""
    scenario = (
        ScenarioBuilder("packing")
        .create(make_node("n").cpu("4").memory("64Gi"))
        .create(make_pod("p-$(INDEX)").cpu("500m"), count=6)
        .done()
        .build()
    )
    scenario["spec"]["operations"][1]["id"] = "pods"
    return scenario


COUNT = "spec.operations.pods.createOperation.count"


def test_the_most_pods_that_all_fit() -> None:
    goal = Goal("pods_bound", (parse_condition("pods_pending == 0"),), most=True)
    found = tune(packing(), parse_ranges([f"{COUNT}=2..20"]), goal, jobs=1)
    assert found.search == "grid"
    assert found.best is not None
    assert found.best.settings == {COUNT: "8"}


def test_the_least_nodes_that_hold_all_pods() -> None:
    """Four pods of 0.9 cores find room on a node of four cores: five nodes for twenty."""
    node_set = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": "n"},
        "spec": {"template": {"status": {"capacity": {"cpu": "4", "pods": "110"}}}},
    }
    pods = make_pod("p-$(INDEX)").cpu("900m")
    scenario = ScenarioBuilder("s").create(node_set).create(pods, count=20).done().build()
    goal = Goal("nodes", (parse_condition("pods_pending == 0"),))
    path = "spec.operations.0.createOperation.object.spec.replicas"
    found = tune(scenario, parse_ranges([f"{path}=1..8"]), goal, jobs=1)
    assert found.best is not None
    assert found.best.settings == {path: "5"}
    kept = {trial.settings[path]: trial.is_feasible for trial in found.trials}
    assert kept == {str(each): each >= 5 for each in range(1, 9)}


def test_what_fails_is_no_answer() -> None:
    goal = Goal("pods_bound", most=True)
    field = "spec.operations.pods.createOperation.object.spec.schedulerName"
    with pytest.raises(ConfigurationError, match="there is no measure"):
        tune(packing(), parse_ranges([f"{field}=a,b"]), Goal("pods_bond"), jobs=1)
    with pytest.raises(ConfigurationError, match="no measure 'cost' without prices: give --prices"):
        tune(packing(), parse_ranges([f"{COUNT}=1..3"]), Goal("cost"), jobs=1)
    with pytest.raises(ConfigurationError, match="at least one"):
        tune(packing(), parse_ranges([f"{COUNT}=1..3"]), goal, trials=0)


def test_a_search_with_optuna_is_alike_for_a_seed_and_finds_it() -> None:
    pytest.importorskip("optuna")
    goal = Goal("pods_bound", (parse_condition("pods_pending == 0"),), most=True)
    axes = parse_ranges([f"{COUNT}=2..60"])
    one, other = (
        tune(packing(), axes, goal, jobs=1, search="optuna", trials=25, search_seed=3)
        for _ in range(2)
    )
    assert [each.settings for each in one.trials] == [each.settings for each in other.trials]
    assert len({str(each.settings) for each in one.trials}) == 25
    assert one.best is not None
    assert int(one.best.settings[COUNT]) in (7, 8)


def test_without_optuna_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(ConfigurationError, match=r"kubescene\[tune\]"):
        tune(packing(), parse_ranges([f"{COUNT}=2..3"]), Goal("nodes"), search="optuna")


def test_the_command_tells_the_best_and_the_frontier(tmp_path: Path) -> None:
    file = tmp_path / "packing.json"
    file.write_text(json.dumps(packing()))
    asked = [
        *("tune", str(file), "--vary", f"{COUNT}=4,8,12", "--maximize", "pods_bound"),
        *("--subject-to", "pods_pending == 0", "--jobs", "1", "--quiet"),
    ]
    done = command(*asked, "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].endswith(f"in every run: --set {COUNT}=8")
    document = json.loads((tmp_path / "out" / "tune.json").read_text())
    assert document["best"] == {COUNT: "8"}
    assert "<svg" in (tmp_path / "out" / "tune.html").read_text()
    lines = (tmp_path / "out" / "tune.csv").read_text().splitlines()
    assert len(lines) == 4
    none = command(*asked[:6], "--subject-to", "pods_bound > 99", "--jobs", "1", "--quiet")
    assert none.returncode == 3
    assert "None keeps pods_bound > 99 in every run" in none.stdout
    both = command("tune", str(file), "--vary", f"{COUNT}=1,2")
    assert both.returncode == 2
    assert "--minimize" in both.stderr
