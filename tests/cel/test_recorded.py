"""Expressions grown at random, and what Kubernetes v1.36 made of them.

``data/recorded.jsonl.gz`` has answers of k8s.io/dynamic-resource-allocation and k8s.io/apiserver
v0.36.3: why an expression is refused, what it costs at worst, its value or why it has none, and its
cost; and what its formats say of texts. Left out is what is knowingly different
(`docs/design/0026-cel.md`).
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubescene.api.quantity import parse
from kubescene.cel import CompileError, EvaluationError, compile_expression
from kubescene.cel.device_selectors import DEVICE, compiled, size_at
from kubescene.cel.kubernetes import parse_semver
from kubescene.cel.nodes import DefaultMap
from kubescene.cel.programs import Program, worst_cost

DATA = Path(__file__).parent / "data" / "recorded.jsonl.gz"
CASES = [json.loads(line) for line in gzip.decompress(DATA.read_bytes()).splitlines()]
GPU = {"model": "a100", "index": 3, "fast": True, "version": parse_semver("12.1.0")}
CAPACITY = {"memory": parse("40Gi"), "cores": parse("8")}
VALUES = {
    "device": {
        "driver": "gpu.example.com",
        "allowMultipleAllocations": False,
        "attributes": DefaultMap({"gpu.example.com": GPU, "other.example.com": {"name": "x"}}, {}),
        "capacity": DefaultMap({"gpu.example.com": CAPACITY}, {}),
    }
}
ENOUGH = 100_000_000


def of(mode: str, key: str) -> list[dict[str, Any]]:
    return [each for each in CASES if each["in"] == mode and key in each]


def program(case: dict[str, Any]) -> Program:
    return compile_expression(case["expression"], {"device": DEVICE})


def test_there_are_enough_of_all_sorts() -> None:
    assert len(of("device", "worst")) > 1_000
    assert len(of("plain", "value")) > 1_000
    assert len([case for case in CASES if case["expression"].startswith("format.")]) > 700
    assert len(of("device", "refused")) + len(of("plain", "refused")) > 100
    assert len(of("device", "fails")) + len(of("plain", "fails")) > 20


def test_what_is_refused_is_refused_with_the_same_words() -> None:
    for case in of("device", "refused") + of("plain", "refused"):
        text = case["expression"]
        if case["in"] == "device":
            said = compiled(text)
            assert isinstance(said, str), text
        else:
            with pytest.raises(CompileError) as caught:
                program(case)
            said = str(caught.value)
        # A checker that goes on finds more faults in one expression; ours tells the first it meets.
        assert case["refused"].split(": ")[-1].split(" '")[0] in said, text


def test_selectors_that_are_taken_there_are_taken_here() -> None:
    for case in of("device", "worst"):
        assert isinstance(compiled(case["expression"]), Program), case


def test_values_are_equal() -> None:
    for case in of("plain", "value"):
        same = compile_expression(f"({case['expression']}) == {case['value']}", {})
        assert same.evaluate({}, ENOUGH) is True, case
    for case in of("device", "value"):
        assert str(program(case).evaluate(VALUES, ENOUGH)).lower() == case["value"], case


def test_who_has_no_value_says_the_same() -> None:
    for case in of("device", "fails") + of("plain", "fails"):
        with pytest.raises(EvaluationError) as caught:
            program(case).evaluate(VALUES, ENOUGH)
        assert str(caught.value) == case["fails"], case


def test_the_worst_cost_is_that_of_kubernetes() -> None:
    for case in of("device", "worst"):
        assert worst_cost(program(case), {"device": DEVICE}, size_at) == case["worst"], case


def test_nothing_is_stopped_later_than_there() -> None:
    """Constants are folded there and cost nothing; here they are paid."""
    dear = 0
    for case in of("device", "cost") + of("plain", "cost"):
        if case["cost"] < 1:
            continue
        # Who may do one step less than it does there is stopped.
        with pytest.raises(EvaluationError, match="cost limit exceeded"):
            program(case).evaluate(VALUES, case["cost"] - 1)
        try:
            program(case).evaluate(VALUES, case["cost"])
        except EvaluationError:
            dear += 1
    assert dear < 2_000
