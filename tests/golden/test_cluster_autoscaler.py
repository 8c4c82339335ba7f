"""Parity with cluster-autoscaler 1.36.1: every loop, and what follows from it until the next."""

from copy import deepcopy
from pathlib import Path

import pytest

from kubescene.errors import ConfigurationError
from kubescene.node_autoscaling import expander_chain
from kubescene.node_autoscaling.priorities import priorities_of
from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.cluster_autoscaler import AutoscalerAspect

DATA = Path(__file__).parent / "data" / "ca"
LOOPS = {
    "backoff": 239,
    "balancing": 40,
    "closed-loop": 416,
    "constraints": 34,
    "daemonsets": 105,
    "drain-rules": 92,
    "edges": 72,
    "expanders": 41,
    "interruptions": 287,
    "limits": 50,
    "scale-down-failures": 190,
    "scale-up": 42,
    "unneeded": 221,
    "unready": 174,
    "upcoming": 151,
}
"""How many loops of a family are equal in everything: all of them."""


@pytest.mark.parametrize("family", LOOPS)
def test_loops_equal_those_of_the_cluster_autoscaler(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert tally.is_equal, "\n".join(map(str, tally.first))
    assert tally.equal[AutoscalerAspect.STEPS] == LOOPS[family]


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


def changed(part: str, value: object) -> set[object]:
    """What differs if one part of a step had been recorded otherwise."""
    golden = golden_with_options()
    golden.result["steps"][0][part] = value
    return differing(golden) - {AutoscalerAspect.STEPS}


def test_every_part_of_a_loop_is_compared() -> None:
    other = [{"node": "another", "since": 1}]
    assert changed("unneeded", other) == {AutoscalerAspect.UNNEEDED}
    assert changed("unremovable", other) == {AutoscalerAspect.UNREMOVABLE}
    assert changed("utilization", {"another": 0.5}) == {AutoscalerAspect.UTILIZATION}
    assert changed("candidates", ["another"]) == {AutoscalerAspect.CANDIDATES}
    assert changed("actions", other) == {AutoscalerAspect.ACTIONS}
    assert changed("later", [{"t": 2, "kind": "evict"}]) == {AutoscalerAspect.LATER}
    assert changed("scaleUps", []) == {AutoscalerAspect.SCALE_UP}
    assert changed("scaleDown", {"result": "Error"}) == {AutoscalerAspect.SCALE_DOWN}
    assert changed("health", "Unhealthy") == {AutoscalerAspect.HEALTH}
    assert changed("groups", {}) == {AutoscalerAspect.GROUPS}
    assert changed("templates", {}) == {AutoscalerAspect.TEMPLATES}
    assert changed("lastScaleUp", 0) == {AutoscalerAspect.TIMES}
    assert changed("error", "another") == {AutoscalerAspect.ERROR}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x: y", "cannot unmarshal bool into Go value of type []string"),
        ("x: [a]", "cannot unmarshal number x into Go value of type int"),
        ("5: {a: b}", "cannot unmarshal object into Go value of type []string"),
        ("5: [7]", "cannot unmarshal number into Go value of type string"),
        ("- a", "cannot unmarshal array into Go value of type map[int][]string"),
        ("7: ['[']", "priority 7 and rule [: error parsing regexp: missing closing ]: `[`"),
        ("", "priority configuration in cluster-autoscaler-priority-expander configmap is empty"),
    ],
)
def test_priorities_that_make_no_sense_are_told_as_upstream_tells_them(
    text: str, message: str
) -> None:
    with pytest.raises(ValueError, match="Ignoring update") as caught:
        priorities_of({"data": {"priorities": text}})
    assert message in str(caught.value)


def test_a_case_without_results_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(
        '{"case": {"id": "x-1", "family": "x", "flags": {}, "steps": []}, "result": {}}'
    )
    assert main([str(path)]) == 2
    assert 'needs lists "steps"' in capsys.readouterr().err
