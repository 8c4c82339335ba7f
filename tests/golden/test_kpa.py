"""Parity with Knative's pod autoscaler 0.42.2: recorded answers against ours, no tolerance."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from altering import altered
from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.kpa import KpaAspect

DATA = Path(__file__).parent / "data" / "kpa"
CASES = {"activation": 28, "buckets": 25, "delay": 25, "plain": 25, "rps": 25}
"""How many cases each file has, so that none gets lost unnoticed."""

FIELDS = {
    KpaAspect.VALID: ("plain", "valid"),
    KpaAspect.DESIRED: ("plain", "desired"),
    KpaAspect.EXCESS: ("plain", "excessBurstCapacity"),
    KpaAspect.AVERAGE: ("buckets", "average"),
    KpaAspect.EMPTY: ("buckets", "empty"),
}


@pytest.mark.parametrize("family", CASES)
def test_answers_equal_those_of_knative(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert (tally.family, tally.cases) == (family, CASES[family])
    assert tally.is_equal, "\n".join(str(each) for each in tally.first)


def first(family: str) -> Golden:
    return deepcopy(next(read_goldens(DATA / f"{family}.jsonl.gz")))


@pytest.mark.parametrize("aspect", FIELDS)
def test_an_altered_answer_is_a_difference(aspect: KpaAspect) -> None:
    family, name = FIELDS[aspect]
    golden, tally = first(family), GoldenTally(family)
    answer = golden.result["answers"][0]
    value = answer[name]
    answer[name] = value * 1.05 if isinstance(value, float) else altered(value)
    replay(golden, tally)
    assert tally.compared[aspect] == tally.equal[aspect] + 1 > 1
    assert tally.differences == 1


def test_every_aspect_can_fail() -> None:
    assert set(FIELDS) == set(KpaAspect) - {KpaAspect.REPLAYED}


def flat(golden: Golden) -> dict[str, Any]:
    return golden.case | golden.result


def test_what_we_raise_is_a_difference() -> None:
    golden, tally = first("plain"), GoldenTally("plain")
    golden.case["spec"]["targetValue"] = 0
    replay(golden, tally)
    assert "ZeroDivisionError" in str(tally.first[0])


@pytest.mark.parametrize(("family", "by"), [("plain", "steps"), ("buckets", "asks")])
def test_a_line_with_an_answer_too_few_is_refused(
    family: str, by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = flat(first(family))
    row["answers"].pop()
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(row))
    assert main([str(path)]) == 2
    assert f'needs a list "{by}" and a list "answers"' in capsys.readouterr().err
