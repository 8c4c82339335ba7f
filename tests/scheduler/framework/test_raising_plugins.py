"""Plugins that raise: they fail the attempt, or the run if that is wanted; no pod is lost."""

import numpy as np
import pytest

from kubescene.clock import SECOND
from kubescene.control.loops import IDLE
from kubescene.errors import PluginError
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    EventRegistration,
    EventResource,
    Handle,
    Hint,
    NodeInfo,
    PodInfo,
    Status,
)
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.framework.status import SUCCESS
from kubescene.scheduler.queue.waiting_places import Place
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
    stage = Stage(plugin, plugin_errors=PluginErrors.STOP)
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


# -- the run goes on -------------------------------------------------------------------------


def failed(plugin: type) -> tuple[Stage, SchedulingAttempt]:
    """A stage on which a plugin has failed the attempt at a pod."""
    stage = Stage(plugin)
    stage.nodes("a")
    stage.create(make_pod("p").cpu("1"))
    if plugin is RaisingPreBind:
        assert stage.work() == []
        stage.pass_time(SECOND)
    return stage, stage.work()[0]


@pytest.mark.parametrize("plugin", [RaisingFilter, RaisingReserve, RaisingPreBind])
def test_a_plugin_that_raises_fails_the_attempt_and_the_run_goes_on(plugin: type) -> None:
    stage, attempt = failed(plugin)
    assert (attempt.node, attempt.reason) == ("", "SchedulerError")
    assert f"plugin '{plugin.__name__}' at " in attempt.message
    assert attempt.message.endswith("RuntimeError: out of order")
    assert attempt.traceback.endswith("RuntimeError: out of order\n")
    assert 'raise RuntimeError("out of order")' in attempt.traceback
    assert "_guard" not in attempt.traceback
    [condition] = [
        each for each in stage.pod("p")["status"]["conditions"] if each["type"] == "PodScheduled"
    ]
    assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
    assert held(stage) == (0, 0)
    assert stage.place(make_pod("q").cpu("1")) == ["q:a"]
    stage.scheduler.begin_step()
    assert [each.node for each in stage.work()] == ["a"]
    assert held(stage) == (2, 2000)


class RaisingAfterReserve(RaisingReserve):
    """Notes the node that it has to give back."""

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return self.once()

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.undone.append(node)


def test_what_is_given_back_after_an_error_is_given_back_on_its_node() -> None:
    stage, _ = failed(RaisingAfterReserve)
    assert stage.plugin("RaisingAfterReserve").undone == ["a"]


def test_what_is_not_given_back_is_told_and_the_refusal_stands() -> None:
    _, attempt = failed(RaisingUnreserve)
    assert attempt.message == "0/1 nodes are available: 1 not yet."
    assert attempt.traceback.endswith("RuntimeError: out of order\n")


def test_an_error_after_binding_is_told_and_the_pod_stays_bound() -> None:
    stage = Stage(RaisingPostBind)
    stage.nodes("a")
    stage.create(make_pod("p").cpu("1"))
    [attempt] = stage.work()
    assert attempt.node == "a"
    assert attempt.traceback.endswith("RuntimeError: out of order\n")
    assert stage.pod("p")["spec"]["nodeName"] == "a"


class Gate(Raising):
    def pre_enqueue(self, pod: PodInfo) -> Status:
        if pod.name == "p":
            raise RuntimeError("out of order")
        return SUCCESS


def test_a_gate_that_raises_keeps_the_pod_out(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Gate)
    stage.nodes("a")
    stage.create(make_pod("p").cpu("1"), make_pod("q").cpu("1"))
    assert [each.pod.name for each in stage.work()] == ["q"]
    assert "Gate keeps default/p out of the queue" in caplog.text


class Odd:
    """Answers at one point with whatever it is told to."""

    answer: object = None

    def __init__(self, handle: Handle) -> None:
        self.handle = handle


class OddFilter(Odd):
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> object:
        return self.answer


class OddFilterNodes(Odd):
    answer = (0,)

    def filter_nodes(self, *arguments: object) -> object:
        return self.answer

    def describe(self, *arguments: object) -> object:
        return SUCCESS


class OddPreFilter(Odd):
    answer = SUCCESS

    def pre_filter(self, *arguments: object) -> object:
        return self.answer


class OddScore(Odd):
    answer = 1.5

    def score(self, *arguments: object) -> object:
        return self.answer


class OddScoreNodes(Odd):
    answer = np.array([0.5, 1.5])

    def score_nodes(self, *arguments: object) -> object:
        return self.answer


class OddPermit(Odd):
    answer = SUCCESS

    def permit(self, *arguments: object) -> object:
        return self.answer


class OddBind(Odd):
    answer = True

    def pre_bind(self, *arguments: object) -> object:
        return self.answer


class OddPostFilter(Odd):
    answer = SUCCESS

    def filter(self, *arguments: object) -> object:
        return Status.unschedulable("no")

    def post_filter(self, *arguments: object) -> object:
        return self.answer


@pytest.mark.parametrize(
    ("plugin", "complaint"),
    [
        (OddFilter, "answered with None, expected a Status"),
        (OddFilterNodes, "answered with (0,), expected an array of integers"),
        (OddPreFilter, "expected a Status and a frozenset of node names or None"),
        (OddScore, "answered with 1.5, expected an integer"),
        (OddScoreNodes, "answered with array([0.5, 1.5]), expected an array of integers"),
        (OddPermit, "expected a Status and the longest wait in nanoseconds"),
        (OddBind, "answered with True, expected a Status, or a Status and a wait in nanoseconds"),
        (OddPostFilter, "expected a PostFilterResult"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_an_answer_that_is_none_fails_the_attempt(plugin: type, complaint: str) -> None:
    stage = Stage(plugin)
    stage.nodes("a", "b")
    stage.create(make_pod("p").cpu("1"))
    [attempt] = stage.work()
    assert (attempt.node, attempt.reason) == ("", "SchedulerError")
    assert f"plugin '{plugin.__name__}' at " in attempt.message
    assert complaint in attempt.message


class OddHint(Raising):
    """Refuses pods until a node comes, and cannot tell whether that helps."""

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == "b" else Status.unschedulable("not here")

    def events_to_register(self) -> list[EventRegistration]:
        return [EventRegistration(ClusterEvent(EventResource.NODE, Action.ADD), self.hint)]

    def hint(self, pod: PodInfo, change: object) -> Hint:
        raise RuntimeError("no idea")


def test_q_11_a_hint_that_fails_queues_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(OddHint)
    stage.nodes("a")
    stage.create(make_pod("p"))
    assert [each.node for each in stage.work()] == [""]
    stage.nodes("b")
    assert [each.node for each in stage.work()] == ["b"]
    assert "a queueing hint of OddHint failed" in caplog.text
