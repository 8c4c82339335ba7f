"""The replay itself: whatever is altered in a recording is found, and nothing else is."""

import gzip
import json
import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from altering import altered, as_row, places, written
from kubescene.testing.goldens import Aspect, Golden, GoldenTally, read_goldens, replay
from kubescene.testing.goldens.__main__ import main

DATA = Path(__file__).parent / "data" / "scheduler"

ALTERED = {
    Aspect.CONFIG_ERROR: ("config-errors", "configError"),
    Aspect.PROFILES: ("custom-config", "profiles/*/weights"),
    Aspect.NODE_ORDER: ("basic-resources", "nodeOrder"),
    Aspect.NO_CYCLE: ("scheduling-gates", "attempts/*/gated"),
    Aspect.CYCLES: ("queueing", "steps/*/attempts/*/pod"),
    Aspect.PREFILTER: ("unschedulable", "attempts/*/prefilter/nodes"),
    Aspect.FILTERS: ("taints", "attempts/*/filters/*/reasons"),
    Aspect.FEASIBLE: ("taints", "attempts/*/feasible"),
    Aspect.RAW_SCORES: ("taints", "attempts/*/scores/TaintToleration/raw"),
    Aspect.SCORES: ("taints", "attempts/*/scores/TaintToleration/norm"),
    Aspect.TOTALS: ("taints", "attempts/*/totals"),
    Aspect.SCORE_ERROR: ("node-affinity", "attempts/*/scoreError"),
    Aspect.NODE: ("taints", "attempts/*/outcome/node"),
    Aspect.EVALUATED: ("taints", "attempts/*/outcome/evaluated"),
    Aspect.FOUND: ("taints", "attempts/*/outcome/feasible"),
    Aspect.NEXT_START: ("sampling", "attempts/*/outcome/nextStart"),
    Aspect.SCORED: ("sampling", "attempts/*/outcome/scored/totals"),
    Aspect.MESSAGE: ("basic-resources", "attempts/*/outcome/message"),
    Aspect.REASON: ("basic-resources", "attempts/*/outcome/reason"),
    Aspect.PLUGINS: ("basic-resources", "attempts/*/outcome/plugins"),
    Aspect.POST_FILTER: ("preemption", "attempts/*/outcome/postFilter"),
    Aspect.NOMINATED: ("preemption", "attempts/*/outcome/nominated"),
    Aspect.VICTIMS: ("preemption", "attempts/*/outcome/preemption/victims"),
    Aspect.DRY_RUN: ("preemption", "attempts/*/outcome/preemption/dryRun/*/victims"),
    Aspect.PDB_VIOLATIONS: ("preemption", "attempts/*/outcome/preemption/dryRun/*/pdbViolations"),
    Aspect.BIND_ERROR: ("claims", "attempts/*/outcome/bindError"),
    Aspect.VOLUMES: ("volumes", "attempts/*/outcome/volumes/bound"),
    Aspect.ALLOCATIONS: ("claims", "attempts/*/allocations"),
    Aspect.CLAIM_CALLS: ("claims", "attempts/*/outcome/claims/calls"),
    Aspect.CLAIMS_AFTER: ("claims", "attempts/*/outcome/claims/after"),
    Aspect.EXTENDERS: ("extenders", "attempts/*/outcome/extenders/*/request/Pod"),
    Aspect.QUEUES: ("queueing", "steps/*/queues"),
    Aspect.MEMBERS: ("gangs", "steps/*/attempts/*/members/*/pod"),
    Aspect.GROUP: ("gangs", "steps/*/attempts/*/condition/reason"),
    Aspect.DELETED: ("gangs", "steps/*/attempts/*/deleted"),
}
"""Per aspect, a family and where in its results it is recorded."""


@cache
def recorded(aspect: Aspect) -> Golden:
    """The first golden in which an aspect is recorded."""
    family, path = ALTERED[aspect]
    return next(
        golden
        for golden in read_goldens(DATA / f"{family}.jsonl.gz")
        if places(golden.result, path.split("/"))
    )


def tally_of(golden: Golden) -> GoldenTally:
    tally = GoldenTally(golden.family)
    replay(golden, tally)
    return tally


def unequal(tally: GoldenTally, aspect: Aspect) -> int:
    return tally.compared[aspect] - tally.equal[aspect]


@pytest.mark.parametrize("aspect", ALTERED)
def test_an_altered_recording_is_a_difference(aspect: Aspect) -> None:
    golden = deepcopy(recorded(aspect))
    container, key = places(golden.result, ALTERED[aspect][1].split("/"))[0]
    container[key] = altered(container[key])
    before, after = tally_of(recorded(aspect)), tally_of(golden)
    assert before.is_equal, "\n".join(str(each) for each in before.first)
    assert unequal(after, aspect), after.first


