"""Who gets a turn, when, and when nobody does."""

import pytest

from kubescene.clock import LAST_INSTANT, SECOND, EventQueue, VirtualClock
from kubescene.cluster import ClusterWorld
from kubescene.control import (
    IDLE,
    ControllerContext,
    Crank,
    LivelockError,
    Progress,
    ServingCrank,
    Slot,
    Timers,
)
from kubescene.errors import BadRequestError
from kubescene.testing import make_node, make_pod


class Worker:
    """Has some pieces of work; notes when it was asked."""

    def __init__(self, name: str, work: int, log: list[str]) -> None:
        self.name = name
        self.work = work
        self._log = log

    def run_once(self) -> Progress:
        self._log.append(self.name)
        if not self.work:
            return IDLE
        self.work -= 1
        return Progress(wrote=True, more=self.work > 0)


@pytest.fixture
def queue() -> EventQueue:
    return EventQueue(VirtualClock())


@pytest.fixture
def crank(queue: EventQueue) -> Crank:
    return Crank(queue, lambda: 0)


def seated(worker: Worker) -> Slot:
    slot = Slot(worker.name)
    slot.controller = worker
    return slot


def test_those_with_work_take_turns_and_nobody_else_is_asked(crank: Crank) -> None:
    log: list[str] = []
    slots = [seated(Worker(name, work, log)) for name, work in (("a", 3), ("b", 1), ("c", 2))]
    crank.settle(slots)
    assert log == ["a", "b", "c", "a", "c", "a"]
    crank.settle(slots)
    assert len(log) == 6


def test_what_wakes_a_controller_gives_it_a_turn(crank: Crank, queue: EventQueue) -> None:
    log: list[str] = []
    slots = [seated(Worker(name, 0, log)) for name in "ab"]
    crank.settle(slots)
    slots[1].wake()
    queue.at(0, slots[0].wake)
    crank.settle(slots)
    assert log == ["a", "b", "b", "a"]


def test_what_is_due_later_is_left_alone(crank: Crank, queue: EventQueue) -> None:
    log: list[str] = []
    slots = [seated(Worker("a", 0, log))]
    queue.after(SECOND, slots[0].wake)
    crank.settle(slots)
    assert log == ["a"]
    assert len(queue) == 1


def test_something_that_is_due_for_ever_is_a_livelock(crank: Crank, queue: EventQueue) -> None:
    def again() -> None:
        queue.at(0, again)

    again()
    with pytest.raises(LivelockError, match="still busy: only the event queue"):
        crank.settle([], max_rounds=5)


def test_an_idle_world_asks_nobody(cluster: ClusterWorld) -> None:
    cluster.create(make_node("n").cpu("4"))
    cluster.create(make_pod("a").cpu("1"))
    cluster.settle()
    turns: list[str] = []
    for slot in cluster.slots:
        slot.controller = Worker(slot.name, 0, turns)
    cluster.crank.settle(cluster.slots)
    assert turns == []


def test_placing_a_pod_takes_a_turn_for_each_piece_of_work(cluster: ClusterWorld) -> None:
    """Bind, start, and a look of the scheduler at what it heard: not twelve turns of polling."""
    cluster.create(make_node("n").cpu("4"))
    cluster.settle()
    asked: list[str] = []
    for slot in cluster.slots:
        controller, name = slot.controller, slot.name
        assert controller is not None
        slot.controller = Counting(controller.run_once, name, asked)
    cluster.create(make_pod("a").cpu("1"))
    cluster.crank.settle(cluster.slots)
    assert cluster.pod("a").node == "n"
    assert sorted(asked) == ["kube-scheduler", "kube-scheduler", "kubelet"]


class Counting:
    def __init__(self, run_once: object, name: str, asked: list[str]) -> None:
        self.name = name
        self._run_once = run_once
        self._asked = asked

    def run_once(self) -> Progress:
        self._asked.append(self.name)
        progress = self._run_once()  # type: ignore[operator]  # the real controller's
        assert isinstance(progress, Progress)
        return progress


def test_time_passes_and_what_is_due_happens(cluster: ClusterWorld) -> None:
    start = cluster.clock.now()
    seen: list[int] = []
    cluster.event_queue.after(30 * SECOND, lambda: seen.append(cluster.clock.now() - start))
    cluster.advance("20s")
    assert seen == []
    cluster.advance("70s")
    assert seen == [30 * SECOND]
    assert cluster.clock.now() - start == 90 * SECOND


class Fragile:
    """Raises once, then works."""

    name = "fragile"

    def __init__(self) -> None:
        self.turns = 0

    def run_once(self) -> Progress:
        self.turns += 1
        if self.turns == 1:
            raise RuntimeError("once")
        return IDLE


def test_a_controller_that_raised_is_asked_again(crank: Crank) -> None:
    fragile = Fragile()
    slot = Slot("fragile")
    slot.controller = fragile
    with pytest.raises(RuntimeError, match="once"):
        crank.settle([slot])
    crank.settle([slot])
    assert fragile.turns == 2


def test_time_goes_forward_only(cluster: ClusterWorld) -> None:
    with pytest.raises(BadRequestError, match="in the past, or beyond the year 9999"):
        cluster.advance(-1.0)
    with pytest.raises(BadRequestError, match="in the past, or beyond the year 9999"):
        cluster.advance(LAST_INSTANT / SECOND)


class Ticks:
    """A simulation that has something to do every ten seconds, and says so to its controller."""

    name = "ticks"

    def __init__(self, context: ControllerContext) -> None:
        self._wake = context.wake
        self._next = context.clock.now() + 10 * SECOND
        self.acted: list[int] = []
        self._clock = context.clock
        context.timers.attach(self)

    def peek(self) -> int:
        return self._next

    def run_until(self, instant: int) -> int:
        while self._next <= instant:
            self._next += 10 * SECOND
        self._wake()
        return 1

    def run_once(self) -> Progress:
        self.acted.append(self._clock.now())
        return IDLE


def test_a_controller_may_keep_a_kernel_of_its_own(cluster: ClusterWorld) -> None:
    cluster.registrations.register("ticks", Ticks)
    start = cluster.clock.now()
    cluster.advance("35s")
    ticks = next(slot.controller for slot in cluster.slots if slot.name == "ticks")
    assert isinstance(ticks, Ticks)
    assert [(at - start) // SECOND for at in ticks.acted] == [0, 10, 20, 30]


def test_a_timer_whose_action_raises_wakes_its_controller_all_the_same(queue: EventQueue) -> None:
    slot = Slot("a")
    slot.awake = False
    Timers(queue, slot.wake).after(0, int, "nothing of the kind")
    with pytest.raises(ValueError, match="nothing of the kind"):
        queue.run_due()
    assert slot.awake


def test_in_a_served_world_whoever_woke_before_a_failure_has_its_turn(queue: EventQueue) -> None:
    log: list[str] = []
    slot = seated(Worker("a", 0, log))
    slot.awake = False

    def wake_and_fail() -> None:
        slot.wake()
        raise RuntimeError("out of order")

    def fail() -> None:
        raise RuntimeError("out of order")

    # The first keeps the second from being met before the controllers are asked.
    queue.at(0, fail)
    queue.at(0, wake_and_fail)
    serving = ServingCrank(queue, lambda: 0, clock=queue.clock)
    patience = serving.patience()
    while serving.round([slot], patience):
        pass
    assert log == ["a"]
