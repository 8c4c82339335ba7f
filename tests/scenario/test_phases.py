"""The phase machine as a watch on the Scenario sees it.

Every test subscribes to the scenarios of the store and compares the exact sequence of
``(step, phase, controller)``. Since subscribers run before the writer goes on, looking into the
store from there tells whether a phase was visible before its work started.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from kubescene.actors import Actor, Component
from kubescene.api.kinds import POD
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterOptions, ClusterWorld, builtin_controllers
from kubescene.control.loops import IDLE, ControllerContext, ControllerFactory, Progress
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.scenario import Engine, ScenarioBuilder, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.timeline import TimelineRecorder
from kubescene.types import JsonObject

SCENARIOS = GroupResource("simulation.kube-scheduler-simulator.x-k8s.io", "scenarios")
PODS = GroupResource("", "pods")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SCHEDULER = "kube-scheduler"

Moment = tuple[str, str, str]
Look = Callable[[ClusterWorld], Any]


class Orderer:
    """A simulation controller: for every new ConfigMap it creates a pod of the same name."""

    name = "orderer"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._orders: list[str] = []
        context.client.watch(CONFIG_MAP, self._changed)

    def _changed(self, change: Change) -> None:
        # Kubernetes itself puts maps such as kube-root-ca.crt into every namespace.
        if not change.record.name.startswith("kube-"):
            self._orders.append(change.record.name)

    def run_once(self) -> Progress:
        if not self._orders:
            return IDLE
        self._client.create(make_pod(self._orders.pop(0)).build())
        return Progress(wrote=True, more=bool(self._orders))


class Played:
    """A scenario played to its end, and what a watch saw of it."""

    def __init__(
        self, scenario: ScenarioBuilder, look: Look = lambda _: None, **extra: Any
    ) -> None:
        self.cluster = ClusterWorld(controllers=with_controllers(**extra))
        recorder = TimelineRecorder(self.cluster.clock)
        self.cluster.observe(recorder)
        record = self.cluster.client(Actor("test")).create(scenario.build())
        self.statuses: list[JsonObject] = []
        self.seen: list[tuple[Moment, Any]] = []
        self._look = look
        self.cluster.store.subscribe(self._watch, [SCENARIOS])
        self.live = ScenarioResource(self.cluster.store, record)
        self.engine = Engine(self.cluster, self.live, recorder)
        self.phase = self.engine.run()

    def result(self) -> JsonObject:
        obj: JsonObject = orjson.loads(self.live.data)
        return obj

    def _watch(self, change: Change) -> None:
        status = change.record.decode()["status"]
        self.statuses.append(status)
        if "stepStatus" in status:
            self.seen.append((moment(status["stepStatus"]), self._look(self.cluster)))

    @property
    def moments(self) -> list[Moment]:
        """The moments in order; a write that changed only the result shows none."""
        found = [moment for moment, _ in self.seen]
        return [m for n, m in enumerate(found) if n == 0 or found[n - 1] != m]

    def looks_at(self, phase: str) -> list[Any]:
        return [look for (_, name, _), look in self.seen if name == phase]


def moment(status: JsonObject) -> Moment:
    step = status["step"]
    place = f"{step['major']}.{step['minor']}"
    return place, status["phase"], status["runningSimulationController"]


def with_controllers(**extra: ControllerFactory) -> ControllerRegistrations:
    registrations = builtin_controllers(ClusterOptions())
    for name, factory in extra.items():
        registrations.register(
            name,
            factory,
            component=Component.SCHEDULER if name == "prodder" else Component.CONTROLLER,
        )
    return registrations


def turn(step: str, controller: str, outcome: str) -> list[Moment]:
    """One turn of a controller: ``outcome`` is the step it wrote at, or empty if it was idle."""
    start = [(step, "OperatingCompleted", controller), (step, "ControllerRunning", controller)]
    if outcome:
        return [*start, (outcome, "ControllerPaused", controller)]
    return [*start, (step, "ControllerCompleted", controller)]


def config_map(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def bound_pods(cluster: ClusterWorld) -> list[str]:
    return [record.name for record in cluster.store.list(PODS) if record.node]


def running_pods(cluster: ClusterWorld) -> list[str]:
    return [record.name for record in cluster.store.list(PODS) if record.phase == "Running"]


TWO_PODS = ScenarioBuilder("two-pods").create(
    make_node("n").cpu("4"), make_pod("a").cpu("1"), make_pod("b").cpu("1")
)


# -- one scheduler -----------------------------------------------------------------------------


def test_each_bind_is_a_minor_step_of_its_own() -> None:
    assert Played(TWO_PODS).moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", SCHEDULER, "1.1"),
        *turn("1.1", SCHEDULER, "1.2"),
        *turn("1.2", SCHEDULER, ""),
        ("1.2", "Finished", ""),
    ]


def test_an_unschedulable_pod_moves_no_step() -> None:
    scenario = ScenarioBuilder("too-big").create(make_node("n").cpu("1"), make_pod("a").cpu("2"))
    assert Played(scenario).moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", SCHEDULER, ""),
        ("1.0", "Finished", ""),
    ]


def test_steps_without_operations_are_skipped_and_minor_begins_again() -> None:
    scenario = (
        ScenarioBuilder("gaps")
        .step(7)
        .create(make_pod("b").cpu("1"))
        .step(3)
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
    )
    assert Played(scenario).moments == [
        ("3.0", "Operating", ""),
        *turn("3.0", SCHEDULER, "3.1"),
        *turn("3.1", SCHEDULER, ""),
        ("3.1", "Finished", ""),
        ("7.0", "Operating", ""),
        *turn("7.0", SCHEDULER, "7.1"),
        *turn("7.1", SCHEDULER, ""),
        ("7.1", "Finished", ""),
    ]


def test_the_phase_of_the_scenario_goes_from_running_to_its_end() -> None:
    played = Played(TWO_PODS)
    assert {status["phase"] for status in played.statuses[:-1]} == {"Running"}
    assert played.statuses[-1]["phase"] == played.phase == ScenarioPhase.PAUSED


def test_the_status_of_the_first_draft_follows() -> None:
    expected = {
        "Operating": "Stoped",
        "OperatingCompleted": "WillRun",
        "ControllerRunning": "Running",
        "ControllerPaused": "Running",
        "ControllerCompleted": "WillStop",
        "Finished": "Stoped",
    }
    found = {
        (status["stepStatus"]["phase"], status["schedulerStatus"])
        for status in Played(TWO_PODS).statuses
        if "stepStatus" in status
    }
    assert dict(found) == expected
    assert len(found) == len(expected)


# -- visible before the work starts ------------------------------------------------------------


def test_operating_is_visible_before_the_first_operation() -> None:
    played = Played(TWO_PODS, lambda cluster: cluster.store.count(PODS))
    assert played.looks_at("Operating") == [0]
    assert played.looks_at("OperatingCompleted")[0] == 2


def test_paused_is_visible_before_the_write_that_caused_it() -> None:
    played = Played(TWO_PODS, bound_pods)
    assert played.looks_at("ControllerPaused") == [[], ["a"]]
    assert played.looks_at("OperatingCompleted") == [[], ["a"], ["a", "b"]]


def test_the_cluster_has_settled_before_the_next_controller_runs() -> None:
    played = Played(TWO_PODS, running_pods)
    assert played.looks_at("OperatingCompleted") == [[], ["a"], ["a", "b"]]


def test_the_result_of_a_step_is_there_when_it_is_finished() -> None:
    played = Played(TWO_PODS)
    finished = [s for s in played.statuses if s.get("stepStatus", {}).get("phase") == "Finished"]
    operations = [event["operation"] for event in finished[-1]["scenarioResult"]["timeline"]["1"]]
    assert operations == ["Create"] * 3 + ["Patch", "PodScheduled"] * 2


def test_a_scenario_belongs_to_no_namespace() -> None:
    assert "namespace" not in Played(ScenarioBuilder("s").done()).result()["metadata"]


# -- two simulation controllers ----------------------------------------------------------------


def test_a_write_of_the_second_controller_restarts_the_first() -> None:
    scenario = (
        ScenarioBuilder("two-controllers")
        .simulate(SCHEDULER, "orderer")
        .create(make_node("n").cpu("4"), config_map("a"))
    )
    assert Played(scenario, orderer=Orderer).moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", SCHEDULER, ""),
        *turn("1.0", "orderer", "1.1"),
        *turn("1.1", SCHEDULER, "1.2"),
        *turn("1.2", SCHEDULER, ""),
        *turn("1.2", "orderer", ""),
        ("1.2", "Finished", ""),
    ]


class Responder:
    """Watches pods and answers a failed attempt with a node, as a cluster autoscaler does."""

    name = "responder"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._helpless: list[str] = []
        context.client.watch(POD, self._changed)

    def _changed(self, change: Change) -> None:
        conditions = change.object["status"].get("conditions", ())
        if any(each.get("reason") == "Unschedulable" for each in conditions):
            self._helpless.append(change.record.name)

    def run_once(self) -> Progress:
        if not self._helpless:
            return IDLE
        node = make_node(f"for-{self._helpless.pop(0)}").cpu("4")
        self._client.create(node.build())
        return Progress(wrote=True, more=bool(self._helpless))


def test_a_failed_attempt_gives_the_controller_before_the_scheduler_its_turn() -> None:
    scenario = ScenarioBuilder("up").simulate("responder", SCHEDULER)
    small = make_node("small").cpu("100m")
    played = Played(scenario.create(small, make_pod("a").cpu("1")), responder=Responder)
    assert played.cluster.pod("a").node == "for-a"
    assert played.moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", "responder", ""),
        *turn("1.0", SCHEDULER, ""),
        *turn("1.0", "responder", "1.1"),
        *turn("1.1", "responder", ""),
        *turn("1.1", SCHEDULER, "1.2"),
        *turn("1.2", "responder", ""),
        *turn("1.2", SCHEDULER, ""),
        ("1.2", "Finished", ""),
    ]


def test_all_controllers_may_be_simulated() -> None:
    names = ("replicaset", SCHEDULER, "kubelet")
    nodes, pods = make_node("n").cpu("4"), make_replica_set("web").replicas(2)
    played = Played(ScenarioBuilder("all").simulate(*names).create(nodes, pods))
    assert played.cluster.get("replicasets", "web")["status"]["readyReplicas"] == 2


def test_three_simulation_controllers_take_turns_from_the_first_that_may_have_work() -> None:
    names = ("replicaset", SCHEDULER, "kubelet")
    nodes, pods = make_node("n").cpu("4"), make_replica_set("web").replicas(1)
    played = Played(ScenarioBuilder("all").simulate(*names).create(nodes, pods))
    assert played.moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", "replicaset", "1.1"),  # creates the pod
        *turn("1.1", "replicaset", "1.2"),  # counts it
        *turn("1.2", "replicaset", ""),
        *turn("1.2", SCHEDULER, "1.3"),
        *turn("1.3", "replicaset", ""),  # the bind changed a pod, which it watches
        *turn("1.3", SCHEDULER, ""),
        *turn("1.3", "kubelet", ""),  # the pod runs: status of a kubelet does not count,
        *turn("1.3", "replicaset", "1.4"),  # but it wakes the first: readyReplicas
        *turn("1.4", "replicaset", ""),
        *turn("1.4", SCHEDULER, ""),  # the kubelet has seen nothing new
        ("1.4", "Finished", ""),
    ]


def test_the_first_controller_finishes_before_the_second_begins() -> None:
    scenario = (
        ScenarioBuilder("order")
        .simulate("orderer", SCHEDULER)
        .create(make_node("n").cpu("4"), config_map("a"), config_map("b"))
    )
    assert Played(scenario, orderer=Orderer).moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", "orderer", "1.1"),
        *turn("1.1", "orderer", "1.2"),
        *turn("1.2", "orderer", ""),
        *turn("1.2", SCHEDULER, "1.3"),
        *turn("1.3", SCHEDULER, "1.4"),
        *turn("1.4", SCHEDULER, ""),
        ("1.4", "Finished", ""),
    ]


def test_a_presimulation_controller_writes_within_the_step() -> None:
    scenario = ScenarioBuilder("settle").create(make_node("n").cpu("4"), config_map("a"))
    played = Played(scenario, bound_pods, orderer=Orderer)
    assert played.moments == [
        ("1.0", "Operating", ""),
        *turn("1.0", SCHEDULER, "1.1"),
        *turn("1.1", SCHEDULER, ""),
        ("1.1", "Finished", ""),
    ]


def test_all_writes_of_one_loop_carry_one_minor_step() -> None:
    class Doubler(Orderer):
        name = "doubler"

        def run_once(self) -> Progress:
            if self._orders:
                order = self._orders.pop(0)
                self._client.create(make_pod(f"{order}-1").build())
                self._client.create(make_pod(f"{order}-2").build())
            return IDLE

    scenario = ScenarioBuilder("loop").simulate("doubler").create(config_map("a"))
    played = Played(scenario, doubler=Doubler)
    events = played.result()["status"]["scenarioResult"]["timeline"]["1"]
    written = [event for event in events if event["actor"] == "doubler"]
    assert [event["step"] for event in written] == [{"major": 1, "minor": 1}] * 2
    assert ("1.1", "ControllerPaused", "doubler") in played.moments


# -- nothing goes on forever -------------------------------------------------------------------


class Restless:
    """Writes every time it is asked."""

    def __init__(self, context: ControllerContext, name: str) -> None:
        self.name = name
        self._client = context.client
        self._count = 0

    def run_once(self) -> Progress:
        ref = ObjectRef(CONFIG_MAP, "bone", "default")
        if self._client.find(ref) is None:
            return IDLE
        self._count += 1
        self._client.patch(ref, {"data": {self.name: str(self._count)}})
        return Progress(wrote=True, more=False)


class Chaser(Restless):
    """Answers every write of the dog."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context, "cat")
        self._bark = self._heard = ""
        context.client.watch(CONFIG_MAP, self._hear)

    def _hear(self, change: Change) -> None:
        self._bark = (change.object.get("data") or {}).get("dog", "")

    def run_once(self) -> Progress:
        if self._bark == self._heard:
            return IDLE
        self._heard = self._bark
        return super().run_once()


