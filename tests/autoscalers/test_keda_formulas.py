"""Formulas and cron triggers against recorded answers of expr v1.17.8 and cron v3.0.1.

These are the libraries that KEDA uses, wrapped as its code wraps them: 1,500 random formulas with
random values, 100 pairs of schedules in six time zones at eight instants.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubescene.autoscalers.keda.formulas import DEEPEST, FormulaError, read_formula
from kubescene.autoscalers.keda.objects import read_scaled_object

ANSWERS = Path(__file__).with_name("keda-answers.jsonl.gz")
NAMES = frozenset({"a", "b"})


def recorded() -> list[dict[str, Any]]:
    with gzip.open(ANSWERS, "rt") as lines:
        return [json.loads(line) for line in lines]


def ours(case: dict[str, Any]) -> dict[str, Any]:
    values = {**case["values"], **dict.fromkeys(case.get("nil", ()))}
    try:
        found = read_formula(case["formula"], frozenset(case["names"])).evaluate(values)
    except FormulaError:
        return {"refused": True}
    return {"nil": True} if found is None else {"value": found}


def theirs(answer: dict[str, Any]) -> dict[str, Any]:
    if "value" in answer:
        return {"value": float(answer["value"])}
    return {"nil": True} if "nil" in answer else {"refused": True}


def test_formulas_have_the_values_that_expr_gives_them() -> None:
    """What expr refuses for kinds in a branch that is not taken has a value here; nothing else."""
    cases = [case for case in recorded() if "formula" in case]
    assert len(cases) == 1500
    others = [
        (case["formula"], case["answer"]) for case in cases if ours(case) != theirs(case["answer"])
    ]
    unread = [each for each in others if "unread" in each[1]]
    # Empty lists and infinities as whole numbers are refused here.
    assert len(others) - len(unread) <= 2, others
    assert len(unread) <= 15, unread


def test_cron_triggers_are_active_when_they_were() -> None:
    cases = [case for case in recorded() if "start" in case]
    assert len(cases) == 100
    for case in cases:
        metadata = {name: case[name] for name in ("timezone", "start", "end")}
        trigger = {"type": "cron", "metadata": {**metadata, "desiredReplicas": "3"}}
        spec = {"scaleTargetRef": {"name": "web"}, "triggers": [trigger]}
        obj = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
        active: list[bool] | None
        try:
            read = read_scaled_object(obj).triggers[0]
            active = [read.is_within(at) for at in case["times"]]
        except ValueError:
            active = None
        assert active == case["answer"].get("active"), case


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'the end' is not expected"),
        ("a +", "'the end' is not expected"),
        ("(a", "')' is expected, found 'the end'"),
        ("a b", "'b' is not expected"),
        ("a @ b", "'@ b' cannot be read"),
        ("q", "unknown name q (there is: a, b)"),
        ("a ?? b + 1", "?? and + cannot be mixed"),
        ("__import__(a)", "the function __import__ is not known here"),
        ("a.b", "'.b' cannot be read"),
        ("count([a])" + "+1" * 6000, "a formula may have 10000 characters"),
        ("(" * 500 + "a" + ")" * 500, f"more than {DEEPEST} levels"),
    ],
)
def test_what_cannot_be_read_is_told(text: str, words: str) -> None:
    with pytest.raises(FormulaError) as told:
        read_formula(text, NAMES)
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a / 0", "inf is no finite number"),
        ("a > 1", "true is no number"),
        ("int(a) % 0", "integer divide by zero"),
        ("a % 2", "% is of whole numbers"),
        ("sum(0..1000000)", "a range of more than"),
        ("10 ** 400", "inf is no finite number"),
    ],
)
def test_what_has_no_value_is_told(text: str, words: str) -> None:
    with pytest.raises(FormulaError) as told:
        read_formula(text, NAMES).evaluate({"a": 2.0, "b": 3.0})
    assert words in str(told.value)
