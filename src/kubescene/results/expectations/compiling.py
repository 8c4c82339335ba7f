"""Expectations made ready before a run: what does not compile is found now, with its position."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubescene.cel import BOOL, STRING, CompileError, Program, Type, compile_expression
from kubescene.cel.problems import position, problems
from kubescene.cel.programs import keys_of
from kubescene.results.expectations.moments import MOMENTS
from kubescene.results.expectations.variables import MEASURES, TYPES, types_with
from kubescene.results.measures import is_of_the_run
from kubescene.results.measures.own import OwnFunction
from kubescene.scenario.expectations import Expectation
from kubescene.scenario.validation.faults import Fault

OWN_HINT = "; one of your own is named by --measure, where the scenario is played"


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expectation whose expressions were checked."""

    expectation: Expectation
    program: Program
    message: Program | None


def compiled(expectation: Expectation, names: Mapping[str, Type] = TYPES) -> Compiled:
    """Raises `CompileError` for what `faults_of` tells."""
    told = expectation.message_expression
    return Compiled(
        expectation,
        compile_expression(expectation.expression, names, library=MOMENTS),
        compile_expression(told, names, library=MOMENTS) if told else None,
    )


def faults_of(
    expectations: tuple[Expectation, ...], own: Sequence[OwnFunction] = ()
) -> Iterator[Fault]:
    """What is wrong with expressions; the last step of a way is the place in the expression.

    ``own`` are measures that somebody has brought along: nobody else knows their names.
    """
    names = types_with(own)
    for index, each in enumerate(expectations):
        fields = {"expression": (each.expression, BOOL)}
        if each.message_expression:
            fields["messageExpression"] = (each.message_expression, STRING)
        for field, (text, wanted) in fields.items():
            for offset, problem in _problems(text, wanted, names):
                yield Fault(
                    ("spec", "expectations", index, field, offset),
                    problem,
                    where=f"spec.expectations[{index}] (name {each.name!r}).{field}",
                )


def _problems(text: str, wanted: Type, names: Mapping[str, Type]) -> Iterator[tuple[int, str]]:
    """What the language says, and measures by key that no run can have."""
    try:
        program = compile_expression(text, names, library=MOMENTS)
    except CompileError as error:
        about_measures = error.known == _members(names[MEASURES])
        for place, told in problems(text, wanted, names, MOMENTS):
            hint = OWN_HINT if about_measures and "did you mean" not in told else ""
            yield place, f"{told}{hint}"
        return
    yield from problems(text, wanted, names, MOMENTS)
    for offset, key in keys_of(program, MEASURES):
        if key not in _members(names[MEASURES]) and not is_of_the_run(key):
            yield offset, f"there is no measure '{key}' ({position(text, offset)}){OWN_HINT}"


def _members(type: Type) -> tuple[str, ...]:
    return tuple(name for name, _ in type.fields or ())