def test_every_aspect_can_fail() -> None:
    assert set(ALTERED) == set(Aspect) - {Aspect.REPLAYED}


def test_later_attempts_are_judged_by_themselves() -> None:
    """After a difference the recorded outcome holds."""
    golden = deepcopy(recorded(Aspect.EVALUATED))
    places(golden.result, ["attempts", "*", "outcome", "evaluated"])[0][0]["evaluated"] += 1
    assert tally_of(golden).differences == 1


# -- the command ------------------------------------------------------------------------------


@pytest.fixture
def golden() -> dict[str, Any]:
    """A golden of which only the pods are left that get no cycle."""
    row = deepcopy(as_row(recorded(Aspect.NO_CYCLE)))
    row["result"]["attempts"] = [
        attempt for attempt in row["result"]["attempts"] if "gated" in attempt
    ]
    return row


def test_all_equal_exits_0(tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([written(tmp_path / "g.jsonl.gz", golden)]) == 0
    assert "1 of 1 cases equal" in capsys.readouterr().out


def test_a_difference_exits_1_and_is_shown(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    golden["result"]["nodeOrder"].reverse()
    assert main([written(tmp_path / "g.jsonl.gz", golden), "--differences", "1"]) == 1
    shown = capsys.readouterr().out
    assert f"{golden['case']['id']}: node order" in shown
    assert f"theirs: {golden['result']['nodeOrder']!r}" in shown


def test_json_says_the_same(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    golden["result"]["nodeOrder"].reverse()
    assert main([written(tmp_path / "g.jsonl.gz", golden), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    family = document["families"][golden["case"]["family"]]
    assert document["equal"] is False
    assert family["aspects"]["node order"] == {"compared": 1, "equal": 0}
    assert document["differences"][0]["theirs"] == golden["result"]["nodeOrder"]


def test_one_case_can_be_picked(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    other = deepcopy(golden)
    other["case"]["id"] = "other"
    path = written(tmp_path / "g.jsonl.gz", golden, other)
    assert main([path, "--case", "other", "--json"]) == 0
    [family] = json.loads(capsys.readouterr().out)["families"].values()
    assert family["cases"] == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"{"), "not a line of JSON"),
        (gzip.compress(b"{}\n"), 'expected an object with "case" and "result"'),
        (gzip.compress(b"[]\n"), 'expected an object with "case" and "result"'),
        (gzip.compress(b'{"case": {}, "result": {}}'), 'case has no text "id"'),
        (
            gzip.compress(b'{"case": {"id": "a", "family": "b", "objects": []}, "result": {}}'),
            'needs a list "pending"',
        ),
        (
            gzip.compress(
                b'{"case": {"id": "a", "family": "b", "objects": [{}], "pending": []},'
                b' "result": {"attempts": []}}'
            ),
            "object 0 of case a lacks apiVersion, kind or a name",
        ),
        (
            gzip.compress(
                b'{"case": {"id": "a", "family": "b", "objects": [], "pending": []},'
                b' "result": {"attempts": [{"pod": "default/a"}]}}'
            ),
            "attempt 0 is about 'default/a', no pending pod",
        ),
        (
            gzip.compress(
                b'{"case": {"id": "a", "family": "b", "groups": [], "steps": []},'
                b' "result": {"steps": []}}'
            ),
            "case a is of no format known here",
        ),
        (gzip.compress(b"\n" * 99)[:-9], "cannot be read"),
        (gzip.compress(b""), "no goldens"),
    ],
    ids=[
        "text",
        "half",
        "empty",
        "list",
        "anonymous",
        "without pods",
        "nameless object",
        "unknown pod",
        "another format",
        "cut",
        "nothing",
    ],
)
def test_what_is_no_golden_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    path = tmp_path / "g.jsonl.gz"
    path.write_bytes(content)
    assert main([str(path)]) == 2
    assert words in capsys.readouterr().err


def test_a_missing_file_or_case_exits_2(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.jsonl.gz")]) == 2
    assert main([written(tmp_path / "g.jsonl.gz", golden), "--case", "none"]) == 2
    assert "no case 'none'" in capsys.readouterr().err


def test_it_is_a_module_to_run(tmp_path: Path, golden: Any) -> None:
    path = written(tmp_path / "g.jsonl.gz", golden)
    command = [sys.executable, "-m", "kubescene.testing.goldens", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_families_of_one_name_are_both_told(
    tmp_path: Path, golden: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [written(tmp_path / f"{name}.jsonl.gz", golden) for name in "ab"]
    assert main([*files, "--json"]) == 0
    family = golden["case"]["family"]
    assert list(json.loads(capsys.readouterr().out)["families"]) == [family, f"{family} (2)"]
