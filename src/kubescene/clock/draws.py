"""Exponential and normal numbers from integers alone, the same on every machine.

The logarithms and cosines of a platform's mathematical library differ in their last bits from one
platform to the next; one such bit moves an arrival, and the rest of a run with it. Here they are
read from tables that are made with big integers at first use (a few milliseconds), with a parabola
between two entries. No operation rounds in a way that a machine could choose.

Fixed point: ``Q32`` is an integer that counts units of 2**-32.

- `unit_exponential`: ``-ln(u)`` of one 53-bit draw in ``(0, 1)``, Q32, rounded down; before that
  within 1.3e-11. The largest value is 36.74 (a tail of 2**-53).
- `unit_normals`: two independent standard normals of two draws (Box-Muller), Q28. The cosine is
  within 3 * 2**-30, so each number is within 4e-8; where both are below 0.01 the rounding of the
  exponential shows and it is within 3e-5. The largest is 8.57.

`kubescene.clock.batches` does the same for arrays, number by number alike.
"""

from functools import cache
from math import isqrt
from typing import NamedTuple

GAMMA = 0x9E3779B97F4A7C15
"""What the state of a stream (SplitMix64) grows by with each draw."""
LN2_Q40 = 762123384786
_PRECISION = 96
LOGARITHM_INTERVALS = 2048
COSINE_INTERVALS = 1024
_PI_Q96 = 248902613312231085230521944622


class Parabolas(NamedTuple):
    """One for each interval: ``(square * x + linear) * x + constant``, x in ``[0, 1)`` as Q32."""

    constant: tuple[int, ...]
    linear: tuple[int, ...]
    square: tuple[int, ...]


@cache
def logarithms() -> Parabolas:
    """ln(1 + y) for y in [0, 1), Q40, in 2,048 intervals."""
    points = [0]
    for number in range(2 * LOGARITHM_INTERVALS, 4 * LOGARITHM_INTERVALS):
        points.append(points[-1] + _logarithm_step(number))
    return _parabolas(points, 40)


@cache
def cosines() -> Parabolas:
    """The cosine of the first quarter turn, Q30, in 1,024 intervals and one for its end."""
    turn = _PI_Q96 // (4 * COSINE_INTERVALS)
    points = [_cosine(turn * number) for number in range(2 * COSINE_INTERVALS + 1)]
    points[-1] = 0
    return _parabolas([*points, 0, 0], 30)


def unit_exponential(draw: int) -> int:
    """Exponential with mean 1 in Q32, from one 64-bit draw."""
    odd = draw >> 11 | 1
    length = odd.bit_length()
    mantissa = odd << (53 - length) & 0xFFFFFFFFFFFFF
    interval, x = mantissa >> 41, mantissa >> 9 & 0xFFFFFFFF
    constant, linear, square = logarithms()
    logarithm = ((square[interval] * x >> 32) + linear[interval]) * x >> 32
    return ((54 - length) * LN2_Q40 - logarithm - constant[interval]) >> 8


def unit_normals(first: int, second: int) -> tuple[int, int]:
    """Two standard normals in Q28, from two 64-bit draws."""
    radius = isqrt(unit_exponential(first) << 25)
    angle = second >> 32
    return radius * cosine(angle) >> 30, radius * cosine(angle - (1 << 30)) >> 30


def cosine(angle: int) -> int:
    """The cosine, Q30, of ``angle / 2**32`` turns."""
    quarter, rest = angle >> 30 & 3, angle & 0x3FFFFFFF
    if quarter & 1:
        rest = (1 << 30) - rest
    interval, x = rest >> 20, (rest & 0xFFFFF) << 12
    constant, linear, square = cosines()
    value = (((square[interval] * x >> 32) + linear[interval]) * x >> 32) + constant[interval]
    return -value if quarter in (1, 2) else value


def _parabolas(points: list[int], bits: int) -> Parabolas:
    """Through both ends and the middle of each interval; ``points`` are ends and middles, Q96."""
    starts, middles, ends = points[:-1:2], points[1::2], points[2::2]
    constant, linear, square = [], [], []
    for start, middle, end in zip(starts, middles, ends, strict=True):
        constant.append(_rounded(start, bits))
        linear.append(_rounded(4 * middle - 3 * start - end, bits))
        square.append(_rounded(2 * (start + end - 2 * middle), bits))
    return Parabolas(tuple(constant), tuple(linear), tuple(square))


def _rounded(value: int, bits: int) -> int:
    shift = _PRECISION - bits
    return (value + (1 << (shift - 1))) >> shift


def _logarithm_step(number: int) -> int:
    """``ln((number + 1) / number)`` in Q96: the series of ``2 * artanh(1 / (2 * number + 1))``."""
    divisor = 2 * number + 1
    power, total, odd = (2 << _PRECISION) // divisor, 0, 1
    while power:
        total += power // odd
        power //= divisor * divisor
        odd += 2
    return total


def _cosine(angle: int) -> int:
    """The cosine of an angle in radians, both Q96, by its Taylor series."""
    square, term, total, even = angle * angle >> _PRECISION, 1 << _PRECISION, 0, 0
    while term:
        total += -term if even % 4 else term
        even += 2
        term = (term * square >> _PRECISION) // (even * (even - 1))
    return total