def test_too_many_minor_steps_fail_and_name_the_writer() -> None:
    scenario = (
        ScenarioBuilder("livelock")
        .simulate("dog")
        .settings(maxMinorSteps=5)
        .create(config_map("bone"))
    )
    played = Played(scenario, dog=partial(Restless, name="dog"))
    assert played.phase is ScenarioPhase.FAILED
    message = played.engine.scenario.message
    assert "step 1.6" in message
    assert "more than 5 minor steps; still writing: dog (3); raise" in message


def test_two_that_answer_each_other_are_both_named_with_step_and_limit() -> None:
    scenario = (
        ScenarioBuilder("livelock")
        .simulate("dog", "replicaset")
        .settings(maxMinorSteps=40)
        .create(make_replica_set("web").replicas(3), config_map("bone"))
    )
    played = Played(scenario, dog=partial(Restless, name="dog"), cat=Chaser)
    assert played.phase is ScenarioPhase.FAILED
    message = played.engine.scenario.message
    assert message.startswith("step 1.41: more than 40 minor steps; still writing: ")
    assert "dog (" in message
    assert "cat (" in message
    assert "replicaset" not in message


def test_a_counter_of_writes_begins_anew_with_every_step() -> None:
    scenario = ScenarioBuilder("two-steps").settings(maxMinorSteps=3)
    scenario.create(make_node("n").cpu("8"), make_pod("a"), make_pod("b"), make_pod("c"))
    scenario.next_step().create(make_pod("d"), make_pod("e"), make_pod("f"))
    assert Played(scenario).phase is ScenarioPhase.PAUSED


