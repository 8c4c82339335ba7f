"""Own exponentials and logarithms: right to the last bit or one beside it, the same everywhere."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from kubescene.autoscalers.exact_math import exp2, log, power

NUMBERS = [0.0, 0.5, -0.5, 1.0, 3.3, -3.3, 0.25, 7 / 24, -11 / 24, 99.999, -100.25, 1e-9, 17 / 1440]


def ulps(ours: float, exact: Decimal) -> float:
    return float(abs(Decimal(ours) - exact) / Decimal(math.ulp(ours)))


@pytest.mark.parametrize("x", NUMBERS)
def test_powers_of_two_err_less_than_a_bit(x: float) -> None:
    with localcontext(prec=60):
        assert ulps(exp2(x), Decimal(2) ** Decimal(x)) < 1.0


@pytest.mark.parametrize("x", [1.05, 1e-3, 0.999, 1.0000001, 51.0, 5001.0, 2.0**40 + 1])
def test_logarithms_err_less_than_a_bit(x: float) -> None:
    with localcontext(prec=60):
        assert ulps(log(x), Decimal(x).ln()) < 1.0


@pytest.mark.parametrize("exponent", range(-20, 176, 5))
def test_powers_err_a_little(exponent: int) -> None:
    exact = Fraction(1.05) ** exponent
    assert abs(Fraction(power(1.05, exponent)) / exact - 1) < Fraction(1, 2**45)


def test_what_a_float_cannot_say_is_infinite_or_nothing() -> None:
    assert exp2(1024.0) == math.inf
    assert exp2(-1075.0) == 0.0
    assert power(1e200, 2) == math.inf
    assert power(1e200, -2) == 0.0
    assert power(math.inf, 1) == math.inf
    assert power(math.inf, -2) == 0.0
    assert power(3.0, 0) == 1.0


def test_bits_are_pinned() -> None:
    """Platforms must not differ: these are written down, not computed."""
    assert exp2(0.25).hex() == "0x1.306fe0a31b715p+0"
    assert exp2(-11 / 24).hex() == "0x1.74a5afdea0210p-1"
    assert exp2(37.7).hex() == "0x1.9fdf8bcce534cp+37"
    assert log(1.05).hex() == "0x1.8fb063ef2c7f0p-5"
    assert log(5001.0).hex() == "0x1.108e7c1fcd5f9p+3"
    assert power(1.05, 4).hex() == "0x1.372b6ae7d566dp+0"
    assert power(1.05, 175).hex() == "0x1.3f28c0b1c2558p+12"
