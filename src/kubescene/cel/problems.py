"""What is wrong with an expression, in words for whoever wrote it, with the place in its text."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from kubescene.cel.errors import CompileError
from kubescene.cel.functions import Library
from kubescene.cel.programs import compile_expression
from kubescene.cel.types import BOOL, STRING, Type

SHOWN = 40
"""Characters of an expression, from where it goes wrong."""
NO_CONTAINER = " (in container '')"
"""What cel-go adds to the message about an unknown name: there are no containers here."""
WANTED = {BOOL: ("true or false", "bool(...)"), STRING: ("a text", "string(...)")}


def problems(
    text: str, wanted: Type, names: Mapping[str, Type], library: Library | None = None
) -> Iterator[tuple[int, str]]:
    """Why a text is no expression of the wanted type: where in it, and what."""
    try:
        result = compile_expression(text, names, library=library).result
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
