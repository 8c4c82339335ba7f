"""Parity with the vertical pod autoscaler 1.7.1: recorded decisions against ours, no tolerance."""

import gzip
import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from altering import altered, places
from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.vertical import VerticalAspect

DATA = Path(__file__).parent / "data" / "vertical"
CASES = {
    "admission": 60,
    "burst-idle": 8,
    "checkpoint": 5,
    "config": 8,
    "constant": 10,
    "diurnal": 8,
    "few-samples": 30,
    "in-place": 150,
    "lifecycle": 10,
    "long-history": 8,
    "memory-oom": 15,
    "odd-admission": 60,
    "odd-recommender": 40,
    "odd-updater": 60,
    "policies": 8,
    "ramp": 8,
    "random-admission": 120,
    "random-recommender": 100,
    "random-updater": 120,
    "spikes": 10,
    "updater": 60,
}
"""How many cases each file has, so that none gets lost unnoticed."""

ALTERED = {
    VerticalAspect.REJECTED: ("few-samples", "steps/*/rejected"),
    VerticalAspect.OOM_REJECTED: ("memory-oom", "steps/*/oomRejected"),
    VerticalAspect.AGGREGATES: ("lifecycle", "steps/*/aggregates"),
    VerticalAspect.CHECKPOINTS: ("checkpoint", "steps/*/checkpoints/*/totalSamplesCount"),
    VerticalAspect.CONTAINERS: ("constant", "steps/*/containers/*/name"),
    VerticalAspect.HISTORY: ("constant", "steps/*/containers/*/samples"),
    VerticalAspect.PERCENTILES: ("constant", "steps/*/containers/*/percentiles/cpu/0.9"),
    VerticalAspect.ESTIMATES: ("constant", "steps/*/containers/*/upperBound/memory"),
    VerticalAspect.RECOMMENDATION: ("constant", "steps/*/recommendation/*/uncappedTarget/cpu"),
    VerticalAspect.CONDITIONS: ("constant", "steps/*/conditions"),
    VerticalAspect.CAPPED: ("updater", "pods/*/capped/*/lowerBound/cpu"),
    VerticalAspect.NOTES: ("admission", "pods/*/notes/*"),
    VerticalAspect.PRIORITY: ("updater", "pods/*/scaleUp"),
    VerticalAspect.ACCEPTED: ("updater", "pods/*/accepted"),
    VerticalAspect.EVICTED: ("updater", "evicted"),
    VerticalAspect.RESIZED: ("in-place", "loops/*/resized"),
    VerticalAspect.EVENTS: ("updater", "events"),
    VerticalAspect.RESOURCES: ("admission", "pods/*/resources/*/Requests/memory"),
    VerticalAspect.PATCHES: ("admission", "pods/*/patches/*/value"),
}
"""Per aspect, a family and where in its results it is recorded."""


@pytest.mark.parametrize("family", CASES)
def test_decisions_equal_those_of_the_vertical_pod_autoscaler(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert tally.cases == CASES[family]
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)


@cache
def recorded(aspect: VerticalAspect) -> Golden:
    """The first golden in which an aspect is recorded."""
    family, path = ALTERED[aspect]
    return next(
        golden
        for golden in read_goldens(DATA / f"{family}.jsonl.gz")
        if places(golden.result, path.split("/"))
    )


def changed(value: Any) -> Any:
    return value * 1.05 if isinstance(value, float) else altered(value)


@pytest.mark.parametrize("aspect", ALTERED)
def test_an_altered_recording_is_a_difference(aspect: VerticalAspect) -> None:
    golden = deepcopy(recorded(aspect))
    container, key = places(golden.result, ALTERED[aspect][1].split("/"))[0]
    container[key] = changed(container[key])
    tally = GoldenTally(golden.family)
    replay(golden, tally)
    assert tally.compared[aspect] > tally.equal[aspect], tally.first


def test_every_aspect_can_fail() -> None:
    assert set(ALTERED) == set(VerticalAspect) - {VerticalAspect.REPLAYED}


def row(golden: Golden) -> dict[str, Any]:
    return deepcopy({"case": golden.case, "result": golden.result})


def written(path: Path, *rows: Any) -> str:
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return str(path)


def test_what_we_raise_is_a_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = row(recorded(VerticalAspect.HISTORY))
    broken["case"]["config"] = {"safetyMargin": "much"}
    assert main([written(tmp_path / "broken.jsonl.gz", broken)]) == 1
    assert "safetyMargin: 'much' is no number" in capsys.readouterr().out


