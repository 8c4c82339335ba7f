"""Parity with Karpenter 1.15.0: claims for pods, and commands that give nodes up."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kubescene.errors import ConfigurationError
from kubescene.karpenter.flags import read_karpenter_flags
from kubescene.karpenter.instance_types import read_catalogue
from kubescene.karpenter.nodepools import NodePool
from kubescene.testing.goldens import Golden, GoldenTally, read_goldens, replay, replay_files
from kubescene.testing.goldens.__main__ import main
from kubescene.testing.goldens.karpenter import KarpenterAspect

DATA = Path(__file__).parent / "data" / "karpenter"
DECISIONS = {
    "consolidation": 56,
    "drift": 70,
    "existing": 14,
    "mixed": 56,
    "scaleup": 14,
    "simple": 14,
    "spot": 56,
    "topology": 14,
}
"""How many decisions of a family are equal in everything: all of them."""


@pytest.mark.parametrize("family", DECISIONS)
def test_decisions_equal_those_of_karpenter(family: str) -> None:
    [tally] = replay_files([DATA / f"{family}.jsonl.gz"])
    assert tally.is_equal, "\n".join(map(str, tally.first))
    assert tally.equal[KarpenterAspect.DECISIONS] == DECISIONS[family]


def golden_with(question: str) -> Golden:
    """A case in which the answer to a question has a claim, or a command that replaces nodes."""
    for path in sorted(DATA.glob("*.jsonl.gz")):
        for each in read_goldens(path):
            answer = each.result.get(question) or {}
            commands = answer.get("commands") or ()
            if answer.get("claims") or any(it["replacements"] for it in commands):
                return deepcopy(each)
    raise AssertionError(question)


def differing(golden: Golden) -> set[object]:
    tally = GoldenTally("any", kept=100)
    replay(golden, tally)
    return {each.aspect for each in tally.first}


@pytest.mark.parametrize(
    ("part", "other", "aspect"),
    [
        ("pods", ["default/another"], KarpenterAspect.CLAIMS),
        ("pool", "another", KarpenterAspect.CLAIMS),
        ("types", [], KarpenterAspect.TYPES),
        ("requirements", [], KarpenterAspect.REQUIREMENTS),
        ("requests", {"cpu": "1"}, KarpenterAspect.REQUESTS),
        ("labels", {}, KarpenterAspect.LABELS),
    ],
)
def test_another_claim_is_a_difference(part: str, other: Any, aspect: KarpenterAspect) -> None:
    golden = golden_with("provision")
    golden.result["provision"]["claims"][0][part] = other
    assert differing(golden) == {aspect}


def test_another_place_or_reason_is_a_difference() -> None:
    golden = golden_with("provision")
    golden.result["provision"]["existing"] = {"node-x": []}
    golden.result["provision"]["errors"] = {"default/x": "because"}
    assert differing(golden) == {KarpenterAspect.EXISTING, KarpenterAspect.ERRORS}


@pytest.mark.parametrize(
    ("part", "other", "aspect"),
    [
        ("candidates", ["node-x"], KarpenterAspect.COMMANDS),
        ("decision", "no-op", KarpenterAspect.COMMANDS),
        ("savings", -1.0, KarpenterAspect.SAVINGS),
    ],
)
def test_another_command_is_a_difference(part: str, other: Any, aspect: KarpenterAspect) -> None:
    golden = golden_with("single")
    golden.result["single"]["commands"][0][part] = other
    assert differing(golden) == {aspect}


def test_other_candidates_and_budgets_are_differences() -> None:
    golden = golden_with("single")
    golden.result["single"]["candidates"] = []
    golden.result["single"]["allowed"] = {}
    assert differing(golden) == {KarpenterAspect.CANDIDATES, KarpenterAspect.ALLOWED}


def test_a_question_without_an_answer_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(
        '{"case": {"id": "x-1", "family": "x", "karpenter": {}, "ask": ["empty"]}, "result": {}}'
    )
    assert main([str(path)]) == 2
    assert "an answer to each" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"batch-idel-duration": "1s"}, "did you mean batch-idle-duration"),
        ({"cpu-requests": "1"}, "is not simulated"),
        ({"batch-max-duration": 10}, "is not a duration"),
        ({"preference-policy": "ignore"}, "is none of Respect, Ignore"),
        ({"feature-gates": "NodeRepair=true"}, "NodeRepair is not simulated"),
        ({"feature-gates": "SpotToSpotConsolidatio=true"}, "did you mean SpotToSpotConsolidation"),
        ({"feature-gates": "SpotToSpotConsolidation=yes"}, "neither true nor false"),
    ],
)
def test_flags_that_make_no_sense_are_refused(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_karpenter_flags(flags, "spec.simulation.karpenter")


KIND = {"name": "m", "capacity": {"cpu": "4", "memory": "16Gi"}}
OFFER = {"zone": "a", "price": "0.2"}


@pytest.mark.parametrize(
    ("catalogue", "message"),
    [
        ({}, "missing required field `instanceTypes`"),
        ({"instanceTypes": []}, "nothing can be had"),
        ({"instanceTypes": [{**KIND, "offers": []}]}, "cannot be had anywhere"),
        ({"instanceTypes": [{**KIND, "offers": [OFFER]}] * 2}, "has m twice"),
        ({"instanceTypes": [{**KIND, "offers": [{**OFFER, "price": "much"}]}]}, "not a number"),
        ({"instanceTypes": [{**KIND, "offers": [{**OFFER, "price": "-1"}]}]}, "cannot be -1"),
        ({"instanceTypes": [{**KIND, "offers": [{**OFFER, "price": "nan"}]}]}, "cannot be nan"),
        (
            {"instanceTypes": [{**KIND, "offers": [{**OFFER, "capacityType": "reserved"}]}]},
            "'reserved' is not simulated",
        ),
        ({"instanceTypes": [{"name": "m", "capacity": {}, "offers": [OFFER]}]}, "has no cpu"),
        ({"instanceTypes": [{**KIND, "ofers": []}]}, "unknown field `ofers`"),
    ],
)
def test_catalogues_that_make_no_sense_are_refused(catalogue: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        read_catalogue(catalogue, "catalogue.yaml")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"disruption": {"budgets": [{"nodes": "many"}]}}, "neither a number nor a percentage"),
        ({"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily"}]}}, "belong together"),
        (
            {"disruption": {"budgets": [{"nodes": "1", "schedule": "x", "duration": "1h"}]}},
            "5 fields|five fields",
        ),
        ({"disruption": {"consolidateAfter": "soon"}}, "soon"),
        ({"disruption": {"consolidationPolicy": "Often"}}, "'Often' is none of"),
        ({"limits": {"cpu": "lots"}}, "^spec.limits: quantities must match"),
        ({"replicas": 3}, "static capacity is not simulated"),
    ],
)
def test_pools_that_make_no_sense_say_why(spec: dict[str, Any], message: str) -> None:
    template: dict[str, Any] = {"spec": {"requirements": []}}
    pool = NodePool({"metadata": {"name": "p"}, "spec": {"template": template, **spec}})
    assert re.search(message, pool.fault)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "k", "operator": "Gt", "values": ["many"]}, "needs one whole number"),
        ({"key": "k", "operator": "Is"}, "there is no operator 'Is'"),
    ],
)
def test_requirements_that_make_no_sense_say_why(expression: Any, message: str) -> None:
    template = {"spec": {"requirements": [expression]}}
    pool = NodePool({"metadata": {"name": "p"}, "spec": {"template": template}})
    assert message in pool.fault
