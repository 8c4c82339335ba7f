"""Exponential and normal numbers: the right distribution, and the same integers everywhere."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubescene.clock import SECOND, Stream, batches
from kubescene.clock.draws import cosine, cosines, logarithms, unit_exponential, unit_normals

Floats = npt.NDArray[np.float64]
DRAWS = st.integers(0, 2**64 - 1)
PI = Decimal("3.14159265358979323846264338327950288419716939937510")
ONE_Q32, ONE_Q28 = 1 << 32, 1 << 28


# -- known answers: a platform that computes anything else is found here ---------------------------


def test_exponentials_of_the_first_draws() -> None:
    stream = Stream(0)
    drawn = [stream.exponential(ONE_Q32) for _ in range(3)]
    assert drawn == [532911592, 3609588816, 15604100913]


def test_normals_of_the_first_draws() -> None:
    stream = Stream(0)
    drawn = [stream.normal(0, ONE_Q28) for _ in range(4)]
    assert drawn == [-121536231, 55771771, 711516578, -131646875]


def test_many_draws_have_one_digest() -> None:
    stream = Stream(42)
    drawn = [stream.exponential(SECOND) for _ in range(2000)]
    drawn += [stream.normal(SECOND, SECOND // 10) for _ in range(2001)]
    digest = sha256(repr(drawn).encode()).hexdigest()
    assert digest == "572412c87ea4c0f82c34ee5172ca421afb72645448869389a61666bcb4e376fc"


def test_the_tables_are_those_of_the_logarithm_and_the_cosine() -> None:
    table = logarithms()
    assert table.constant[:3] == (0, 536739883, 1073217877)
    assert table.linear[:2] == (536870891, 536608875)
    assert table.square[:2] == (-131008, -130880)
    half_a_quarter = cosines().constant[512]
    assert 2 * half_a_quarter**2 == pytest.approx(2**60, rel=1e-9)


# -- against exact values --------------------------------------------------------------------------


def exact_exponential(draw: int) -> Decimal:
    return -(Decimal(draw >> 11 | 1) / 2**53).ln()


def exact_cosine(turns: Decimal) -> Decimal:
    angle = 2 * PI * turns
    total, term, even = Decimal(0), Decimal(1), 0
    while abs(term) > Decimal(10) ** -35:
        total += term
        even += 2
        term = -term * angle * angle / (even * (even - 1))
    return total


@settings(deadline=None, max_examples=300)
@given(DRAWS)
def test_an_exponential_is_the_logarithm_rounded_down(draw: int) -> None:
    with localcontext(prec=45):
        error = Decimal(unit_exponential(draw)) / 2**32 - exact_exponential(draw)
    bound = Decimal("1.3e-11")
    assert -(Decimal(2) ** -32) - bound <= error <= bound


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32 - 1))
def test_a_cosine_is_within_three_units(angle: int) -> None:
    with localcontext(prec=45):
        exact = exact_cosine(Decimal(angle) / 2**32)
    assert abs(Decimal(cosine(angle)) - exact * 2**30) < 3


@settings(deadline=None, max_examples=300)
@given(DRAWS, DRAWS)
def test_normals_are_those_of_box_and_muller(first: int, second: int) -> None:
    with localcontext(prec=45):
        radius = (2 * exact_exponential(first)).sqrt()
        turns = Decimal(second >> 32) / 2**32
        exact = [radius * exact_cosine(turns), radius * exact_cosine(turns - Decimal("0.25"))]
        drawn = [Decimal(unit) / 2**28 for unit in unit_normals(first, second)]
    bound = Decimal("4e-8") if radius > Decimal("0.01") else Decimal("3e-5")
    assert all(abs(a - b) <= bound for a, b in zip(exact, drawn, strict=True))


def test_the_cosine_is_exact_at_the_quarters() -> None:
    assert [cosine(quarter << 30) for quarter in range(-1, 5)] == [0, 2**30, 0, -(2**30), 0, 2**30]


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1 / 2, 693_147_180), (1 / 4, 1_386_294_361), (1 / 1024, 6_931_471_805)],
)
def test_quantiles_of_the_exponential(share: float, expected: int) -> None:
    mean_one_second = unit_exponential(int(share * 2**64)) * SECOND >> 32
    assert abs(mean_one_second - expected) <= 1


def test_the_ends_of_the_exponential_are_finite_and_not_negative() -> None:
    near_one = [unit_exponential(2**64 - 1 - (k << 11)) for k in (*range(200), 2**31, 2**40)]
    assert min(near_one) == 0
    assert near_one == sorted(near_one)
    assert unit_exponential(0) / 2**32 == pytest.approx(53 * math.log(2))


@settings(deadline=None, max_examples=300)
@given(DRAWS, DRAWS)
def test_a_larger_draw_gives_no_larger_exponential(one: int, other: int) -> None:
    low, high = sorted((one, other))
    # The parabolas meet within 1.3e-11, which is less than a unit but may round across one.
    assert unit_exponential(low) - unit_exponential(high) >= -1


# -- distributions, from fixed seeds ---------------------------------------------------------------

MANY = 400_000


def distance(values: Floats, distribution: Callable[[Floats], Floats]) -> float:
    """Kolmogorov and Smirnov's, times the root of the count; above 1.95 in one case of 1,000."""
    expected = distribution(np.sort(values))
    ranks = np.arange(len(values))
    above = np.max((ranks + 1) / len(values) - expected)
    below = np.max(expected - ranks / len(values))
    return float(max(above, below)) * math.sqrt(len(values))


