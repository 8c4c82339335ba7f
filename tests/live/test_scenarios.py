"""Who plays and who waits, without a thread or a socket: moments are turned by hand."""

from collections.abc import Iterator, Sequence
from errno import ENOSPC
from pathlib import Path

import pytest

from kubescene.api.records import Record
from kubescene.clock import WallClock
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.control import ControllerContext, Progress
from kubescene.errors import ExpiredError, ForbiddenError
from kubescene.live import LiveScenarios
from kubescene.live.finished import FinishedRuns, files_of
from kubescene.live.runs import LiveRun, StoreRunFactory
from kubescene.live.scenarios import RECONFIGURED
from kubescene.runs.catalogue import Runs
from kubescene.runs.sinks import MemorySink
from kubescene.scenario import ScenarioBuilder
from kubescene.scenario.phases import ResultsStrategy
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject


class Stage:
    """A served world whose engine thread is the test."""

    def __init__(
        self,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        items: Sequence[JsonObject] = (),
        makes_runs: type[StoreRunFactory] = StoreRunFactory,
        catalogue: Runs | None = None,
    ) -> None:
        clock = WallClock()
        self.cluster = ClusterWorld(ClusterOptions(events=True), clock=clock, server_clock=clock)
        self.cluster.load({"kind": "List", "items": list(items)})
        self.cluster.registry.track_fields = True
        self.cluster.store.own()
        factory = makes_runs(self.cluster, results)
        self.live = LiveScenarios(self.cluster, results, factory=factory, catalogue=catalogue)
        self.live.begin()

    def settle(self) -> None:
        """Play all there is to play, as the engine thread does when no command comes."""
        self.live.look()
        while (moments := self.live.moments()) is not None:
            for _ in moments:
                self.live.look()

    def begin(self) -> Iterator[object]:
        self.live.look()
        moments = self.live.moments()
        assert moments is not None
        return moments

    def phase(self, name: str) -> str:
        status = self.cluster.get("scenarios", name).get("status", {})
        return str(status.get("phase", ""))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def simple(name: str = "s") -> ScenarioBuilder:
    return ScenarioBuilder(name).create(make_node("n").cpu("4")).create(make_pod("p").cpu("1"))


def test_nothing_is_played_when_nothing_is_there(stage: Stage) -> None:
    assert stage.live.moments() is None
    assert not stage.live.holds_world


def test_the_world_is_held_from_the_first_moment_until_somebody_writes(stage: Stage) -> None:
    stage.cluster.create(simple().done())
    stage.settle()
    assert stage.phase("s") == "Succeeded"
    assert stage.live.holds_world
    stage.cluster.patch("scenarios", "s", {"metadata": {"labels": {"a": "b"}}})
    assert not stage.live.look()
    stage.cluster.create(make_pod("after"))
    assert stage.live.look()
    assert holds(stage) is False
    assert stage.cluster.slots == []
    assert stage.cluster.options.events


def holds(stage: Stage) -> bool:
    return stage.live.holds_world


def test_owners_of_fields_are_tracked_again_after_a_scenario(stage: Stage) -> None:
    stage.cluster.create(simple().done())
    stage.settle()
    assert "managedFields" not in stage.cluster.get("pods", "p")["metadata"]
    stage.cluster.create(make_pod("a"))
    stage.live.look()
    stage.cluster.create(make_pod("b"))
    assert "managedFields" in stage.cluster.get("pods", "b")["metadata"]


def test_a_scenario_that_fails_before_it_begins_takes_nothing(stage: Stage) -> None:
    stage.cluster.create(make_node("mine"))
    stage.cluster.create(simple().simulate("nobody"))
    stage.settle()
    assert stage.phase("s") == "Failed"
    assert not stage.live.holds_world
    assert stage.cluster.node("mine").name == "mine"
    assert stage.cluster.registry.track_fields


def test_a_large_world_is_wiped_piece_by_piece(stage: Stage) -> None:
    for number in range(1200):
        stage.cluster.create(make_node(f"old-{number}"))
    stage.cluster.create(simple().done())
    moments = stage.begin()
    left = [len(stage.cluster.list("nodes")) for _ in zip(range(4), moments, strict=False)]
    assert left == [1200, 700, 200, 0]
    # Whoever comes meanwhile is told whose world it is.
    with pytest.raises(ForbiddenError, match='scenario "s" is Running'):
        stage.cluster.create(make_node("mine"))
    for _ in moments:
        pass
    assert stage.phase("s") == "Succeeded"


