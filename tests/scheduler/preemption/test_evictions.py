"""How victims are removed: those that run, those that wait, and what people read of it."""

from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MINUTE
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.instruments.attempts import Preemption
from kubescene.scheduler import CycleState, Handle, PodInfo, Status
from kubescene.scheduler.framework.status import SUCCESS, Code
from kubescene.testing.builders import make_node, make_pod, make_priority_class
from kubescene.timeline import Instrument
from scheduler.staging import Stage


class Patience:
    """Pods of low priority wait at Permit."""

    name = "Patience"

    def __init__(self, handle: Handle) -> None:
        del handle

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> tuple[Status, int]:
        return (SUCCESS, 0) if pod.priority else (Status(Code.WAIT), 10 * MINUTE)


def test_e_5_a_victim_that_waits_for_its_binding_is_sent_back_and_not_deleted() -> None:
    world = Stage(Patience)
    world.create(make_priority_class("high", 10))
    world.nodes("a", cpu="1")
    assert world.place(make_pod("waiting").cpu("1")) == []
    world.create(make_pod("new").cpu("1").priority_class("high"))
    placed = [f"{each.pod.name}:{each.node or each.reason}" for each in world.work()]
    assert placed == ["new:Unschedulable", "waiting:SchedulerError", "new:a"]
    waiting = world.pod("waiting")
    assert "deletionTimestamp" not in waiting["metadata"]
    assert "nominatedNodeName" not in waiting["status"]


class Preemptions(Instrument):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def pod_preempted(self, preemption: Preemption) -> None:
        pod = preemption.pod
        self.seen.append((pod.name, pod.node, preemption.preemptor))


def test_e_5_events_and_instruments_tell_of_victims_and_preemptor() -> None:
    seen = Preemptions()
    cluster = Cluster(ClusterOptions(events=True), instruments=[seen])
    cluster.create(make_priority_class("high", 10))
    cluster.create(make_node("a").cpu("1").memory("1Gi"))
    cluster.create(make_pod("low").cpu("1"))
    cluster.settle()
    cluster.create(make_pod("new").cpu("1").priority_class("high"))
    cluster.settle()
    client = cluster.client(Actor("test"))
    new = client.get(ObjectRef(POD, "new", "default"))
    assert new["spec"]["nodeName"] == "a"
    assert seen.seen == [("low", "a", "default/new")]
    uid = new["metadata"]["uid"]
    (event,) = [each for each in cluster.list("events") if each["reason"] == "Preempted"]
    assert event["type"] == "Normal"
    assert event["action"] == "Preempting"
    assert f"Preempted by pod {uid} on node a" in (event.get("note"), event.get("message"))
    assert event["related"]["name"] == "new"


def test_victims_that_take_their_time_hold_the_preemptor_up() -> None:
    world = Stage()
    world.create(make_priority_class("high", 10))
    world.nodes("a", cpu="1")
    world.place(make_pod("low").cpu("1"))
    world.create(make_pod("new").cpu("1").priority_class("high"))
    assert [each.node for each in world.work()] == [""]
    assert world.work() == []
    world.delete("low")
    assert [each.node for each in world.work()] == ["a"]