def exponential_distribution(values: Floats) -> Floats:
    return -np.expm1(-values)


def normal_distribution(values: Floats) -> Floats:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in values])


def exponentials(seed: int) -> Floats:
    return Stream(seed).exponentials(SECOND, MANY) / SECOND


def normals(seed: int) -> Floats:
    return Stream(seed).normals(0, SECOND, MANY) / SECOND


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exponentials_are_exponentially_distributed(seed: int) -> None:
    values = exponentials(seed)
    assert distance(values, exponential_distribution) < 1.95
    assert distance(values, lambda x: exponential_distribution(x * 1.01)) > 1.95
    for power, moment, deviation in ((1, 1, 1), (2, 2, math.sqrt(20)), (3, 6, math.sqrt(684))):
        error = abs(float(np.mean(values**power)) - moment)
        assert error < 4 * deviation / math.sqrt(MANY)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_normals_are_normally_distributed(seed: int) -> None:
    values = normals(seed)
    assert distance(values, normal_distribution) < 1.95
    assert distance(values, lambda x: normal_distribution(x * 1.02)) > 1.95
    for power, moment, deviation in ((1, 0, 1), (2, 1, math.sqrt(2)), (4, 3, math.sqrt(96))):
        error = abs(float(np.mean(values**power)) - moment)
        assert error < 4 * deviation / math.sqrt(MANY)


@pytest.mark.parametrize("beyond", [3.0, 6.0, 9.0])
def test_the_tail_of_the_exponential(beyond: float) -> None:
    expected = MANY * math.exp(-beyond)
    assert abs(np.sum(exponentials(7) > beyond) - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize("beyond", [2.0, 3.0, 4.0])
def test_both_tails_of_the_normal(beyond: float) -> None:
    expected = MANY * 0.5 * math.erfc(beyond / math.sqrt(2))
    values = normals(7)
    for tail in (values > beyond, values < -beyond):
        assert abs(np.sum(tail) - expected) < 4 * math.sqrt(expected)


def test_the_two_normals_of_a_pair_are_independent() -> None:
    values = normals(5)
    for power in (1, 2):
        one, other = values[::2] ** power, values[1::2] ** power
        correlation = float(np.corrcoef(one, other)[0, 1])
        assert abs(correlation) < 4 / math.sqrt(MANY / 2)


# -- scaling and batches ---------------------------------------------------------------------------


def test_a_mean_of_nothing_is_nothing() -> None:
    assert Stream(1).exponential(0) == 0
    assert Stream(1).normal(7, 0) == 7


@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
def test_negative_means_and_deviations_are_refused(batch: bool) -> None:
    stream = Stream(1)
    with pytest.raises(ValueError, match="mean"):
        stream.exponentials(-1, 3) if batch else stream.exponential(-1)
    with pytest.raises(ValueError, match="deviation"):
        stream.normals(0, -1, 3) if batch else stream.normal(0, -1)


def test_a_mean_beyond_a_batch_is_drawn_one_by_one() -> None:
    assert Stream(0).exponential(1 << 80) == 532911592 << 48
    with pytest.raises(ValueError, match="one by one"):
        Stream(0).exponentials(1 << 45, 1)
    with pytest.raises(ValueError, match="one by one"):
        Stream(0).normals(1 << 45, 1, 1)


COUNTS = st.lists(st.integers(0, 40), min_size=1, max_size=4)


@settings(deadline=None, max_examples=200)
@given(DRAWS, COUNTS, st.integers(0, 2**45 - 1))
def test_a_batch_of_exponentials_is_that_many_single_ones(
    state: int, counts: list[int], mean: int
) -> None:
    single, batch = Stream(state), Stream(state)
    for count in counts:
        expected = [single.exponential(mean) for _ in range(count)]
        assert batch.exponentials(mean, count).tolist() == expected
        assert batch.next_u64s(count).tolist() == [single.next_u64() for _ in range(count)]


@settings(deadline=None, max_examples=200)
@given(DRAWS, COUNTS, st.integers(-(2**45) + 1, 2**45 - 1), st.integers(0, 2**45 - 1))
@example(0, [1, 0, 1], 0, ONE_Q28)
def test_a_batch_of_normals_is_that_many_single_ones(
    state: int, counts: list[int], mean: int, deviation: int
) -> None:
    single, batch = Stream(state), Stream(state)
    for count in counts:
        expected = [single.normal(mean, deviation) for _ in range(count)]
        assert batch.normals(mean, deviation, count).tolist() == expected
    assert batch.next_u64() == single.next_u64()


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 2_300_000_000))
def test_roots_of_a_batch_are_exact_where_floats_are_not(root: int) -> None:
    squares = [root**2 - 1, root**2, root**2 + 2 * root]
    assert batches._roots(np.array(squares)).tolist() == [math.isqrt(each) for each in squares]


def test_single_draws_and_batches_agree_over_many() -> None:
    single, batch = Stream(9), Stream(9)
    assert batch.exponentials(SECOND, 20_000).tolist() == [
        single.exponential(SECOND) for _ in range(20_000)
    ]
    assert batch.normals(0, SECOND, 20_001).tolist() == [
        single.normal(0, SECOND) for _ in range(20_001)
    ]