def test_controllers_that_never_settle_fail_and_are_named() -> None:
    scenario = ScenarioBuilder("livelock").settings(maxSettleRounds=5).create(config_map("bone"))
    dogs = {name: partial(Restless, name=name) for name in ("castor", "pollux")}
    played = Played(scenario, **dogs)
    assert played.phase is ScenarioPhase.FAILED
    message = played.engine.scenario.message
    assert "did not come to rest" in message
    assert "castor (" in message
    assert "pollux (" in message
    assert "kubelet" not in message


class Flood:
    """Creates one more object every time it is asked."""

    name = "flood"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._count = 0

    def run_once(self) -> Progress:
        self._count += 1
        self._client.create(config_map(f"drop-{self._count}"))
        return Progress(wrote=True, more=False)


def test_controllers_that_create_without_end_fail_and_are_named() -> None:
    scenario = ScenarioBuilder("flood").settings(maxSettleRounds=20).create(make_node("n"))
    played = Played(scenario, flood=Flood)
    assert played.phase is ScenarioPhase.FAILED
    assert "still busy: flood (21 writes)" in played.engine.scenario.message


class Dawdler:
    """Says that there is more, and does nothing."""

    name = "dawdler"

    def __init__(self, context: ControllerContext) -> None:
        del context

    def run_once(self) -> Progress:
        return Progress(wrote=False, more=True)


