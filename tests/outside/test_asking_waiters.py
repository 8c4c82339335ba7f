"""A turn asks its waiter once for every state of the world."""

import pytest

from kubescene.client import Reader
from kubescene.clock import SECOND, VirtualClock
from kubescene.cluster import ClusterWorld
from kubescene.control import IDLE, WAITING, Progress
from kubescene.errors import ScenarioError
from kubescene.outside.programs import OutsideProgram
from kubescene.outside.stage import WorldOfTurns
from kubescene.outside.turns.turn import Turn
from kubescene.scenario.outside import OutsideController
from kubescene.testing import make_node


class Counted:
    name = "counted"

    def __init__(self) -> None:
        self.asked = 0

    def condition(self, reader: Reader) -> bool:
        self.asked += 1
        return self.asked > 1

    def unmet(self, reader: Reader) -> str:
        return "the second question"


class WaitingTurn(Turn):
    """Has nothing to do but to please its waiter."""

    def _begin(self) -> Progress:
        return self._go(self._content, "it was still busy")

    def _content(self) -> Progress:
        return IDLE if self._is_content() else WAITING


def test_an_answer_holds_until_something_is_written() -> None:
    cluster, clock, waiter = ClusterWorld(), VirtualClock(), Counted()
    world, declared = WorldOfTurns(cluster, clock), OutsideController("x", timeout_ns=9 * SECOND)
    turn = WaitingTurn(OutsideProgram("x", clock), declared, world, waiter)
    assert [turn.run_once() for _ in range(5)] == [WAITING] * 5
    assert waiter.asked == 1
    cluster.create(make_node("n"))
    assert turn.run_once() == IDLE
    assert waiter.asked == 2


def test_what_is_not_yet_so_is_told_when_the_time_is_over() -> None:
    clock = VirtualClock()
    declared = OutsideController("x", timeout_ns=9 * SECOND)
    world = WorldOfTurns(ClusterWorld(), clock)
    turn = WaitingTurn(OutsideProgram("x", clock), declared, world, Counted())
    assert turn.run_once() == turn.run_once() == WAITING
    clock.wait_until(clock.now() + 10 * SECOND)
    told = r"controller x: after 9 s it was still busy \(counted: the second question\)"
    with pytest.raises(ScenarioError, match=told):
        turn.run_once()