def test_a_scenario_deleted_while_it_wipes_gives_the_world_back(stage: Stage) -> None:
    for number in range(1200):
        stage.cluster.create(make_node(f"old-{number}"))
    stage.cluster.create(simple().done())
    moments = stage.begin()
    next(moments)
    next(moments)
    stage.cluster.delete("scenarios", "s")
    for _ in moments:
        pass
    assert len(stage.cluster.list("nodes")) == 700
    assert stage.live.holds_world
    stage.cluster.create(make_node("mine"))
    assert stage.live.look()
    assert stage.cluster.registry.track_fields


def test_a_waiting_scenario_that_is_being_deleted_is_not_played(stage: Stage) -> None:
    stage.cluster.create(simple("first"))
    stage.settle()
    held = simple("second").done().build()
    held["metadata"]["finalizers"] = ["example.com/held"]
    stage.cluster.create(held)
    stage.live.look()
    stage.cluster.delete("scenarios", "second")
    stage.cluster.delete("scenarios", "first")
    stage.settle()
    assert stage.phase("second") == "Pending"


def test_who_was_under_way_at_the_start_has_failed_and_keeps_nobody_waiting() -> None:
    old = simple("old").build() | {"status": {"phase": "Running"}}
    stage = Stage(items=[old, simple("fresh").done().build()])
    assert stage.phase("old") == "Failed"
    fresh = stage.cluster.get("scenarios", "fresh")["status"]
    assert (fresh["phase"], "message" in fresh) == ("Pending", False)
    stage.settle()
    assert stage.phase("fresh") == "Succeeded"


def test_waiting_is_told_while_another_plays(stage: Stage) -> None:
    stage.cluster.create(simple("first").done())
    moments = stage.begin()
    next(moments)
    stage.cluster.create(simple("second").done())
    stage.live.look()
    assert stage.phase("second") == "Pending"
    assert stage.phase("first") == "Running"
    for _ in moments:
        pass
    stage.settle()
    assert (stage.phase("first"), stage.phase("second")) == ("Succeeded", "Succeeded")


def test_a_changed_scheduler_makes_a_running_scenario_fail(stage: Stage) -> None:
    stage.cluster.create(simple().done())
    moments = stage.begin()
    for _ in range(4):
        next(moments)
    stage.live.fail_current()
    assert list(moments) == []
    status = stage.cluster.get("scenarios", "s")["status"]
    assert (status["phase"], status["message"]) == ("Failed", RECONFIGURED)
    assert stage.live.moments() is None


def test_a_changed_scheduler_makes_a_paused_scenario_fail(stage: Stage) -> None:
    stage.cluster.create(simple())
    stage.settle()
    with pytest.raises(ForbiddenError, match='belongs to scenario "s", which is Paused'):
        stage.live.free_world()
    stage.live.fail_current()
    assert stage.phase("s") == "Failed"
    stage.live.free_world()
    stage.cluster.create(make_pod("after"))


def test_a_controller_with_a_bug_ends_its_scenario_and_not_the_next(stage: Stage) -> None:
    class Buggy:
        name = "buggy"

        def __init__(self, context: ControllerContext) -> None:
            del context

        def run_once(self) -> Progress:
            raise ZeroDivisionError("oops")

    stage.cluster.registrations.register("buggy", Buggy)
    stage.cluster.create(simple("bad").simulate("buggy").done())
    moments = stage.begin()
    with pytest.raises(ZeroDivisionError):
        list(moments)
    assert stage.phase("bad") == "Failed"
    off = ScenarioBuilder("good").create(make_node("n")).done()
    document = off.build()
    names = [{"name": "buggy"}]
    document["spec"]["controllers"] = {
        "simulationControllers": {"enabled": [{"name": "kube-scheduler"}]},
        "presimulationControllers": {"disabled": names},
    }
    stage.cluster.create(document)
    stage.settle()
    assert stage.phase("good") == "Succeeded"


@pytest.mark.parametrize(
    ("strategy", "paused", "done"),
    [
        ("AtMovingNextStep", ["1"], ["1", "2"]),
        ("OnPause", ["1"], ["1", "2"]),
        ("OnDone", [], ["1", "2"]),
    ],
)
def test_results_are_shown_when_the_strategy_says(
    strategy: str, paused: list[str], done: list[str]
) -> None:
    stage = Stage(ResultsStrategy(strategy))
    stage.cluster.create(simple())
    stage.settle()
    assert majors(stage) == paused
    operations = stage.cluster.get("scenarios", "s")["spec"]["operations"]
    end = {"step": 2, "doneOperation": {}}
    stage.cluster.patch("scenarios", "s", {"spec": {"operations": [*operations, end]}})
    stage.settle()
    assert majors(stage) == done


