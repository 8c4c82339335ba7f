"""What takes long is done in pieces: others have their turn in between."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, config_map
from apiserver.scenarios import SCENARIOS, play
from kubescene.actors import Actor
from kubescene.api.options import WriteOptions
from kubescene.apiserver import app, bodies, engine_thread, responses
from kubescene.apiserver import server as serving
from kubescene.apiserver.kubernetes import rendering, writes
from kubescene.apiserver.responses import Response
from kubescene.apiserver.server import Server
from kubescene.apiserver.simulator import remedies
from kubescene.apiserver.simulator import scenarios as pages
from kubescene.client import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.registry import EmbeddedRegistry, custom_resources, decoding, exports
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.deltas import Delta
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.pods import PodInfo
from kubescene.store import Store
from kubescene.testing import make_node, make_pod
from kubescene.timeline import TimelineLog

ENGINE, LOOP = "kubescene-engine", "kubescene-http"


def threads_of(
    patch: pytest.MonkeyPatch, owner: object, name: str, argument: Callable[..., Any] = len
) -> list[tuple[str, Any]]:
    """Which threads call a function from now on, and something about its first argument."""
    seen: list[tuple[str, Any]] = []
    plain = getattr(owner, name)

    def noted(*arguments: Any, **options: Any) -> Any:
        seen.append((threading.current_thread().name, argument(arguments[0])))
        return plain(*arguments, **options)

    patch.setattr(owner, name, noted)
    return seen


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 25])
def test_a_large_reply_is_sent_piece_by_piece(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "PIECE", 10)
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    body = bytes(range(size))
    asyncio.run(Response(body).send(send))
    pieces = sent[1:]
    assert b"".join(each["body"] for each in pieces) == body
    assert all(len(each["body"]) <= 10 for each in pieces)
    assert [each.get("more_body", False) for each in pieces] == [True] * (len(pieces) - 1) + [False]


def test_a_large_collection_is_deleted_in_several_commands(
    http: Http, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "DELETED_AT_ONCE", 3)
    for number in range(8):
        http.request("POST", CONFIG_MAPS, config_map(f"m-{number}"))
    deletions, submit = [0], server.engine.submit
    delete = server.cluster.registry.delete

    async def counted(command: Any) -> Any:
        deletions.append(0)
        return await submit(command)

    def noted(*arguments: Any, **options: Any) -> Any:
        deletions[-1] += 1
        return delete(*arguments, **options)

    monkeypatch.setattr(server.engine, "submit", counted)
    monkeypatch.setattr(server.cluster.registry, "delete", noted)
    reply = http.request("DELETE", CONFIG_MAPS)
    assert len(reply.json["items"]) == 8
    assert [each for each in deletions if each] == [3, 3, 2]


def test_controllers_go_before_objects_do() -> None:
    world = ClusterWorld()
    world.start(list(world.registrations))
    client = world.client(Actor("author"))
    for number in range(3):
        client.create(config_map(f"m-{number}") | {"apiVersion": "v1", "kind": "ConfigMap"})
    before = world.count_objects()
    assert world.clear(2)
    assert (list(world.slots), world.count_objects()) == ([], before)
    assert world.clear(2)
    assert world.count_objects() == before - 2


KIND = {
    "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
    "kind": "Scenario",
}


def scenario(name: str = "large", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"operations": [], **spec}}


def operation(number: int, **more: Any) -> dict[str, Any]:
    pod = {"apiVersion": "v1", **make_pod(f"p-{number}").build()}
    return {"id": f"o-{number}", "step": 3, "createOperation": {"object": pod}, **more}


def test_a_large_body_is_held_against_its_schema_on_another_thread(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threads_of(monkeypatch, custom_resources, "check_embedded", lambda obj: "spec" in obj)
    operations = [operation(each) for each in range(800)]
    created = http.post(SCENARIOS, scenario(operations=operations))
    assert created.status == 201, created.message
    assert len(created.json["spec"]["operations"]) == 800
    changed = created.json | {"spec": {"operations": [*operations, operation(800)]}}
    assert http.request("PUT", f"{SCENARIOS}/large", changed).status in (200, 409)
    assert [thread for thread, whole in asked if whole and thread == ENGINE] == []
    assert [whole for thread, whole in asked if thread != ENGINE].count(True) == 2


def imported(*objects: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [*objects]}


def test_so_is_a_large_object_of_an_import(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Scenario with its timeline of forty megabytes kept the engine for two seconds."""
    asked = threads_of(monkeypatch, custom_resources, "check_embedded", lambda obj: "spec" in obj)
    body = {**KIND, **scenario(operations=[operation(each) for each in range(800)])}
    reply = http.post("/simulator/v1/import", imported(config_map_object("a"), body))
    assert reply.json == {"imported": 2}
    assert len(http.get(f"{SCENARIOS}/large").json["spec"]["operations"]) == 800
    assert [thread for thread, whole in asked if whole and thread == ENGINE] == []
    assert [whole for thread, whole in asked if thread != ENGINE].count(True) == 1


