from typing import Any

import pytest

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.clock import SECOND, Stream, VirtualClock, parse_time
from kubescene.scheduler.framework.interfaces import (
    Action,
    ClusterEvent,
    EventRegistration,
    EventResource,
    Hint,
)
from kubescene.scheduler.framework.profile import Backoff
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.queue.cluster_events import NODE_ADDED, POD_DELETED, Hints, matches
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing.builders import make_node, make_pod

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")
NOON = parse_time("2026-01-01T12:00:00Z")

EVENTS = {
    "NodeName": [EventRegistration(NODE_ADDED)],
    "Never": [EventRegistration(NODE_ADDED, lambda pod, change: Hint.SKIP)],
    "Gates": [EventRegistration(POD_DELETED)],
}


def pod(name: str, priority: int = 0, *, gate: str = "") -> PodInfo:
    builder = make_pod(name).gate(gate) if gate else make_pod(name)
    obj = builder.build()
    metadata = obj["metadata"] | {"uid": name}
    obj = obj | {"metadata": metadata, "spec": obj["spec"] | {"priority": priority}}
    return PodInfo.read(make_record(PODS, obj, 1), obj, PodClasses())


def node_added() -> Change:
    return Change(ChangeType.ADDED, make_record(NODES, make_node("n").build(), 1), None, Store())


def hold_gated(candidate: PodInfo) -> Status:
    return Status.unresolvable("gated").by("Gates") if candidate.gates else SUCCESS


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def queue(clock: VirtualClock) -> SchedulingQueue:
    def sort_key(candidate: PodInfo, timestamp: int) -> tuple[Any, ...]:
        return (-candidate.priority, timestamp)

    return SchedulingQueue(clock, sort_key, hold_gated, {"default-scheduler": Hints(EVENTS)})


def pop_name(queue: SchedulingQueue) -> str:
    entry = queue.pop()
    assert entry is not None
    return entry.pod.name


def fail_next(queue: SchedulingQueue, *plugins: str) -> str:
    entry = queue.pop()
    assert entry is not None
    queue.put_back(entry, plugins)
    return entry.pod.name


def names(queue: SchedulingQueue, place: Place) -> list[str]:
    return [each.name for each in queue.waiting(place)]


def test_q_1_higher_priority_first_then_arrival(queue: SchedulingQueue) -> None:
    for each in (pod("late", 5), pod("first"), pod("second"), pod("top", 9)):
        queue.add(each)
    assert [pop_name(queue) for _ in range(4)] == ["top", "late", "first", "second"]


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (70, 10)]
)
def test_q_4_backoff_doubles_up_to_its_limit(failures: int, seconds: int) -> None:
    assert Backoff().seconds(failures) == seconds