def majors(stage: Stage) -> list[str]:
    resource = stage.cluster.scheme.resolve("scenarios").group_resource
    record = stage.cluster.store.get(resource, "", "s")
    assert record is not None
    return list(record.decode()["status"]["scenarioResult"]["timeline"])


def test_a_copy_of_a_served_world_plays_nothing(stage: Stage) -> None:
    stage.cluster.create(simple())
    stage.settle()
    fork = stage.cluster.fork()
    fork.patch("scenarios", "s", {"spec": {"operations": []}})
    assert stage.phase("s") == "Paused"
    assert len(stage.cluster.get("scenarios", "s")["spec"]["operations"]) == 2


def test_operations_added_during_the_last_step_are_listed_as_ignored(stage: Stage) -> None:
    """They were accepted: their author shall see that nobody played them."""
    stage.cluster.create(simple().done())
    moments = stage.begin()
    run = next(run for _ in moments if (run := stage.live.run_named("s")) and run.engine.started)
    operations = stage.cluster.get("scenarios", "s")["spec"]["operations"]
    last = operations[-1]["step"]
    while run.scenario.step.major < last:
        next(moments)
    added = [{"id": "early", "step": 1}, {"id": "late", "step": last + 1}]
    more = [{**each, "createOperation": {"object": make_node("x").build()}} for each in added]
    stage.cluster.patch("scenarios", "s", {"spec": {"operations": [*operations, *more]}})
    for _ in moments:
        stage.live.look()
    status = stage.cluster.get("scenarios", "s")["status"]
    assert status["phase"] == "Succeeded"
    assert [each["id"] for each in status["ignoredOperations"]] == ["early", "late"]
    assert run.summary().ignored == ["early", "late"]


def test_an_account_so_far_says_where_the_scenario_stands(stage: Stage) -> None:
    stage.cluster.create(simple())
    moments = stage.begin()
    run = next(run for _ in moments if (run := stage.live.run_named("s")) and run.engine.started)
    assert run.summary().phase == "Running"
    for _ in moments:
        stage.live.look()
    assert run.summary().phase == "Paused"
    operations = stage.cluster.get("scenarios", "s")["spec"]["operations"]
    more = {"step": 9, "doneOperation": {}}
    stage.cluster.patch("scenarios", "s", {"spec": {"operations": [*operations, more]}})
    next(stage.begin())
    assert run.summary().phase == "Running"


def test_the_newest_runs_are_kept_and_of_older_ones_the_timeline(stage: Stage) -> None:
    stage.live.finished.most_runs = 2
    for name in ("a", "b", "c"):
        stage.cluster.create(simple(name).done())
        stage.settle()
    shown = [stage.cluster.get("scenarios", name)["status"]["scenarioResult"] for name in "abc"]
    assert {len(each["timeline"]["1"]) for each in shown} == {len(shown[2]["timeline"]["1"])}
    assert [stage.live.run_named(name) is not None for name in "bc"] == [True, True]
    with pytest.raises(ExpiredError, match='the records of scenario "a" were dropped'):
        stage.live.run_named("a")
    assert stage.live.moments() is None
    stage.cluster.delete("scenarios", "a")
    assert stage.live.run_named("a") is None


def test_a_scenario_is_set_back_only_if_its_end_was_seen(stage: Stage) -> None:
    """A server that is not ours shows for a while what was there before its end."""
    stage.cluster.create(simple().done())
    stage.settle()
    played = stage.live.run_named("s")
    assert played is not None
    finished, uid = FinishedRuns(), played.uid
    assert not finished.is_set_back(uid, is_over=True)
    assert not finished.is_set_back(uid, is_over=False)  # never played here
    finished.add(played)
    assert not finished.is_set_back(uid, is_over=False)
    assert not finished.is_set_back(uid, is_over=True)
    assert finished.is_set_back(uid, is_over=False)
    finished.forget(uid)
    assert not finished.is_set_back(uid, is_over=False)


def test_a_large_run_leaves_room_for_no_other_but_stays_itself(stage: Stage) -> None:
    stage.live.finished.most_facts = 3
    for name in ("a", "b"):
        stage.cluster.create(simple(name).done())
        stage.settle()
    assert stage.live.run_named("b") is not None
    with pytest.raises(ExpiredError):
        stage.live.run_named("a")


def test_what_a_server_adds_to_admission_is_quiet() -> None:
    """Otherwise each status and each deletion of a pod in a server would take the long way."""
    assert Stage().cluster.registry.admission.is_quiet


