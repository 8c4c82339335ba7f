"""Plugins that raise: the exception goes on to whoever runs the scheduler, and no pod is lost."""

import pytest

from kubescene.clock import SECOND
from kubescene.control.loops import IDLE
from kubescene.errors import PluginError
from kubescene.scheduler import Code, CycleState, Handle, NodeInfo, PodInfo, Status
from kubescene.scheduler.status import SUCCESS
from kubescene.scheduler.waiting_places import Place
from kubescene.testing.builders import make_pod
from scheduler.staging import Stage


class Raising:
    """Raises at its first call."""

    name = "Raising"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.calls = 0
        self.undone: list[str] = []

    def once(self) -> Status:
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("out of order")
        return SUCCESS


class RaisingFilter(Raising):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return self.once()


class RaisingReserve(Raising):
    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self.once()

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.undone.append(pod.name)


class RaisingPreBind(RaisingReserve):
    """Raises when it is asked again, in a loop of its own."""

    waited = False

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | tuple[Status, int]:
        if self.waited:
            return self.once()
        self.waited = True
        return Status(Code.WAIT), SECOND


class RaisingUnreserve(RaisingReserve):
    """Refuses a pod once, and fails to take back what it reserved."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS if self.calls else Status.unschedulable("not yet")

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.once()


class RaisingPostBind(Raising):
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.once()


def held(stage: Stage) -> tuple[int, int]:
    """How many pods the scheduler counts on the node, and their cpu in thousandths."""
    info = stage.scheduler.nodes.info("a")
    assert info is not None
    return len(info.pods), info.requested["cpu"]


def raised(plugin: type) -> Stage:
    """A stage on which the attempt at a pod has ended in an exception."""
    stage = Stage(plugin)
    stage.nodes("a")
    stage.create(make_pod("p").cpu("1"))
    if plugin is RaisingPreBind:
        assert stage.work() == []
        assert held(stage) == (1, 1000)
        stage.pass_time(SECOND)
    with pytest.raises(PluginError, match="out of order"):
        stage.work()
    return stage


FAILING = [RaisingFilter, RaisingReserve, RaisingPreBind, RaisingUnreserve]


@pytest.mark.parametrize("plugin", FAILING)
def test_a_pod_whose_attempt_raised_is_tried_again_in_the_next_step(plugin: type) -> None:
    stage = raised(plugin)
    assert held(stage) == (0, 0)
    assert [pod.name for pod in stage.scheduler.queue.waiting(Place.ERROR_BACKOFF)] == ["p"]
    assert stage.scheduler.run_once() == IDLE
    stage.scheduler.begin_step()
    assert [each.node for each in stage.work()] == ["a"]
    assert stage.pod("p")["spec"]["nodeName"] == "a"
    assert held(stage) == (1, 1000)


@pytest.mark.parametrize("plugin", FAILING)
def test_a_pod_whose_attempt_raised_is_tried_again_after_its_backoff(plugin: type) -> None:
    stage = raised(plugin)
    stage.pass_time(10 * SECOND)
    stage.work()
    assert stage.pod("p")["spec"]["nodeName"] == "a"
    assert held(stage) == (1, 1000)


def test_what_was_reserved_is_given_back() -> None:
    for plugin in (RaisingReserve, RaisingPreBind):
        stage = raised(plugin)
        assert stage.plugin(plugin.__name__).undone == ["p"]


def test_a_pod_that_was_bound_stays_bound() -> None:
    stage = raised(RaisingPostBind)
    assert stage.pod("p")["spec"]["nodeName"] == "a"
    assert held(stage) == (1, 1000)
    assert len(stage.scheduler.queue) == 0
    stage.scheduler.begin_step()
    assert stage.work() == []


def test_others_are_placed_meanwhile() -> None:
    stage = raised(RaisingReserve)
    assert stage.place(make_pod("q").cpu("3")) == ["q:a"]
    stage.scheduler.begin_step()
    assert [each.node for each in stage.work()] == ["a"]
    assert held(stage) == (2, 4000)