def test_a_simulation_controller_that_never_ends_is_named_with_step_and_limit() -> None:
    scenario = ScenarioBuilder("slow").simulate("dawdler").settings(maxSettleRounds=20)
    played = Played(scenario.create(make_node("n")), dawdler=Dawdler)
    assert played.phase is ScenarioPhase.FAILED
    message = played.engine.scenario.message
    assert message.startswith("step 1.0: ")
    assert "allowed are 20 (maxSettleRounds) and 10 for each of" in message
    assert message.endswith("still busy: dawdler (writes nothing)")


def test_many_objects_are_no_livelock() -> None:
    scenario = ScenarioBuilder("crowd").settings(maxSettleRounds=20)
    played = Played(scenario.create(make_node("n-$(INDEX)"), count=300))
    assert played.phase is ScenarioPhase.PAUSED, played.engine.scenario.message


class Prodder:
    """A scheduler of sorts: notes on the pod's status what it sees, which moves no step."""

    name = "prodder"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._seen: list[str] = []
        context.client.watch(CONFIG_MAP, lambda change: self._seen.append(str(change.revision)))

    def run_once(self) -> Progress:
        pod = ObjectRef(GroupVersionKind("", "v1", "Pod"), "a", "default")
        if not self._seen:
            return IDLE
        self._client.patch(pod, {"status": {"message": self._seen.pop()}}, subresource="status")
        self._seen.clear()
        return Progress(wrote=True, more=False)


