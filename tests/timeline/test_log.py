"""The log: read from a position, by step, by object, while it grows; copied by sharing facts."""

import copy
import gc
import weakref

import orjson
import pytest

import kubescene
from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.gates import role_without_scenario
from kubescene.clock import ScenarioStep, VirtualClock
from kubescene.cluster import Cluster
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline import (
    Fact,
    Instrument,
    Instruments,
    KepView,
    ObjectCreated,
    ObjectPatched,
    ObjectWrite,
    PodScheduled,
    PodUnscheduled,
    ScenarioEnded,
    Timeline,
    TimelineLog,
    TimelineRecorder,
)

SCENARIO = (
    ScenarioBuilder("s")
    .create(make_node("n").cpu("4"), make_pod("a").cpu("1"))
    .step(3)
    .create(make_pod("huge").cpu("64"), make_pod("b").cpu("1"))
    .advance("5m")
    .done()
)


@pytest.fixture(scope="module")
def log() -> TimelineLog:
    return kubescene.run(SCENARIO).log


def kinds(facts: list[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


def test_a_log_holds_one_fact_of_each_kind_for_each_thing(log: TimelineLog) -> None:
    bound = ["ObjectPatched", "PodScheduled"]
    assert kinds(list(log)) == [
        *["ObjectCreated"] * 2,
        *bound,
        *["ObjectCreated"] * 2,
        "Advanced",
        "Done",
        "PodUnscheduled",
        *bound,
        "ScenarioEnded",
    ]


def test_every_fact_says_in_which_role_its_actor_acted(log: TimelineLog) -> None:
    roles = {(fact.actor, fact.role) for fact in log}
    assert roles == {("scenario-engine", Role.ENGINE), ("kube-scheduler", Role.SIMULATION)}


def test_a_presimulation_scheduler_has_that_role() -> None:
    scenario = ScenarioBuilder("s").simulate("replicaset").create(make_node("n"), make_pod("a"))
    log = kubescene.run(scenario).log
    attempts = [fact for fact in log if isinstance(fact, PodScheduled)]
    assert [fact.role for fact in attempts] == [Role.PRESIMULATION]


def play_any_role(actor: Actor) -> Role:
    return Role.ENGINE if actor.name == "kube-scheduler" else role_without_scenario(actor)


def test_the_role_is_the_one_at_that_moment() -> None:
    cluster = Cluster()
    recorder = TimelineRecorder(cluster.clock, role_of=play_any_role)
    cluster.observe(recorder)
    cluster.create(make_node("n"))
    cluster.create(make_pod("a"))
    cluster.settle()
    (attempt,) = (fact for fact in recorder.log if isinstance(fact, PodScheduled))
    assert attempt.role is Role.ENGINE


def test_a_log_is_read_from_a_position(log: TimelineLog) -> None:
    assert list(log.read(3)) == list(log)[3:]
    assert list(log.read(3, 5)) == list(log)[3:5] == log[3:5]
    assert list(log.read(len(log))) == []
    assert log[-1] is list(log)[-1]


def test_a_log_is_read_by_step(log: TimelineLog) -> None:
    assert kinds(log.at(ScenarioStep(1, 1))) == ["ObjectPatched", "PodScheduled"]
    assert kinds(log.at(1)) == kinds(log[:4])
    assert log.at(2) == log.at(ScenarioStep(9, 9)) == []


def test_a_log_is_read_by_object(log: TimelineLog) -> None:
    facts = log.of_object("Pod", "default", "a")
    assert kinds(facts) == ["ObjectCreated", "ObjectPatched", "PodScheduled"]
    created = facts[0]
    assert isinstance(created, ObjectCreated)
    assert log.of_uid(created.uid) == facts
    assert kinds(log.of_object("Node", "", "n")) == ["ObjectCreated"]
    assert log.of_object("Pod", "default", "nobody") == []


def test_an_index_grows_with_the_log() -> None:
    recorder = TimelineRecorder(VirtualClock())
    assert recorder.log.at(0) == []
    recorder.record(ScenarioEnded, ENGINE, phase="Paused")
    first = recorder.log.at(0)
    recorder.record(ScenarioEnded, ENGINE, phase="Failed")
    assert len(first) == 1
    assert len(recorder.log.at(0)) == 2


def test_reading_goes_on_while_the_log_grows() -> None:
    recorder = TimelineRecorder(VirtualClock())
    recorder.record(ScenarioEnded, ENGINE, phase="Paused")
    reading = recorder.log.read()
    first = next(reading)
    recorder.record(ScenarioEnded, ENGINE, phase="Failed")
    assert [first, *reading] == list(recorder.log)


def test_followers_come_and_go() -> None:
    recorder = TimelineRecorder(VirtualClock())
    heard: list[Fact] = []
    recorder.record(ScenarioEnded, ENGINE, phase="Paused")
    recorder.log.follow(heard.append)
    recorder.record(ScenarioEnded, ENGINE, phase="Failed")
    recorder.log.unfollow(heard.append)
    recorder.record(ScenarioEnded, ENGINE, phase="Paused")
    assert heard == [recorder.log[1]]


def test_objects_are_shared_with_the_store_and_between_facts() -> None:
    run = kubescene.run(ScenarioBuilder("s").create(make_node("n").cpu("4"), make_pod("a")))
    bind, scheduled = run.log.of_object("Pod", "default", "a")[1:]
    assert isinstance(bind, ObjectPatched)
    assert isinstance(scheduled, PodScheduled)
    assert bind.record is scheduled.record


def test_instances_of_a_counted_create_share_their_operation() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n-$(INDEX)"), count=3, id="nodes")
    run = kubescene.run(scenario)
    origins = [fact.origin for fact in run.log if isinstance(fact, ObjectCreated)]
    first, *others = [origin for origin in origins if origin is not None]
    assert len(others) == 2
    assert all(other.operation is first.operation for other in others)
    shown = [event["create"]["operation"]["object"]["metadata"]["name"] for event in run.timeline]
    assert shown == ["n-0", "n-1", "n-2"]


def test_the_index_is_filled_into_the_object_alone() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n-$(INDEX)"), count=2)
    (operation,) = scenario.build()["spec"]["operations"]
    operation["createOperation"]["createOptions"] = {"fieldManager": "m-$(INDEX)"}
    events = list(kubescene.run(scenario).timeline)
    shown = [event["create"]["operation"] for event in events]
    assert [each["object"]["metadata"]["name"] for each in shown] == ["n-0", "n-1"]
    assert {each["createOptions"]["fieldManager"] for each in shown} == {"m-$(INDEX)"}


def test_without_a_count_the_index_stays_as_it_is_written() -> None:
    pod = make_pod("a").annotate({"note": "$(INDEX)"})
    (event,) = kubescene.run(ScenarioBuilder("s").create(pod)).timeline[:1]
    shown = event["create"]["operation"]["object"]["metadata"]
    assert shown["annotations"] == {"note": "$(INDEX)"}


def test_an_attempt_knows_the_one_before() -> None:
    scenario = ScenarioBuilder("s").create(make_node("small").cpu("1"), make_pod("a").cpu("2"))
    log = kubescene.run(scenario.step(2).create(make_node("large").cpu("4"))).log
    first, second = (f for f in log if isinstance(f, PodUnscheduled | PodScheduled))
    assert (first.attempt, second.attempt) == (1, 2)
    assert second.previous is first
    assert second.created_at == ScenarioStep(1, 0)
    assert second.bound_at == second.step


# -- copies ------------------------------------------------------------------------------------


def test_a_copy_shares_the_past_and_goes_on_by_itself() -> None:
    recorder = TimelineRecorder(VirtualClock())
    heard: list[Fact] = []
    recorder.log.follow(heard.append)
    recorder.record(ScenarioEnded, ENGINE, phase="Paused")
    assert len(recorder.log.at(0)) == 1
    fork = copy.deepcopy(recorder)
    fork.record(ScenarioEnded, ENGINE, phase="Failed")
    assert len(recorder.log) == 1
    assert len(fork.log) == len(fork.log.at(0)) == 2
    assert fork.log[0] is recorder.log[0]
    assert heard == list(recorder.log)
    recorder.record(ScenarioEnded, ENGINE, phase="Failed")
    assert fork.log[1].id == recorder.log[1].id
    assert fork.log[1] is not recorder.log[1]


def test_a_copied_world_goes_on_with_its_own_log() -> None:
    cluster = Cluster()
    recorder = TimelineRecorder(cluster.clock, role_of=cluster.registry.role_of)
    cluster.observe(recorder)
    cluster.create(make_node("n").cpu("1"))
    instruments, forked = copy.deepcopy((cluster.instruments, recorder))
    assert instruments.object_written == (forked.object_written,)
    assert forked.log[0] is recorder.log[0]
    cluster.create(make_pod("a"))
    assert (len(recorder.log), len(forked.log)) == (2, 1)


class Onlooker(Instrument):
    def object_written(self, write: ObjectWrite) -> None:
        raise AssertionError(f"told of {write}")


def test_who_only_looks_on_stays_with_the_original_world() -> None:
    instruments = Instruments(Onlooker())
    assert len(instruments.object_written) == 1
    assert copy.deepcopy(instruments).object_written == ()


# -- the view ----------------------------------------------------------------------------------


def test_the_timeline_can_be_indexed() -> None:
    timeline = kubescene.run(SCENARIO).timeline
    events = list(timeline)
    assert timeline[0] == events[0]
    assert timeline[-1] == events[-1]
    assert timeline[2:4] == events[2:4]
    with pytest.raises(IndexError):
        timeline[len(timeline)]


def test_facts_that_the_kep_does_not_know_have_no_event(log: TimelineLog) -> None:
    timeline = Timeline(log)
    assert len(timeline) == len(list(timeline)) == len(log) - 1
    assert "ScenarioEnded" not in {event["operation"] for event in timeline}


def test_a_view_puts_an_event_into_words_once(log: TimelineLog) -> None:
    view = KepView(log)
    first, second = list(view.events(3)), list(view.events(4))
    assert [event.data for event in second] == list(Timeline(log).lines)[:4]
    assert all(again is event for event, again in zip(first, second, strict=False))
    assert view.until(3) is view.until(3)
    assert bytes(view.until(0)) == b"{}"


def test_phases_that_show_the_same_timeline_share_its_text(log: TimelineLog) -> None:
    view = KepView(log)
    three = bytes(view.until(3))
    assert bytes(view.until(3)) is three
    assert bytes(view.until(4)) != three
    assert bytes(view.until(3)) == three


def test_a_packed_view_shows_the_same_at_every_length(log: TimelineLog) -> None:
    view, packed = KepView(log, 1), KepView(log, 1)
    before = packed.until(2)
    packed.pack()
    packed.pack()
    for stop in range(len(log) + 1):
        assert list(packed.events(stop)) == list(view.events(stop))
        assert bytes(packed.until(stop)) == bytes(view.until(stop))
    assert bytes(before) == bytes(view.until(2))
    assert bytes(copy.deepcopy(packed).until(3)) == bytes(view.until(3))


def test_a_packed_view_lets_go_of_its_log() -> None:
    log = TimelineLog(kubescene.run(SCENARIO).log)
    gone = weakref.ref(log)
    view = KepView(log)
    view.pack()
    del log
    assert gone() is None


def test_a_view_may_begin_in_the_middle(log: TimelineLog) -> None:
    shown = orjson.loads(bytes(KepView(log, 4).until(len(log))))
    assert {major: len(events) for major, events in shown.items()} == {"3": len(log) - 5}


def test_a_run_shows_itself_in_one_line() -> None:
    run = kubescene.run(SCENARIO)
    assert repr(run) == "<Run s: Succeeded, 12 facts, 2 bound>"
    assert len(repr(run.log)) < 120
    assert repr(run.timeline) == "<Timeline of 11 events>"


def test_facts_are_given_from_a_position_on() -> None:
    log = kubescene.run(ScenarioBuilder("s").create(make_node("n")).done()).log
    assert log.since(1) == [*log][1:]
    assert log.since(len(log) + 5) == []
    with pytest.raises(ValueError, match="positions begin at 0"):
        log.since(-1)


def test_a_log_that_is_closed_tells_those_who_want_to_know() -> None:
    log, heard = TimelineLog(), list[str]()

    def follower(fact: object) -> None:
        heard.append("fact")

    log.follow(follower, lambda: heard.append("closed"))
    log.close()
    log.unfollow(follower)
    log.close()
    assert (heard, log.is_closed) == (["closed"], True)


def test_a_log_goes_with_the_last_timeline_that_shows_it() -> None:
    """At once: a server that is busy looks for cycles seldom."""
    log = TimelineLog()
    view = KepView(log)
    timeline = view.until(0)
    assert view.until(0) is timeline
    gone = weakref.ref(log)
    gc.disable()
    try:
        del log, view, timeline
        assert gone() is None
    finally:
        gc.enable()
