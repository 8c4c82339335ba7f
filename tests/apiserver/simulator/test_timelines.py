"""The facts of a served scenario by position, and as they come."""

import json
import threading

from apiserver.http import Http
from apiserver.scenarios import SCENARIOS, add, create, play, wait
from kubescene.apiserver.server import Server
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline.log import from_lines

PAGE = "/simulator/v1/scenarios/s/timeline"
DONE = {"step": 9, "doneOperation": {}}


def scenario(pods: int = 3) -> ScenarioBuilder:
    """One that pauses, since nothing says that it is done."""
    return (
        ScenarioBuilder("s")
        .create(make_node("n").cpu("4"))
        .create(make_pod("p-$(INDEX)").cpu("1m"), count=pods)
    )


def lines(live: Http, query: str = "") -> list[bytes]:
    reply = live.get(PAGE + query)
    assert reply.status == 200, reply.body
    return reply.body.splitlines()


def test_from_the_beginning_they_are_those_of_the_file(live: Http) -> None:
    play(live, scenario())
    header, *facts = lines(live)
    assert json.loads(header)["schema"] == "kubescene.dev/timeline"
    assert lines(live, "?since=0") == facts
    assert lines(live, "?since=") == facts


def test_from_a_position_on_they_stand_for_themselves(live: Http) -> None:
    play(live, scenario())
    _, *facts = lines(live)
    for position in range(len(facts)):
        found = lines(live, f"?since={position}")
        assert len(found) == len(facts) - position
        for line, whole in zip(found, facts[position:], strict=True):
            told, known = json.loads(line), json.loads(whole)
            assert [told[name] for name in ("fact", "id", "time")] == [
                known[name] for name in ("fact", "id", "time")
            ]
            for name in ("operationOf", "objectOf", "previous"):
                assert told.get(name) is None or told[name] >= position
    assert [fact.id for fact in from_lines(lines(live, "?since=0"))] == [
        json.loads(line)["id"] for line in facts
    ]


def test_beyond_the_last_there_is_nothing(live: Http) -> None:
    play(live, scenario())
    assert lines(live, "?since=100000") == []


def test_a_position_that_is_none_is_refused(live: Http) -> None:
    play(live, scenario())
    assert live.get(f"{PAGE}?since=-1").status == 400
    assert live.get(f"{PAGE}?since=x").status == 400
    assert live.get("/simulator/v1/scenarios/other/timeline?since=0").status == 404


def test_a_run_that_is_over_is_followed_to_its_end(live: Http) -> None:
    play(live, scenario().done())
    _, *facts = lines(live)
    assert lines(live, "?since=2&follow=true")[-1] == facts[-1]
    assert len(lines(live, "?follow=true")) == len(facts)


def test_facts_are_followed_as_they_come_through_a_pause_to_the_end(live: Http) -> None:
    play(live, scenario())
    known = len(lines(live, "?since=0"))
    with live.watch(f"{PAGE}?since={known}&follow=true") as stream:
        add(live, "s", {"step": 5, "createOperation": {"object": make_pod("late").build()}})
        first = stream.next()
        assert (first["fact"], first["name"]) == ("ObjectCreated", "late")
        add(live, "s", DONE)
        rest = stream.rest()
    assert (rest[-1]["fact"], rest[-1]["phase"]) == ("ScenarioEnded", "Succeeded")
    assert 1 + len(rest) + known == len(lines(live, "?since=0"))


def test_a_scenario_that_is_deleted_ends_the_stream(live: Http) -> None:
    play(live, scenario())
    with live.watch(f"{PAGE}?since=0&follow=true") as stream:
        stream.next()
        live.delete(f"{SCENARIOS}/s")
        assert stream.rest()


def test_who_leaves_or_never_reads_harms_nobody(live: Http, live_server: Server) -> None:
    play(live, scenario(pods=400))
    for _ in range(3):
        with live.watch(f"{PAGE}?since=0&follow=true") as stream:
            stream.next()  # and leaves in the middle
    with live.watch(f"{PAGE}?since=0&follow=true"):  # never reads
        add(live, "s", {"step": 5, "createOperation": {"object": make_pod("late").build()}}, DONE)
        assert wait(live, "s", "Succeeded", "Failed")["phase"] == "Succeeded"
    assert lines(live, "?since=0&follow=true")


def test_many_follow_one_run(live: Http) -> None:
    create(live, scenario(pods=50).step(2).create(make_pod("x"), make_pod("y")))
    wait(live, "s", "Paused")
    found: list[int] = []

    def follow() -> None:
        http = Http(live.host, live.port)
        found.append(len(lines(http, "?since=0&follow=true")))
        http.close()

    followers = [threading.Thread(target=follow) for _ in range(5)]
    for each in followers:
        each.start()
    add(live, "s", DONE)
    for each in followers:
        each.join()
    assert found == [len(lines(live, "?since=0"))] * 5


def test_a_server_that_goes_away_ends_its_streams(live: Http, live_server: Server) -> None:
    play(live, scenario())
    with live.watch(f"{PAGE}?since=0&follow=true") as stream:
        stream.next()
        live_server.stop()
