"""Numbers as the controller has them: Go's fixed-width integers and 64-bit floats, on amd64.

A float that no integer can hold becomes the smallest one, and sums wrap around. Both are far
outside of real clusters, but a proposal that overflows is a scale-down there and so it is here.
"""

import math
import re

from kubescene.api.quantity import MAX_INT64, MIN_INT64, Quantity, QuantityFormat

MAX_INT32 = 2**31 - 1
MIN_INT32 = -(2**31)

_DECIMAL = re.compile(r"([+-]?)(\d*)\.?(\d*)(?:([numkMGTPE])|[eE]([+-]?\d+))?")
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def wrapped32(number: int) -> int:
    return (number - MIN_INT32) % 2**32 + MIN_INT32


def wrapped64(number: int) -> int:
    return (number - MIN_INT64) % 2**64 + MIN_INT64


def truncated32(number: float) -> int:
    """Go's ``int32(number)``."""
    return int(number) if MIN_INT32 <= number < MAX_INT32 + 1 else MIN_INT32


def truncated64(number: float) -> int:
    """Go's ``int64(number)``."""
    return int(number) if MIN_INT64 <= number < MAX_INT64 + 1 else MIN_INT64


def ceiling(number: float) -> float:
    return float(math.ceil(number)) if math.isfinite(number) else number


def ratio(dividend: int, divisor: float) -> float:
    """Division of floats, which knows infinity and NaN."""
    if divisor:
        return float(dividend) / divisor
    return math.nan if not dividend else math.copysign(math.inf, dividend)


def divided(dividend: int, divisor: int) -> int:
    """Division of integers, towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def approximate(quantity: Quantity) -> float:
    """A quantity as a float: its digits times a power of ten, as it is written when stored.

    Not the nearest float: ``9m`` is 9 x 0.001, a little more than 0.009.
    """
    if quantity.format is QuantityFormat.BINARY_SI and not quantity.nanos % 10**9:
        return float(quantity.nanos // 10**9)
    match = _DECIMAL.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{quantity} is no decimal quantity")
    sign, whole, fraction, suffix, exponent = match.groups()
    power = _POWERS.get(suffix or "", int(exponent or 0)) - len(fraction)
    digits = float(int(f"{sign}{whole}{fraction}"))
    return digits * float(f"1e{power}") if power else digits
