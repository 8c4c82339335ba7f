"""Percentiles of waiting times of which some were only seen to a point."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.results.measures.pending import bound_within

TIMES = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30)


def by_definition(times: list[tuple[int, bool]], percent: int) -> int | None:
    """Kaplan and Meier, as the books have it: a product over the times at which any was bound."""
    still = Fraction(1)
    for time in sorted({time for time, is_bound in times if is_bound}):
        at_risk = sum(each >= time for each, _ in times)
        bound = sum(each == time and is_bound for each, is_bound in times)
        still *= 1 - Fraction(bound, at_risk)
        if still <= 1 - Fraction(percent, 100):
            return time
    return None


@given(TIMES, st.sampled_from([50, 90, 95, 99]))
def test_the_estimate_is_that_of_kaplan_and_meier(
    times: list[tuple[int, bool]], percent: int
) -> None:
    bound = Counter(time for time, is_bound in times if is_bound)
    unbound = Counter(time for time, is_bound in times if not is_bound)
    assert bound_within(bound, unbound, percent) == by_definition(times, percent)


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (90, 9), (95, 10), (99, 10)])
def test_without_censoring_it_is_the_plain_percentile(percent: int, expected: int) -> None:
    assert bound_within(Counter(range(1, 11)), Counter(), percent) == expected


def test_nobody_bound_is_not_known() -> None:
    assert bound_within(Counter(), Counter([3, 4]), 50) is None