class Echo(Restless):
    """Answers every change of a pod with a change of the ConfigMap."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context, "echo")
        self._calls: list[Change] = []
        context.client.watch(GroupVersionKind("", "v1", "Pod"), self._calls.append)

    def run_once(self) -> Progress:
        if not self._calls:
            return IDLE
        self._calls.clear()
        return super().run_once()


def test_a_livelock_that_moves_no_step_ends_as_well() -> None:
    scenario = (
        ScenarioBuilder("echo")
        .simulate("prodder")
        .disable(SCHEDULER)
        .settings(maxMinorSteps=20)
        .create(make_pod("a"), config_map("bone"))
    )
    played = Played(scenario, prodder=Prodder, echo=Echo)
    assert played.phase is ScenarioPhase.FAILED
    message = played.engine.scenario.message
    assert "turns, more than 20 minor steps (spec.simulation.maxMinorSteps) can cause" in message
    assert "still writing: " in message
    assert "prodder (" in message
    assert "echo (" in message


# -- cost --------------------------------------------------------------------------------------


def new_bytes(previous: Any, current: Any) -> int:
    """Bytes of parts that the record before did not hold."""
    known = {id(part) for part in previous}
    return sum(sys.getsizeof(part) for part in current if id(part) not in known)


def costs_of_phase_changes(pods: int) -> list[int]:
    scenario = ScenarioBuilder("cost").create(make_node("n").cpu("64").pods("1000"))
    for n in range(pods):
        scenario = scenario.next_step().create(make_pod(f"p{n}"))
    cluster = ClusterWorld()
    recorder = TimelineRecorder(cluster.clock)
    cluster.observe(recorder)
    record = cluster.client(Actor("test")).create(scenario.build())
    payloads: list[Any] = []
    results: list[int] = []

    def watch(change: Change) -> None:
        payloads.append(change.record.payload)
        results.append(change.record.data.count(b'"operation":"'))

    cluster.store.subscribe(watch, [SCENARIOS])
    Engine(cluster, ScenarioResource(cluster.store, record), recorder).run()
    return [
        new_bytes(payloads[n - 1], payloads[n])
        for n in range(1, len(payloads))
        if results[n - 1] == results[n]
    ]


def test_a_phase_change_costs_the_same_however_long_the_timeline_is() -> None:
    few, many = costs_of_phase_changes(3), costs_of_phase_changes(40)
    assert len(many) > 200
    assert max(many) <= max(few) + 10
