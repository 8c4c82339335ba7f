"""The scheduler against the real registry: what it writes, when it is done, whom it wakes."""

from typing import Any

import pytest

from kubescene.actors import Actor
from kubescene.api.options import DeleteOptions
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MINUTE, SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.control.loops import IDLE, Progress
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler import Scheduler
from kubescene.scheduler.framework.explain import Explain
from kubescene.testing.builders import (
    NodeBuilder,
    ObjectBuilder,
    make_node,
    make_pod,
    make_priority_class,
)
from kubescene.timeline import Instrument
from kubescene.types import JsonObject

POD = GroupVersionKind("", "v1", "Pod")
NODE = GroupVersionKind("", "v1", "Node")


class Attempts(Instrument):
    def __init__(self) -> None:
        self.made: list[SchedulingAttempt] = []

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self.made.append(attempt)


class Rehearsal:
    def __init__(self, explain: Explain = Explain.AUTO) -> None:
        self.attempts = Attempts()
        self.cluster = ClusterWorld(ClusterOptions(explain=explain), instruments=[self.attempts])
        started = self.cluster.start(["kube-scheduler"])[0].controller
        assert isinstance(started, Scheduler)
        self.scheduler = started
        self.client = self.cluster.client(Actor("test"))

    def create(self, *builders: ObjectBuilder) -> None:
        for builder in builders:
            self.client.create(builder.build())

    def work(self) -> list[SchedulingAttempt]:
        """Run until there is nothing to do; returns the attempts made."""
        before = len(self.attempts.made)
        while self.scheduler.run_once().more:
            pass
        return self.attempts.made[before:]

    def place(self, *builders: ObjectBuilder) -> list[str]:
        """Create, work, and tell who went where."""
        self.create(*builders)
        return [f"{each.pod.name}:{each.node}" for each in self.work()]

    def pod(self, name: str) -> JsonObject:
        return self.client.get(ObjectRef(POD, name, "default"))

    def condition(self, name: str) -> JsonObject:
        conditions: list[JsonObject] = self.pod(name)["status"]["conditions"]
        return next(each for each in conditions if each["type"] == "PodScheduled")

    def patch(self, gvk: GroupVersionKind, name: str, change: Any, subresource: str = "") -> None:
        namespace = "default" if gvk is POD else ""
        self.client.patch(ObjectRef(gvk, name, namespace), change, subresource=subresource)


@pytest.fixture
def world() -> Rehearsal:
    return Rehearsal()


def node(name: str, cpu: str = "4") -> NodeBuilder:
    return make_node(name).cpu(cpu).memory("32Gi")


def test_pods_spread_over_empty_nodes(world: Rehearsal) -> None:
    world.create(node("a"), node("b"))
    pods = [make_pod(name).cpu("1") for name in ("p", "q", "r")]
    assert world.place(*pods) == ["p:a", "q:b", "r:a"]
    assert world.pod("q")["spec"]["nodeName"] == "b"


def test_the_attempt_carries_the_pod_as_it_is_after_the_binding(world: Rehearsal) -> None:
    world.create(node("a"), make_pod("p"))
    (attempt,) = world.work()
    assert attempt.pod.node == "a"
    assert attempt.pod.revision == int(world.pod("p")["metadata"]["resourceVersion"])


def test_an_idle_scheduler_is_done(world: Rehearsal) -> None:
    assert world.scheduler.run_once() == IDLE
    world.create(node("a"), make_pod("p"), make_pod("q"))
    assert world.scheduler.run_once() == Progress(wrote=True, more=True)
    assert world.scheduler.run_once() == Progress(wrote=True, more=False)


def test_e_2_a_failure_is_written_into_the_condition(world: Rehearsal) -> None:
    world.create(node("a"), node("b").taint("gpu"), make_pod("p").cpu("9"))
    (attempt,) = world.work()
    message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
    condition = world.condition("p")
    assert condition["message"] == attempt.message
    assert attempt.message.startswith(message)
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["observedGeneration"] == 1
    assert attempt.plugins == ("NodeResourcesFit", "TaintToleration")


def test_an_unchanged_condition_is_not_written_again(world: Rehearsal) -> None:
    world.create(make_pod("p"))
    assert world.scheduler.run_once().wrote
    revision = world.pod("p")["metadata"]["resourceVersion"]
    world.scheduler.begin_step()
    assert not world.scheduler.run_once().wrote
    assert world.pod("p")["metadata"]["resourceVersion"] == revision