def test_a_scenario_in_whose_place_another_one_is_put_is_gone(stage: Stage) -> None:
    """Whoever restores a world past the API must not leave the next ones waiting."""
    stage.cluster.create(simple("s"))
    stage.settle()
    assert stage.phase("s") == "Paused"
    stage.cluster.load({"kind": "List", "items": [simple("s").done().build()]})
    stage.cluster.create(simple("next").done())
    stage.settle()
    assert (stage.phase("s"), stage.phase("next")) == ("Succeeded", "Succeeded")


class FullDisk(MemorySink):
    """Nothing more can be written when the run has ended."""

    is_open = True

    def finish(self, *arguments: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    def close(self) -> None:
        raise OSError(ENOSPC, "No space left on device")


class OnFullDisk(StoreRunFactory):
    def run(self, record: Record) -> LiveRun:
        results = ResultsStrategy.AT_MOVING_NEXT_STEP
        return LiveRun(self._cluster, self.waiting(record), results, sink=FullDisk())


def test_a_run_that_cannot_be_kept_leaves_the_world_free(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(makes_runs=OnFullDisk)
    for name in ("first", "second"):
        stage.cluster.create(simple(name).done())
        stage.settle()
        assert stage.phase(name) == "Succeeded"
        assert not stage.live.is_playing()
    stage.cluster.create(make_node("mine"))
    stage.live.look()
    assert not stage.live.holds_world
    assert "what scenario first did could not be kept whole" in caplog.text


def test_who_waits_is_told_when_the_one_before_ends_by_itself(stage: Stage) -> None:
    """Nobody sends a command meanwhile: those who wait know who comes first all the same."""
    for scenario in (simple("first").done(), simple("second"), simple("third")):
        stage.cluster.create(scenario.build())
    for _ in stage.begin():
        pass
    told = stage.cluster.get("scenarios", "third")["status"]["message"]
    assert told == 'scenario "first" comes first'
    assert stage.live.moments() is not None
    told = stage.cluster.get("scenarios", "third")["status"]["message"]
    assert told == 'scenario "second" comes first'


def test_many_that_come_at_one_instant_come_in_many_moments(stage: Stage) -> None:
    """Whoever has a question is heard between them; the world rests when all are there."""
    pod = make_pod("p-$(INDEX)").cpu("1m").build()
    builder = ScenarioBuilder("bursts").create(make_node("n").cpu("64").memory("64Gi"))
    body = {"object": pod, "count": 900, "arrivals": {"bursts": {"every": "1m", "size": 450}}}
    scenario = builder.advance("2m").done().build()
    scenario["spec"]["operations"].insert(1, {"id": "come", "step": 1, "createOperation": body})
    stage.cluster.create(scenario)
    most, before = 0, stage.cluster.store.revision
    for _ in stage.begin():
        after = stage.cluster.store.revision
        # The world begins anew, and with it its revisions.
        most, before = max(most, after - before), after
        stage.live.look()
    assert stage.phase("bursts") == "Succeeded"
    assert len(stage.cluster.list("pods")) == 900
    assert most < 300


def test_a_scenario_without_spec_waits_for_operations(stage: Stage) -> None:
    scenario = simple("s").done().build()
    spec = scenario.pop("spec")
    stage.cluster.create(scenario)
    stage.settle()
    assert stage.phase("s") == "Paused"
    stage.cluster.patch("scenarios", "s", {"spec": spec})
    stage.settle()
    assert stage.phase("s") == "Succeeded"
    assert stage.cluster.get("pods", "p")["spec"]["nodeName"] == "n"


def test_a_run_is_kept_with_all_its_files_and_how_it_ended(tmp_path: Path) -> None:
    stage = Stage(catalogue=Runs(tmp_path))
    stage.cluster.create(simple("whole").done())
    stage.settle()
    played = stage.live.run_named("whole")
    assert played is not None
    files = {name: made() for name, made in files_of(played)}
    stage.cluster.create(simple("left"))
    stage.settle()
    assert stage.phase("left") == "Paused"
    stage.cluster.delete("scenarios", "left")
    stage.settle()
    stage.live.close()
    whole, left = sorted(Runs(tmp_path).list(), key=lambda entry: entry.number)
    assert (whole.name, whole.phase, whole.message) == ("whole", "Succeeded", "")
    assert (left.name, left.phase) == ("left", "Failed")
    assert {name: Runs(tmp_path).read(whole.id, name) for name in files} == files
    assert all(files.values())