def config_map_object(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name)}


BAD = {
    "an operation that is a text": scenario(operations=["x"]),
    "a step that is a text": scenario(operations=[operation(1, step="x")]),
    "an object without a kind": scenario(
        operations=[{"step": 1, "createOperation": {"object": {"apiVersion": "v1"}}}]
    ),
    "two operations of one id": scenario(operations=[operation(1), operation(1)]),
    "a spec that is a list": {"metadata": {"name": "large"}, "spec": []},
    "a name that is none, too": scenario("Not A Name", operations=["x"]),
    "an unknown field": scenario(operations=[operation(1, other=1)]),
    "nulls": scenario(operations=[operation(1, id=None)]),
    "labels that are none": {**scenario(), "metadata": {"name": "large", "labels": {"a": 1}}},
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_what_is_wrong_with_a_body_is_told_alike_however_large_it_is(
    http: Http, body: dict[str, Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = SCENARIOS
    if method == "PUT":
        assert play(http, {**KIND, **scenario()})["phase"] == "Paused"
        path = f"{SCENARIOS}/{body['metadata']['name'].replace(' ', '%20')}"
    path += "?dryRun=All"
    small = http.request(method, path, body)
    monkeypatch.setattr(bodies, "LARGE", 0)
    large = http.request(method, path, body)
    assert (small.status, small.all("warning")) == (large.status, large.all("warning"))
    if small.status >= 400:
        assert small.json == large.json
    else:
        assert small.json["spec"] == large.json["spec"]


def new_kind() -> dict[str, Any]:
    """A definition of things."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    names = {"plural": "things", "kind": "Thing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {"group": "x.io", "scope": "Cluster", "names": names, "versions": [version]},
    }


def test_a_definition_that_changes_meanwhile_is_asked_again() -> None:
    world = ClusterWorld()
    custom, registry = world.registry.custom, world.registry
    definition = new_kind()
    spec = definition["spec"]
    version = spec["versions"][0]
    author = Actor("author")
    registry.create(author, definition)
    thing = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "a": "text"}
    kind = registry.scheme.of_kind("x.io/v1", "Thing")
    found = decoding.examination(thing, kind, custom)
    assert found is not None
    assert custom.is_current_examination(found, kind.gvk)
    stored = world.client(author).get(ObjectRef(registry.scheme.of_kind(*CRD).gvk, "things.x.io"))
    other = {**version, "schema": {"openAPIV3Schema": {"type": "object"}}}
    registry.update(author, {**stored, "spec": {**spec, "versions": [other]}})
    assert not custom.is_current_examination(found, kind.gvk)
    record = registry.create(author, thing, options=WriteOptions(examined=found))
    assert "a" not in world.store.decoded(record)


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def test_a_world_is_written_down_beside_the_engine(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = threads_of(monkeypatch, exports, "list_of")
    assert http.get("/simulator/v1/export").json["kind"] == "List"
    [(thread, count)] = written
    assert thread not in (ENGINE, LOOP)
    assert count


@pytest.mark.parametrize("accept", ["application/json", "application/yaml"])
def test_a_long_list_is_written_beside_the_event_loop(
    http: Http, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MANY", 2)
    monkeypatch.setattr(rendering, "MANY_DECODED", 2)
    for number in range(3):
        http.post(CONFIG_MAPS, config_map(f"m-{number}"))
    written = threads_of(monkeypatch, rendering.Renderer, "_whole_list", lambda renderer: 0)
    assert b"m-2" in http.get(CONFIG_MAPS, accept).body
    http.delete(f"{CONFIG_MAPS}/m-2")
    assert b"m-1" in http.get(CONFIG_MAPS, accept).body
    (long, _), (short, _) = written
    assert long not in (ENGINE, LOOP)
    assert short == LOOP


def test_a_long_log_is_read_piece_by_piece_for_who_asks_about_a_pod(
    http: Http, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "INDEXED_AT_ONCE", 2)
    create = {"step": 1, "createOperation": {"object": operation(0)["createOperation"]["object"]}}
    made = scenario(operations=[{**create, "id": "o"}, {"id": "d", "step": 1, "doneOperation": {}}])
    assert play(http, {**KIND, **made})["phase"] == "Succeeded"
    run = server.scenarios.run_named("large")
    assert run is not None
    assert len(run.log) > 2
    read = threads_of(monkeypatch, TimelineLog, "index_names", len)
    reply = http.get("/simulator/v1/scenarios/large/explain?pod=default/p-0").json
    assert (reply["known"], len(reply["attempts"])) == (True, 1)
    assert len(read) == -(-len(run.log) // 2)


def test_remedies_are_tried_beside_the_engine(
    live: Http, live_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a twin: nothing of the world itself is copied by the engine, and nothing happens in it."""
    live.post("/api/v1/nodes", make_node("n").cpu("1").build())
    live.post(PODS, make_pod("large").cpu("2").build())
    found = threads_of(monkeypatch, remedies, "find_remedies", lambda twin: twin)
    forked = threads_of(monkeypatch, ClusterWorld, "fork", lambda world: world)
    path = "/simulator/v1/remedies?pod=default/large"
    while (reply := live.get(path)).status == 409:
        pass
    assert reply.json["complete"]
    assert [each["kind"] for each in reply.json["remedies"]]
    searches = {thread for thread, _ in found}
    assert searches.isdisjoint({ENGINE, LOOP})
    assert {thread for thread, _ in forked} <= searches
    assert live_server.cluster not in [world for _, world in (*found, *forked)]
    assert live.get(PODS).json["items"][0]["spec"].get("nodeName") is None


def test_a_world_is_reset_piece_by_piece(
    http: Http, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_thread, "CLEARED_AT_ONCE", 3)
    for number in range(8):
        http.post(CONFIG_MAPS, config_map(f"m-{number}"))
    cleared = threads_of(monkeypatch, server.cluster, "clear", int)
    reply = http.request("PUT", "/simulator/v1/reset")
    assert (reply.status, reply.json["status"]) == (200, "Success")
    assert [most for _, most in cleared] == [3, 3, 3]
    assert http.get(CONFIG_MAPS).json["items"] == []
    assert http.post(CONFIG_MAPS, config_map("after")).status == 201


def test_kinds_are_there_at_every_moment_of_a_reset(
    http: Http, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers ask on another thread: nothing that is there before and after may be away."""
    scheme = server.cluster.scheme
    own = {each.gvk for each in scheme if each.custom}
    assert len(own) > 5
    missing: set[Any] = set()
    remove, create = Store.remove, EmbeddedRegistry.create

    def looking(plain: Callable[..., Any]) -> Callable[..., Any]:
        def look(*arguments: Any, **options: Any) -> Any:
            try:
                return plain(*arguments, **options)
            finally:
                missing.update(gvk for gvk in own if gvk not in scheme)

        return look

    http.post(DEFINITIONS, new_kind())
    assert http.get("/apis/x.io/v1/things").status == 200
    monkeypatch.setattr(Store, "remove", looking(remove))
    monkeypatch.setattr(EmbeddedRegistry, "create", looking(create))
    assert http.request("PUT", "/simulator/v1/reset").status == 200
    assert missing == set()
    assert {each.gvk for each in scheme if each.custom} == own
    assert http.get("/apis/x.io/v1/things").status == 404


def test_who_is_connected_is_not_kept_waiting_by_tidying(
    server: Server, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    monkeypatch.setattr(serving, "QUIET_S", 0.02)
    monkeypatch.setattr(serving, "tidy", lambda *, is_busy, is_alone: told.append(is_alone))
    http.get("/healthz")
    wait_for(lambda: len(told) > 2)
    assert not any(told)
    http.close()
    wait_for(lambda: told[-1])


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(6000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it took a minute and more")


def test_of_a_scheduler_that_was_let_go_little_is_left() -> None:
    """What is large goes at once: the garbage collector, for which all wait, has little to do."""
    gc.collect()
    others = Counter(type(each) for each in gc.get_objects())
    world = ClusterWorld()
    world.start(list(world.registrations))
    client = world.client(Actor("author"))
    for node in range(3):
        client.create(make_node(f"n-{node}").cpu("4").build())
    for number in range(20):
        client.create(make_pod(f"p-{number}").cpu("1").build())
    world.settle()
    gc.collect()
    gc.disable()
    try:
        before = Counter(type(each) for each in gc.get_objects()) - others
        assert (before[QueuedPod], before[NodeInfo], before[PodInfo] >= 20) == (8, 3, True)
        world.stop()
        after = Counter(type(each) for each in gc.get_objects()) - others
        assert (after[QueuedPod], after[NodeInfo], after[Delta]) == (0, 0, 0)
        assert after[PodInfo] < 3
    finally:
        gc.enable()


def test_a_long_reply_is_laid_out_on_another_thread_unless_it_is_very_long(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To lay out forty megabytes keeps Python's lock for half a second."""
    http.request("POST", CONFIG_MAPS, config_map("a", k="v" * 2000))
    place = f"{CONFIG_MAPS}/a"
    seen = threads_of(monkeypatch, app, "indented", lambda response: len(response.body))
    whole = http.get(f"{place}?pretty=true").body
    monkeypatch.setattr(app, "LARGE", 1000)
    assert http.get(f"{place}?pretty=true").body == whole
    assert [name == LOOP for name, _ in seen] == [True, False]
    monkeypatch.setattr(responses, "LAID_OUT", 1000)
    assert http.get(f"{place}?pretty=true").body == http.get(place).body


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_is_wrong_with_an_import_is_told_alike_however_large_it_is(
    http: Http, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    document = imported(config_map_object("a"), {**KIND, **body})
    small = http.post("/simulator/v1/import", document)
    http.request("PUT", "/simulator/v1/reset")
    monkeypatch.setattr(bodies, "LARGE", 0)
    large = http.post("/simulator/v1/import", document)
    assert (large.status, large.body) == (small.status, small.body)
