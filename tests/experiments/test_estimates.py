"""Means and intervals against values worked out by hand and published quantiles of Student's t."""

from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.experiments.estimates import estimate, probability_within, t_quantile


@pytest.mark.parametrize(
    ("degrees", "confidence", "published"),
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.95, 2.776),
        (9, 0.95, 2.262),
        (10, 0.95, 2.228),
        (29, 0.95, 2.045),
        (30, 0.95, 2.042),
        (120, 0.95, 1.980),
        (1, 0.99, 63.657),
        (5, 0.99, 4.032),
        (20, 0.90, 1.725),
        (60, 0.80, 1.296),
    ],
)
def test_quantiles_are_those_of_the_published_table(
    degrees: int, confidence: float, published: float
) -> None:
    assert round(t_quantile(degrees, confidence), 3) == published


def test_one_and_two_degrees_have_a_formula_of_their_own() -> None:
    assert t_quantile(2, 0.95) == pytest.approx(0.95 * sqrt(2 / (1 - 0.95**2)), rel=1e-9)
    assert probability_within(1.0, 1) == pytest.approx(0.5, rel=1e-15)


@given(st.integers(1, 400), st.floats(0.05, 0.999))
def test_a_quantile_has_the_probability_that_was_asked_for(degrees: int, confidence: float) -> None:
    assert probability_within(t_quantile(degrees, confidence), degrees) == pytest.approx(confidence)


@pytest.mark.parametrize(("degrees", "confidence"), [(0, 0.95), (3, 0.0), (3, 1.0)])
def test_there_is_no_quantile_of_nonsense(degrees: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="degree of freedom"):
        t_quantile(degrees, confidence)


def test_an_interval_worked_out_by_hand() -> None:
    # Mean 5, squares 9 + 1 + 1 + 9 = 20, s = sqrt(20 / 3), t(3) = 3.182446305.
    found = estimate([2, 4, 6, 8])
    half = 3.182446305 * sqrt(20 / 3) / 2
    assert found.mean == 5
    assert found.n == 4
    assert found.deviation == pytest.approx(2.581988897, rel=1e-9)
    assert found.half_width == pytest.approx(half, rel=1e-9)
    assert (found.low, found.high) == (5 - half, 5 + half)


def test_one_run_has_no_interval() -> None:
    found = estimate([0.1])
    assert (found.mean, found.low, found.high, found.deviation, found.n) == (
        0.1,
        None,
        None,
        None,
        1,
    )


@given(st.floats(-1e300, 1e300), st.integers(2, 50))
def test_equal_values_have_themselves_as_mean_and_an_interval_of_0(value: float, n: int) -> None:
    found = estimate([value] * n)
    assert (found.mean, found.low, found.high, found.deviation) == (value, value, value, 0.0)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=20))
def test_the_order_of_runs_does_not_matter(values: list[int]) -> None:
    found = estimate(values)
    assert found == estimate(sorted(values))
    assert found.low is not None
    assert found.high is not None
    assert -inf < found.low <= found.mean <= found.high < inf
