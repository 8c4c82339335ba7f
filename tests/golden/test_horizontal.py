"""Parity with the horizontal pod autoscaler of v1.36.4, and the replay of its recordings."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from altering import altered, as_row, places, written
from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.horizontal import HorizontalAspect, HorizontalWorld

DATA = Path(__file__).parent / "data" / "hpa"
CASES = {
    "behavior-policies": 10,
    "bounds": 30,
    "closed-loop": 8,
    "container-resource": 30,
    "external-metric": 30,
    "lifecycle": 30,
    "multi-metric": 30,
    "object-metric": 30,
    "odd": 50,
    "pods-metric": 30,
    "random": 100,
    "resource-utilization": 30,
    "resource-value": 30,
    "tolerance": 30,
    "unready-missing": 30,
}
"""How many cases each file has, so that none gets lost unnoticed."""


@pytest.mark.parametrize("family", CASES)
def test_decisions_equal_those_of_the_controller(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert tally.cases == CASES[family]
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)


IN_OBJECTS = {
    "behavior-policies": 10,
    "bounds": 22,
    "closed-loop": 8,
    "container-resource": 27,
    "external-metric": 23,
    "lifecycle": 30,
    "multi-metric": 27,
    "object-metric": 25,
    "odd": 22,
    "pods-metric": 30,
    "random": 42,
    "resource-utilization": 30,
    "resource-value": 29,
    "tolerance": 30,
    "unready-missing": 30,
}
"""Of how many cases everything can be in an API server: gated fields and such are left out."""


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("family", IN_OBJECTS)
def test_the_controller_decides_the_same_about_objects(family: str, plain: bool) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"], objects=True, plain=plain)
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)
    assert tally.equal_cases == IN_OBJECTS[family]
    assert tally.cases == tally.equal_cases + len(tally.left_out)


@pytest.mark.parametrize(
    "aspect",
    [
        HorizontalAspect.SCALED_TO,
        HorizontalAspect.DESIRED,
        HorizontalAspect.LAST_SCALE_TIME,
        HorizontalAspect.EVENTS,
        HorizontalAspect.STATE,
    ],
)
def test_an_altered_recording_is_a_difference_in_objects(aspect: HorizontalAspect) -> None:
    golden = deepcopy(recorded(aspect))
    container, key = places(golden.result, ALTERED[aspect][1].split("/"))[0]
    container[key] = altered(container[key])
    tally = tally_of(golden, objects=True)
    assert tally.compared[aspect] - tally.equal[aspect] == 1, tally.first


def goldens(family: str) -> Iterator[Golden]:
    return read_goldens(DATA / f"{family}.jsonl.gz")


@pytest.mark.parametrize("family", CASES)
def test_texts_and_writes_equal_those_of_the_controller(family: str) -> None:
    """Recorded for information only, and equal all the same."""
    for golden in goldens(family):
        world = HorizontalWorld(golden.case)
        for entry, step in zip(golden.case["timeline"], golden.result["steps"], strict=True):
            world.apply(entry)
            result = world.run(entry)
            if result is None:
                continue
            where = f"{golden.id} at {step['t']}"
            told = [(each.type, each.message) for each in result.events]
            assert told == [(e["type"], e["message"]) for e in step.get("events", [])], where
            conditions = [each.message for each in result.status.conditions]
            assert conditions == [each["message"] for each in step["conditions"]], where
            assert result.error == step.get("error", ""), where
            assert result.status_written == step["statusWritten"], where


# -- whatever is altered in a recording is found -----------------------------------------------

ALTERED = {
    HorizontalAspect.SPEC: ("tolerance", "spec/maxReplicas"),
    HorizontalAspect.REPLICAS: ("lifecycle", "steps/*/currentReplicas"),
    HorizontalAspect.PROPOSAL: ("multi-metric", "steps/*/proposal"),
    HorizontalAspect.SCALED_TO: ("pods-metric", "steps/*/scaledTo"),
    HorizontalAspect.DESIRED: ("bounds", "steps/*/desiredReplicas"),
    HorizontalAspect.STATUS_REPLICAS: ("bounds", "steps/*/statusCurrentReplicas"),
    HorizontalAspect.LAST_SCALE_TIME: ("object-metric", "steps/*/lastScaleTime"),
    HorizontalAspect.CONDITIONS: ("resource-value", "steps/*/conditions/*/lastTransition"),
    HorizontalAspect.EVENTS: ("lifecycle", "steps/*/events/*/reason"),
    HorizontalAspect.METRICS: ("resource-utilization", "steps/*/currentMetrics/*/type"),
    HorizontalAspect.STATE: ("unready-missing", "steps/*/state/recommendations/*"),
}
"""Per aspect, a family and where in its results it is recorded."""


@cache
def recorded(aspect: HorizontalAspect) -> Golden:
    family, path = ALTERED[aspect]
    return next(golden for golden in goldens(family) if places(golden.result, path.split("/")))


def tally_of(golden: Golden, *, objects: bool = False) -> GoldenTally:
    tally = GoldenTally(golden.family)
    replay(golden, tally, objects=objects)
    return tally


@pytest.mark.parametrize("aspect", ALTERED)
def test_an_altered_recording_is_a_difference(aspect: HorizontalAspect) -> None:
    golden = deepcopy(recorded(aspect))
    container, key = places(golden.result, ALTERED[aspect][1].split("/"))[0]
    container[key] = altered(container[key])
    before, after = tally_of(recorded(aspect)), tally_of(golden)
    assert before.is_equal, before.first
    assert after.compared[aspect] - after.equal[aspect] == 1, after.first


def test_every_aspect_can_fail() -> None:
    assert set(ALTERED) == set(HorizontalAspect) - {HorizontalAspect.REPLAYED}


def test_quantities_are_compared_by_value() -> None:
    golden = deepcopy(recorded(HorizontalAspect.METRICS))
    found = places(golden.result, ["steps", "*", "currentMetrics", "*", "resource", "current"])
    current = found[0][0]["current"]
    current["averageValue"] = str(int(current["averageValue"].removesuffix("m")) * 1000) + "u"
    assert tally_of(golden).is_equal
    current["averageValue"] = "1u"
    assert not tally_of(golden).is_equal


def test_a_case_ends_with_the_first_pass_that_differs() -> None:
    golden = deepcopy(next(goldens("behavior-policies")))
    for step in golden.result["steps"][3:5]:
        step["desiredReplicas"] += 1
    tally = tally_of(golden)
    assert (tally.differences, tally.attempts) == (1, 4)


def test_what_cannot_be_replayed_is_a_difference() -> None:
    golden = deepcopy(next(goldens("bounds")))
    golden.case["hpa"]["spec"]["maxReplicas"] = -1
    [difference] = tally_of(golden).first
    assert difference.aspect is HorizontalAspect.REPLAYED
    assert "spec.maxReplicas" in difference.ours


# -- the command ------------------------------------------------------------------------------


@pytest.fixture
def golden() -> dict[str, Any]:
    return deepcopy(as_row(next(goldens("tolerance"))))


def test_formats_can_be_mixed(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    scheduler = Path(__file__).parent / "data" / "scheduler" / "config-errors.jsonl.gz"
    path = written(tmp_path / "hpa.jsonl.gz", golden)
    assert main([path, str(scheduler)]) == 0
    shown = capsys.readouterr().out
    assert "tolerance: 1 of 1 cases equal, 3 passes, equal" in shown
    assert "config-errors: 100 of 100 cases equal" in shown


def test_a_difference_exits_1_and_says_which_pass(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    golden["result"]["steps"][1]["desiredReplicas"] += 1
    assert main([written(tmp_path / "g.jsonl.gz", golden)]) == 1
    step = golden["result"]["steps"][1]
    where = f"{golden['case']['id']} pass 1 at {step['t']}: desired replicas"
    assert where in capsys.readouterr().out


def _no_steps(row: Any) -> None:
    del row["result"]["steps"]


def _fewer_steps(row: Any) -> None:
    row["result"]["steps"].pop()


def _no_controller(row: Any) -> None:
    del row["case"]["controller"]


def _no_time(row: Any) -> None:
    del row["case"]["timeline"][2]["t"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_no_steps, 'needs a list "timeline", with "steps" in its result'),
        (_fewer_steps, "3 entries in its timeline but 2 steps"),
        (_no_controller, 'has no object "controller"'),
        (_no_time, 'pass 2 has no time "t"'),
    ],
)
def test_what_is_no_golden_exits_2(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str], spoil: Any, words: str
) -> None:
    spoil(golden)
    assert main([written(tmp_path / "g.jsonl.gz", golden)]) == 2
    assert words in capsys.readouterr().err


def test_conflicts_do_not_matter_to_a_target_that_cannot_be_scaled() -> None:
    golden = next(goldens("lifecycle"))
    case = deepcopy(golden.case)
    case["hpa"]["spec"]["scaleTargetRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": "web"}
    world = HorizontalWorld(case)
    entry = {"t": 15, "currentReplicas": 3, "pods": [], "scaleUpdateConflicts": 6}
    world.apply(entry)
    result = world.run(entry)
    assert result is not None
    assert [each.reason for each in result.events] == ["FailedGetScale"]
