"""What a busy server has done with goes at once, and not when the garbage collector comes.

A server looks for garbage in all that it has only while nobody asks (`kubescene.garbage`). Objects
that refer to each other and that nobody else holds would stay until then, with all that they hold.
"""

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import pytest

from apiserver.http import Http
from apiserver.scenarios import SCENARIOS, TABLE, play
from kubescene.apiserver.server import Server
from kubescene.live.runs import LiveRun
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod

PODS = "/api/v1/namespaces/default/pods"
SCHEDULER = ("kubescene.scheduler", "kubescene.bounded")
"""With its dicts: the collector looks for what is left of a scheduler when its world ends."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for all: a server that ends would leave much. Those of other tests have ended before."""
    for thread in threading.enumerate():
        if thread.name == "kubescene-http":
            thread.join()
    with Server(port=0) as running:
        yield running


@pytest.fixture(autouse=True)
def uncollected(server: Server) -> Iterator[None]:
    """No look for garbage but ours."""
    come_to_rest(server)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left_by(server: Server, act: Callable[[], object]) -> list[str]:
    """The classes of ours that are found in cycles of garbage after this was done, and again."""
    act()
    come_to_rest(server)
    gc.collect()
    act()
    come_to_rest(server)
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    garbage, gc.garbage[:] = [*gc.garbage], []
    return sorted({name for name in map(name_of, tangled(garbage)) if is_ours(name)})


def come_to_rest(server: Server) -> None:
    """Nothing is on its way any more: no answer, no command, nothing in the background."""
    client = Http(server.host, server.port)
    while server.app.streams._sleepers or server.app.timelines._streams._sleepers:
        client.get("/healthz")
    server.engine.call(lambda: server.scenarios.finished.later(lambda: None))
    background = server.scenarios.finished._background
    assert background is not None
    background.submit(lambda: None).result()
    for _ in range(3):  # a task of the event loop ends some turns after its work
        client.get("/healthz")
    client.close()


def tangled(objects: list[Any]) -> list[Any]:
    """Those that refer to themselves by way of others, or stand between such ones."""
    places = {id(each): place for place, each in enumerate(objects)}
    known = {
        place: {places[id(other)] for other in gc.get_referents(each) if id(other) in places}
        for place, each in enumerate(objects)
    }
    return [objects[place] for place in without_ends(turned(without_ends(turned(known))))]


def without_ends(known: dict[int, set[int]]) -> dict[int, set[int]]:
    """Take away whoever knows nobody, and then whoever knows nobody else any more."""
    left, knowing = {place: {*others} for place, others in known.items()}, turned(known)
    ends = [place for place, others in left.items() if not others]
    while ends:
        gone = ends.pop()
        del left[gone]
        for place in knowing[gone]:
            left[place].discard(gone)
            if not left[place]:
                ends.append(place)
    return left


def turned(known: dict[int, set[int]]) -> dict[int, set[int]]:
    """By whom they are known."""
    found: dict[int, set[int]] = {place: set() for place in known}
    for place, others in known.items():
        for other in others:
            found[other].add(place)
    return found


def name_of(each: object) -> str:
    return f"{type(each).__module__}.{type(each).__qualname__}"


def is_ours(name: str) -> bool:
    return name.startswith("kubescene.") and not name.startswith(SCHEDULER)


def scenario(name: str) -> ScenarioBuilder:
    objects = [make_node("n").cpu("4"), *(make_pod(f"p-{each}").cpu("100m") for each in range(5))]
    return ScenarioBuilder(name).create(*objects).done()


class Knot:
    """Refers to itself, by way of another one."""

    def __init__(self) -> None:
        self.other = [self]


Knot.__module__ = "kubescene.knots"


def test_what_refers_to_itself_is_found(server: Server) -> None:
    assert left_by(server, Knot) == ["kubescene.knots.Knot"]


def test_a_scenario_that_was_played_and_deleted(server: Server, http: Http) -> None:
    def act() -> None:
        play(http, scenario("s"))
        http.delete(f"{SCENARIOS}/s")

    assert left_by(server, act) == []


def test_a_watch_that_its_client_has_closed(server: Server, http: Http) -> None:
    def act() -> None:
        for path, form in ((PODS, "application/json"), (SCENARIOS, TABLE)):
            with http.watch(f"{path}?watch=true", form):
                http.post(PODS, make_pod("p").build())
                http.delete(f"{PODS}/p?gracePeriodSeconds=0")
        http.close()

    assert left_by(server, act) == []


def test_a_watch_that_has_ended_by_itself(server: Server, http: Http) -> None:
    def act() -> None:
        with http.watch(f"{SCENARIOS}?watch=true&timeoutSeconds=1", TABLE) as events:
            events.rest()

    assert left_by(server, act) == []


def test_a_timeline_that_somebody_has_followed(server: Server, http: Http) -> None:
    play(http, scenario("followed"))

    def act() -> None:
        with http.watch("/simulator/v1/scenarios/followed/timeline?since=0&follow=true") as events:
            events.rest()

    assert left_by(server, act) == []


@pytest.mark.parametrize("mode", ["fixed", "faithful"])
def test_a_traffic_run(server: Server, http: Http, mode: str) -> None:
    def act() -> None:
        asked = {"run_for": 60 * 10**9, "initial_number_of_replicas": 2, "mode": mode}
        assert http.post("/run", asked).status == 200

    assert left_by(server, act) == []


def test_a_traffic_run_that_is_refused(server: Server, http: Http) -> None:
    assert left_by(server, lambda: http.post("/run", {"plugins": ["nobody.has.it"]})) == []


def test_an_import(server: Server, http: Http) -> None:
    world = {"kind": "List", "items": [make_pod(f"p-{each}").build() for each in range(5)]}
    assert left_by(server, lambda: http.post("/simulator/v1/import", world)) == []


def test_what_was_refused(server: Server, http: Http) -> None:
    def act() -> None:
        assert http.post(PODS, make_pod("Not A Name").build()).status == 422
        assert http.post("/simulator/v1/import", {"kind": "List", "items": [1]}).status == 400
        assert http.get(f"{PODS}/nobody").status == 404

    assert left_by(server, act) == []


def test_what_a_deleted_scenario_told_is_gone_but_for_its_packed_timeline(
    server: Server, http: Http
) -> None:
    play(http, scenario("s"))
    told = [ref(each) for each in records_of(server, "s")]
    revision = http.get(SCENARIOS).json["metadata"]["resourceVersion"]
    http.delete(f"{SCENARIOS}/s")
    come_to_rest(server)
    assert [each() for each in told] == [None] * len(told)
    with http.watch(f"{SCENARIOS}?watch=true&resourceVersion={revision}") as events:
        gone = events.next()
    assert gone["type"] == "DELETED"
    assert gone["object"]["status"]["scenarioResult"]["timeline"]["1"]


def test_what_a_scenario_told_that_was_deleted_while_it_was_played_is_gone(
    server: Server, http: Http
) -> None:
    play(http, ScenarioBuilder("s").create(make_node("n").cpu("4")))
    told = [ref(each) for each in records_of(server, "s")]
    http.delete(f"{SCENARIOS}/s")
    come_to_rest(server)
    assert [each() for each in told] == [None] * len(told)


def records_of(server: Server, name: str) -> Iterator[object]:
    run: LiveRun | None = server.engine.call(lambda: server.scenarios.run_named(name))
    assert run is not None
    fold = run._staged.account.fold
    yield from (run, run.log, run.engine, fold, fold.ledger)