def test_where_the_recorded_one_crashed_nothing_is_compared() -> None:
    crashed = row(recorded(VerticalAspect.ACCEPTED))
    for pod in crashed["result"]["pods"]:
        pod["error"] = "panic"
    crashed["result"]["panic"] = True
    tally = GoldenTally("updater")
    replay(Golden(crashed["case"], crashed["result"]), tally)
    assert not tally.compared


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        ({"ops": [{"jump": 1}]}, "operation 0 has to be one of pod"),
        ({"ops": "no"}, 'needs a list "ops"'),
    ],
)
def test_a_recording_of_another_make_is_refused(
    alter: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = row(recorded(VerticalAspect.HISTORY))
    bad["case"] |= alter
    bad["result"]["steps"] = bad["result"]["steps"][:1]
    assert main([written(tmp_path / "bad.jsonl.gz", bad)]) == 2
    assert said in capsys.readouterr().err


def test_one_case_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "two.jsonl.gz", *map(row, map(recorded, list(ALTERED)[:2])))
    wanted = recorded(VerticalAspect.REJECTED).id
    assert main([file, "--case", wanted, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["equal"]
    assert document["families"]["few-samples"]["cases"] == 1


def test_a_large_weight_is_compared_as_the_number_that_it_is() -> None:
    """JSON of the recorder shows 1.4e17 as a whole number of which a float cannot hold all."""
    ops = [{"samples": {"pod": "p", "container": "c", "t": 0, "every": 3600, "cpu": [1] * 60}}]
    spec = {"targetRef": {"kind": "Deployment", "name": "web"}}
    case: dict[str, Any] = {
        "id": "large",
        "start": "2026-03-01T00:00:00Z",
        "config": {"cpuHistogramDecayHalfLife": 3600},
        "vpa": {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": spec,
        },
        "selector": "",
        "ops": [{"pod": {"name": "p", "containers": [{"name": "c"}]}}, *ops, {"restart": 216000}],
    }
    histogram = {
        "referenceTimestamp": "2026-03-01T00:00:00Z",
        "bucketWeights": {"0": 10000},
        "totalWeight": 115292150460684700,
    }
    status = {
        "lastUpdateTime": "2026-03-03T12:00:00Z",
        "version": "v3",
        "cpuHistogram": histogram,
        "memoryHistogram": {"referenceTimestamp": None},
        "firstSampleStart": "2026-03-01T00:00:00Z",
        "lastSampleStart": "2026-03-03T11:00:00Z",
        "totalSamplesCount": 60,
    }
    tally = GoldenTally("large", "steps")
    replay(Golden(case, {"steps": [{}, {}, {"checkpoints": {"c": status}}]}), tally)
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)


def test_times_may_have_fractions() -> None:
    golden = next(each for each in read_goldens(DATA / "constant.jsonl.gz"))
    case, result = deepcopy(golden.case), deepcopy(golden.result)
    for op in case["ops"]:
        [(name, told)] = op.items()
        if name == "samples":
            told["t"] += 0.25
    for step in result["steps"]:
        for container in step.get("containers", ()):
            container |= {each: container[each] + 0.25 for each in ("firstSample", "lastSample")}
    tally = GoldenTally("fractions", "steps")
    replay(Golden(case, result), tally)
    assert tally.compared[VerticalAspect.HISTORY] > 0
    assert tally.equal[VerticalAspect.HISTORY] == tally.compared[VerticalAspect.HISTORY]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("family", "played"),
    [
        ("admission", 20),
        ("odd-admission", 4),
        ("odd-updater", 4),
        ("random-admission", 5),
        ("random-updater", 7),
        ("updater", 43),
    ],
)
def test_updater_and_admission_decide_the_same_about_objects(
    family: str, played: int, plain: bool
) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"], objects=True, plain=plain)
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)
    assert (tally.equal_cases, tally.equal_cases + len(tally.left_out)) == (played, tally.cases)


@pytest.mark.parametrize("path", ["pods/*/patches/*/value", "evicted"])
def test_what_is_altered_is_found_in_objects(path: str) -> None:
    family = "updater" if path == "evicted" else "admission"
    found = 0
    for golden in read_goldens(DATA / f"{family}.jsonl.gz"):
        tally = GoldenTally(family)
        replay(golden, tally, objects=True)
        if tally.left_out or not golden.result.get("evicted", True):
            continue
        result = deepcopy(golden.result)
        if path == "evicted":
            result["evicted"] = result["evicted"][1:]
        else:
            quantities = [
                (container, key)
                for container, key in places(result, path.split("/"))
                if container["path"].endswith(("/cpu", "/memory"))
            ]
            if not quantities:
                continue
            quantities[0][0]["value"] = "123m"
        tally = GoldenTally(family)
        replay(Golden(golden.case, result), tally, objects=True)
        found += 1
        assert not tally.is_equal, golden.id
    assert found > 5


def test_other_recordings_have_no_objects(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(DATA.parent / "kpa" / "plain.jsonl.gz")
    assert main(["--objects", file]) == 2
    assert "only recordings of the horizontal and the vertical" in capsys.readouterr().err
