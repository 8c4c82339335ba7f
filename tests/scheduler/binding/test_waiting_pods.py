"""Bindings that wait: at Permit, in PreBind, and how they end."""

import copy

import pytest

from kubescene.clock import MINUTE, SECOND
from kubescene.control.loops import IDLE
from kubescene.durations import go_duration
from kubescene.scheduler import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    EventRegistration,
    EventResource,
    Handle,
    NodeInfo,
    PodInfo,
    Status,
)
from kubescene.scheduler.framework.informers import KINDS
from kubescene.scheduler.framework.status import SUCCESS
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.testing.builders import make_pod
from scheduler.staging import Stage

WAIT = Status(Code.WAIT)
PERSISTENT_VOLUME = KINDS[EventResource.PERSISTENT_VOLUME]


class Holding:
    """Holds every pod for ten seconds, unless its name says otherwise."""

    name = "Holding"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.log: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.log.append(f"reserve {pod.name}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.log.append(f"unreserve {pod.name}")

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        return (SUCCESS, 0) if pod.name.startswith("free") else (WAIT, 10 * SECOND)

    def events_to_register(self) -> list[EventRegistration]:
        return [EventRegistration(ClusterEvent(EventResource.NODE, Action.ADD))]


class AlsoHolding(Holding):
    name = "AlsoHolding"

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        return WAIT, 60 * MINUTE


class Provisioning:
    """Waits in PreBind until a volume of the pod's name exists; gives up after a minute."""

    name = "Provisioning"

    def __init__(self, handle: Handle) -> None:
        self.volumes = handle.lister(PERSISTENT_VOLUME)
        self.clock = handle.clock
        self.asked = 0
        self.since: dict[str, int] = {}

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | tuple[Status, int]:
        self.asked += 1
        if self.volumes.get(pod.name) is not None:
            return SUCCESS
        begun = self.since.setdefault(pod.uid, self.clock.now())
        if self.clock.now() - begun >= MINUTE:
            return Status.error("timed out")
        return WAIT, MINUTE

    def events_to_register(self) -> list[EventRegistration]:
        added = ClusterEvent(EventResource.PERSISTENT_VOLUME, Action.ADD)
        return [EventRegistration(added)]


def volume(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
        },
    }


@pytest.fixture
def stage() -> Stage:
    stage = Stage(Holding)
    stage.nodes("a", cpu="1")
    return stage


def test_a_waiting_pod_is_assumed_and_holds_up_nobody(stage: Stage) -> None:
    assert stage.place(make_pod("p").cpu("600m")) == []
    assert stage.scheduler.nodes.requested("cpu").tolist() == [600]
    assert stage.pod("p")["status"]["nominatedNodeName"] == "a"
    assert stage.place(make_pod("free").cpu("300m")) == ["free:a"]
    assert stage.scheduler.run_once() == IDLE


def test_an_allowed_pod_is_bound_in_a_loop_of_its_own(stage: Stage) -> None:
    stage.place(make_pod("p"), make_pod("q"))
    waiting = stage.plugin("Holding").handle.waiting_pods
    assert [(each.pod.name, each.node) for each in waiting] == [("p", "a"), ("q", "a")]
    found = waiting.get(stage.uid("p"))
    assert found.pending_plugins == ("Holding",)
    found.allow("Holding")
    assert stage.scheduler.run_once().wrote
    assert stage.attempts.made[-1].node == "a"
    assert stage.pod("p")["spec"]["nodeName"] == "a"
    assert "nominatedNodeName" not in stage.pod("p")["status"]
    assert [each.pod.name for each in waiting] == ["q"]


def test_a_pod_that_waits_too_long_is_rejected(stage: Stage) -> None:
    stage.place(make_pod("p"))
    stage.pass_time(9 * SECOND)
    assert stage.work() == []
    stage.pass_time(SECOND)
    (attempt,) = stage.work()
    text = "rejected due to timeout after waiting 10s at plugin Holding"
    assert attempt.message == f"0/1 nodes are available: 1 {text}."
    assert (attempt.reason, attempt.plugins) == ("Unschedulable", ("Holding",))
    assert stage.plugin("Holding").log == ["reserve p", "unreserve p"]
    assert stage.scheduler.nodes.requested("pods").tolist() == [0]
    assert "nominatedNodeName" not in stage.pod("p")["status"]


def test_a_rejected_pod_makes_room_for_others(stage: Stage) -> None:
    stage.place(make_pod("p").cpu("1"))
    assert stage.place(make_pod("free").cpu("1")) == ["free:"]
    stage.plugin("Holding").handle.waiting_pods.get(stage.uid("p")).reject("Holding", "no")
    assert [(each.pod.name, each.node) for each in stage.work()] == [("p", ""), ("free", "a")]