def test_m_2_reasons_are_counted_and_sorted_as_text(world: Rehearsal) -> None:
    world.create(*(node(f"n{number:02}", "1") for number in range(10)))
    world.create(*(node(f"t{number}").taint("gpu") for number in range(2)))
    world.create(make_pod("p").cpu("2"))
    expected = "10 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    assert world.work()[0].message.startswith(f"0/12 nodes are available: {expected}")


def test_c_5_a_pinned_pod_reports_the_other_nodes_as_excluded(world: Rehearsal) -> None:
    world.create(*(node(name, "1") for name in "abcd"))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = make_pod("p").cpu("2").build()
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    world.client.create(pod)
    (attempt,) = world.work()
    assert attempt.message.startswith(
        "0/4 nodes are available: 1 Insufficient cpu, "
        "3 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert attempt.plugins == ("NodeAffinity", "NodeResourcesFit")


def test_c_1_without_nodes_the_pod_is_due_again_in_the_next_step(world: Rehearsal) -> None:
    world.create(make_pod("p"))
    (attempt,) = world.work()
    assert attempt.message == "no nodes available to schedule pods"
    assert (attempt.reason, attempt.plugins) == ("Unschedulable", ())
    assert world.place(node("a")) == []
    world.scheduler.begin_step()
    assert world.place() == ["p:a"]


def test_an_error_backoff_ends_with_time(world: Rehearsal) -> None:
    world.create(make_pod("p"))
    world.work()
    world.create(node("a"))
    events, clock = world.cluster.event_queue, world.cluster.clock
    assert events.peek() == clock.now() + 2 * SECOND
    events.run(clock.now() + 2 * SECOND)
    assert world.place() == ["p:a"]
    assert events.peek() is None


def test_an_unschedulable_pod_is_tried_again_after_five_minutes(world: Rehearsal) -> None:
    world.create(node("a", "1"), make_pod("p").cpu("2"))
    world.work()
    events, clock = world.cluster.event_queue, world.cluster.clock
    events.run(clock.now() + 6 * MINUTE)
    assert [attempt.pod.name for attempt in world.work()] == ["p"]


def test_a_new_node_wakes_those_it_can_hold(world: Rehearsal) -> None:
    world.create(node("a", "1"), make_pod("small").cpu("2"), make_pod("big").cpu("8"))
    world.work()
    assert world.place(node("b", "4")) == ["small:b"]
    assert world.place(node("c", "16")) == ["big:c"]


def test_a_deleted_pod_makes_room(world: Rehearsal) -> None:
    world.create(node("a", "1"))
    assert world.place(make_pod("p").cpu("1"), make_pod("q").cpu("1")) == ["p:a", "q:"]
    world.client.delete(ObjectRef(POD, "p", "default"), options=DeleteOptions(grace_period_s=0))
    assert world.place() == ["q:a"]


def test_s_6_a_finished_pod_makes_room(world: Rehearsal) -> None:
    world.create(node("a", "1"))
    world.place(make_pod("p").cpu("1"), make_pod("q").cpu("1"))
    world.patch(POD, "p", {"status": {"phase": "Succeeded"}}, "status")
    assert world.place() == ["q:a"]


def test_uncordoning_wakes_pods(world: Rehearsal) -> None:
    world.create(node("a").unschedulable(), make_pod("p"))
    assert "1 node(s) were unschedulable." in world.work()[0].message
    world.patch(NODE, "a", {"spec": {"unschedulable": None, "taints": None}})
    assert world.place() == ["p:a"]


def test_relabelling_wakes_only_those_who_asked_for_the_label(world: Rehearsal) -> None:
    world.create(node("a"), make_pod("p").select(disk="ssd"), make_pod("q").select(disk="hdd"))
    world.work()
    world.patch(NODE, "a", {"metadata": {"labels": {"disk": "ssd"}}})
    assert world.place() == ["p:a"]


def test_a_gated_pod_waits_for_its_last_gate(world: Rehearsal) -> None:
    world.create(node("a"), make_pod("p").gate("wait"))
    assert world.work() == []
    world.patch(POD, "p", {"spec": {"schedulingGates": None}})
    assert world.place() == ["p:a"]


def test_pods_of_other_schedulers_are_left_alone(world: Rehearsal) -> None:
    world.create(node("a"), make_pod("p").scheduler("mine"))
    assert world.work() == []


def test_a_pod_with_a_node_takes_its_room_without_asking(world: Rehearsal) -> None:
    world.create(node("a", "1"), make_pod("static").cpu("1").on("a"))
    assert world.place(make_pod("p").cpu("1")) == ["p:"]


def test_higher_priority_goes_first(world: Rehearsal) -> None:
    world.create(node("a", "1"), make_priority_class("high", 1000))
    world.create(make_pod("low").cpu("1"), make_pod("top").cpu("1").priority_class("high"))
    assert [attempt.pod.name for attempt in world.work()] == ["top", "low"]


def test_c_8_the_search_moves_on_from_pod_to_pod(world: Rehearsal) -> None:
    world.create(*(node(f"n{number:03}") for number in range(300)))
    world.create(make_pod("p"), make_pod("q"))
    first, second = world.work()
    assert (first.feasible, first.evaluated, first.node) == (144, 144, "n000")
    assert (second.feasible, second.node) == (144, "n144")
    assert world.scheduler.start_index.index == 288


@pytest.mark.parametrize(
    ("explain", "success", "failure"),
    [
        (Explain.AUTO, True, True),
        (Explain.FULL, True, True),
        (Explain.FAILURES, False, True),
        (Explain.OFF, False, False),
    ],
)
def test_explanations_are_made_for_those_who_asked(
    explain: Explain, success: bool, failure: bool
) -> None:
    world = Rehearsal(explain)
    world.create(node("a"), make_pod("p"), make_pod("q").cpu("99"))
    made = [attempt.explanation is not None for attempt in world.work()]
    assert made == [success, failure]


def test_an_explanation_tells_all(world: Rehearsal) -> None:
    world.create(node("a"), node("b", "1"), node("c"), make_pod("p").cpu("2").memory("1Gi"))
    explanation = world.work()[0].explanation
    assert explanation is not None
    told = explanation.to_dict()
    assert told["feasible"] == [0, 2]
    (group,) = told["filters"]
    assert (group["plugin"], group["code"], group["nodes"]) == ("NodeResourcesFit", 3, [1])
    assert told["scores"]["NodeResourcesFit"]["raw"] == [73, 73]
    assert told["totals"] == [300 + 73 + 63, 300 + 73 + 63]


def test_the_same_world_gives_the_same_attempts() -> None:
    def run() -> list[tuple[str, str, str]]:
        world = Rehearsal()
        world.create(
            *(
                node(f"n{number}", str(1 + number % 3)).zone("abc"[number % 3])
                for number in range(20)
            )
        )
        world.create(*(make_pod(f"p{number}").cpu(f"{number % 4}00m") for number in range(60)))
        return [(each.pod.name, each.node, each.message) for each in world.work()]

    assert run() == run()


def nominate(world: Rehearsal, name: str, node_name: str) -> None:
    world.patch(POD, name, {"status": {"nominatedNodeName": node_name}}, "status")


def test_a_refused_nominated_node_is_counted_once(world: Rehearsal) -> None:
    world.create(node("a", "1"), node("b", "1"), node("c", "1"), make_pod("p").cpu("2"))
    nominate(world, "p", "b")
    attempt = world.work()[0]
    assert attempt.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert attempt.evaluated == 3
    assert world.scheduler.start_index.index == 0


def test_a_nominated_node_outside_the_search_is_counted_too(world: Rehearsal) -> None:
    world.create(*(node(name, "1") for name in "abcd"))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = make_pod("p").cpu("2").build()
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    world.client.create(pod)
    nominate(world, "p", "c")
    attempt = world.work()[0]
    assert attempt.message.startswith(
        "0/4 nodes are available: 1 Insufficient cpu, "
        "1 node(s) didn't match Pod's node affinity/selector, "
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_a_nomination_of_one_pod_leaves_that_of_another(world: Rehearsal) -> None:
    world.create(node("a", "1"), make_pod("p").cpu("2"), make_pod("q").cpu("2"))
    nominate(world, "p", "a")
    nominate(world, "q", "a")
    nominations = world.scheduler.nominations
    assert [pod.name for pod in nominations.on("a")] == ["p", "q"]
    world.client.delete(ObjectRef(POD, "p", "default"), options=DeleteOptions(grace_period_s=0))
    assert [pod.name for pod in nominations.on("a")] == ["q"]
    world.client.delete(ObjectRef(POD, "q", "default"), options=DeleteOptions(grace_period_s=0))
    assert (nominations.on("a"), bool(nominations)) == ([], False)


def test_the_tolerations_of_another_pod_wake_nobody(world: Rehearsal) -> None:
    world.create(node("a").unschedulable(), make_pod("p"), make_pod("q"))
    world.work()
    cordon = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    kept = world.pod("q")["spec"]["tolerations"]
    world.patch(POD, "q", {"spec": {"tolerations": [*kept, *cordon]}})
    assert world.place() == ["q:a"]
