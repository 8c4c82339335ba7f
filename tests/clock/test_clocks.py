"""Virtual time stands still until told; scaled time needs a whole rate."""

from copy import deepcopy

import pytest

from kubescene.clock import (
    SECOND,
    Clock,
    LentClock,
    ScaledClock,
    VirtualClock,
    WallClock,
    parse_time,
)
from kubescene.clock.clocks import PacedClock


def test_virtual_time_begins_where_it_is_told() -> None:
    assert VirtualClock().now() == parse_time("2026-01-01T00:00:00Z")
    assert VirtualClock(42).now() == 42


def test_virtual_time_stands_still_and_never_goes_back() -> None:
    clock = VirtualClock(100)
    assert clock.now() == clock.now() == 100
    clock.wait_until(150)
    clock.wait_until(120)
    assert clock.now() == 150


def test_reset_begins_again() -> None:
    clock = VirtualClock(100)
    clock.wait_until(150)
    clock.reset()
    assert clock.now() == 100
    clock.reset(7)
    assert (clock.now(), clock.start) == (7, 7)


@pytest.mark.parametrize("rate", [0, -1])
def test_a_scaled_clock_refuses_a_rate_below_one(rate: int) -> None:
    with pytest.raises(ValueError, match=f"not {rate}"):
        ScaledClock(rate)


def test_a_scaled_clock_runs_ahead_of_the_machine() -> None:
    clock = ScaledClock(1_000_000_000, start=0)
    clock.wait_until(5_000_000)
    assert clock.now() >= 5_000_000


def test_wall_time_returns_at_once_for_the_past() -> None:
    clock = WallClock()
    before = clock.now()
    clock.wait_until(before - 1)
    assert clock.now() >= before


def test_virtual_time_comes_only_when_told() -> None:
    clock = VirtualClock(100)
    assert clock.seconds_until(101) is None
    assert (clock.seconds_until(100), clock.seconds_until(99)) == (0.0, 0.0)


def test_a_wall_clock_waits_real_seconds() -> None:
    clock = WallClock()
    seconds = clock.seconds_until(clock.now() + 1000 * SECOND)
    assert 0.0 < 1000.0 - seconds < 100.0


def test_a_scaled_clock_waits_a_fraction() -> None:
    clock = ScaledClock(100, start=0)
    seconds = clock.seconds_until(clock.now() + 100_000 * SECOND)
    assert 0.0 < 1000.0 - seconds < 100.0


@pytest.mark.parametrize("clock", [VirtualClock(), WallClock(), ScaledClock(60)])
def test_what_has_come_needs_no_waiting(clock: Clock) -> None:
    assert clock.seconds_until(clock.now()) == 0.0
    assert clock.seconds_until(clock.now() - SECOND) == 0.0


@pytest.mark.parametrize("clock", [WallClock(), ScaledClock(1_000)])
def test_it_is_never_early(clock: Clock) -> None:
    instant = clock.now() + 2_000_000
    clock.wait_until(instant)
    assert clock.now() >= instant


def test_a_copied_virtual_clock_moves_alone() -> None:
    clock = VirtualClock(100)
    copied = deepcopy(clock)
    copied.wait_until(150)
    assert (clock.now(), copied.now(), copied.start) == (100, 150, 100)


def test_a_copied_scaled_clock_goes_on_from_the_same_time() -> None:
    clock = ScaledClock(1_000, start=7)
    before, copied = clock.now(), deepcopy(clock)
    assert before <= copied.now() <= clock.now()
    assert copied.start == 7


def test_a_scaled_clock_begins_again() -> None:
    clock = ScaledClock(1_000_000_000, start=0)
    clock.wait_until(SECOND)
    clock.reset(5)
    assert clock.now() >= 5
    assert clock.start == 5


def test_a_lent_clock_stands_still_until_it_is_told() -> None:
    clock = LentClock(ScaledClock(1_000_000))
    clock.lend(7 * SECOND)
    assert (clock.now(), clock.seconds_until(8 * SECOND)) == (7 * SECOND, None)
    clock.wait_until(9 * SECOND)
    assert clock.now() == 9 * SECOND


@pytest.mark.parametrize("own", [WallClock(), ScaledClock(60), VirtualClock()])
def test_a_clock_that_is_taken_back_goes_on_from_where_it_was(own: PacedClock) -> None:
    clock = LentClock(own)
    clock.lend(7 * SECOND)
    clock.wait_until(9 * SECOND)
    clock.take_back()
    assert 9 * SECOND <= clock.now() < 3600 * SECOND
    assert (clock.seconds_until(10 * SECOND) is None) is isinstance(own, VirtualClock)


def test_a_lent_clock_that_is_reset_is_its_own_again() -> None:
    own = VirtualClock(5)
    clock = LentClock(own)
    clock.lend(7 * SECOND)
    clock.reset()
    assert clock.now() == 5
    own.wait_until(6)
    assert clock.now() == 6
