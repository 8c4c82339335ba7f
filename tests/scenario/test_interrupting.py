"""Between any two moments a scenario can be looked at, edited, stopped."""

import orjson
import pytest

from kubescene.clock import ScenarioStep
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.control import IDLE, ControllerContext, Progress
from kubescene.errors import NotFoundError
from kubescene.scenario import Engine, ScenarioBuilder, ScenarioPhase
from kubescene.scenario.resource import ScenarioResource
from kubescene.shortcuts import ALL
from kubescene.testing import make_node, make_pod
from kubescene.timeline import Instrument
from playing import begun


def crowd() -> ScenarioBuilder:
    return (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("64").pods("100"))
        .create(make_pod("p-$(INDEX)").cpu("100m"), count=20)
        .next_step()
        .create(make_pod("last").cpu("100m"))
        .done()
    )


def test_every_object_and_every_loop_is_a_moment_of_its_own() -> None:
    cluster = ClusterWorld(ClusterOptions(shortcuts=ALL.one_by_one()))
    engine = begun(cluster, crowd())
    counts = [(len(cluster.list("pods")), bound(cluster)) for _ in engine.play()]
    assert {(pods, 0) for pods in range(21)} <= set(counts)
    assert {(20, placed) for placed in range(21)} <= set(counts)
    assert engine.scenario.phase is ScenarioPhase.SUCCEEDED


def bound(cluster: ClusterWorld) -> int:
    return sum("nodeName" in pod["spec"] for pod in cluster.list("pods"))


def test_an_edit_between_any_two_moments_is_kept(cluster: ClusterWorld) -> None:
    engine = begun(cluster, crowd())
    edits = 0
    for _ in engine.play():
        edits += 1
        cluster.patch("scenarios", "s", {"metadata": {"annotations": {"edit": str(edits)}}})
        stored = cluster.get("scenarios", "s")
        assert stored["metadata"]["annotations"] == {"edit": str(edits)}
    final = cluster.get("scenarios", "s")
    assert final["status"]["phase"] == "Succeeded"
    assert final["metadata"]["annotations"] == {"edit": str(edits)}
    assert len(final["spec"]["operations"]) == 4


def test_an_edit_of_the_spec_is_kept_and_the_status_goes_on(cluster: ClusterWorld) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    for _ in range(30):
        next(moments)
    operations = cluster.get("scenarios", "s")["spec"]["operations"]
    added = {"id": "late", "step": 9, "createOperation": {"object": make_pod("late").build()}}
    patch = {"spec": {"operations": [*operations, added]}}
    cluster.patch("scenarios", "s", patch)
    for _ in moments:
        pass
    final = cluster.get("scenarios", "s")
    assert final["spec"]["operations"][-1]["id"] == "late"
    assert final["status"]["phase"] == "Succeeded"
    assert list(final["status"]["scenarioResult"]["timeline"]) == ["1", "2"]


def test_a_deleted_scenario_stops_and_its_objects_stay(cluster: ClusterWorld) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    while not bound(cluster):
        next(moments)
    cluster.delete("scenarios", "s")
    for _ in moments:
        pass
    assert engine.is_over
    assert 0 < bound(cluster) < 20
    with pytest.raises(NotFoundError):
        cluster.get("scenarios", "s")
    cluster.create(make_pod("free"))  # nobody keeps outsiders away any more


def test_a_scenario_that_is_deleted_and_fails_at_once_only_stops(cluster: ClusterWorld) -> None:
    broken = crowd().step(1).create(make_pod("p-0"))
    engine = begun(cluster, broken)
    moments = engine.play()
    while len(cluster.list("pods")) < 20:
        next(moments)
    cluster.delete("scenarios", "s")
    for _ in moments:
        pass
    assert engine.is_over
    assert engine.scenario.phase is ScenarioPhase.FAILED


def test_a_scenario_of_the_same_name_is_another_one(cluster: ClusterWorld) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    next(moments)
    cluster.delete("scenarios", "s")
    cluster.create(crowd())
    for _ in moments:
        pass
    assert "status" not in cluster.get("scenarios", "s")


