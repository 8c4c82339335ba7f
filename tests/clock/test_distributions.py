"""Amounts that are drawn: the right distribution, the same integers everywhere, faults in words."""

import math
from collections.abc import Sequence
from hashlib import sha256
from statistics import fmean, median, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubescene.clock import SECOND, Stream, parse_duration
from kubescene.clock.distributions import ONE, exponential_of, read_distribution

SHAPES: list[Any] = [
    {"uniform": {"min": "10s", "max": "60s"}},
    {"normal": {"mean": "30s", "deviation": "5s"}},
    {"lognormal": {"median": "30s", "sigma": 0.8}},
    {"exponential": {"mean": "30s"}},
    {"pareto": {"scale": "10s", "shape": 2.5}},
    {"empirical": {"values": ["1s", "1s", "4s"]}},
]


def drawn(value: object, count: int = 20_000) -> list[int]:
    distribution, stream = read_distribution(value, parse_duration), Stream(7)
    return [distribution.draw(stream) for _ in range(count)]


def test_the_first_draws_of_all_have_one_digest() -> None:
    """A platform that computes anything else is found here."""
    numbers = [drawn(value, 500) for value in SHAPES]
    digest = sha256(repr(numbers).encode()).hexdigest()
    assert digest == "fe0060ccf9e9dc7547a0a424bec4844fad9815d94ff50e588989e4a862c7308d"


@given(st.integers(-40 * ONE, 40 * ONE))
def test_exponentials_are_those_of_the_mathematical_library(exponent: int) -> None:
    expected = math.exp(exponent / ONE)
    assert exponential_of(exponent) / ONE == pytest.approx(expected, rel=1e-9, abs=1 / ONE)


def test_exponentials_of_the_ends() -> None:
    assert exponential_of(0) == ONE
    assert exponential_of(-(10**30)) == 0
    assert exponential_of(10**30) == exponential_of(64 * ONE)


def test_a_scalar_is_the_same_every_time_and_draws_nothing() -> None:
    stream = Stream(7)
    for value in ("30s", {"constant": "30s"}):
        distribution = read_distribution(value, parse_duration)
        assert distribution.is_constant
        assert distribution.draw(stream) == 30 * SECOND
    assert stream.next_u64() == Stream(7).next_u64()
    assert not read_distribution(SHAPES[0], parse_duration).is_constant


def test_uniform_amounts_reach_both_ends() -> None:
    stream = Stream(1)
    distribution = read_distribution({"uniform": {"min": 2, "max": 4}}, int)
    assert {distribution.draw(stream) for _ in range(200)} == {2, 3, 4}
    assert fmean(drawn(SHAPES[0])) == pytest.approx(35 * SECOND, rel=0.01)


def test_normal_amounts_have_their_mean_and_deviation() -> None:
    numbers = drawn(SHAPES[1])
    assert fmean(numbers) == pytest.approx(30 * SECOND, rel=0.01)
    assert stdev(numbers) == pytest.approx(5 * SECOND, rel=0.02)


def test_lognormal_amounts_have_their_median_and_mean() -> None:
    numbers = drawn(SHAPES[2])
    assert median(numbers) == pytest.approx(30 * SECOND, rel=0.02)
    assert fmean(numbers) == pytest.approx(30 * SECOND * math.exp(0.32), rel=0.02)
    assert stdev(map(math.log, numbers)) == pytest.approx(0.8, rel=0.02)


def test_exponential_amounts_have_their_mean_and_tail() -> None:
    numbers = drawn(SHAPES[3])
    assert fmean(numbers) == pytest.approx(30 * SECOND, rel=0.02)
    beyond = sum(number > 60 * SECOND for number in numbers)
    assert beyond / len(numbers) == pytest.approx(math.exp(-2), rel=0.04)


def test_pareto_amounts_are_never_below_their_scale_and_have_its_tail() -> None:
    numbers = drawn(SHAPES[4])
    assert min(numbers) >= 10 * SECOND
    assert fmean(numbers) == pytest.approx(10 * SECOND * 2.5 / 1.5, rel=0.03)
    beyond = sum(number > 20 * SECOND for number in numbers)
    assert beyond / len(numbers) == pytest.approx(2**-2.5, rel=0.05)


def test_empirical_amounts_are_as_frequent_as_their_values() -> None:
    numbers = drawn(SHAPES[5])
    assert set(numbers) == {SECOND, 4 * SECOND}
    assert numbers.count(SECOND) / len(numbers) == pytest.approx(2 / 3, rel=0.02)


def test_empirical_amounts_come_from_a_file_that_the_caller_reads() -> None:
    def samples(file: str, column: str | None) -> Sequence[str]:
        assert (file, column) == ("times.csv", "seconds")
        return ["5s"]

    value = {"empirical": {"file": "times.csv", "column": "seconds"}}
    assert read_distribution(value, parse_duration, samples).draw(Stream(0)) == 5 * SECOND
    with pytest.raises(ValueError, match="no file can be read here"):
        read_distribution(value, parse_duration)


def test_bounds_hold_for_what_is_drawn() -> None:
    numbers = drawn({"exponential": {"mean": "30s"}, "min": "10s", "max": "40s"})
    assert (min(numbers), max(numbers)) == (10 * SECOND, 40 * SECOND)
    assert min(drawn({"normal": {"mean": "1s", "deviation": "5s"}})) == 0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("-5s", "-5s"),
        ({"uniform": {"min": "6s", "max": "5s"}}, "uniform: min is larger than max"),
        ({"exponential": {"mean": "1s"}, "min": "2s", "max": "1s"}, "min is larger than max"),
        ({"gamma": {}}, "must name one of constant, .*; it has: gamma"),
        ({}, "it has: nothing"),
        ({"constant": "1s", "uniform": {}}, "it has: constant, uniform"),
        ({"normal": {"mean": "1s"}}, "normal needs deviation"),
        ({"normal": "1s"}, "normal must be an object with mean and deviation"),
        ({"normal": {"mean": "1s", "deviation": "1s", "sigma": 1}}, "normal has no sigma"),
        ({"lognormal": {"median": "1s", "sigma": float("nan")}}, "sigma must be from 0 to 1000"),
        ({"lognormal": {"median": "1s", "sigma": "1"}}, "sigma must be a number"),
        ({"lognormal": {"median": "1s", "sigma": True}}, "sigma must be a number"),
        ({"pareto": {"scale": "1s", "shape": 0}}, "shape must be from 0.01 to 1000"),
        ({"empirical": {"values": []}}, "at least one value"),
        ({"empirical": {"values": "abc"}}, "at least one value"),
        ({"empirical": {}}, "either values or a file"),
        ({"empirical": {"values": ["1s", "x"]}}, "'x' is not a duration"),
    ],
)
def test_faults_are_told_in_words(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_distribution(value, parse_duration)


@pytest.mark.parametrize("value", [-5, 2**63, {"uniform": {"min": -5, "max": 5}}])
def test_amounts_are_neither_negative_nor_endless(value: object) -> None:
    with pytest.raises(ValueError, match="must not be negative or beyond"):
        read_distribution(value, int)
