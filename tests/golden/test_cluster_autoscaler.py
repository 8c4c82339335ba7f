"""Parity with cluster-autoscaler 1.36.1: first loops, up to the option that is chosen."""

from copy import deepcopy
from pathlib import Path

import pytest

from kubescene.errors import ConfigurationError
from kubescene.node_autoscaling import expander_chain
from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.cluster_autoscaler import AutoscalerAspect

DATA = Path(__file__).parent / "data" / "ca"
CHOSEN = {"scale-up": 8, "constraints": 8, "upcoming": 9}
"""Families that are entirely equal, and in how many of their first loops an option is chosen."""
UNKNOWN_EXPANDERS = 4
"""First loops of ``expanders`` that need the expanders ``price`` or ``priority``."""


@pytest.mark.parametrize("family", CHOSEN)
def test_first_loops_equal_those_of_the_cluster_autoscaler(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert tally.is_equal, "\n".join(map(str, tally.first))
    assert (tally.cases, tally.equal[AutoscalerAspect.CHOSEN]) == (10, CHOSEN[family])


def test_expanders_differ_only_where_price_or_priority_is_asked_for() -> None:
    [tally] = replay_files([DATA / "expanders.jsonl.gz"])
    assert {each.aspect for each in tally.first} == {AutoscalerAspect.REPLAYED}
    assert all("'price'" in each.ours or "'priority'" in each.ours for each in tally.first)
    assert tally.differences == UNKNOWN_EXPANDERS
    assert tally.equal[AutoscalerAspect.OPTIONS] == 10


def golden_with_options() -> Golden:
    goldens = read_goldens(DATA / "scale-up.jsonl.gz")
    return deepcopy(next(each for each in goldens if each.result["steps"][0].get("expansion")))


def differing(golden: Golden) -> set[object]:
    tally = GoldenTally("scale-up")
    replay(golden, tally)
    return {each.aspect for each in tally.first}


def test_another_choice_is_a_difference() -> None:
    golden = golden_with_options()
    golden.result["steps"][0]["expansion"]["chosen"] = "another"
    assert differing(golden) == {AutoscalerAspect.CHOSEN}


def test_another_number_of_nodes_is_a_difference() -> None:
    golden = golden_with_options()
    golden.result["steps"][0]["expansion"]["options"][0]["nodes"] += 1
    assert differing(golden) == {AutoscalerAspect.OPTIONS}


def test_a_pod_that_was_not_left_over_is_a_difference() -> None:
    golden = golden_with_options()
    golden.result["steps"][0]["pendingAfterPacking"].pop()
    assert differing(golden) == {AutoscalerAspect.PACKING}


def test_an_expander_that_is_misspelt_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="did you mean most-pods"):
        expander_chain("least-waste,most-pod")


def test_a_case_without_results_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(
        '{"case": {"id": "x-1", "family": "x", "flags": {}, "steps": []}, "result": {}}'
    )
    assert main([str(path)]) == 2
    assert 'needs lists "steps"' in capsys.readouterr().err
