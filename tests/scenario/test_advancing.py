"""Time inside a step stands still; only an advance operation lets it pass."""

from typing import Any

import kubescene
from kubescene.clock import ScenarioStep, format_time, parse_time
from kubescene.cluster import Cluster
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.scenario import ScenarioBuilder, ScenarioPhase
from kubescene.testing import make_node, make_pod, make_replica_set
from kubescene.timeline import Instrument, StepPhaseChange
from kubescene.types import JsonObject

START = "2026-01-01T00:00:00Z"


def condition(obj: JsonObject, name: str) -> JsonObject:
    found: JsonObject = next(c for c in obj["status"]["conditions"] if c["type"] == name)
    return found


def slow_start(**kubelet: str) -> ScenarioBuilder:
    return (
        ScenarioBuilder("slow")
        .settings(kubelet=kubelet)
        .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
    )


def now(cluster: Cluster) -> str:
    return format_time(cluster.clock.now())


def test_without_delays_everything_happens_at_once() -> None:
    run = kubescene.run(slow_start())
    assert run.cluster.get("pods", "a")["status"]["phase"] == "Running"
    assert now(run.cluster) == START


def test_time_does_not_go_on_after_year_9999() -> None:
    scenario = ScenarioBuilder("end").settings(startTime="9999-12-31T23:00:00Z")
    scenario.create(make_node("n")).advance("59m59s").step(2).create(make_node("m"))
    assert kubescene.run(scenario).ok
    too_far = kubescene.run(scenario.advance("1s"))
    assert not too_far.ok
    assert "after year 9999" in too_far.message


def test_a_configured_delay_does_not_elapse_inside_a_step() -> None:
    run = kubescene.run(slow_start(startDelay="10s"))
    assert run.cluster.get("pods", "a")["status"]["phase"] == "Pending"
    assert now(run.cluster) == START


def test_a_configured_delay_elapses_under_an_advance() -> None:
    run = kubescene.run(slow_start(startDelay="10s").advance("1m"))
    pod = run.cluster.get("pods", "a")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["startTime"] == "2026-01-01T00:00:10Z"
    assert condition(pod, "PodScheduled")["lastTransitionTime"] == START
    assert now(run.cluster) == "2026-01-01T00:01:00Z"


def test_an_advance_shorter_than_the_delay_is_not_enough() -> None:
    run = kubescene.run(slow_start(startDelay="10s").advance("9s"))
    assert run.cluster.get("pods", "a")["status"]["phase"] == "Pending"
    run = kubescene.run(slow_start(startDelay="10s").advance("9s").next_step().advance("1s"))
    assert run.cluster.get("pods", "a")["status"]["phase"] == "Running"


def test_a_terminating_pod_leaves_its_room_when_its_time_is_over() -> None:
    scenario = (
        ScenarioBuilder("slow")
        .settings(kubelet={"terminateDelay": "20s"})
        .create(make_node("n").cpu("1"), make_pod("old").cpu("1"))
        .step(2)
        .delete("v1", "Pod", "old", namespace="default")
        .create(make_pod("new").cpu("1"))
        .step(3)
        .advance("1m")
        .done()
    )
    run = kubescene.run(scenario)
    assert run.phase is ScenarioPhase.SUCCEEDED, run.message
    bound = [e for e in run.timeline if "podScheduled" in e]
    assert [(e["step"]["major"], e["time"]) for e in bound] == [
        (1, "2026-01-01T00:00:00.000000Z"),
        (3, "2026-01-01T00:00:20.000000Z"),
    ]
    assert [pod["metadata"]["name"] for pod in run.cluster.list("pods")] == ["new"]


def test_minor_steps_continue_while_time_passes() -> None:
    scenario = (
        ScenarioBuilder("slow")
        .settings(kubelet={"terminateDelay": "20s"})
        .create(make_node("n").cpu("1"), make_pod("old").cpu("1"))
        .step(2)
        .create(make_node("m").cpu("1"), make_pod("first").cpu("1"), make_pod("second").cpu("1"))
        .delete("v1", "Pod", "old", namespace="default")
        .advance("1m")
    )
    steps = [e["step"] for e in kubescene.run(scenario).timeline if "podScheduled" in e]
    assert steps == [
        {"major": 1, "minor": 1},
        {"major": 2, "minor": 1},
        {"major": 2, "minor": 2},
    ]


def test_a_ready_pod_becomes_available_after_min_ready_seconds() -> None:
    web = make_replica_set("web").build()
    web = {**web, "spec": {**web["spec"], "minReadySeconds": 30}}
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("4"), web)
    before = kubescene.run(scenario).cluster.get("replicasets", "web")["status"]
    assert (before["readyReplicas"], before.get("availableReplicas", 0)) == (1, 0)
    after = kubescene.run(scenario.advance("30s")).cluster.get("replicasets", "web")["status"]
    assert (after["readyReplicas"], after["availableReplicas"]) == (1, 1)


class Ticker:
    """A time-driven controller: every ten seconds it has something to write."""

    name = "ticker"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._due = False
        context.timers.after(10_000_000_000, self._tick)

    def _tick(self) -> None:
        self._due = True
        self._context.timers.after(10_000_000_000, self._tick)

    def run_once(self) -> Progress:
        if not self._due:
            return IDLE
        self._due = False
        name = format_time(self._context.clock.now())[-9:-1].replace(":", "-")
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"at-{name}"}}
        self._context.client.create(obj)
        return Progress(wrote=True, more=False)


def ticking(scenario: ScenarioBuilder, *instruments: Instrument) -> kubescene.Run:
    return kubescene.run(scenario, controllers={"ticker": Ticker}, instruments=instruments)


def test_time_driven_controllers_get_every_tick_at_its_instant() -> None:
    run = ticking(ScenarioBuilder("s").simulate("ticker").create(make_node("n")).advance("35s"))
    ticks = [e for e in run.timeline if e["actor"] == "ticker"]
    assert [(e["time"][-16:-1], e["step"]["minor"]) for e in ticks] == [
        ("00:00:10.000000", 1),
        ("00:00:20.000000", 2),
        ("00:00:30.000000", 3),
    ]
    assert now(run.cluster) == "2026-01-01T00:00:35Z"


class Phases(Instrument):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def phase_changed(self, change: StepPhaseChange) -> None:
        self.seen.append((change.step, change.phase))

    def time_advanced(self, now: int) -> None:
        self.seen.append((now - parse_time(START)) // 10**9)


def test_every_due_instant_goes_through_the_phases() -> None:
    phases = Phases()
    ticking(ScenarioBuilder("s").simulate("ticker").advance("15s"), phases)
    first = phases.seen.index(10)
    assert phases.seen[first:] == [
        10,
        (ScenarioStep(1, 0), "Operating"),
        (ScenarioStep(1, 0), "OperatingCompleted"),
        (ScenarioStep(1, 0), "ControllerRunning"),
        (ScenarioStep(1, 1), "ControllerPaused"),
        (ScenarioStep(1, 1), "OperatingCompleted"),
        (ScenarioStep(1, 1), "ControllerRunning"),
        (ScenarioStep(1, 1), "ControllerCompleted"),
        (ScenarioStep(1, 1), "Finished"),
        15,
    ]


def test_time_begins_where_the_scenario_says() -> None:
    run = kubescene.run(slow_start().settings(startTime="2030-05-06T07:08:09Z"))
    pod = run.cluster.get("pods", "a")
    assert pod["metadata"]["creationTimestamp"] == "2030-05-06T07:08:09Z"
