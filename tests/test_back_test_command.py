"""``kubescene traffic back-test``: files in, decisions and faults out."""

import json
from collections.abc import Callable
from functools import partial
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
def printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What the command prints."""
    monkeypatch.chdir(folder)

    def run(*options: str) -> str:
        app(["traffic", "back-test", *options], standalone_mode=False)
        return capsys.readouterr().out

    return run


@pytest.fixture
def shown(printed: Callable[..., str]) -> Callable[..., str]:
    """The same of the autoscaler and the usage of the folder."""
    return partial(printed, *FILES[2:])


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
def vertical(folder: Path, printed: Callable[..., str]) -> Callable[..., str]:
    """What the command prints about a vertical autoscaler."""
    (folder / "vpa.yaml").write_text(VPA)
    (folder / "usage.csv").write_text(MEASURED)
    return partial(printed, "--vpa", "vpa.yaml", "--usage", "usage.csv")


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
    "both": (MEASURED, ["--hpa", "hpa.yaml"], "give one of --hpa, --vpa and --kpa"),
    "replicas": (MEASURED, ["--replicas", "0"], "--replicas says nothing to --vpa"),
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
    with pytest.raises(ConfigurationError, match="give one of --hpa, --vpa and --kpa"):
        app(["traffic", "back-test", "--usage", str(folder / "usage.csv")], standalone_mode=False)


# -- what Prometheus has recorded, and what there was in fact -----------------------------------


def answer(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> str:
    """An answer to query_range."""
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def of(pod: str, container: str, *values: str) -> tuple[dict[str, str], list[tuple[float, str]]]:
    times = (1_772_442_000 + 15 * number for number in range(len(values)))
    return {"pod": pod, "container": container}, list(zip(times, values, strict=True))


def test_answers_of_prometheus_are_summed_as_a_file_would_be(
    folder: Path, printed: Callable[..., str]
) -> None:
    """Of a pod whose containers are there its own sum does not count; NaN was not measured."""
    series = of("a", "app", "0.2", "0.3", "1"), of("a", "", "0.25", "0.4", "1.1")
    (folder / "cpu.json").write_text(answer(*series, of("b", "", "5e-2", "0.2", "NaN")))
    (folder / "usage.csv").write_text("time,cpu\n0,250m\n15,500m\n30,1\n")
    texts = [
        printed("--hpa", "hpa.yaml", "--usage", usage, "--requests", "cpu=500m", "--all")
        for usage in ("cpu=cpu.json", "usage.csv")
    ]
    assert "4 -> " not in texts[0]
    assert "2 -> 4" in texts[0]
    assert texts[0] == texts[1]


def test_containers_of_answers_are_told_apart(folder: Path, printed: Callable[..., str]) -> None:
    (folder / "vpa.yaml").write_text(VPA)
    series = of("a", "app", *["0.3"] * 120), of("a", "log", *["0.1"] * 120), of("a", "", "9", "9")
    (folder / "cpu.json").write_text(answer(*series))
    (folder / "memory.json").write_text(answer(of("a", "app", *["1e8"] * 120)))
    files = ["--usage", "cpu=cpu.json", "--usage", "memory=memory.json"]
    document = json.loads(printed("--vpa", "vpa.yaml", *files, "--json"))
    means = {(e["container"], e["resource"]): e["mean_usage"] for e in document["outcomes"]}
    assert means == {("app", "cpu"): 300, ("app", "memory"): 1e8, ("log", "cpu"): 100}


def test_what_there_was_in_fact_stands_beside_it(folder: Path, shown: Callable[..., str]) -> None:
    """It wants 1, 2 and 4 for 15 s each, where there were 3, 3 and 2."""
    (folder / "usage.csv").write_text("time,cpu,replicas\n0,250m,3\n15,0.5,3\n30,1,2\n")
    asked = ("--requests", "cpu=500m", "--replicas", "1")
    lines = shown(*asked).splitlines()
    assert lines[2:4] == ["recorded, 2 to 3", "  ██▆"]
    assert lines[-1] == (
        "recorded: 0.0 replica hours (88% of them); in 2 passes it wanted fewer replicas than "
        "there were"
    )
    document = json.loads(shown(*asked, "--json"))
    assert (document["recordedSeconds"], document["belowRecorded"]) == (120, 2)
    assert [each["recorded"] for each in document["passes"]] == [3, 3, 2]


def test_it_begins_with_as_many_as_there_were(folder: Path, shown: Callable[..., str]) -> None:
    (folder / "usage.csv").write_text("time,cpu,replicas\n0,250m,3\n15,0.5,3\n")
    document = json.loads(shown("--requests", "cpu=500m", "--json"))
    assert document["passes"][0]["replicas"] == 3


def test_a_vertical_autoscaler_beside_what_was_requested(vertical: Callable[..., str]) -> None:
    """Of every ten samples, of 300m to 309m, four use more than 305m."""
    shown = vertical("--requests", "app/cpu=305m,memory=1Gi").splitlines()
    assert shown[3] == "  48 of them above the 305m that was requested"
    assert shown[7] == "  0 of them above the 1.00Gi that was requested"


KPA = """
apiVersion: autoscaling.kubescene.dev/v1alpha1
kind: ConcurrencyAutoscaler
metadata: {name: web}
spec: {target: 10, targetUtilizationPercentage: 70, maxScale: 9}
"""


def test_the_rule_of_knative(folder: Path, printed: Callable[..., str]) -> None:
    """7 in flight are one pod; of 70 the panic window of 6 s has seen 1, 3 and 5 seconds."""
    (folder / "kpa.yaml").write_text(KPA)
    (folder / "usage.csv").write_text("time,concurrency\n0,7\n100,70\n104,70\n")
    document = json.loads(printed("--kpa", "kpa.yaml", "--usage", "usage.csv", "--json"))
    wanted = [each["desired"] for each in document["passes"]]
    assert wanted == [1] * 50 + [3, 6, 9]
    assert document["passes"][-1]["explanation"]["reason"] == "panic window: 9 pods"


WRONG_ANSWERS: dict[str, tuple[str, str]] = {
    "text": ("{", "is no answer of Prometheus to query_range"),
    "failed": ('{"status": "error", "error": "timed out"}', "the query had failed: timed out"),
    "vector": (
        '{"status": "success", "data": {"resultType": "vector", "result": []}}',
        "data.resultType: 'vector'",
    ),
    "negative": (answer(of("a", "app", "-1")), "data.result[0].values[0]: -1 is negative"),
    "infinite": (answer(of("a", "app", "+Inf")), "values[0]: +Inf is negative, or too much"),
    "words": (answer(of("a", "app", "many")), "values[0]: 'many' is no number"),
    "nothing": (answer(of("a", "app", "NaN")), "there are no samples"),
    "two": (
        answer(({"__name__": "a"}, [(1, "1")]), ({"__name__": "b"}, [(1, "1")])),
        "several metrics (a, b): one query a file",
    ),
}


@pytest.mark.parametrize(("text", "words"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_what_is_wrong_with_an_answer_is_named(
    folder: Path, printed: Callable[..., str], text: str, words: str
) -> None:
    (folder / "cpu.json").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        printed("--hpa", "hpa.yaml", "--usage", "cpu=cpu.json", "--requests", "cpu=1")
    assert words in str(caught.value)


def test_a_container_that_is_there_twice_is_named(
    folder: Path, printed: Callable[..., str]
) -> None:
    (folder / "vpa.yaml").write_text(VPA)
    (folder / "cpu.json").write_text(answer(of("a", "app", "1"), of("a", "app", "2")))
    with pytest.raises(ConfigurationError, match=r"result\[1\]: app of a is there twice"):
        printed("--vpa", "vpa.yaml", "--usage", "cpu=cpu.json")


@pytest.mark.parametrize("usage", [["usage.json"], ["a.csv", "b.csv"], ["a.csv", "cpu=b.json"]])
def test_files_without_names_are_one_table(printed: Callable[..., str], usage: list[str]) -> None:
    files = [each for name in usage for each in ("--usage", name)]
    with pytest.raises(ConfigurationError, match=r"one CSV file, or answers .* NAME=FILE\.json"):
        printed("--hpa", "hpa.yaml", *files)