def test_what_happens_while_a_pod_waits_counts_when_it_is_rejected(stage: Stage) -> None:
    stage.place(make_pod("p"))
    stage.nodes("b")
    stage.plugin("Holding").handle.waiting_pods.get(stage.uid("p")).reject("Holding", "no")
    stage.scheduler.run_once()
    assert stage.scheduler.run_once().wrote
    assert len(stage.plugin("Holding").handle.waiting_pods) == 1


def test_all_plugins_must_allow_and_no_wait_is_longer_than_a_quarter_of_an_hour() -> None:
    stage = Stage(Holding, AlsoHolding)
    stage.nodes("a")
    stage.place(make_pod("p"))
    (waiting,) = stage.plugin("Holding").handle.waiting_pods
    waiting.allow("Holding")
    assert stage.work() == []
    stage.pass_time(15 * MINUTE)
    (attempt,) = stage.work()
    assert "timeout after waiting 15m0s at plugin AlsoHolding" in attempt.message
    log = ["reserve p", "unreserve p"]
    assert (stage.plugin("Holding").log, stage.plugin("AlsoHolding").log) == (log, log)


def test_a_pod_deleted_while_it_waits_gives_everything_back(stage: Stage) -> None:
    stage.place(make_pod("p").cpu("1"))
    stage.create(make_pod("free").cpu("1"))
    stage.work()
    stage.delete("p")
    assert [(each.pod.name, each.node) for each in stage.work()] == [("p", ""), ("free", "a")]
    assert stage.plugin("Holding").log == ["reserve p", "unreserve p", "reserve free"]
    assert stage.scheduler.nodes.requested("pods").tolist() == [1]


def test_a_pre_bind_plugin_is_asked_again_when_its_event_comes() -> None:
    stage = Stage(Provisioning)
    stage.nodes("a")
    assert stage.place(make_pod("p")) == []
    stage.create(make_pod("other").on("a"))
    assert stage.work() == []
    asked = stage.plugin("Provisioning").asked
    stage.create(volume("p"))
    assert [(each.pod.name, each.node) for each in stage.work()] == [("p", "a")]
    assert stage.plugin("Provisioning").asked == asked + 1


def test_a_pre_bind_plugin_can_tell_that_it_took_too_long() -> None:
    stage = Stage(Provisioning)
    stage.nodes("a")
    stage.place(make_pod("p"))
    stage.pass_time(MINUTE)
    (attempt,) = stage.work()
    assert attempt.message == 'running PreBind plugin "Provisioning": timed out'
    assert (attempt.reason, attempt.plugins) == ("SchedulerError", ())


def test_a_filter_sees_the_pods_that_wait(stage: Stage) -> None:
    stage.place(make_pod("p").cpu("1"))
    info: NodeInfo | None = stage.scheduler.nodes.info("a")
    assert info is not None
    assert [each.name for each in info.pods] == ["p"]


def test_waiting_pods_can_be_copied_with_their_world(stage: Stage) -> None:
    stage.place(make_pod("p"))
    plugin, room = copy.deepcopy((stage.plugin("Holding"), stage.scheduler.waiting_pods))
    assert plugin.handle.waiting_pods is room
    room.get(stage.uid("p")).allow("Holding")
    assert room.has_ready
    assert not stage.scheduler.waiting_pods.has_ready


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (7, "7ns"),
        (1_500, "1.5µs"),
        (250_000_000, "250ms"),
        (1_500_000_000, "1.5s"),
        (10 * SECOND, "10s"),
        (90 * SECOND, "1m30s"),
        (5 * MINUTE, "5m0s"),
        (60 * MINUTE, "1h0m0s"),
        (-SECOND, "-1s"),
    ],
)
def test_durations_read_as_in_go(nanoseconds: int, text: str) -> None:
    assert go_duration(nanoseconds) == text


ORDER: list[str] = []


class First(Holding):
    name = "First"

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        ORDER.append(self.name)


class Second(First):
    name = "Second"


def test_what_was_reserved_is_given_back_in_reverse_order() -> None:
    ORDER.clear()
    stage = Stage(First, Second)
    stage.nodes("a")
    stage.place(make_pod("p"))
    stage.pass_time(10 * SECOND)
    stage.work()
    assert ORDER == ["Second", "First"]


def test_a_pod_can_be_attempted_out_of_turn() -> None:
    world = Stage(Holding)
    world.nodes("n1")
    world.create(make_pod("first"), make_pod("second"))
    assert world.scheduler.attempt(world.uid("second")) is not None
    assert [waiting.pod.name for waiting in world.scheduler.waiting_pods] == ["second"]
    assert world.scheduler.attempt(world.uid("second")) is None
    assert world.scheduler.resume() is None
    waiting = world.scheduler.waiting_pods.get(world.uid("second"))
    assert waiting is not None
    waiting.allow("Holding")
    assert world.scheduler.resume() is True
    assert world.pod("second")["spec"]["nodeName"] == "n1"
    assert [each.name for each in world.scheduler.queue.waiting(Place.ACTIVE)] == ["first"]
