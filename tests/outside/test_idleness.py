"""When a program of which no pid is known counts as idle."""

from collections.abc import Callable

import pytest

from kubescene.clock import VirtualClock
from kubescene.outside.idleness import Idleness
from kubescene.outside.programs import Held, OutsideProgram
from kubescene.outside.requests import PODS, OutsideRequest

QUIET, LINGER = 100, 300


class Looking:
    """One program, and a clock that the test moves."""

    def __init__(self, linger: int = 0) -> None:
        self.clock = VirtualClock()
        self.program = OutsideProgram("p", self.clock)
        self.idle = Idleness(self.program, self.clock, QUIET, linger)
        self.idle.begin()

    def after(self, time: int) -> bool:
        self.clock.wait_until(self.clock.now() + time)
        return self.idle.is_reached()


def test_it_is_idle_when_nothing_was_heard_of_it_for_long_enough() -> None:
    looking = Looking()
    assert not looking.after(QUIET - 1)
    looking.program.open_feed(PODS, lambda: None).has_begun = True
    assert not looking.after(QUIET - 1)
    assert looking.after(1)
    assert looking.idle.judged_by == "quiet"


def test_it_is_not_while_something_is_carried_out_for_it() -> None:
    looking = Looking()
    looking.program.arrive(Held(OutsideRequest("get", PODS), lambda reply: None))
    assert not looking.after(2 * QUIET)
    looking.program.answered()
    assert not looking.after(QUIET - 1)
    assert looking.after(1)


def test_it_is_not_while_a_request_is_being_read() -> None:
    looking = Looking()
    looking.program.entered += 1
    assert not looking.after(2 * QUIET)
    looking.program.arrived()
    assert not looking.after(QUIET - 1)
    assert looking.after(1)


def test_it_is_not_while_something_is_on_its_way_to_it() -> None:
    looking = Looking()
    feed = looking.program.open_feed(PODS, lambda: None)
    assert not looking.after(2 * QUIET)
    feed.has_begun = True
    assert not looking.after(QUIET - 1)
    assert looking.after(1)


@pytest.mark.parametrize("early", [QUIET, LINGER - 1])
def test_one_with_timers_of_its_own_is_looked_at_for_longer(early: int) -> None:
    looking = Looking(LINGER)
    assert not looking.after(early)
    assert looking.after(LINGER - early)


def test_the_event_loop_has_to_say_that_nothing_is_in_its_hands() -> None:
    looking, errands = Looking(), list[Callable[[], None]]()
    looking.program.errand = errands.append
    assert not looking.after(QUIET)
    assert not looking.after(QUIET)
    assert len(errands) == 1
    errands.pop()()
    assert looking.after(0)
    looking.idle.begin()
    assert not looking.after(0)


def test_a_sign_that_was_asked_for_before_something_came_says_nothing() -> None:
    looking, errands = Looking(), list[Callable[[], None]]()
    looking.program.errand = errands.append
    assert not looking.after(QUIET)
    looking.clock.wait_until(looking.clock.now() + 1)
    looking.program.open_feed(PODS, lambda: None).has_begun = True
    assert not looking.after(1)
    errands.pop()()
    assert not looking.after(0)
