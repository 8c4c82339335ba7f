"""Virtual time stands still until told; scaled time needs a whole rate."""

import pytest

from kubescene.clock import ScaledClock, VirtualClock, WallClock, parse_time


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
