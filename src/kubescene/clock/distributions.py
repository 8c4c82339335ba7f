"""Amounts that are constant or drawn: how long, how many, how large.

An amount is an integer in units of the caller (nanoseconds, bytes, thousandths of a core). It is
written as a scalar, or as an object with the name of a distribution:

    30s                                             the same every time
    {constant: 30s}                                 the same
    {uniform: {min: 10s, max: 60s}}                 both ends are possible
    {normal: {mean: 30s, deviation: 5s}}
    {lognormal: {median: 30s, sigma: 0.8}}          sigma is that of the logarithm
    {exponential: {mean: 30s}}
    {pareto: {scale: 10s, shape: 1.5}}              never below scale
    {empirical: {values: [10s, 10s, 45s]}}          each value is as likely as it is frequent
    {empirical: {file: times.csv, column: seconds}} the same; the caller reads the file

``min`` and ``max`` beside the name bound what is drawn; amounts are never below zero. Everything
is worked out in integers, so that every machine draws the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from kubescene.clock.randomness import Stream

ONE: int = 1 << 32
"""The number one in fixed point (Q32)."""
LARGEST = (1 << 63) - 1
"""No amount is larger: 292 years of nanoseconds."""
LARGEST_EXPONENT = 64 * ONE
LARGEST_PARAMETER = 1000
BOUNDS = ("min", "max")
ReadAmount: TypeAlias = Callable[[Any], int]
"""Reads a scalar (``30s``, ``500m``) as an amount; raises ValueError in words."""
ReadSamples: TypeAlias = Callable[[str, str | None], Sequence[Any]]
"""Gives the scalars of a column of a file; raises ValueError in words."""


class Shape(Protocol):
    """What a distribution draws before its bounds."""

    def draw(self, stream: Stream) -> int: ...


class Distribution(Struct, frozen=True):
    """A shape and the bounds of what is drawn."""

    shape: Shape
    least: int = 0
    most: int = LARGEST

    def draw(self, stream: Stream) -> int:
        return min(max(self.shape.draw(stream), self.least), self.most)

    @property
    def is_constant(self) -> bool:
        """Whether it is the same every time, so that nothing is drawn from the stream."""
        return isinstance(self.shape, Constant)


class Constant(Struct, frozen=True):
    amount: int

    def draw(self, stream: Stream) -> int:
        del stream
        return self.amount


class Uniform(Struct, frozen=True):
    least: int
    most: int

    def draw(self, stream: Stream) -> int:
        return self.least + stream.below(self.most - self.least + 1)


class Normal(Struct, frozen=True):
    mean: int
    deviation: int

    def draw(self, stream: Stream) -> int:
        return stream.normal(self.mean, self.deviation)


class Lognormal(Struct, frozen=True):
    median: int
    sigma: int
    """Q32."""

    def draw(self, stream: Stream) -> int:
        return self.median * exponential_of(stream.normal(0, self.sigma)) // ONE


class Exponential(Struct, frozen=True):
    mean: int

    def draw(self, stream: Stream) -> int:
        return stream.exponential(self.mean)


class Pareto(Struct, frozen=True):
    scale: int
    shape: int
    """Q32."""

    def draw(self, stream: Stream) -> int:
        exponent = stream.exponential(ONE) * ONE // self.shape
        return self.scale * exponential_of(exponent) // ONE


class Empirical(Struct, frozen=True):
    values: tuple[int, ...]

    def draw(self, stream: Stream) -> int:
        return self.values[stream.below(len(self.values))]


def constant(amount: int) -> Distribution:
    return Distribution(Constant(amount))


def exponential_of(exponent: int) -> int:
    """``e ** exponent``, both Q32, rounded down, within a part in 2**31.

    Beyond ``e ** 64`` it stays there.
    """
    limited = min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT) << 32
    halved, term, total, number = limited >> 10, 1 << 64, 0, 0
    while term > 0 or term < -1:
        total += term
        number += 1
        term = (term * halved >> 64) // number
    for _ in range(10):
        total = total * total >> 64
    return total >> 32


def read_distribution(
    value: object, read: ReadAmount, samples: ReadSamples | None = None
) -> Distribution:
    """What is written as a scalar or an object; raises ValueError in words.

    ``samples`` reads the columns of files; without it there can be no files.
    """
    if not isinstance(value, Mapping):
        return Distribution(Constant(_amount(value, read)))
    given = {str(name): part for name, part in value.items() if part is not None}
    names = [name for name in given if name not in BOUNDS]
    if len(names) != 1 or names[0] not in READERS:
        raise ValueError(f"must name one of {', '.join(READERS)}; it has: {_listed(names)}")
    shape = READERS[names[0]](given[names[0]], read, samples)
    least = _amount(given["min"], read) if "min" in given else 0
    most = _amount(given["max"], read) if "max" in given else LARGEST
    if least > most:
        raise ValueError("min is larger than max")
    return Distribution(shape, least, most)


def _constant(value: object, read: ReadAmount, _: ReadSamples | None) -> Shape:
    return Constant(_amount(value, read))


def _uniform(value: object, read: ReadAmount, _: ReadSamples | None) -> Shape:
    least, most = _amounts(value, "uniform", ("min", "max"), read)
    if least > most:
        raise ValueError("uniform: min is larger than max")
    return Uniform(least, most)


def _normal(value: object, read: ReadAmount, _: ReadSamples | None) -> Shape:
    return Normal(*_amounts(value, "normal", ("mean", "deviation"), read))


def _lognormal(value: object, read: ReadAmount, _: ReadSamples | None) -> Shape:
    given = _members(value, "lognormal", ("median", "sigma"))
    median, sigma = _amount(given["median"], read), _parameter(given["sigma"], "sigma", least=0)
    return Lognormal(median, sigma)


def _exponential(value: object, read: ReadAmount, _: ReadSamples | None) -> Shape:
    return Exponential(*_amounts(value, "exponential", ("mean",), read))


def _pareto(value: object, read: ReadAmount, _: ReadSamples | None) -> Shape:
    given = _members(value, "pareto", ("scale", "shape"))
    scale, shape = _amount(given["scale"], read), _parameter(given["shape"], "shape", least=0.01)
    return Pareto(scale, shape)


def _empirical(value: object, read: ReadAmount, samples: ReadSamples | None) -> Shape:
    if not isinstance(value, Mapping) or ("values" in value) == ("file" in value):
        raise ValueError("empirical needs either values or a file")
    if "values" in value:
        found = _members(value, "empirical", ("values",))["values"]
    else:
        found = _samples_of(value, samples)
    if isinstance(found, str) or not isinstance(found, Sequence) or not found:
        raise ValueError("empirical needs at least one value")
    return Empirical(tuple(_amount(each, read) for each in found))


def _samples_of(value: Mapping[str, Any], samples: ReadSamples | None) -> Sequence[Any]:
    if samples is None:
        raise ValueError("no file can be read here; give values")
    given = _members(value, "empirical", ("file",), optional=("column",))
    column = given.get("column")
    return samples(str(given["file"]), None if column is None else str(column))


READERS: dict[str, Callable[[object, ReadAmount, ReadSamples | None], Shape]] = {
    "constant": _constant,
    "uniform": _uniform,
    "normal": _normal,
    "lognormal": _lognormal,
    "exponential": _exponential,
    "pareto": _pareto,
    "empirical": _empirical,
}
"""By name; how the members of each are read."""


def _members(
    value: object, name: str, needed: Sequence[str], *, optional: Sequence[str] = ()
) -> Mapping[str, Any]:
    """The members of an object, all of which are known, and none of the needed ones missing."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be an object with {' and '.join(needed)}")
    given = {str(key): part for key, part in value.items()}
    if missing := [key for key in needed if given.get(key) is None]:
        raise ValueError(f"{name} needs {' and '.join(missing)}")
    if unknown := [key for key in given if key not in (*needed, *optional)]:
        raise ValueError(f"{name} has no {_listed(unknown)}; it has {', '.join(needed)}")
    return given


def _amounts(value: object, name: str, needed: Sequence[str], read: ReadAmount) -> list[int]:
    given = _members(value, name, needed)
    return [_amount(given[key], read) for key in needed]


def _amount(value: Any, read: ReadAmount) -> int:
    amount = read(value)
    if not 0 <= amount <= LARGEST:
        raise ValueError(f"must not be negative or beyond 2^63: {value!r}")
    return amount


def _parameter(value: object, name: str, *, least: float) -> int:
    """A number without a unit as Q32."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number, not {value!r}")
    if not least <= value <= LARGEST_PARAMETER:
        raise ValueError(f"{name} must be from {least:g} to {LARGEST_PARAMETER}, not {value!r}")
    return round(value * ONE)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
