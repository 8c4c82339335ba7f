"""A measure over several seeds: its mean, and how well the seeds tell it.

The interval is Student's: mean ± t * s / sqrt(n), where s is the standard deviation of the sample
and t the quantile for n - 1 degrees of freedom. It is about the seeds: it says where the mean over
all seeds would be, not how well the scenario describes a cluster. Of one run there is no interval.

Sums are exact fractions, so the mean of equal values is that value and their interval is 0 wide.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import atan, pi, sqrt

import msgspec

from kubescene.results.measures.measure import Number

CONFIDENCE = 0.95
DIGITS = 10
"""Quantiles are rounded to so many significant digits: what C libraries agree on."""


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """``n`` runs had a value; ``low`` and ``high`` are None if there was only one."""

    mean: float
    low: float | None = None
    high: float | None = None
    deviation: float | None = None
    n: int = 1

    @property
    def half_width(self) -> float | None:
        return None if self.high is None else self.high - self.mean


def estimate(values: Sequence[Number], confidence: float = CONFIDENCE) -> Estimate:
    """The mean of at least one finite value, with its interval."""
    n = len(values)
    exact = [Fraction(value) for value in values]
    middle = sum(exact, Fraction(0)) / n
    if n == 1:
        return Estimate(mean=float(middle))
    deviation = sqrt(sum(((each - middle) ** 2 for each in exact), Fraction(0)) / (n - 1))
    half = t_quantile(n - 1, confidence) * deviation / sqrt(n)
    mean = float(middle)
    return Estimate(mean=mean, low=mean - half, high=mean + half, deviation=deviation, n=n)


@cache
def t_quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The t that Student's distribution stays within, to both sides, with this probability.

    Found by halving: the probability within t is known in closed form.
    """
    if degrees < 1 or not 0 < confidence < 1:
        raise ValueError("a quantile needs a degree of freedom and a confidence within 0 and 1")
    low, high = 0.0, 1.0
    while probability_within(high, degrees) < confidence:
        low, high = high, high * 2
    while low < (middle := (low + high) / 2) < high:
        if probability_within(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return float(f"{high:.{DIGITS}g}")


def probability_within(t: float, degrees: int) -> float:
    """How probable values from -t to t are.

    For whole degrees of freedom this is a finite sum of powers of cos(theta), where tan(theta) is
    t / sqrt(degrees) (Abramowitz and Stegun, 26.7.3 and 26.7.4).
    """
    square = degrees / (degrees + t * t)  # cos(theta) squared
    sine = t / sqrt(degrees + t * t)
    odd = degrees % 2
    term, total = (sqrt(square) if odd else 1.0), 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= square * k / (k + 1)
    if not odd:
        return sine * total
    return 2 / pi * (atan(t / sqrt(degrees)) + sine * total)