def test_q_5_backoff_ends_on_whole_seconds(queue: SchedulingQueue, clock: VirtualClock) -> None:
    clock.wait_until(NOON + 9 * SECOND // 10)
    queue.add(pod("p"))
    entry = queue.pop()
    assert entry is not None
    queue.put_back(entry, ())
    assert queue.backoff_expiry(entry) == NOON + SECOND
    clock.wait_until(NOON + 199 * SECOND // 100)
    assert queue.is_backing_off(entry)
    clock.wait_until(NOON + 2 * SECOND)
    assert not queue.is_backing_off(entry)


def test_q_9_an_idle_scheduler_takes_rejected_pods_out_of_backoff(queue: SchedulingQueue) -> None:
    queue.add(pod("p"))
    fail_next(queue, "NodeName")
    queue.notify(NODE_ADDED, node_added())
    assert names(queue, Place.BACKOFF) == ["p"]
    assert queue.has_work
    queue.add(pod("ready"))
    assert [pop_name(queue), pop_name(queue)] == ["ready", "p"]


def test_q_6_backoffs_end_in_order_and_at_once_by_priority(queue: SchedulingQueue) -> None:
    for each in (pod("low"), pod("high", 5), pod("often", 9)):
        queue.add(each)
    for _ in range(3):
        fail_next(queue, "NodeName")
    queue.notify(NODE_ADDED, node_added())
    # The one with the highest priority fails once more, and so waits longer.
    fail_next(queue, "NodeName")
    queue.notify(NODE_ADDED, node_added())
    assert [pop_name(queue) for _ in range(3)] == ["high", "low", "often"]


def test_q_18_attempts_and_cycles_are_counted(queue: SchedulingQueue) -> None:
    queue.add(pod("a"))
    queue.add(pod("b"))
    fail_next(queue, "NodeName")
    queue.notify(NODE_ADDED, node_added())
    pop_name(queue)
    entry = queue.pop()
    assert entry is not None
    assert (entry.pod.name, entry.attempts, queue.cycle) == ("a", 2, 3)


def test_pods_with_errors_wait_for_the_clock(queue: SchedulingQueue, clock: VirtualClock) -> None:
    queue.add(pod("p"))
    fail_next(queue)
    assert names(queue, Place.ERROR_BACKOFF) == ["p"]
    assert not queue.has_work
    assert queue.next_flush() == NOON + 2 * SECOND
    clock.wait_until(NOON + 2 * SECOND)
    queue.flush()
    assert pop_name(queue) == "p"


def test_pods_with_errors_can_be_retried_at_once(queue: SchedulingQueue) -> None:
    queue.add(pod("p"))
    fail_next(queue)
    assert queue.retry_failed() == 1
    assert fail_next(queue) == "p"


@pytest.mark.parametrize(
    ("plugins", "place"),
    [
        (["NodeName"], Place.BACKOFF),
        (["Never"], Place.UNSCHEDULABLE),
        (["Never", "NodeName"], Place.BACKOFF),
        (["Unknown"], Place.UNSCHEDULABLE),
    ],
    ids=["says queue", "says skip", "one is enough", "not registered"],
)
def test_q_11_hints_of_rejecting_plugins_decide(
    queue: SchedulingQueue, plugins: list[str], place: Place
) -> None:
    queue.add(pod("p"))
    fail_next(queue, *plugins)
    queue.notify(NODE_ADDED, node_added())
    assert names(queue, place) == ["p"]


def test_q_10_events_in_flight_are_replayed(queue: SchedulingQueue) -> None:
    for name in ("helped", "not"):
        queue.add(pod(name))
    first, second = queue.pop(), queue.pop()
    assert first is not None
    assert second is not None
    queue.notify(NODE_ADDED, node_added())
    queue.put_back(first, ["NodeName"])
    queue.put_back(second, ["Never"])
    assert names(queue, Place.BACKOFF) == ["helped"]
    assert names(queue, Place.UNSCHEDULABLE) == ["not"]


def test_q_13_a_gated_pod_ignores_events_of_other_plugins(queue: SchedulingQueue) -> None:
    queue.add(pod("p", gate="g"))
    queue.notify(NODE_ADDED, node_added())
    assert names(queue, Place.UNSCHEDULABLE) == ["p"]
    entry = queue.get("p")
    assert entry is not None
    assert entry.gated_by == "Gates"


def test_an_ungated_pod_keeps_its_place_in_line(queue: SchedulingQueue) -> None:
    queue.add(pod("old", gate="g"))
    queue.add(pod("young"))
    change = node_added()
    queue.update(pod("old"), change, [POD_DELETED])
    assert [pop_name(queue), pop_name(queue)] == ["old", "young"]


def test_q_7_after_five_minutes_a_pod_is_tried_again(
    queue: SchedulingQueue, clock: VirtualClock
) -> None:
    queue.add(pod("p"))
    fail_next(queue, "Never")
    assert queue.next_flush() == NOON + 330 * SECOND
    clock.wait_until(NOON + 300 * SECOND)
    queue.flush()
    assert names(queue, Place.UNSCHEDULABLE) == ["p"]
    clock.wait_until(NOON + 330 * SECOND)
    queue.flush()
    assert names(queue, Place.ACTIVE) == ["p"]


class Between:
    """A clock like the machine's: whatever instant is waited for, it is a little later then."""

    def __init__(self) -> None:
        self._now = NOON

    def now(self) -> int:
        self._now += 1
        return self._now

    def wait_until(self, instant: int) -> None:
        self._now = max(self._now, instant)

    def seconds_until(self, instant: int) -> float:
        return max(instant - self._now, 0) / SECOND


def test_a_clock_between_boundaries_gets_rejected_pods_tried_again() -> None:
    clock = Between()
    queue = SchedulingQueue(
        clock, lambda pod, at: (at,), hold_gated, {"default-scheduler": Hints(EVENTS)}
    )
    queue.add(pod("p"))
    queue.add(pod("gated", gate="g"))
    fail_next(queue, "Never")
    due = queue.next_flush()
    assert due == NOON + 330 * SECOND
    clock.wait_until(due)
    queue.flush()
    assert names(queue, Place.ACTIVE) == ["p"]
    assert queue.next_flush() == NOON + 660 * SECOND, "the gated pod waits for the next time"


def test_a_missed_boundary_is_made_up_for(queue: SchedulingQueue, clock: VirtualClock) -> None:
    queue.add(pod("p"))
    fail_next(queue, "Never")
    clock.wait_until(NOON + 329 * SECOND)
    queue.flush()
    assert names(queue, Place.UNSCHEDULABLE) == ["p"]
    clock.wait_until(NOON + 331 * SECOND)
    queue.flush()
    assert names(queue, Place.ACTIVE) == ["p"]


def test_the_next_flush_is_that_of_the_pod_that_waits_longest(
    queue: SchedulingQueue, clock: VirtualClock
) -> None:
    for name in ("first", "second"):
        queue.add(pod(name))
        fail_next(queue, "Never")
        clock.wait_until(clock.now() + 60 * SECOND)
    queue.delete("first")
    assert queue.next_flush() == NOON + 390 * SECOND
    queue.delete("second")
    assert queue.next_flush() is None


def test_pods_that_come_and_go_leave_nothing_behind(queue: SchedulingQueue) -> None:
    queue.add(pod("stays", gate="g"))
    for number in range(500):
        queue.add(pod(f"p{number}", gate="g"))
        queue.delete(f"p{number}")
    assert len(queue._unschedulable._ages) < 100
    assert len(queue._unschedulable.entries) == 1


def test_a_gated_pod_waits_once_however_often_it_is_looked_at(
    queue: SchedulingQueue, clock: VirtualClock
) -> None:
    queue.add(pod("p", gate="g"))
    for _ in range(3):
        due = queue.next_flush()
        assert due is not None
        clock.wait_until(due)
        queue.flush()
    assert names(queue, Place.UNSCHEDULABLE) == ["p"]
    assert len(queue._unschedulable.entries) == 1


def test_q_3_a_deleted_pod_leaves_from_anywhere(queue: SchedulingQueue) -> None:
    for name in ("active", "failed", "rejected"):
        queue.add(pod(name))
    assert fail_next(queue, "Never") == "active"
    assert fail_next(queue) == "failed"
    for name in ("active", "failed", "rejected"):
        queue.delete(name)
    assert len(queue) == 0
    assert not queue.has_work
    assert queue.next_flush() is None


def test_a_pod_deleted_in_flight_does_not_come_back(queue: SchedulingQueue) -> None:
    queue.add(pod("p"))
    entry = queue.pop()
    assert entry is not None
    queue.delete("p")
    queue.put_back(entry, ["Never"])
    assert len(queue) == 0


def test_q_8_errors_and_rejections_are_counted_apart(queue: SchedulingQueue) -> None:
    queue.add(pod("p"))
    fail_next(queue)
    queue.retry_failed()
    fail_next(queue)
    entry = queue.get("p")
    assert entry is not None
    assert (entry.consecutive_errors, entry.unschedulable_count) == (2, 0)
    queue.retry_failed()
    fail_next(queue, "Never")
    assert (entry.consecutive_errors, entry.unschedulable_count, entry.attempts) == (0, 1, 3)


@pytest.mark.parametrize(
    ("registered", "incoming", "expected"),
    [
        (Action.ADD | Action.UPDATE_NODE_LABEL, Action.ADD, True),
        (Action.UPDATE_NODE_LABEL, Action.UPDATE, False),
        (Action.UPDATE, Action.UPDATE_NODE_LABEL, True),
        (Action.UPDATE, Action.UPDATE, True),
        (Action.DELETE, Action.ADD, False),
        (Action.ALL, Action.ADD, True),
    ],
)
def test_q_12_events_match_by_bits_and_size(
    registered: Action, incoming: Action, expected: bool
) -> None:
    node = EventResource.NODE
    assert matches(ClusterEvent(node, registered), ClusterEvent(node, incoming)) is expected
    assert not matches(ClusterEvent(node, registered), ClusterEvent(EventResource.POD, incoming))


def test_q_16_waiting_for_new_nodes_means_waiting_for_taints_to_go() -> None:
    taint_gone = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT)
    interested = Hints(EVENTS).interested(taint_gone)
    assert [(each.plugin, each.hint) for each in interested] == [
        ("NodeName", None),
        ("Never", None),
    ]


class Asked:
    """A hint that remembers whom it was asked about and helps those it likes."""

    def __init__(self, *liked: str) -> None:
        self.liked = liked
        self.about: list[str] = []

    def __call__(self, pod: PodInfo, change: Change) -> Hint:
        self.about.append(pod.name)
        return Hint.QUEUE if not self.liked or pod.name in self.liked else Hint.SKIP


def by_arrival(pod: PodInfo, timestamp: int) -> tuple[Any, ...]:
    return (timestamp,)


def queue_with(hint: Asked, clock: VirtualClock, *, by_signature: bool) -> SchedulingQueue:
    node = EventRegistration(NODE_ADDED, hint, by_signature=by_signature)
    deleted = EventRegistration(POD_DELETED, hint, by_signature=by_signature)
    hints = {"default-scheduler": Hints({"Fit": [node, deleted]})}
    return SchedulingQueue(clock, by_arrival, hold_gated, hints)


CLASSES = PodClasses()


def alike(name: str, app: str, priority: int = 0) -> PodInfo:
    """A pod of an app; those of one app and priority differ in their name alone."""
    obj = make_pod(name).label(app=app).build()
    obj["metadata"]["uid"] = name
    obj["spec"]["priority"] = priority
    return PodInfo.read(make_record(PODS, obj, 1), obj, CLASSES)


def reject_all(queue: SchedulingQueue, *pods: PodInfo) -> None:
    for each in pods:
        queue.add(each)
        fail_next(queue, "Fit")


def test_an_event_is_put_to_pods_of_one_signature_once(clock: VirtualClock) -> None:
    hint = Asked()
    queue = queue_with(hint, clock, by_signature=True)
    reject_all(queue, *(alike(f"{app}{number}", app) for number in range(3) for app in "ab"))
    queue.notify(NODE_ADDED, node_added())
    assert hint.about == ["a0", "b0"]
    assert names(queue, Place.BACKOFF) == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert [pop_name(queue) for _ in range(6)] == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_hint_that_looks_at_each_pod_is_asked_about_each(clock: VirtualClock) -> None:
    hint = Asked("a1")
    queue = queue_with(hint, clock, by_signature=False)
    reject_all(queue, alike("a0", "a"), alike("a1", "a"))
    queue.notify(NODE_ADDED, node_added())
    assert hint.about == ["a0", "a1"]
    assert names(queue, Place.UNSCHEDULABLE) == ["a0"]


def test_the_pod_that_a_change_is_about_is_asked_about_for_itself(clock: VirtualClock) -> None:
    hint = Asked("a0")
    queue = queue_with(hint, clock, by_signature=True)
    pods = [alike(f"a{number}", "a") for number in range(3)]
    reject_all(queue, *pods)
    queue.notify(POD_DELETED, Change(ChangeType.MODIFIED, pods[0].record, None, Store()))
    assert hint.about == ["a0", "a1"]
    assert names(queue, Place.BACKOFF) == ["a0"]
    hint.about.clear()
    queue.notify(POD_DELETED, Change(ChangeType.MODIFIED, pods[2].record, None, Store()))
    assert sorted(hint.about) == ["a1", "a2"]


def test_a_relabelled_pod_changes_its_group(clock: VirtualClock) -> None:
    hint = Asked()
    queue = queue_with(hint, clock, by_signature=True)
    reject_all(queue, alike("a0", "a"), alike("a1", "a"))
    queue.update(alike("a1", "b"), node_added(), [])
    queue.notify(NODE_ADDED, node_added())
    assert hint.about == ["a0", "a1"]


def test_q_17_pods_of_a_higher_priority_are_left_alone(clock: VirtualClock) -> None:
    queue = queue_with(Asked(), clock, by_signature=True)
    reject_all(queue, alike("low", "a", 1), alike("high", "a", 3))
    queue.notify(NODE_ADDED, node_added(), highest_priority=2)
    assert names(queue, Place.UNSCHEDULABLE) == ["high"]
    queue.notify(NODE_ADDED, node_added(), except_uid="high")
    assert names(queue, Place.UNSCHEDULABLE) == ["high"]


def test_a_pod_in_flight_hears_only_what_happened_since(clock: VirtualClock) -> None:
    hint = Asked()
    queue = queue_with(hint, clock, by_signature=True)
    for name in ("first", "second", "third"):
        queue.add(alike(name, name))
    first = queue.pop()
    queue.notify(NODE_ADDED, node_added())
    second = queue.pop()
    assert first is not None
    assert second is not None
    queue.put_back(second, ["Fit"])
    assert hint.about == []
    queue.put_back(first, ["Fit"])
    assert hint.about == ["first"]
    third = queue.pop()
    assert third is not None
    queue.put_back(third, ["Fit"])
    assert names(queue, Place.UNSCHEDULABLE) == ["second", "third"]


def test_events_are_forgotten_with_the_last_pod_that_could_need_them(clock: VirtualClock) -> None:
    queue = queue_with(Asked(), clock, by_signature=True)
    queue.add(alike("long", "a"))
    queue.add(alike("short", "b"))
    long, short = queue.pop(), queue.pop()
    assert long is not None
    assert short is not None
    for _ in range(5):
        queue.notify(NODE_ADDED, node_added())
    queue.done(short)
    assert len(queue._in_flight._events) == 5
    queue.done(long)
    assert queue._in_flight._events == []


@pytest.mark.parametrize("priorities", [1, 2, 7, 1000])
def test_q_2_pods_leave_in_order_of_their_keys_whatever_order_they_come_in(
    queue: SchedulingQueue, priorities: int
) -> None:
    random = Stream(priorities)
    waiting: list[tuple[int, int]] = []
    for number in range(600):
        waiting.append((-random.below(priorities), number))
        queue.add(pod(str(number), -waiting[-1][0]))
        if number % 3 == 0:
            gone = waiting.pop(random.below(len(waiting)))
            queue.delete(str(gone[1]))
        if number % 4 == 0 and waiting:
            waiting.remove(first := min(waiting))
            assert pop_name(queue) == str(first[1])
    assert [pop_name(queue) for _ in waiting] == [str(number) for _, number in sorted(waiting)]
    assert queue.pop() is None


def test_pods_that_left_before_their_turn_are_forgotten(queue: SchedulingQueue) -> None:
    for number in range(500):
        queue.add(pod(f"p{number}", number % 2))
        queue.delete(f"p{number}")
    assert len(queue._active._line) + len(queue._active._entries) < 100


def test_a_pod_can_be_taken_out_of_turn_unless_something_gates_it(queue: SchedulingQueue) -> None:
    for each in (pod("first", 9), pod("waits"), pod("gated", gate="g")):
        queue.add(each)
    taken = queue.take("waits")
    assert taken is not None
    assert taken.place is Place.IN_FLIGHT
    assert queue.take("waits") is None
    assert queue.take("gated") is None
    assert queue.take("nobody") is None
    queue.put_back(taken, ["NodeName"])
    again = queue.take("waits")
    assert again is taken
    assert again.attempts == 2
    assert pop_name(queue) == "first"
