"""Expectations made ready before a run: what does not compile is found now, with its position."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kubescene.cel import BOOL, STRING, CompileError, Program, Type, compile_expression
from kubescene.results.expectations.variables import TYPES
from kubescene.scenario.expectations import Expectation
from kubescene.scenario.strictness import Fault

SHOWN = 40
"""Characters of an expression, from where it goes wrong."""
NO_CONTAINER = " (in container '')"
"""What cel-go adds to the message about an unknown name: there are no containers here."""
WANTED = {BOOL: ("true or false", "bool(...)"), STRING: ("a text", "string(...)")}


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
            for offset, problem in _problems(text, wanted, names):
                yield Fault(
                    ("spec", "expectations", index, field, offset),
                    problem,
                    where=f"spec.expectations[{index}] (name {each.name!r}).{field}",
                )


def _problems(text: str, wanted: Type, names: Mapping[str, Type]) -> Iterator[tuple[int, str]]:
    try:
        result = compile_expression(text, names).result
    except CompileError as error:
        problem = error.problem.removesuffix(NO_CONTAINER)
        yield error.offset, f"{problem}{_hint(error)} ({position(text, error.offset)})"
        return
    words, conversion = WANTED[wanted]
    if result.is_open:
        unknown = f"whether it is {words} is not known before the run"
        yield 0, f"{unknown}: write {conversion} around it"
    elif result != wanted:
        yield 0, f"it must be {words}, but its type is {result}"


def _hint(error: CompileError) -> str:
    """What was meant, or what there is."""
    if "'(double, int)'" in error.problem or "'(int, double)'" in error.problem:
        return ": write the number with a point, such as 1.0"
    if not error.unknown:
        return ""
    if meant := get_close_matches(error.unknown, error.known, 1):
        return f": did you mean '{meant[0]}'?"
    return f": known are {', '.join(sorted(error.known))}" if len(error.known) <= SHOWN else ""


def position(text: str, offset: int) -> str:
    """A place in an expression in words: ``column 14, at '.nod == "x")'``."""
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    where = f"line {line}, column {column}" if "\n" in text.strip() else f"column {column}"
    rest = text[offset:].partition("\n")[0]
    shown = rest if len(rest) <= SHOWN else f"{rest[: SHOWN - 3]}..."
    return f"{where} of the expression, at {shown!r}" if shown else f"{where}, at its end"
