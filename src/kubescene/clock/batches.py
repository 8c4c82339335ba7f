"""The draws of `kubescene.clock.draws` for whole arrays, number by number alike.

SplitMix64 counts: the state before the i-th draw is known without the draws before it, so that a
batch is one expression. Of NumPy only what is the same everywhere is used: unsigned 64-bit sums,
products and shifts, which wrap by definition; signed ones that stay below 2**63; and two uses of
floating point that cannot show, an exact conversion (to find the highest bit) and a square root
that is corrected afterwards.
"""

from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kubescene.clock.draws import GAMMA, LN2_Q40, Parabolas, cosines, logarithms

Words: TypeAlias = npt.NDArray[np.uint64]
Integers: TypeAlias = npt.NDArray[np.int64]

MEAN_LIMIT = 1 << 45
_LOW_BITS = 20
_LOW_MASK = (1 << _LOW_BITS) - 1


def words(state: int, count: int) -> Words:
    """The next ``count`` 64-bit draws of a stream in ``state``."""
    mixed: Words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GAMMA) + np.uint64(state)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def unit_exponentials(draws: Words) -> Integers:
    """Exponentials with mean 1 in Q32, one of each draw."""
    odd = (draws >> 11 | 1).astype(np.int64)
    # 53 bits are exact as a float: its exponent is the place of the highest bit.
    bits = odd.astype(np.float64).view(np.int64)
    mantissa = bits & 0xFFFFFFFFFFFFF
    logarithm = _evaluated(_logarithm_arrays(), mantissa >> 41, mantissa >> 9 & 0xFFFFFFFF)
    return ((1076 - (bits >> 52)) * LN2_Q40 - logarithm) >> 8


def unit_normals(draws: Words) -> Integers:
    """Standard normals in Q28, two of each pair of draws."""
    radius = _roots(unit_exponentials(draws[::2]) << 25)
    angle = (draws[1::2] >> 32).astype(np.int64)
    units = np.empty(len(draws), dtype=np.int64)
    units[::2] = radius * _cosine(angle) >> 30
    units[1::2] = radius * _cosine(angle - (1 << 30)) >> 30
    return units


def scaled_exponentials(units: Integers, mean: int) -> Integers:
    """``mean * units``, Q32, rounded down, without passing 64 bits on the way."""
    return _scaled(units, _checked(mean, "a mean"), 32, 0)


def scaled_normals(units: Integers, mean: int, deviation: int) -> Integers:
    """``mean + deviation * units``, Q28, to the nearest integer."""
    if abs(mean) >= MEAN_LIMIT:
        raise ValueError(f"a batch wants a mean within 2**45, not {mean}: draw them one by one")
    return mean + _scaled(units, _checked(deviation, "a standard deviation"), 28, 1 << 27)


def joined(first: list[int], rest: Integers) -> Integers:
    return np.concatenate((np.array(first, dtype=np.int64), rest))


def _scaled(units: Integers, factor: int, bits: int, addend: int) -> Integers:
    # units * factor = high * 2**20 + low; the bits that `high` loses are handed down to `low`.
    high, low = units * (factor >> _LOW_BITS), units * (factor & _LOW_MASK)
    shift = bits - _LOW_BITS
    left = (high & ((1 << shift) - 1)) << _LOW_BITS
    return (high >> shift) + ((left + low + addend) >> bits)


def _checked(factor: int, what: str) -> int:
    if not 0 <= factor < MEAN_LIMIT:
        raise ValueError(f"{what} of a batch is in 0..2**45, not {factor}: draw them one by one")
    return factor


def _cosine(angle: Integers) -> Integers:
    quarter, rest = angle >> 30 & 3, angle & 0x3FFFFFFF
    rest = np.where(quarter & 1, (1 << 30) - rest, rest)
    value = _evaluated(_cosine_arrays(), rest >> 20, (rest & 0xFFFFF) << 12)
    return np.where((quarter == 1) | (quarter == 2), -value, value)


def _roots(squares: Integers) -> Integers:
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squares
    roots += (roots + 1) * (roots + 1) <= squares
    return roots


def _evaluated(table: tuple[Integers, ...], interval: Integers, x: Integers) -> Integers:
    constant, linear, square = table
    return (((square[interval] * x >> 32) + linear[interval]) * x >> 32) + constant[interval]


@cache
def _logarithm_arrays() -> tuple[Integers, ...]:
    return _arrays(logarithms())


@cache
def _cosine_arrays() -> tuple[Integers, ...]:
    return _arrays(cosines())


def _arrays(parabolas: Parabolas) -> tuple[Integers, ...]:
    return tuple(np.array(column, dtype=np.int64) for column in parabolas)
