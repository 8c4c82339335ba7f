"""What is built in Python is the same scenario that a file holds."""

import json
from pathlib import Path

import pytest
import yaml

import kubescene
from kubescene.errors import ScenarioError
from kubescene.scenario import ScenarioBuilder, load_scenario
from kubescene.testing import make_node, make_pod, make_replica_set

SCENARIO = (
    ScenarioBuilder("built")
    .simulate("kube-scheduler")
    .disable("replicaset")
    .settings(seed=7, kubelet={"startDelay": "1s"})
    .create(make_node("n-$(INDEX)").cpu("4"), count=2, id="nodes")
    .next_step()
    .create(make_pod("a").cpu("1"), make_replica_set("web"))
    .patch("v1", "Node", "n-0", {"metadata": {"labels": {"time": "12:30", "on": "off"}}})
    .step(5)
    .delete("v1", "Pod", "a", namespace="default")
    .advance("1m30s")
    .done(id="end")
)


def test_a_saved_scenario_is_loaded_as_it_was_built(tmp_path: Path) -> None:
    assert load_scenario(SCENARIO.save(tmp_path / "scenario.yaml")) == SCENARIO.build()


def test_a_saved_scenario_has_no_anchors() -> None:
    shared = make_pod("a").build()
    text = ScenarioBuilder("s").create(shared).step(2).create(shared).to_yaml()
    assert "&id" not in text
    assert len(yaml.safe_load(text)["spec"]["operations"]) == 2


@pytest.mark.parametrize(
    "text",
    ["1e3", "12e4567", "0o17", "017", "0x1f", "y", "N", "yes", "off", "~", "null", "", "1.0"],
)
def test_text_that_a_reader_could_mistake_is_written_in_quotes(text: str) -> None:
    labels = {"metadata": {"labels": {"a": text}}}
    (line,) = [
        row
        for row in ScenarioBuilder("s")
        .create({**make_pod("a").build(), **labels})
        .to_yaml()
        .split("\n")
        if row.lstrip().startswith("a:")
    ]
    assert line.split(": ")[1] in (f"'{text}'", f'"{text}"')


def test_path_text_mapping_and_builder_give_the_same_run(tmp_path: Path) -> None:
    file = SCENARIO.save(tmp_path / "scenario.yaml")
    runs = [kubescene.run(given) for given in (file, str(file), SCENARIO.build(), SCENARIO)]
    first, *others = [run.record.unversioned_data for run in runs]
    assert all(data == first for data in others)


def test_running_changes_nothing_in_what_was_given() -> None:
    given = SCENARIO.build()
    before = json.dumps(given)
    kubescene.run(given)
    assert json.dumps(given) == before
    assert json.dumps(SCENARIO.build()) == before


def test_building_twice_gives_the_same() -> None:
    builder = ScenarioBuilder("s").disable("*").create(make_node("n"))
    assert builder.build() == builder.build()


def test_disabling_alone_keeps_the_scheduler_simulated() -> None:
    spec = ScenarioBuilder("s").disable("*").build()["spec"]
    assert spec["controllers"]["simulationControllers"] == {"enabled": [{"name": "kube-scheduler"}]}


def test_steps_begin_at_one() -> None:
    with pytest.raises(ScenarioError, match="steps begin at 1, not 0"):
        ScenarioBuilder("s").step(0)
