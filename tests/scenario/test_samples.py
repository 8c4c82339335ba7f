"""Samples in files beside a scenario."""

from pathlib import Path

import pytest
import yaml

import kubescene
from kubescene.cli.files import read_scenario
from kubescene.errors import ScenarioError
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

TIMES = "pod,seconds,code\na,30,0\nb,90.5,1\n"


def scenario(folder: Path, text: str = TIMES, **samples: str) -> Path:
    named = {"file": "times.csv", "column": "seconds", "unit": "s", **samples}
    (folder / "times.csv").write_text(text)
    objects = (make_node("n").build(), make_pod("p").build())
    steps = [
        {"id": f"o{step}", "step": step, "createOperation": {"object": obj}}
        for step, obj in enumerate(objects, 1)
    ]
    document: JsonObject = {
        "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "samples"},
        "spec": {
            "simulation": {"workloads": [{"runTime": {"empirical": named, "max": "1h"}}]},
            "operations": [*steps, {"id": "done", "step": 3, "doneOperation": {}}],
        },
    }
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def test_a_column_becomes_the_values(tmp_path: Path) -> None:
    file = scenario(tmp_path)
    given = read_scenario(file).scenario["spec"]["simulation"]["workloads"][0]["runTime"]
    assert given == {"empirical": {"values": ["30s", "90.5s"]}, "max": "1h"}
    assert kubescene.run(file).ok


def test_numbers_without_a_unit_are_numbers(tmp_path: Path) -> None:
    file = scenario(tmp_path, "code\n0\n3\n", column="code", unit="")
    given = read_scenario(file).scenario["spec"]["simulation"]["workloads"][0]["runTime"]
    assert given["empirical"]["values"] == [0, 3]


@pytest.mark.parametrize(
    ("text", "samples", "words"),
    [
        (TIMES, {"file": "other.csv"}, "there is no file 'other.csv' in"),
        (TIMES, {"file": "../times.csv"}, "must be a path inside the folder of the scenario"),
        (
            TIMES,
            {"column": "minutes"},
            "times.csv has no column minutes; it has pod, seconds, code",
        ),
        (TIMES, {"kolumn": "x"}, "a file has no kolumn; it has file, column, unit"),
        ("seconds\n", {}, "times.csv has no values below its first line"),
        ("pod,seconds\na,3\nb\n", {}, "times.csv:3: there is no value in this line"),
    ],
)
def test_a_fault_names_the_line_of_the_scenario(
    tmp_path: Path, text: str, samples: dict[str, str], words: str
) -> None:
    file = scenario(tmp_path, text, **samples)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(file)
    assert words in str(caught.value)
    lines = file.read_text().splitlines()
    number = 1 + next(place for place, line in enumerate(lines) if "file:" in line)
    assert f"scenario.yaml:{number}:" in str(caught.value)


def test_values_that_make_no_sense_are_faults_of_the_field(tmp_path: Path) -> None:
    run = kubescene.run(scenario(tmp_path, "seconds\n-3\n"))
    assert not run.ok
    assert "runTime: '-3s' is not a duration" in run.message
