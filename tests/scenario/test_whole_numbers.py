"""``step: 1.0`` is step 1, as kube-apiserver has it, wherever a Scenario comes from."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kubescene.api.text.whole_numbers import whole, with_whole_numbers
from kubescene.api.text.yaml_text import read_yaml
from kubescene.cli.app import app
from kubescene.errors import InvalidError
from kubescene.runs.local import run
from kubescene.testing import make_node
from kubescene.types import JsonObject
from live.test_scenarios import Stage

TEXT = """\
apiVersion: simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  simulation: {seed: 7.0}
  operations:
  - step: 1.0
    createOperation:
      count: 2.0
      object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: d-$(INDEX)}
        spec:
          replicas: 3.0
          selector: {matchLabels: {a: b}}
          template:
            metadata: {labels: {a: b}}
            spec: {containers: [{name: c, image: i}]}
  - {step: 2e0, doneOperation: {}}
"""


def written() -> Any:
    """As a Python program may have it, or a client that sends JSON."""
    scenario: JsonObject = read_yaml(TEXT)[0].value
    spec = scenario["spec"]
    spec["simulation"]["seed"] = 7.0
    spec["operations"][0]["step"] = 1.0
    spec["operations"][0]["createOperation"]["count"] = 2.0
    spec["operations"][0]["createOperation"]["object"]["spec"]["replicas"] = 3.0
    return scenario


def test_a_file_is_fine_and_plays(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(TEXT)
    assert CliRunner().invoke(app, ["validate", str(file)]).exit_code == 0
    assert run(file).ok


def test_an_object_plays_as_its_file_does(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(TEXT)
    assert list(run(written()).timeline) == list(run(file).timeline)


def test_a_server_stores_a_whole_number_and_plays_it() -> None:
    stage = Stage()
    stage.cluster.create(written())
    operation = stage.cluster.get("scenarios", "s")["spec"]["operations"][0]
    assert (repr(operation["step"]), repr(operation["createOperation"]["count"])) == ("1", "2")
    stage.settle()
    assert stage.phase("s") == "Succeeded"


def test_a_fraction_is_refused_everywhere() -> None:
    scenario = written()
    scenario["spec"]["operations"][0]["step"] = 1.5
    assert "must be a whole number" in run(scenario).message
    with pytest.raises(InvalidError, match="step in body must be of type int64"):
        Stage().cluster.create(scenario)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1.0, "1"), (-0.0, "0"), (1.5, "1.5"), (1e15, "1000000000000000"), (1e16, "1e+16")],
)
def test_whole_numbers(given: float, expected: str) -> None:
    assert repr(whole(given)) == expected
    assert repr(with_whole_numbers({"a": [given]})["a"][0]) == expected


def test_what_has_no_such_number_is_not_copied() -> None:
    node = make_node("n").build()
    assert with_whole_numbers(node) is node


def test_texts_with_a_point_and_a_zero_are_no_numbers() -> None:
    """A hundred thousand durations are not walked through at every write."""
    given = {"arrivals": ["36.0s", "36.04s"], "rate": 1.5, "other": 2.05}
    assert with_whole_numbers(given) is given
    assert with_whole_numbers({"told": "1.0", "rate": 1.0}) == {"told": "1.0", "rate": 1}
    assert repr(with_whole_numbers({"a": {"b": [7, -3.0]}})) == "{'a': {'b': [7, -3]}}"
