"""What the runtime makes of a plan: each kind of write, and what is said about it."""

from collections.abc import Iterable, Sequence

import pytest

from kubescene.actors import Actor
from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    Evict,
    ObjectKey,
    Patch,
    Plan,
    Scale,
    Update,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController, make
from kubescene.errors import ApiError, ConflictError, TooManyRequestsError
from kubescene.recording import NORMAL, Notice, regarding
from kubescene.testing import make_pod, make_replica_set

A = ObjectRef(POD, "a", "default")
WEB = ObjectRef(REPLICA_SET, "web", "default")


@pytest.fixture
def world() -> ClusterWorld:
    return ClusterWorld(ClusterOptions(events=True))


class Planned:
    """Has one plan for every pod that comes, and another for refusals."""

    name = "planned"
    kinds: Sequence[GroupVersionKind] = (POD,)

    def __init__(self, plan: Plan, repair: Plan = NOTHING) -> None:
        self._plan = plan
        self._repair = repair
        self.errors: list[ApiError] = []

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.name != "a" or change.previous is not None:
            return ()
        return (ObjectKey(change.record.namespace, change.record.name),)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        return self._plan

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del now
        self.errors.append(error)
        return self._repair


def carry_out(world: ClusterWorld, plan: Plan, repair: Plan = NOTHING) -> Planned:
    reconciler = Planned(plan, repair)
    controller = ReconcilerController(reconciler, world.context(Actor("planned")))
    world.create(make_pod("a"))
    controller.run_once()
    return reconciler


def notice(world: ClusterWorld, message: str) -> Notice:
    about = regarding(world.get("namespaces", "default"))
    return Notice(about, NORMAL, "Planned", message, "planner")


def told(world: ClusterWorld) -> list[str]:
    events = sorted(world.list("events"), key=lambda it: int(it["metadata"]["resourceVersion"]))
    return [event["message"] for event in events]


def test_scale_asks_for_replicas(world: ClusterWorld) -> None:
    world.create(make_replica_set("web").replicas(1))
    make(Scale(WEB, 4), world.client(Actor("x")))
    assert world.get("rs", "web")["spec"]["replicas"] == 4


def test_update_replaces_exactly_what_was_seen(world: ClusterWorld) -> None:
    seen = world.create(make_replica_set("web").replicas(1))
    client = world.client(Actor("x"))
    make(Update({**seen, "status": {"replicas": 7}}, "status"), client)
    assert world.get("rs", "web")["status"]["replicas"] == 7
    assert world.get("rs", "web")["spec"] == seen["spec"]
    with pytest.raises(ConflictError):
        make(Update(seen), client)


def test_evict_asks_the_budget(world: ClusterWorld) -> None:
    world.create(make_pod("a").label(app="a").on("n1"))
    running = {"status": {"phase": "Running"}}
    world.patch("pods", "a", running, subresource="status")
    client = world.client(Actor("x"))
    make(Evict(A, DeleteOptions(dry_run=True)), client)
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    world.create({**body, "spec": {"minAvailable": 1, "selector": {}}})
    with pytest.raises(TooManyRequestsError):
        make(Evict(A), client)
    world.delete("pdb", "b")
    make(Evict(A), client)
    assert "deletionTimestamp" in world.get("pods", "a")["metadata"]


def test_notices_of_writes_are_told_as_they_are_accepted(world: ClusterWorld) -> None:
    generated = make_pod("x").build()
    generated["metadata"] = {"generateName": "made-", "namespace": "default"}
    plan = Plan(
        (
            Create(generated, notice(world, "created {name}")),
            Patch(A, {"metadata": {"labels": {"a": "b"}}}, notice=notice(world, "patched")),
            Delete(A, notice=notice(world, "deleted")),
        ),
        notices=(notice(world, "begun"),),
    )
    carry_out(world, plan)
    (made,) = world.list("pods")
    assert told(world) == ["begun", f"created {made['metadata']['name']}", "patched", "deleted"]


def test_nothing_is_said_of_a_write_that_is_refused(world: ClusterWorld) -> None:
    missing = ObjectRef(POD, "nobody", "default")
    plan = Plan(
        (Delete(missing, notice=notice(world, "deleted")), Delete(A, notice=notice(world, "both")))
    )
    repair = Plan(notices=(notice(world, "could not"),))
    reconciler = carry_out(world, plan, repair)
    assert [error.reason for error in reconciler.errors] == ["NotFound"]
    assert told(world) == ["could not"]
    assert world.get("pods", "a")


def test_nobody_listens_unless_asked_to() -> None:
    world = ClusterWorld()
    carry_out(world, Plan((Delete(A, notice=notice(world, "deleted")),)))
    assert world.list("pods") == []
    assert world.list("events") == []


class Patient:
    """Looks at a pod whenever it changes, and wants to do so again at a certain instant."""

    name = "patient"
    kinds: Sequence[GroupVersionKind] = (POD,)

    def __init__(self) -> None:
        self.due = 0
        self.looked: list[int] = []

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        return (ObjectKey(change.record.namespace, change.record.name),)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        self.looked.append(now)
        return Plan(requeue_after=self.due - now) if self.due > now else NOTHING

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del now
        raise error


def test_however_often_a_plan_asks_for_an_instant_it_comes_once(world: ClusterWorld) -> None:
    patient = Patient()
    start = world.clock.now()
    controller = ReconcilerController(patient, world.context(Actor("patient")))
    world.create(make_pod("a"))
    for label, due in (("1", 5), ("2", 5), ("3", 9), ("4", 5), ("5", 9)):
        patient.due = start + due * SECOND
        world.patch("pods", "a", {"metadata": {"labels": {"n": label}}})
        controller.run_once()
    patient.looked.clear()
    waiting = []
    while (instant := world.event_queue.peek()) is not None and instant < start + 20 * SECOND:
        waiting.append(world.event_queue.run_until(instant))
        controller.run_once()
    assert waiting == [1, 1]
    assert patient.looked == [start + 5 * SECOND, start + 9 * SECOND]


def test_an_instant_that_has_passed_may_come_again(world: ClusterWorld) -> None:
    patient = Patient()
    start = world.clock.now()
    controller = ReconcilerController(patient, world.context(Actor("patient")))
    world.create(make_pod("a"))
    for due in (5, 8):
        patient.due = start + due * SECOND
        controller.run_once()
        world.event_queue.run_until(patient.due)
    controller.run_once()
    assert patient.looked == [start, start + 5 * SECOND, start + 8 * SECOND]


def test_what_is_asked_for_at_once_comes_as_often_as_it_is_asked_for(world: ClusterWorld) -> None:
    planned = Planned(Plan(requeue_after=0))
    controller = ReconcilerController(planned, world.context(Actor("planned")))
    world.create(make_pod("a"))
    for _ in range(3):
        controller.run_once()
        assert world.event_queue.run_due() == 1
