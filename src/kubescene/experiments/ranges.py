"""What may be varied, and which combinations of it are tried.

``PATH=1,2,5`` are values, ``PATH=2..40`` whole numbers, ``PATH=2..40/2`` every second of them,
``PATH=0.5..0.9`` any number between, ``PATH=100m..900m/100m`` amounts with one unit.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, NamedTuple

from kubescene.clock import Streams
from kubescene.errors import ConfigurationError
from kubescene.experiments.settings import Setting, parse_settings

FINEST = 100
"""Numbers that are not whole are drawn from so many of equal distance, where no step is said."""
MOST_VALUES = 100_000
_RANGE = re.compile(
    r"(?P<low>-?\d+(?:\.\d+)?)(?P<unit>[A-Za-z%]*)\.\.(?P<high>-?\d+(?:\.\d+)?)(?P<other>[A-Za-z%]*)"
    r"(?:/(?P<step>\d+(?:\.\d+)?)(?P<third>[A-Za-z%]*))?"
)


class Axis(NamedTuple):
    """A field and all the values that it may have, in order."""

    path: str
    values: tuple[Any, ...]


Point = tuple[int, ...]
"""A combination: the place of its value on each axis."""


def parse_ranges(texts: Iterable[str]) -> list[Axis]:
    """The axes of ``--vary`` texts."""
    axes, listed = [], []
    for text in texts:
        path, equals, values = text.partition("=")
        if equals and (found := _RANGE.fullmatch(values.strip())) is not None:
            axes.append(Axis(path, _between(text, found)))
        else:
            listed.append(text)
    try:
        axes += [Axis(path, tuple(values)) for path, values in parse_settings(listed).items()]
    except ConfigurationError as error:
        raise ConfigurationError(str(error).replace("--set", "--vary")) from error
    paths = [each.path for each in axes]
    if twice := [each for each in paths if paths.count(each) > 1]:
        raise ConfigurationError(f"--vary {twice[0]} is given twice")
    if not axes:
        raise ConfigurationError("there is nothing to vary: --vary PATH=RANGE")
    return axes


def _between(text: str, found: Mapping[str, str] | re.Match[str]) -> tuple[Any, ...]:
    low, high, unit = Decimal(found["low"]), Decimal(found["high"]), found["unit"]
    if found["other"] != unit or (found["step"] and (found["third"] or "") != unit):
        raise ConfigurationError(f"--vary {text!r}: all of its amounts need the same unit")
    if high <= low:
        raise ConfigurationError(f"--vary {text!r}: the range is empty")
    is_whole = low == low.to_integral_value() and high == high.to_integral_value()
    if found["step"]:
        step = Decimal(found["step"])
    else:
        step = Decimal(1) if is_whole else (high - low) / FINEST
    if step <= 0 or (high - low) / step > MOST_VALUES:
        raise ConfigurationError(f"--vary {text!r}: a longer step is needed")
    count = int((high - low) / step) + 1
    values = [low + step * each for each in range(count)]
    return tuple(_value(each, unit, is_whole=is_whole) for each in values)


def _value(number: Decimal, unit: str, *, is_whole: bool) -> Any:
    plain = f"{number.normalize():f}"
    if unit:
        return f"{plain}{unit}"
    return int(number) if is_whole and number == number.to_integral_value() else float(number)


def settings_of(axes: Sequence[Axis], point: Point) -> tuple[Setting, ...]:
    return tuple(
        Setting(axis.path, axis.values[place]) for axis, place in zip(axes, point, strict=True)
    )


def count_of(axes: Sequence[Axis]) -> int:
    return prod(len(each.values) for each in axes)


def grid(axes: Sequence[Axis]) -> Iterator[Point]:
    """All combinations."""
    return product(*(range(len(each.values)) for each in axes))


def random_points(axes: Sequence[Axis], trials: int, seed: int) -> list[Point]:
    """Different combinations, drawn alike everywhere."""
    stream = Streams(seed).stream("tune")
    found: dict[Point, None] = {}
    while len(found) < min(trials, count_of(axes)):
        found[tuple(stream.below(len(each.values)) for each in axes)] = None
    return [*found]
