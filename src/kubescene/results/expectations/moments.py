"""What expressions may ask of series: what was at a moment, since then, until then.

A moment is a duration since the run began (``duration("5m")``), the same in seconds (``w.full_s``),
or a major step: ``at(2)`` is its end, ``since(2)`` begins and ``until(2)`` ends with it.
"""

from collections.abc import Sequence
from typing import Any

from kubescene.cel.errors import EvaluationError, no_such_overload
from kubescene.cel.functions import Library
from kubescene.cel.types import DOUBLE, DURATION, INT, Type, list_of
from kubescene.cel.values import NANOS, Duration, Value, is_list

MOMENTS = Library()
LIST = list_of()
OVERLOADS = ((LIST, DURATION), (LIST, INT), (LIST, DOUBLE))
TIME, UNTIL, STEP = "time_s", "until_s", "step"
PEAK, LEAST = "_peak", "least_"


def element(types: Sequence[Type]) -> Type:
    """The type of a row of the list."""
    return types[0].parts[0] if types[0].parts else types[0]


def itself(types: Sequence[Type]) -> Type:
    return types[0]


@MOMENTS.method("at", element, *OVERLOADS)
def at(rows: Value, moment: Value) -> Value:
    """The row that counted at a moment."""
    listed = rows_of(rows)
    if type(moment) is int:
        found = [row for row in listed if row[STEP] <= moment]
        if not found:
            raise EvaluationError(f"there is nothing yet at the end of step {moment}")
        return found[-1]
    seconds = seconds_of(moment)
    if listed and seconds > listed[-1][UNTIL]:
        raise EvaluationError(f"nothing is known of {seconds:g} s: {ended(listed)}")
    found = [row for row in listed if row[TIME] <= seconds]
    if not found:
        raise EvaluationError(f"there is nothing yet at {seconds:g} s")
    return cut(found[-1], seconds)


@MOMENTS.method("since", itself, *OVERLOADS)
def since(rows: Value, moment: Value) -> Value:
    """What counted at a moment, and all that came later."""
    listed = rows_of(rows)
    if type(moment) is int:
        return [row for row in listed if row[STEP] >= moment]
    seconds = seconds_of(moment)
    if listed and seconds > listed[-1][UNTIL]:
        raise EvaluationError(f"nothing is known since {seconds:g} s: {ended(listed)}")
    last = listed[-1:]
    found = [row for row in listed[:-1] if row[UNTIL] > seconds or row[TIME] >= seconds]
    return [cut(row, seconds) for row in (*found, *last)]


@MOMENTS.method("until", itself, *OVERLOADS)
def until(rows: Value, moment: Value) -> Value:
    """All that came before a moment; up to the end of a step."""
    listed = rows_of(rows)
    if type(moment) is int:
        return [row for row in listed if row[STEP] <= moment]
    seconds = seconds_of(moment)
    return [row for row in listed if row[TIME] < seconds]


def rows_of(rows: Value) -> Sequence[Any]:
    if not is_list(rows) or not all(isinstance(row, dict) and UNTIL in row for row in rows):
        raise EvaluationError("at, since and until are for series")
    listed: Sequence[Any] = rows
    return listed


def seconds_of(moment: Value) -> float:
    if isinstance(moment, Duration):
        return moment.nanos / NANOS
    if isinstance(moment, float):
        return moment
    if moment is None:
        raise EvaluationError("that moment never came: it is null")
    raise no_such_overload()


def ended(rows: Sequence[Any]) -> str:
    return f"it ends at {rows[-1][UNTIL]:g} s"


def cut(row: Any, seconds: float) -> Any:
    """A row from a moment on: what was highest or least at its beginning is over then."""
    if row[TIME] >= seconds:
        return row
    return {name: still(row, name) for name in row} | {TIME: seconds}


def still(row: Any, name: str) -> Any:
    if name.endswith(PEAK):
        return row[name.removesuffix(PEAK)]
    return row[name.removeprefix(LEAST)] if name.startswith(LEAST) else row[name]
