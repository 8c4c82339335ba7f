"""Parity with kube-controller-manager v1.36.3: worlds after each step, no tolerance."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.workloads import WorkloadAspect, least_permuted, narrowed

DATA = Path(__file__).parent / "data" / "workloads"
CASES = {
    "cronjob": 26,
    "cronlive": 5,
    "daemonset": 53,
    "deployment": 62,
    "endpoints": 24,
    "gc": 22,
    "job": 60,
    "limitrange": 20,
    "namespace": 16,
    "pdb": 34,
    "quota": 24,
    "replicaset": 27,
    "serviceaccount": 12,
    "statefulset": 55,
    "stsmax": 18,
    "ttl": 14,
}
"""How many cases each file has, so that none gets lost unnoticed."""
RANDOM_CASES = 210
"""How many cases of all families were made up by chance (`golden.random_cases`)."""
UNEQUAL = {
    "replicaset-21": "of two pods that were asked for at once, the refused one was told of first",
}
"""Cases that are not as recorded, and why: these have to differ, and no others."""


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("family", CASES)
def test_worlds_equal_those_of_kube_controller_manager(family: str, plain: bool) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"], plain=plain)
    assert (tally.family, tally.cases) == (family, CASES[family])
    unequal = [each for each in UNEQUAL if each.startswith(f"{family}-")]
    assert [each.case for each in tally.first] == unequal, "\n".join(map(str, tally.first))
    assert tally.differences == len(unequal)


@pytest.mark.parametrize("plain", [False, True])
def test_random_worlds_equal_those_of_kube_controller_manager(plain: bool) -> None:
    tallies = [*replay_files([DATA / "random.jsonl.gz"], plain=plain)]
    assert sum(each.cases for each in tallies) == RANDOM_CASES
    assert not [told for each in tallies for told in each.first]


def golden(name: str) -> Golden:
    family = name.partition("-")[0]
    found = (each for each in read_goldens(DATA / f"{family}.jsonl.gz") if each.id == name)
    return deepcopy(next(found))


def test_an_object_that_was_seen_otherwise_is_a_difference() -> None:
    case, tally = golden("gc-1"), GoldenTally("gc")
    case.case["steps"][0]["see"]["ConfigMap"][0]["data"] = {"k": "another"}
    replay(case, tally)
    assert tally.differences == 1
    [told] = tally.first
    assert told.aspect is WorkloadAspect.CONFIG_MAP
    assert told.theirs[0] == {"name": "a", "data": {"k": "another"}}


def test_an_object_that_only_one_of_them_has_is_a_difference() -> None:
    case, tally = golden("gc-1"), GoldenTally("gc")
    del case.case["steps"][0]["see"]["ConfigMap"]
    replay(case, tally)
    assert tally.differences == 1


def test_a_refusal_that_was_not_recorded_is_a_difference() -> None:
    case, tally = golden("gc-1"), GoldenTally("gc")
    wrong = {"patch": {"kind": "ConfigMap", "name": "nobody", "patch": {}}}
    case.case["steps"][1]["do"].append(wrong)
    replay(case, tally)
    assert {each.aspect for each in tally.first} == {WorkloadAspect.ANSWERS}


def test_what_we_raise_is_a_difference() -> None:
    case, tally = golden("gc-1"), GoldenTally("gc")
    case.case["steps"][1]["do"] = [{"rounds": "many"}]
    replay(case, tally)
    assert tally.first[0].aspect is WorkloadAspect.REPLAYED


def test_a_line_without_steps_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"id": "gc-1", "family": "gc", "about": "", "objects": []}))
    assert main([str(path)]) == 2
    assert 'needs a list "objects" and a list "steps"' in capsys.readouterr().err


def test_nodes_that_look_alike_may_change_places() -> None:
    seen = [{"Pod": [{"name": "a", "spec": {"nodeName": "n2"}}]}]
    assert least_permuted(seen, [["n1", "n2"]]) == [
        {"Pod": [{"name": "a", "spec": {"nodeName": "n1"}}]}
    ]


def test_only_what_differs_is_told() -> None:
    ours = [{"name": "a", "spec": {"x": 1, "y": 2}}, {"name": "b"}]
    theirs = [{"name": "a", "spec": {"x": 1, "y": 3}}, {"name": "b"}]
    assert narrowed(ours, theirs) == (
        [{"name": "a", "spec": {"y": 2}}],
        [{"name": "a", "spec": {"y": 3}}],
    )