def test_playing_can_be_left_and_taken_up_again(cluster: ClusterWorld) -> None:
    engine = begun(cluster, crowd())
    for _ in range(10):
        next(engine.play())
    assert not engine.is_over
    assert engine.run() is ScenarioPhase.SUCCEEDED


def test_an_edit_before_the_first_moment_is_played(cluster: ClusterWorld) -> None:
    engine = begun(cluster, ScenarioBuilder("s").create(make_node("n")))
    added = {"id": "late", "step": 2, "createOperation": {"object": make_pod("late").build()}}
    operations = cluster.get("scenarios", "s")["spec"]["operations"]
    cluster.patch("scenarios", "s", {"spec": {"operations": [*operations, added]}})
    engine.run()
    assert cluster.pod("late").node == "n"


def test_a_paused_scenario_that_is_deleted_lets_others_in(cluster: ClusterWorld) -> None:
    begun(cluster, ScenarioBuilder("s").create(make_node("n"))).run()
    cluster.delete("scenarios", "s")
    cluster.create(make_pod("free"))


def test_a_reset_lets_others_in(cluster: ClusterWorld) -> None:
    begun(cluster, ScenarioBuilder("s").create(make_node("n"))).run()
    cluster.reset()
    cluster.create(make_pod("free"))


def test_two_scenarios_keep_their_own_status(cluster: ClusterWorld) -> None:
    first = begun(cluster, ScenarioBuilder("a").create(make_node("n")).done())
    second = begun(cluster, ScenarioBuilder("b").simulate("nobody").create(make_node("n")))
    assert first.run() is ScenarioPhase.SUCCEEDED
    assert second.run() is ScenarioPhase.FAILED
    phases = [cluster.get("scenarios", name)["status"]["phase"] for name in "ab"]
    assert phases == ["Succeeded", "Failed"]


def test_something_that_is_due_for_ever_ends_an_advance(cluster: ClusterWorld) -> None:
    class Again:
        name = "again"

        def __init__(self, context: ControllerContext) -> None:
            self._queue = cluster.event_queue
            context.timers.after(10**9, self._tick)

        def _tick(self) -> None:
            self._queue.after(0, self._tick)

        def run_once(self) -> Progress:
            return IDLE

    cluster.registrations.register("again", Again)
    scenario = ScenarioBuilder("s").settings(maxSettleRounds=20).advance("1m")
    engine = begun(cluster, scenario)
    assert engine.run() is ScenarioPhase.FAILED
    assert "still busy: only the event queue" in engine.scenario.message


class Forking(Instrument):
    """Copies the scenario while it is told of something."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.forks: list[Engine] = []

    def step_finished(self, step: ScenarioStep) -> None:
        assert self.engine is not None
        self.forks.append(self.engine.fork())


def test_a_fork_made_by_an_onlooker_can_be_played_on(cluster: ClusterWorld) -> None:
    onlooker = Forking()
    cluster.observe(onlooker)
    onlooker.engine = begun(cluster, crowd())
    onlooker.engine.run()
    assert [fork.run() for fork in onlooker.forks] == [ScenarioPhase.SUCCEEDED] * 2


def test_the_result_of_a_deleted_scenario_says_how_far_it_got(cluster: ClusterWorld) -> None:
    engine = begun(cluster, crowd())
    moments = engine.play()
    for _ in range(30):
        next(moments)
    step = engine.scenario.step
    cluster.delete("scenarios", "s")
    for _ in moments:
        pass
    assert isinstance(engine.scenario, ScenarioResource)
    status = orjson.loads(engine.scenario.data)["status"]
    assert status["phase"] == "Running"
    assert ScenarioStep(**status["stepStatus"]["step"]) >= step


class Failing(Instrument):
    """Cannot take the end."""

    def run_ended(self, phase: str, message: str) -> None:
        raise RuntimeError("not now")


def test_an_onlooker_that_fails_at_the_end_leaves_the_world_open(cluster: ClusterWorld) -> None:
    cluster.observe(Failing())
    engine = begun(cluster, ScenarioBuilder("s").create(make_node("n")).done())
    with pytest.raises(RuntimeError, match="not now"):
        engine.run()
    cluster.create(make_pod("free"))
