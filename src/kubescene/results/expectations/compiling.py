"""Expectations made ready before a run: what does not compile is found now, with its position."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kubescene.cel import BOOL, STRING, Program, Type, compile_expression
from kubescene.cel.problems import problems
from kubescene.results.expectations.variables import TYPES
from kubescene.scenario.expectations import Expectation
from kubescene.scenario.strictness import Fault


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expectation whose expressions were checked."""

    expectation: Expectation
    program: Program
    message: Program | None


def compiled(expectation: Expectation) -> Compiled:
    """Raises `CompileError` for what `faults_of` tells."""
    told = expectation.message_expression
    return Compiled(
        expectation,
        compile_expression(expectation.expression, TYPES),
        compile_expression(told, TYPES) if told else None,
    )


def faults_of(
    expectations: tuple[Expectation, ...], names: Mapping[str, Type] = TYPES
) -> Iterator[Fault]:
    """What is wrong with expressions; the last step of a way is the place in the expression."""
    for index, each in enumerate(expectations):
        fields = {"expression": (each.expression, BOOL)}
        if each.message_expression:
            fields["messageExpression"] = (each.message_expression, STRING)
        for field, (text, wanted) in fields.items():
            for offset, problem in problems(text, wanted, names):
                yield Fault(
                    ("spec", "expectations", index, field, offset),
                    problem,
                    where=f"spec.expectations[{index}] (name {each.name!r}).{field}",
                )
