"""Programs outside that die, hang, flood, lie or come too late: the scenario fails and says so.

Every request that was held has its answer, the server and the next scenario are unharmed.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import closing
from typing import Any

import pytest

from kubescene.api.kinds import SCENARIO
from kubescene.client import ObjectRef
from kubescene.errors import NotFoundError
from kubescene.outside.requests import PODS as POD_RESOURCE
from kubescene.types import JsonObject
from outside.puppets import (
    CONFIG_MAPS,
    EVENT,
    EVENTS,
    GO,
    HOLDER,
    LEASE,
    LEASES,
    PODS,
    Answer,
    Puppet,
    playing,
    plays_on,
    until,
)
from outside.test_schedulers_in_turns import KUBE_SCHEDULER, node, pod
from outside_runs import FAN_OUT, Stage, config_map, create, done, scenario, stage
from real_programs import require_program

STORY = [create(1, config_map("a")), done(2)]
LATE: JsonObject = {"name": "late", "timeout": "100s"}


@pytest.fixture(autouse=True)
def all_puppets_end() -> Iterator[None]:
    yield
    while Puppet.made:
        Puppet.made.pop().close()


def held_by(*others: JsonObject, story: Any = STORY, **spec: Any) -> JsonObject:
    """A scenario in which `HOLDER` has its turn until somebody makes ``go``."""
    names = [each["name"] for each in (HOLDER, *others) if each.get("kind") != "bag"]
    return scenario(story, HOLDER, *others, simulated=names, **spec)


def called(name: str, kind: str, timeout: str = "100s") -> JsonObject:
    more = {"schedulerName": "mine"} if kind == "scheduler" else {}
    return {"name": name, "kind": kind, "timeout": timeout, **more}


def attached(made: Stage, name: str, path: str = CONFIG_MAPS, product: str = "puppet") -> Puppet:
    puppet = Puppet(made, name, product)
    puppet.watch(path)
    return puppet


def delete(made: Stage) -> None:
    with closing(made.client()) as client:
        client.delete(ObjectRef(SCENARIO, "outside"))


def add_end(made: Stage) -> None:
    with closing(made.client()) as client:
        document = client.get(ObjectRef(SCENARIO, "outside"))
        document["spec"]["operations"].append(done(2))
        client.update(document)


def answers(waiting: "list[Future[Answer]]") -> list[int]:
    return [each.result().code for each in wait(waiting).done]


# -- dying ---------------------------------------------------------------------------------------


def kill(made: Stage, name: str) -> None:
    pid = made.server.engine.call(lambda: made.server.stage.program(name).pid)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def test_a_scheduler_that_is_killed_while_it_stands_still_is_named_in_anothers_turn() -> None:
    binary = require_program("kube-scheduler")
    story = [create(1, node("n", 4)), create(1, pod("p", "1")), done(2)]
    cast = scenario(story, KUBE_SCHEDULER, HOLDER, simulated=("kube-scheduler", "holder"))
    with stage() as made:
        made.start("kube-scheduler", f"{binary} {{settings}}", "scheduler")
        attached(made, "holder")
        with playing(made, cast) as play:
            play.until(lambda: play.program("holder").may_read)
            assert play.program("kube-scheduler").parkings
            kill(made, "kube-scheduler")
            run = play.end()
        assert run.phase == "Failed"
        assert run.message.startswith("controller kube-scheduler: the program was ended by SIGKILL")
        assert plays_on(made)


def test_a_scheduler_that_is_killed_while_it_works_can_be_started_again() -> None:
    binary = require_program("kube-scheduler")
    story = [
        create(1, node("n$(INDEX)", 8), count=4),
        create(2, pod("p$(INDEX)", "10m"), count=100),
        done(3),
    ]
    with stage() as made:
        made.start("kube-scheduler", f"{binary} {{settings}}", "scheduler")
        with playing(made, scenario(story, KUBE_SCHEDULER)) as play:
            until(
                lambda: (
                    sum(bool(each.node) for each in made.server.cluster.store.list(POD_RESOURCE))
                    > 3
                )
            )
            kill(made, "kube-scheduler")
            run = play.end()
        assert run.phase == "Failed"
        assert run.message.startswith("controller kube-scheduler: the program was ended by SIGKILL")
        made.start("kube-scheduler", f"{binary} {{settings}}", "scheduler")
        again = made.play(scenario([*story[:1], done(2)], KUBE_SCHEDULER, name="again"))
        assert (again.phase, again.message) == ("Succeeded", "")


def test_one_that_dies_between_scenarios_and_is_started_again_takes_part() -> None:
    outside = {"name": "fan-out", "timeout": "60s"}
    with stage({"fan-out": FAN_OUT}) as made:
        assert made.play(scenario(STORY, outside, simulated=("fan-out",))).phase == "Succeeded"
        kill(made, "fan-out")
        program = made.server.stage.program("fan-out")
        until(lambda: bool(program.last_words))
        made.start("fan-out", FAN_OUT)
        again = made.play(scenario(STORY, outside, simulated=("fan-out",), name="again"))
        assert (again.phase, again.message) == ("Succeeded", "")


@pytest.mark.parametrize("kind", ["operator", "bag", "scheduler"])
def test_one_that_nobody_supervises_and_that_has_gone_is_not_taken_for_one_at_rest(
    kind: str,
) -> None:
    gone = called("gone", kind, "1s")
    with stage() as made:
        puppet = attached(made, "gone", PODS)
        holder = attached(made, "holder")
        with playing(made, held_by(gone)) as play:
            play.until(lambda: play.program("holder").may_read)
            puppet.hang_up()
            play.until(lambda: not play.program("gone").feeds)
            assert holder.create("go").result().code == 201
            run = play.end()
        assert run.phase == "Failed"
        assert "controller gone: after 1 s it had no watch: the program has gone" in run.message
        assert plays_on(made)


def test_one_that_goes_in_the_middle_of_its_turn_is_missed() -> None:
    with stage() as made:
        puppet = attached(made, "holder")
        with playing(
            made, scenario(STORY, {**HOLDER, "timeout": "1s"}, simulated=("holder",))
        ) as play:
            play.until(lambda: play.program("holder").may_read)
            puppet.hang_up()
            run = play.end()
        assert run.phase == "Failed"
        assert "controller holder: after 1 s it had no watch" in run.message


# -- hanging ---------------------------------------------------------------------------------------


def test_one_that_is_busy_for_ever_fails_the_scenario_in_real_time() -> None:
    outside = {"name": "fan-out", "timeout": "2s"}
    story = [create(1, config_map("a", fan_out=3)), done(2)]
    with stage({"fan-out": f"{FAN_OUT} --spin-after 1"}) as made:
        run = made.play(scenario(story, outside, simulated=("fan-out",)))
        assert (run.phase, run.told_by("fan-out")) == (
            "Failed",
            [("1.1", "ObjectCreated", "a-0")],
        )
        assert "controller fan-out: after 2 s it was still busy; raise its timeout" in run.message
        assert plays_on(made)


def test_a_waiter_that_never_comes_true_says_what_is_not_yet_so() -> None:
    outside = {"name": "idle", "timeout": "1s", "waiter": {"conditions": [GO]}}
    with stage() as made:
        attached(made, "idle")
        run = made.play(scenario(STORY, outside, simulated=("idle",)))
        assert run.phase == "Failed"
        assert "controller idle: after 1 s it was still busy" in run.message
        assert "(conditions: ConfigMaps: there is no go)" in run.message
        assert plays_on(made)


def test_a_bag_that_writes_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubescene.outside.turns.bag.MOST_ROUNDS", 4)
    bag = called("bag", "bag")
    with stage() as made:
        puppet = attached(made, "bag")
        with playing(made, scenario(STORY, bag)) as play:
            play.until_in_turns("bag")
            codes = [puppet.create(f"c{number}").result().code for number in range(5)]
            run = play.end()
        assert codes == [201] * 4 + [403]
        assert run.message == (
            "controller bag: it wrote in 4 rounds one after the other, last create configmaps "
            "default/c3, and has no end"
        )
        assert plays_on(made)


def test_a_loop_that_writes_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubescene.outside.turns.operator.MOST_WRITES", 3)
    with stage({"fan-out": f"{FAN_OUT} --park"}) as made:
        story = [create(1, config_map("a", fan_out=9)), done(2)]
        run = made.play(scenario(story, {"name": "fan-out"}, simulated=("fan-out",)))
        assert run.message == (
            "controller fan-out: it wrote 4 times in one loop, without end as it seems"
        )
        assert plays_on(made)


@pytest.mark.parametrize("path", [PODS, f"{PODS}?watch=true&resourceVersion=0"])
def test_a_scheduler_that_lists_all_pods_in_the_middle_is_not_shown_them(path: str) -> None:
    with stage() as made:
        puppet = attached(made, "mine", PODS)
        document = scenario(STORY, called("mine", "scheduler"), simulated=("mine",))
        with playing(made, document) as play:
            play.until_in_turns("mine")
            puppet.later("GET", path)
            run = play.end()
        assert run.phase == "Failed"
        assert "controller mine: it wants to list all pods in the middle" in run.message
        assert plays_on(made)


# -- out of turn -----------------------------------------------------------------------------------


def test_a_write_out_of_turn_is_held_and_carried_out_in_its_turn() -> None:
    with stage() as made:
        holder, late = attached(made, "holder"), attached(made, "late")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            written = late.create("x")
            read = late.later("GET", f"{CONFIG_MAPS}/go")
            play.until_held("late", 2)
            assert late.ask("POST", LEASES, LEASE).code == 201
            assert late.ask("POST", EVENTS, EVENT).code == 201
            assert not written.done()
            assert not read.done()
            assert holder.create("go").result().code == 201
            assert (written.result().code, read.result().code) == (201, 200)
            run = play.end()
        assert (run.phase, run.message) == ("Succeeded", "")
        assert run.told_by("holder") == [("1.1", "ObjectCreated", "go")]
        assert run.told_by("late") == [("1.2", "ObjectCreated", "x")]


def test_after_its_turn_a_program_may_not_even_read() -> None:
    cast = scenario(STORY, LATE, HOLDER, simulated=("late", "holder"))
    with stage() as made:
        holder, late = attached(made, "holder"), attached(made, "late")
        with playing(made, cast) as play:
            play.until(lambda: play.program("holder").may_read)
            read = late.later("GET", f"{CONFIG_MAPS}/go")
            play.until_held("late")
            holder.create("go").result()
            assert read.result().code == 200
            assert play.end().phase == "Succeeded"


def test_of_several_writes_the_first_by_name_is_carried_out_whenever_it_came() -> None:
    with stage() as made:
        holder, late = attached(made, "holder"), attached(made, "late")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            for count, name in enumerate(("y", "x", "z"), start=1):
                late.create(name)
                play.until_held("late", count)
            holder.create("go").result()
            run = play.end()
        assert [(step, name) for step, _, name in run.told_by("late")] == [
            ("1.2", "x"),
            ("1.3", "y"),
            ("1.4", "z"),
        ]


def test_a_write_whose_sender_hangs_up_is_not_carried_out() -> None:
    with stage() as made:
        holder = attached(made, "holder")
        late, leaving = attached(made, "late"), Puppet(made, "late")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            leaving.create("lost")
            kept = late.create("kept")
            play.until_held("late", 2)
            leaving.hang_up()
            play.until(lambda: len(play.program("late").held) == 1)
            holder.create("go").result()
            assert kept.result().code == 201
            run = play.end()
        assert (run.phase, run.message) == ("Succeeded", "")
        assert run.told_by("late") == [("1.2", "ObjectCreated", "kept")]
        assert made.server.stage.program("late").passed == 0


# -- flooding ----------------------------------------------------------------------------------


def test_a_flood_fails_the_scenario_and_nothing_of_it_is_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubescene.outside.programs.MOST_HELD", 20)
    with stage() as made:
        attached(made, "holder")
        late = attached(made, "late")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            flood = [late.create(f"drop-{number}") for number in range(25)]
            run = play.end()
            codes = answers(flood)
        assert set(codes) <= {403, 429}
        assert 429 in codes
        assert run.phase == "Failed"
        assert run.message.startswith(
            "controller late: more than 20 of its requests wait at once, the last one is: create "
            "configmaps default/drop-"
        )
        assert run.told_by("late") == []
        again = made.play(scenario(STORY, LATE, simulated=("late",), name="again"))
        assert (again.phase, again.message) == ("Succeeded", "")


# -- another's identity ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kubelet", "deployment", "scenario-engine", "kube-scheduler"])
def test_who_calls_himself_like_one_of_ours_is_an_outsider(name: str) -> None:
    with stage() as made:
        holder = attached(made, "holder")
        with playing(made, held_by()) as play:
            play.until(lambda: play.program("holder").may_read)
            refused = Puppet(made, name).create("mine").result()
            holder.create("go").result()
            run = play.end()
        assert refused.code == 403
        assert f"{name} is not one of its controllers" in refused.message
        assert run.phase == "Succeeded"
        assert "mine" not in [each for _, _, each in run.told_by(name)]


@pytest.mark.parametrize("kind", ["scheduler", "bag"])
def test_another_program_in_the_name_of_a_scheduler_or_a_bag_is_found_out(kind: str) -> None:
    real = called("real", kind)
    with stage() as made:
        attached(made, "holder")
        attached(made, "real", PODS, product="kube-thing")
        with playing(made, held_by(real)) as play:
            play.until(lambda: play.program("holder").may_read)
            own = Puppet(made, "real", "kube-thing").create("own")
            play.until_held("real")
            answer = Puppet(made, "real", "kubectl").create("stolen").result()
            run = play.end()
        assert answer.code == 403
        assert run.phase == "Failed"
        assert run.message == (
            "controller real: kubectl spoke in its name (create configmaps default/stolen), which "
            "is that of kube-thing: every program needs a name of its own "
            "(kubescene kubeconfig --as NAME)"
        )
        assert own.result().code == 403
        assert plays_on(made)


def test_programs_of_one_operator_may_share_its_name() -> None:
    with stage() as made:
        holder, _ = attached(made, "holder"), attached(made, "late", product="one")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            other = Puppet(made, "late", "two").create("x")
            play.until_held("late")
            holder.create("go").result()
            assert other.result().code == 201
            assert play.end().phase == "Succeeded"


def test_a_pod_that_is_only_named_like_a_park_pod_does_no_harm() -> None:
    real = called("real", "scheduler", "1s")
    path = "/api/v1/namespaces/default/pods/kubescene-park-"
    with stage() as made:
        puppet = attached(made, "real", PODS)
        with playing(made, scenario(STORY, real, simulated=("real",))) as play:
            play.until_in_turns("real")
            strange = puppet.later("PATCH", f"{path}x/status", {})
            read = puppet.later("GET", f"{path}1")
            run = play.end()
        assert "controller real: after 1 s it had not come to a stand: it did not" in run.message
        assert strange.result().code in (403, 404)
        assert read.result().code == 200
        assert plays_on(made)


def test_who_only_reads_a_park_pod_does_not_stand_still() -> None:
    real = called("real", "scheduler", "1s")
    with stage() as made:
        puppet = attached(made, "real", PODS)
        with playing(made, scenario(STORY, real, simulated=("real",))) as play:
            play.until_in_turns("real")
            read = puppet.later("GET", "/api/v1/namespaces/default/pods/kubescene-park-1")
            run = play.end()
        assert "controller real: after 1 s it had not come to a stand: it did not" in run.message
        assert read.result().code == 200


# -- the end ---------------------------------------------------------------------------------


def test_what_comes_after_the_end_changes_nothing() -> None:
    with stage() as made:
        late = attached(made, "late")
        run = made.play(scenario(STORY, LATE, simulated=("late",)))
        assert run.phase == "Succeeded"
        before = made.server.cluster.revision
        refused = late.create("x").result()
        assert refused.code == 403
        assert 'scenario "outside" is over' in refused.message
        assert made.server.cluster.revision == before
        assert late.ask("POST", LEASES, LEASE).code == 201
        assert plays_on(made)


def test_a_scenario_that_is_deleted_answers_all_that_is_held() -> None:
    with stage() as made:
        holder, late = attached(made, "holder"), attached(made, "late")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            held = [late.create("x"), late.later("GET", f"{CONFIG_MAPS}/a")]
            play.until_held("late", 2)
            delete(made)
            assert held[0].result().code == 403
            assert held[1].result().code in (200, 404)
            assert isinstance(play.failure(), NotFoundError)
        assert holder.create("free").result().code == 201
        assert made.server.stage.called == {}
        again = made.play(scenario(STORY, LATE, simulated=("late",), name="again"))
        assert (again.phase, again.message) == ("Succeeded", "")


def test_a_server_that_ends_waits_for_nobody_who_is_held() -> None:
    with stage() as made:
        late = attached(made, "late")
        attached(made, "holder")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            held = late.create("x")
            play.until_held("late")
            made.server.stop()
            assert held.exception() is not None or held.result().code >= 400
            play.failure()


def test_an_engine_that_ends_by_itself_tells_all_who_wait() -> None:
    with stage() as made:
        late = attached(made, "late")
        holder = attached(made, "holder")
        with playing(made, held_by(LATE)) as play:
            play.until(lambda: play.program("holder").may_read)
            held = late.create("x")
            play.until_held("late")
            end_of_engine(made)
            answer = held.result()
            assert (answer.code, answer.message) == (500, "the server is shutting down")
            assert late.create("y").result().code == 500
            while holder.next_line():
                pass  # its watch ends
            play.failure()


def end_of_engine(made: Stage) -> None:
    """By a defect, not by the server, which goes on."""

    def end() -> None:
        raise SystemExit(1)

    with pytest.raises(RuntimeError, match="SystemExit"):
        made.server.engine.call(end)


def test_in_a_pause_requests_stay_held_and_go_on_with_what_is_added() -> None:
    with stage() as made:
        late = attached(made, "late")
        run = made.play(scenario(STORY[:1], LATE, simulated=("late",)))
        assert run.phase == "Paused"
        written = late.create("x")
        stage_of = made.server.stage
        until(lambda: len(stage_of.program("late").held) == 1)
        assert late.ask("POST", LEASES, LEASE).code == 201
        assert not written.done()
        add_end(made)
        assert written.result().code == 201
        until(lambda: not made.server.stage.called)


def test_one_that_parks_uncalled_goes_on_when_the_scenario_is_over() -> None:
    with stage() as made:
        stranger = Puppet(made, "stranger")
        attached(made, "holder")
        with playing(made, held_by()) as play:
            play.until(lambda: play.program("holder").may_read)
            parked = stranger.later("POST", "/simulator/v1/park", {"name": "stranger"})
            play.until(lambda: bool(play.program("stranger").parked))
            delete(made)
            assert parked.result().code == 200
            play.failure()


def test_one_that_parks_uncalled_waits_for_scenarios_without_programs_too() -> None:
    with stage() as made:
        assert made.play(scenario(STORY[:1])).phase == "Paused"
        parked = Puppet(made, "stranger").later("POST", "/simulator/v1/park", {"name": "stranger"})
        until(lambda: bool(made.server.stage.program("stranger").parked))
        add_end(made)
        assert parked.result().body["go"] is True


def test_who_parks_before_the_first_step_waits_for_its_turn() -> None:
    """Whatever it writes in a loop that goes on meanwhile is part of its first turn."""
    story = [create(1, config_map("go")), done(2)]
    two = ({"name": "early"}, {"name": "last"})
    with stage() as made:
        early, last = Puppet(made, "early"), Puppet(made, "last")
        assert early.park()["go"] is True
        with playing(made, scenario(story, *two, simulated=["early", "last"])) as play:
            play.until(lambda: play.program("early").is_gathering)
            parked = early.loop()
            play.until(lambda: bool(play.program("early").parked))
            assert play.program("early").is_open
            written = early.create("x")
            play.until_held("early")
            last.watch()
            assert written.result().code == 201
            played = play.end()
            assert parked.result() > 1
    assert (played.phase, played.message) == ("Succeeded", "")
    assert [step for step, _, name in played.told_by("early") if name == "x"] == ["1.1"]


def test_who_watches_and_parks_for_the_first_time_before_the_first_step_waits() -> None:
    with stage() as made:
        early, last = Puppet(made, "early"), Puppet(made, "last")
        early.watch()
        two = ({"name": "early"}, {"name": "last"})
        with playing(made, scenario([done(1)], *two, simulated=["early", "last"])) as play:
            play.until(lambda: play.program("early").is_gathering)
            loops = early.loop()
            play.until(lambda: bool(play.program("early").parked))
            assert play.program("early").is_open
            last.watch()
            assert play.end().phase == "Succeeded"
            assert loops.result() > 1


def test_one_that_parks_and_only_lists_is_there() -> None:
    with stage() as made:
        lister = Puppet(made, "lister")
        document = scenario([create(1, config_map("go")), done(2)], {"name": "lister"})
        with playing(made, document) as play:
            play.until(lambda: play.program("lister").is_gathering)
            loops = lister.loop()
            assert play.end().phase == "Succeeded"
            assert 1 < loops.result() < 10
