"""``kubescene traffic back-test``: files in, decisions and faults out."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import kubescene
from kubescene.cli.app import app
from kubescene.errors import ConfigurationError

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
"""
USAGE = "time,cpu,note\n0,250m,7\n15s,0.5,\n1970-01-01T00:00:30Z,1,8\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hpa.yaml").write_text(HPA)
    (tmp_path / "usage.csv").write_text(USAGE)
    return tmp_path


FILES = ["traffic", "back-test", "--hpa", "hpa.yaml", "--usage", "usage.csv"]


def test_a_fault_exits_2_in_one_line(folder: Path) -> None:
    done = kubescene(*FILES, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kubescene: requests.cpu: missing; spec.metrics[0] asks for")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What the command prints."""
    monkeypatch.chdir(folder)

    def run(*options: str) -> str:
        app([*FILES, *options], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_changes_are_shown_with_their_reasons(shown: Callable[..., str]) -> None:
    first, plot, _, *changes = shown("--requests", "cpu=500m").splitlines()
    assert first == "replicas, 1 to 4 in 30s"
    assert plot == "  ▂▄█"
    assert changes[0].startswith("       15s  1 -> 2: cpu resource utilization")
    assert changes[1].startswith("       30s  2 -> 4: cpu resource utilization")
    assert changes[-1] == (
        "3 passes, 2 rescales, 0 of them against the one before, 0.0 replica hours"
    )


def test_json_has_every_pass(shown: Callable[..., str]) -> None:
    document = json.loads(shown("--requests", "cpu=500m", "--json", "--startup", "20s"))
    assert [each["time"] for each in document["passes"]] == [0, 15, 30]
    assert [each["ready"] for each in document["passes"]] == [1, 1, 1]
    assert document["passes"][1]["explanation"]["proposal"] == 2


def test_all_passes_can_be_shown(shown: Callable[..., str]) -> None:
    assert "        0s  stays at 1" in shown("--requests", "cpu=500m", "--all")


WRONG: dict[str, tuple[dict[str, str], list[str], str]] = {
    "requests": ({}, ["--requests", "500m"], "--requests: '500m' is not written as cpu=500m"),
    "request": ({}, ["--requests", "cpu=x"], "requests.cpu: 'x' is not an amount"),
    "interval": ({}, ["--interval", "soon"], "--interval: 'soon' is not a duration"),
    "zero": ({}, ["--interval", "0s"], "interval: 0 ns is too short"),
    "hpa": (
        {"hpa.yaml": HPA.replace("20", "-20")},
        [],
        "hpa.yaml: HorizontalPodAutoscaler.autoscaling",
    ),
    "hpa field": ({"hpa.yaml": HPA.replace("20", "-20")}, [], "spec.maxReplicas"),
    "no hpa": ({"hpa.yaml": "{}"}, [], "hpa.yaml: not a HorizontalPodAutoscaler"),
    "no time": ({"usage.csv": "cpu\n1\n"}, [], 'usage.csv:1: there is no column "time"'),
    "twice": ({"usage.csv": "time,cpu,cpu\n"}, [], 'usage.csv:1: there are several columns "cpu"'),
    "cells": ({"usage.csv": "time,cpu\n0,1\n15\n"}, [], "usage.csv:3: 1 cells in 2 columns"),
    "time": ({"usage.csv": "time,cpu\nnoon,1\n"}, [], "usage.csv:2: time: 'noon' is neither"),
    "infinity": ({"usage.csv": "time,cpu\nInfinity,1\n"}, [], "usage.csv:2: time: 'Infinity'"),
    "nan": ({"usage.csv": "time,cpu\n0,NaN\n"}, [], "usage.csv:2: cpu: 'NaN' is not an amount"),
    "negative": ({"usage.csv": "time,cpu\n0,-1\n"}, [], "usage.csv:2: cpu: -1 is negative"),
    "empty": ({"usage.csv": "time,cpu\n"}, [], "usage.csv: there are no samples"),
    "order": ({"usage.csv": "time,cpu\n5,1\n4,1\n"}, [], "usage.csv:3: time: before the line"),
    "same": ({"usage.csv": "time,cpu\n5,1\n5,1\n"}, [], "usage.csv:3: time: the same as in"),
    "unmeasured": ({"usage.csv": "time,cpu\n0,\n"}, [], "usage.csv:2: cpu: missing"),
    "column": (
        {"usage.csv": "time,memory\n0,1\n"},
        [],
        "usage.csv:2: cpu: missing; the sample has",
    ),
    "too long": ({"usage.csv": "time,cpu\n0,1\n1e9,1\n"}, [], "66,666,667 passes"),
}


@pytest.mark.parametrize(("files", "options", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(
    folder: Path,
    shown: Callable[..., str],
    files: dict[str, str],
    options: list[str],
    words: str,
) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        shown("--requests", "cpu=1", *options)
    assert words in str(caught.value)


def test_a_missing_file_is_named(folder: Path, shown: Callable[..., str]) -> None:
    (folder / "usage.csv").unlink()
    with pytest.raises(ConfigurationError, match=r"usage\.csv: cannot be read"):
        shown()


# -- vertical ---------------------------------------------------------------------------------

VPA = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""
MEASURED = "time,container,cpu,memory,oom\n" + "".join(
    f"{minute}m,app,{300 + minute % 10}m,200Mi,\n" for minute in range(120)
)


@pytest.fixture
def vertical(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What the command prints about a vertical autoscaler."""
    (folder / "vpa.yaml").write_text(VPA)
    (folder / "usage.csv").write_text(MEASURED)
    monkeypatch.chdir(folder)

    def run(*options: str) -> str:
        files = ["--vpa", "vpa.yaml", "--usage", "usage.csv"]
        app(["traffic", "back-test", *files, *options], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_a_vertical_autoscaler_shows_its_targets(vertical: Callable[..., str]) -> None:
    shown = vertical().splitlines()
    assert shown[0].startswith("app cpu: target 379m, bounds ")
    assert "0 of 118 samples above the target of their time; mean usage 305m" in shown[2]
    assert shown[3].startswith("app memory: target 250.00Mi, bounds")
    assert "app cpu target: percentile 0.9 is" in "\n".join(shown)
    assert shown[-1] == "119 recommendations"


def test_a_vertical_back_test_as_json_has_every_recommendation(
    vertical: Callable[..., str],
) -> None:
    document = json.loads(vertical("--json", "--interval", "10m"))
    assert [each["time"] for each in document["recommendations"]][:2] == [600, 1200]
    last = document["recommendations"][-1]["recommendation"]["containerRecommendations"]
    assert last[0]["containerName"] == "app"
    assert [each["resource"] for each in document["outcomes"]] == ["cpu", "memory"]


VERTICAL_WRONG: dict[str, tuple[str, list[str], str]] = {
    "both": (MEASURED, ["--hpa", "hpa.yaml"], "give either --hpa or --vpa"),
    "replicas": (MEASURED, ["--replicas", "0"], "--replicas is for --hpa"),
    "interval": (MEASURED, ["--interval", "0s"], "the interval has to be more than 0"),
    "order": ("time,cpu\n5,1\n4,1\n", [], "usage.csv:3: time: before the line above"),
    "nothing": ("time,cpu\n5,\n", [], "usage.csv:2: neither cpu nor memory was measured"),
    "empty": ("time,cpu\n", [], "usage.csv: there are no samples"),
    "oom": ("time,memory,oom\n5,1,maybe\n", [], "usage.csv:2: oom: 'maybe' is neither"),
    "negative": ("time,memory\n5,-1\n", [], "usage.csv:2: memory: -1 is negative"),
}


@pytest.mark.parametrize(("usage", "options", "words"), VERTICAL_WRONG.values(), ids=VERTICAL_WRONG)
def test_what_is_wrong_with_a_vertical_back_test_is_named(
    folder: Path, vertical: Callable[..., str], usage: str, options: list[str], words: str
) -> None:
    (folder / "usage.csv").write_text(usage)
    with pytest.raises(ConfigurationError) as caught:
        vertical(*options)
    assert words in str(caught.value)


def test_an_autoscaler_must_be_given(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="give either --hpa or --vpa"):
        app(["traffic", "back-test", "--usage", str(folder / "usage.csv")], standalone_mode=False)
