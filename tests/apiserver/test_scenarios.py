"""Scenarios as live objects of a server: KEP-140's walkthroughs over HTTP."""

import itertools
from threading import current_thread
from typing import Any

import pytest

from apiserver.http import CONFIG_MAPS, PODS, Http, Reply, config_map, pod
from apiserver.scenarios import SCENARIOS, add, changes, create, get, play, status, wait
from kubescene.apiserver.server import Server
from kubescene.clock import VirtualClock, WallClock, parse_time
from kubescene.cluster import ClusterWorld
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.timeline.views import KepTimeline
from kubescene.types import JsonObject

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
RESTARTED = "the controller restarted while the Scenario was running"


def simple(name: str = "s", pods: int = 2) -> ScenarioBuilder:
    return (
        ScenarioBuilder(name)
        .create(make_node("n").cpu("64").memory("64Gi").pods("500"))
        .create(make_pod("p-$(INDEX)").cpu("10m"), count=pods)
    )


def names(http: Http, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in http.get(path).json["items"]]


def created(step: int, obj: Any, **more: Any) -> dict[str, Any]:
    return {"step": step, "createOperation": {"object": obj}, **more}


# -- phases ------------------------------------------------------------------------------------


def phases_of(http: Http, scenario: ScenarioBuilder) -> list[tuple[str, str, str]]:
    """Phase, step and running controller of every change that a watch sees."""
    with http.watch(f"{SCENARIOS}?watch=true") as events:
        create(http, scenario)
        seen = []
        for found in changes(events, scenario.build()["metadata"]["name"]):
            step = found.get("stepStatus")
            if step and found["phase"] == "Running":
                short = (step["phase"], step["current"], step["runningSimulationController"])
                seen.append(short)
            if found.get("phase") in ("Paused", "Succeeded", "Failed"):
                assert found["phase"] == "Succeeded", found
                return seen
    raise AssertionError("unreachable")


def test_a_watch_sees_every_phase_of_one_controller(live: Http) -> None:
    scheduler = "kube-scheduler"
    assert phases_of(live, simple(pods=1).done()) == [
        ("Operating", "1.0", ""),
        ("OperatingCompleted", "1.0", scheduler),
        ("ControllerRunning", "1.0", scheduler),
        ("ControllerPaused", "1.1", scheduler),
        ("OperatingCompleted", "1.1", scheduler),
        ("ControllerRunning", "1.1", scheduler),
        ("ControllerCompleted", "1.1", scheduler),
        ("Finished", "1.1", ""),
    ]


def replica_set(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


@pytest.mark.parametrize(
    "controllers",
    [("replicaset", "kube-scheduler"), ("deployment", "replicaset", "kube-scheduler")],
    ids=["two", "three"],
)
def test_a_watch_sees_the_turns_of_several_controllers(
    live: Http, controllers: tuple[str, ...]
) -> None:
    scenario = ScenarioBuilder("s").simulate(*controllers)
    scenario.create(make_node("n").cpu("8").pods("9")).create(replica_set(1)).done()
    seen = phases_of(live, scenario)
    assert seen[0] == ("Operating", "1.0", "")
    assert seen[-1][0] == "Finished"
    turns = [step for step in seen if step[0] == "ControllerRunning"]
    assert {name for _, _, name in turns} == set(controllers)
    # Whoever writes is paused at the next minor step; the turn goes back to the first.
    paused = [step for step in seen if step[0] == "ControllerPaused"]
    writers = [name for _, _, name in paused]
    assert writers == ["replicaset", "replicaset", "kube-scheduler", "replicaset"]
    for before, after in itertools.pairwise(seen):
        if before[0] == "OperatingCompleted":
            assert after == ("ControllerRunning", *before[1:])
        if after[0] == "ControllerPaused":
            assert before[0] == "ControllerRunning"
            assert before[2] == after[2]


def test_a_phase_is_seen_before_its_work_starts(live: Http) -> None:
    """By revisions: the minor step is announced before the bind that belongs to it."""
    paused: list[int] = []
    with (
        live.watch(f"{SCENARIOS}?watch=true") as scenarios,
        live.watch(f"{PODS}?watch=true") as pods,
    ):
        create(live, simple(pods=3).done())
        while len(paused) < 3:
            seen = scenarios.next()["object"]
            if seen.get("status", {}).get("stepStatus", {}).get("phase") == "ControllerPaused":
                paused.append(int(seen["metadata"]["resourceVersion"]))
        bound: dict[str, int] = {}
        while len(bound) < 3:
            seen = pods.next()["object"]
            if seen["spec"].get("nodeName"):
                bound.setdefault(seen["metadata"]["name"], int(seen["metadata"]["resourceVersion"]))
    order = [revision for pair in zip(paused, bound.values(), strict=True) for revision in pair]
    assert order == sorted(order)


# -- the walkthroughs of the KEP -----------------------------------------------------------------


def test_all_nodes_of_a_set_are_there_before_scheduling_starts(live: Http) -> None:
    """The KEP's own example: however long the controller takes, the scheduler waits for it."""
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    node_set = {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": "pool"},
        "spec": {"replicas": 1000, "template": {"status": {"allocatable": capacity}}},
    }
    scenario = ScenarioBuilder("s").create(make_pod("p").cpu("1")).create(node_set).done()
    play(live, scenario)
    events = get(live, "s")["status"]["scenarioResult"]["timeline"]["1"]
    (scheduled,) = (event for event in events if event["operation"] == "PodScheduled")
    before = events[: events.index(scheduled)]
    made = [event for event in before if event["operation"] == "Create"]
    assert sum(event["create"]["result"]["kind"] == "Node" for event in made) == 1000
    assert {event["step"]["minor"] for event in made} == {0}


def test_what_was_left_over_is_removed_except_what_is_kept(live: Http) -> None:
    live.post(CONFIG_MAPS, config_map("left-over"))
    kept = config_map("kept")
    kept["metadata"]["annotations"] = {"kubescene.dev/keep": "true"}
    live.post(CONFIG_MAPS, kept)
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/held"]
    live.post(PODS, held)
    play(live, simple().done())
    assert names(live, CONFIG_MAPS) == ["kept"]
    assert names(live, PODS) == ["p-0", "p-1"]
    assert {"default", "kube-system"} <= set(names(live, "/api/v1/namespaces"))


def definition(plural: str) -> dict[str, Any]:
    kind = plural.capitalize()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ex.com"},
        "spec": {
            "group": "ex.com",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": plural, "kind": kind},
            "versions": [version],
        },
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_what_a_scenario_defines_is_not_there_for_the_next_one(live: Http) -> None:
    """One that brings a definition can be played again, and gives the same as in a new server."""
    assert live.post(DEFINITIONS, definition("theirs")).status == 201
    own = {"apiVersion": "ex.com/v1", "kind": "Ours", "metadata": {"name": "o"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    results = []
    for name in ("first", "second"):
        scenario = ScenarioBuilder(name).create(definition("ours"))
        scenario.create({**role, "metadata": {"name": "r"}}).next_step().create(own).done()
        found = play(live, scenario)
        assert found["phase"] == "Succeeded", found["message"]
        assert names(live, "/apis/ex.com/v1/ours") == ["o"]
        results.append(found["scenarioResult"])
    assert results[0] == results[1]
    live.post(DEFINITIONS, definition("later"))
    missing = play(live, ScenarioBuilder("third").create(own).done())
    assert 'no kind "Ours" is registered' in missing["message"]
    kept = names(live, DEFINITIONS)
    assert {"theirs.ex.com", "later.ex.com"} <= set(kept)
    assert "ours.ex.com" not in kept
    assert live.get("/apis/ex.com/v1/ours").status == 404


def test_a_second_scenario_waits_until_the_first_ends(live: Http) -> None:
    play(live, simple("first"))
    create(live, simple("second").done())
    create(live, simple("third").done())
    waiting = wait(live, "third", "Pending")
    assert status(live, "second")["message"] == 'scenario "first" comes first'
    assert waiting["message"].endswith("comes first")
    add(live, "first", {"step": 2, "doneOperation": {}})
    assert wait(live, "third", "Succeeded", "Failed")["phase"] == "Succeeded"
    phases = [status(live, name)["phase"] for name in ("first", "second", "third")]
    assert phases == ["Succeeded"] * 3
    assert "message" not in status(live, "second")


def test_scenarios_play_in_the_order_of_their_creation(live: Http) -> None:
    play(live, simple("z"))
    for name in ("c", "a", "b"):
        create(live, ScenarioBuilder(name).create(config_map(f"of-{name}")).done())
    begun: list[str] = []
    with live.watch(f"{SCENARIOS}?watch=true&resourceVersion=0") as events:
        live.delete(f"{SCENARIOS}/z")
        while len(begun) < 3:
            seen = events.next()["object"]
            name = seen["metadata"]["name"]
            if seen.get("status", {}).get("phase") == "Running" and name not in begun:
                begun.append(name)
    assert begun == ["c", "a", "b"]


def test_a_scenario_found_under_way_at_the_start_has_failed() -> None:
    cluster = ClusterWorld(clock=WallClock(), server_clock=WallClock())
    for name, phase in (("run", "Running"), ("pause", "Paused"), ("over", "Succeeded")):
        document = simple(name).build() | {"status": {"phase": phase}}
        cluster.load({"kind": "List", "items": [document]})
    with Server(cluster, port=0) as server:
        http = Http(server.host, server.port)
        for name in ("run", "pause"):
            found = wait(http, name, "Failed")
            assert found["message"] == RESTARTED
        assert status(http, "over")["phase"] == "Succeeded"
        play(http, simple("next").done())
        http.close()


def test_a_server_killed_in_the_middle_leaves_a_failed_scenario(live: Http) -> None:
    """What was exported while a scenario ran is imported by the next server."""
    long = ScenarioBuilder("long").create(make_node("n").cpu("999").pods("9999"))
    long.create(make_pod("p-$(INDEX)").cpu("1m"), count=3000).done()
    with live.watch(f"{SCENARIOS}?watch=true") as events:
        create(live, long)
        for found in changes(events, "long"):
            if found.get("stepStatus", {}).get("phase") == "ControllerPaused":
                break
        world = live.get("/simulator/v1/export").body
    cluster = ClusterWorld(clock=WallClock(), server_clock=WallClock())
    cluster.load(world)
    with Server(cluster, port=0) as server:
        http = Http(server.host, server.port)
        found = wait(http, "long", "Failed")
        assert found["message"] == RESTARTED
        assert len(names(http, PODS)) == 3000
        assert play(http, simple("next").done())["phase"] == "Succeeded"
        http.close()


def test_an_imported_scenario_that_was_under_way_has_failed(live: Http) -> None:
    timeline = {"1": [{"id": "a", "step": {"major": 1, "minor": 0}}]}
    result = {"simulatorVersion": "0", "timeline": timeline}
    document = simple("old").build()
    step = {
        "step": {"major": 3, "minor": 7},
        "current": "3.7",
        "phase": "ControllerPaused",
        "runningSimulationController": "kube-scheduler",
    }
    document |= {"status": {"phase": "Running", "stepStatus": step, "scenarioResult": result}}
    live.post("/simulator/v1/import", {"kind": "List", "items": [document]})
    found = wait(live, "old", "Failed")
    assert found["message"] == RESTARTED
    assert found["scenarioResult"]["timeline"] == timeline
    assert found["stepStatus"] == step


@pytest.mark.parametrize("phase", ["Running", "Paused"])
def test_the_state_before_its_end_of_a_played_scenario_is_imported(live: Http, phase: str) -> None:
    """It has the uid of one that this server knows to be over."""
    play(live, simple("s").done())
    document = get(live, "s")
    document["status"]["phase"] = phase
    live.post("/simulator/v1/import", {"kind": "List", "items": [document]})
    assert wait(live, "s", "Failed")["message"] == RESTARTED
    assert live.get("/simulator/v1/scenarios/s/summary").status == 404  # that was of another run


@pytest.mark.parametrize("status", [{"phase": "Pending"}, None])
def test_a_played_scenario_is_played_again_if_it_comes_back_as_it_was_before(
    live: Http, status: JsonObject | None
) -> None:
    play(live, simple("s").done())
    document = get(live, "s")
    document.pop("status")
    if status is not None:
        document["status"] = status
    live.post("/simulator/v1/import", {"kind": "List", "items": [document]})
    assert wait(live, "s", "Succeeded")["scenarioResult"]["timeline"].keys() == {"1"}
    assert live.get("/simulator/v1/scenarios/s/summary").status == 200


def test_an_imported_scenario_does_not_wipe_what_it_came_with(live: Http) -> None:
    world = {"kind": "List", "items": [config_map("theirs"), simple("waits").done().build()]}
    assert live.post("/simulator/v1/import", world).status == 200
    assert wait(live, "waits", "Failed")["message"].startswith("it came with other objects")
    assert "theirs" in names(live, CONFIG_MAPS)
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    alone = {"kind": "List", "items": [system, simple("alone").done().build()]}
    assert live.post("/simulator/v1/import", alone).status == 200
    assert wait(live, "alone", "Succeeded")["phase"] == "Succeeded"


def test_an_import_does_not_replace_the_scenario_that_is_under_way(live: Http) -> None:
    """It would go past the rules for edits, and everybody else would wait for ever."""
    play(live, simple("s"))
    found, other = get(live, "s"), simple("s", pods=3).done().build()
    for document in (other, found):
        refused = live.post("/simulator/v1/import", {"kind": "List", "items": [document]})
        assert refused.status == 403
        assert 'scenario "s" is Paused and cannot be replaced by an import' in refused.message
    assert get(live, "s") == found


def test_an_import_that_a_scenario_turns_away_leaves_nothing_behind(live: Http) -> None:
    play(live, simple("s"))
    items = [simple("other").build(), config_map("c")]
    assert live.post("/simulator/v1/import", {"kind": "List", "items": items}).status == 403
    assert names(live, SCENARIOS) == ["s"]


# -- edits ---------------------------------------------------------------------------------------


def test_a_paused_scenario_goes_on_when_operations_are_added(live: Http) -> None:
    assert play(live, simple())["phase"] == "Paused"
    worst = make_pod("worst").cpu("63").build()
    reply = add(live, "s", created(5, worst, id="worst"), {"step": 6, "doneOperation": {}})
    assert (reply.status, reply.all("warning")) == (200, [])
    found = wait(live, "s", "Succeeded", "Failed")
    assert found["phase"] == "Succeeded"
    assert list(found["scenarioResult"]["timeline"]) == ["1", "5", "6"]
    assert next(e["id"] for e in found["scenarioResult"]["timeline"]["5"]) == "worst"


def test_a_paused_scenario_can_go_on_more_than_once(live: Http) -> None:
    play(live, simple())
    for step in (2, 3):
        add(live, "s", created(step, make_pod(f"late-{step}").build()))
        with live.watch(f"{SCENARIOS}?watch=true") as events:
            for found in changes(events, "s"):
                if found["phase"] == "Paused" and found["stepStatus"]["step"]["major"] == step:
                    break
    assert list(status(live, "s")["scenarioResult"]["timeline"]) == ["1", "2", "3"]


def test_an_operation_of_a_step_that_has_passed_is_ignored_with_a_warning(live: Http) -> None:
    play(live, simple())
    reply = add(live, "s", created(1, make_pod("late").build(), id="late"))
    assert reply.status == 200
    assert reply.all("warning") == [
        "299 - \"operation 'late' is ignored: its step 1 has passed, the scenario is at step 1.2\""
    ]
    with live.watch(f"{SCENARIOS}?watch=true") as events:
        for found in changes(events, "s"):
            if ignored := found.get("ignoredOperations"):
                break
    assert ignored == [{"id": "late", "step": 1, "reason": "step 1 had passed"}]
    assert status(live, "s")["phase"] == "Paused"
    # The next edit is not warned of it again, and it stays ignored.
    reply = add(live, "s", {"step": 2, "doneOperation": {}})
    assert reply.all("warning") == []
    found = wait(live, "s", "Succeeded")
    assert [each["id"] for each in found["ignoredOperations"]] == ["late"]
    assert "late" not in names(live, PODS)


def test_operations_after_the_done_step_are_listed_as_ignored(live: Http) -> None:
    scenario = simple().done().next_step().create(make_pod("never"))
    found = play(live, scenario)
    (ignored,) = found["ignoredOperations"]
    assert (ignored["step"], ignored["reason"]) == (2, "the scenario was done at step 1")


EDITS: dict[str, tuple[Any, str]] = {
    "changed": (
        [{"op": "replace", "path": "/spec/operations/0/createOperation/count", "value": 9}],
        "operation 'op-1' of step 1 has started and is part of what happened: it cannot be changed",
    ),
    "moved": (
        [{"op": "replace", "path": "/spec/operations/0/step", "value": 7}],
        "cannot be changed",
    ),
    "removed": ([{"op": "remove", "path": "/spec/operations/1"}], "cannot be removed"),
    "in front": (
        [{"op": "add", "path": "/spec/operations/0", "value": {"step": 9, "doneOperation": {}}}],
        "cannot be changed",
    ),
    "controllers": (
        [{"op": "add", "path": "/spec/controllers", "value": {"simulationControllers": {}}}],
        "spec.controllers: Forbidden: controllers cannot be changed once the scenario has started",
    ),
    "simulation": (
        [{"op": "add", "path": "/spec/simulation", "value": {"seed": 7}}],
        "spec.simulation: Forbidden: simulation cannot be changed once the scenario has started",
    ),
    "malformed": (
        [{"op": "add", "path": "/spec/operations/-", "value": {"id": "bad", "step": 3}}],
        "spec: Forbidden: the scenario is Paused and would fail: spec.operations[2] (id 'bad')",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_has_started_cannot_be_edited(live: Http, edit: str) -> None:
    patch, why = EDITS[edit]
    play(live, simple())
    before = get(live, "s")
    refused = live.patch(f"{SCENARIOS}/s", patch, "json-patch+json")
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert why in refused.message
    assert get(live, "s") == before


@pytest.mark.parametrize("done", [True, False], ids=["Succeeded", "Failed"])
def test_a_scenario_that_is_over_takes_no_more_operations(live: Http, done: bool) -> None:
    scenario = simple().done() if done else simple().create(make_node("n"))
    phase = play(live, scenario)["phase"]
    refused = add(live, "s", {"step": 9, "doneOperation": {}})
    assert refused.status == 422
    assert f"the scenario is {phase}: create another one to play more" in refused.message


def test_a_waiting_scenario_can_be_edited_freely(live: Http) -> None:
    play(live, simple("first"))
    create(live, simple("second"))
    wait(live, "second", "Pending")
    spec = ScenarioBuilder("x").settings(seed=3).create(config_map("other")).done().build()["spec"]
    assert live.patch(f"{SCENARIOS}/second", {"spec": spec}).status == 200
    live.delete(f"{SCENARIOS}/first")
    assert wait(live, "second", "Succeeded", "Failed")["phase"] == "Succeeded"
    assert names(live, CONFIG_MAPS) == ["other"]


def test_labels_of_a_scenario_that_is_over_can_be_edited_and_its_result_stays(live: Http) -> None:
    play(live, simple().done())
    before = get(live, "s")["status"]
    live.patch(f"{SCENARIOS}/s", {"metadata": {"labels": {"a": "b"}}})
    after = get(live, "s")
    assert after["metadata"]["labels"] == {"a": "b"}
    assert after["status"] == before
    assert before["scenarioResult"]["timeline"]["1"]


def test_nobody_but_the_engine_writes_the_status(live: Http) -> None:
    play(live, simple().done())
    refused = live.patch(f"{SCENARIOS}/s/status", {"status": {"phase": "Pending"}})
    assert refused.status == 403
    assert "written by the engine that plays it" in refused.message
    assert status(live, "s")["phase"] == "Succeeded"


# -- deleting ------------------------------------------------------------------------------------


def test_a_scenario_deleted_while_it_runs_stops_and_the_next_one_starts(live: Http) -> None:
    long = ScenarioBuilder("long").create(make_node("n").cpu("999").pods("9999"))
    long.create(make_pod("p-$(INDEX)").cpu("1m"), count=5000).done()
    with live.watch(f"{SCENARIOS}?watch=true") as events:
        create(live, long)
        for found in changes(events, "long"):
            if found.get("stepStatus", {}).get("phase") == "ControllerPaused":
                break
        create(live, ScenarioBuilder("next").create(config_map("next")))
        live.delete(f"{SCENARIOS}/long")
        assert wait(live, "next")["phase"] == "Paused"
    assert live.get(f"{SCENARIOS}/long").status == 404


def test_the_objects_of_a_deleted_scenario_stay(live: Http) -> None:
    long = ScenarioBuilder("long").create(make_node("n").cpu("999").pods("99999"))
    long.create(make_pod("p-$(INDEX)").cpu("1m"), count=12_000).done()
    with live.watch(f"{SCENARIOS}?watch=true") as events:
        create(live, long)
        for found in changes(events, "long"):
            if found.get("stepStatus", {}).get("phase") == "ControllerPaused":
                break
        live.delete(f"{SCENARIOS}/long")
    bound = [item["spec"].get("nodeName") for item in live.get(PODS).json["items"]]
    assert len(bound) == 12_000
    assert 0 < sum(map(bool, bound)) < 12_000
    # The world stands still as it was left, and whoever writes brings it back to life.
    assert [item["spec"].get("nodeName") for item in live.get(PODS).json["items"]] == bound
    with live.watch(f"{PODS}?watch=true&resourceVersion=0") as pods:
        assert live.post(CONFIG_MAPS, config_map("thaw")).status == 201
        while True:
            event = pods.next()
            if event["type"] == "MODIFIED" and event["object"]["spec"].get("nodeName"):
                break


@pytest.mark.parametrize("policy", ["Foreground", "Orphan"])
@pytest.mark.parametrize("is_done", [True, False], ids=["over", "paused"])
def test_a_scenario_goes_at_once_whatever_its_deletion_policy(
    live: Http, policy: str, is_done: bool
) -> None:
    """The garbage collector stands still: ``kubectl delete --cascade=foreground`` would hang."""
    play(live, simple().done() if is_done else simple())
    assert live.delete(f"{SCENARIOS}/s?propagationPolicy={policy}").status == 200
    assert live.get(f"{SCENARIOS}/s").status == 404


def test_a_deleted_paused_scenario_lets_others_in(live: Http) -> None:
    play(live, simple())
    assert live.post(CONFIG_MAPS, config_map("c")).status == 403
    live.delete(f"{SCENARIOS}/s")
    assert live.post(CONFIG_MAPS, config_map("c")).status == 201


def test_a_scenario_with_a_finalizer_stops_when_it_is_deleted(live: Http) -> None:
    scenario = simple().build()
    scenario["metadata"]["finalizers"] = ["example.com/held"]
    play(live, scenario)
    live.delete(f"{SCENARIOS}/s")
    assert wait(live, "s", "Failed")["message"] == "the Scenario was deleted while it was played"
    assert live.post(CONFIG_MAPS, config_map("c")).status == 201


def test_operations_that_were_played_keep_their_order(live: Http) -> None:
    """Two of one step in another order would be another scenario than the one that was played."""
    operations = [created(1, pod(name), id=name) for name in "abc"]
    operations.append(created(2, pod("d"), id="d"))
    document = simple("s").build()
    document["spec"]["operations"] = operations
    play(live, document)
    found = get(live, "s")
    a, b, c, d = found["spec"]["operations"]
    found["spec"]["operations"] = [a, c, b, d]
    refused = live.put(f"{SCENARIOS}/s", found)
    assert refused.status == 422
    assert "the operations of step 1 have started: their order cannot be changed" in refused.message
    found["spec"]["operations"] = [d, a, b, c]  # steps may stand in any order
    assert live.put(f"{SCENARIOS}/s", found).status == 200


def applied(http: Http, name: str, manager: str, operations: list[Any]) -> Reply:
    kind = {"apiVersion": SCENARIOS.split("/", 2)[2].rpartition("/")[0], "kind": "Scenario"}
    body = {**kind, "metadata": {"name": name}, "spec": {"operations": operations}}
    return http.patch(f"{SCENARIOS}/{name}?fieldManager={manager}", body, "apply-patch+yaml")


def test_who_wrote_a_scenario_is_known_also_while_one_is_played(live: Http) -> None:
    """Otherwise an apply would drop what others have added, without a word."""
    play(live, simple("first"))
    create(live, simple("second"))
    (entry,) = get(live, "second")["metadata"]["managedFields"]
    assert entry["operation"] == "Update"
    mine = get(live, "second")["spec"]["operations"]
    refused = applied(live, "second", "somebody", [*mine, {"step": 7, "doneOperation": {}}])
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert ".spec.operations" in refused.message


def test_the_write_that_wakes_the_world_has_an_owner(live: Http) -> None:
    play(live, simple().done())
    reply = live.post(CONFIG_MAPS, config_map("first", a="b"))
    assert [entry["operation"] for entry in reply.json["metadata"]["managedFields"]] == ["Update"]


def test_a_dry_run_shows_a_scenario_with_its_result(live: Http) -> None:
    """``kubectl diff`` would tell that the timeline goes."""
    play(live, simple())
    found = get(live, "s")
    patch = [{"op": "add", "path": "/spec/operations/-", "value": {"step": 3, "doneOperation": {}}}]
    tried = live.patch(f"{SCENARIOS}/s?dryRun=All", patch, "json-patch+json").json
    assert tried["status"] == found["status"]
    assert len(tried["spec"]["operations"]) == len(found["spec"]["operations"]) + 1
    assert get(live, "s") == found


def test_the_result_does_not_say_who_wrote_the_scenario_and_when(live: Http) -> None:
    """In a fresh server owners are noted from the beginning, in a file they are not."""
    play(live, simple())
    assert "managedFields" in get(live, "s")["metadata"]
    assert "managedFields" not in live.get("/simulator/v1/scenarios/s/result").json["metadata"]


# -- outsiders, and the frozen world ---------------------------------------------------------------


def test_outsiders_are_refused_while_a_scenario_is_paused(live: Http) -> None:
    play(live, simple())
    refusals = {
        "create": live.post(CONFIG_MAPS, config_map("c")),
        "patch": live.patch("/api/v1/nodes/n", {"metadata": {"labels": {"a": "b"}}}),
        "delete": live.delete(f"{PODS}/p-0"),
        "bind": live.post(f"{PODS}/p-0/eviction", {"metadata": {"name": "p-0"}}),
        "import": live.post("/simulator/v1/import", {"kind": "List", "items": [pod("x")]}),
        "reset": live.put("/simulator/v1/reset", {}),
    }
    for verb, reply in refusals.items():
        assert (verb, reply.status) == (verb, 403)
        assert '"s"' in reply.message


def test_reading_is_for_everybody(live: Http) -> None:
    play(live, simple())
    assert names(live, PODS) == ["p-0", "p-1"]
    with live.watch(f"{PODS}?watch=true") as events:
        assert events.take(2) == [("ADDED", "p-0"), ("ADDED", "p-1")]


def test_the_world_stands_still_after_a_scenario_until_somebody_writes(live: Http) -> None:
    """Pods that start a minute after they were bound never do, until the world wakes up."""
    delays = {"startDelay": "1s"}
    play(live, simple().settings(kubelet=delays).done())
    with live.watch(f"{PODS}?watch=true&resourceVersion=0&timeoutSeconds=2") as events:
        seen = events.rest()
    assert {event["object"]["status"]["phase"] for event in seen} == {"Pending"}
    assert len(seen) == 2
    with live.watch(f"{PODS}?watch=true&resourceVersion=0") as events:
        live.post(CONFIG_MAPS, config_map("thaw"))
        while events.next()["object"]["status"]["phase"] != "Running":
            pass


def test_a_scenario_finds_nothing_of_what_a_served_world_has(live: Http) -> None:
    def found() -> list[str]:
        paths = (
            CONFIG_MAPS,
            *(f"/api/v1/namespaces/default/{it}" for it in ("services", "endpoints")),
        )
        return [each["metadata"]["name"] for path in paths for each in live.get(path).json["items"]]

    furnished = ["kube-root-ca.crt", "kubernetes", "kubernetes"]
    while found() != furnished:
        pass
    play(live, simple().create(make_node("n")).done())
    assert found() == []
    node = live.get("/api/v1/nodes/n").json
    assert "kubernetes.io/os" not in (node["metadata"].get("labels") or {})
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""
    live.post(CONFIG_MAPS, config_map("thaw"))
    while found() != [furnished[0], "thaw", *furnished[1:]]:
        pass


def test_the_served_world_goes_on_from_the_time_of_the_scenario(live: Http) -> None:
    play(live, simple().settings(startTime="2031-05-01T00:00:00Z").done())
    live.post(CONFIG_MAPS, config_map("c"))
    live.post(CONFIG_MAPS, config_map("d"))
    made = live.get(f"{CONFIG_MAPS}/d").json["metadata"]["creationTimestamp"]
    assert made.startswith("2031-05-01T00:0")
    live.put("/simulator/v1/reset", {})
    live.post(CONFIG_MAPS, config_map("e"))
    made = live.get(f"{CONFIG_MAPS}/e").json["metadata"]["creationTimestamp"]
    assert abs(parse_time(made) - WallClock().now()) < 3600 * 10**9


def test_a_reset_brings_the_definition_back(live: Http) -> None:
    play(live, simple().done())
    live.put("/simulator/v1/reset", {})
    assert names(live, SCENARIOS) == []
    assert play(live, simple().done())["phase"] == "Succeeded"


# -- the clock -------------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", [WallClock(), VirtualClock(7 * 10**9)], ids=["wall", "virtual"])
def test_a_scenario_is_played_on_virtual_time(clock: WallClock | VirtualClock) -> None:
    with Server(ClusterWorld(clock=clock), port=0) as server:
        http = Http(server.host, server.port)
        scenario = simple().settings(kubelet={"startDelay": "10m"}).advance("2h").done()
        found = play(http, scenario)
        last = found["scenarioResult"]["timeline"]["1"][-1]
        assert last["time"] == "2026-01-01T00:00:00.000000Z"
        started = http.get(f"{PODS}/p-0").json["status"]["startTime"]
        assert started == "2026-01-01T00:10:00Z"
        scenario_made = get(http, "s")["metadata"]["creationTimestamp"]
        assert abs(parse_time(scenario_made) - WallClock().now()) < 3600 * 10**9
        http.close()


def test_time_cannot_be_told_to_move_while_a_scenario_is_paused() -> None:
    with Server(ClusterWorld(clock=VirtualClock()), port=0) as server:
        http = Http(server.host, server.port)
        play(http, simple())
        refused = http.post("/simulator/v1/advance", {"duration": "1m"})
        assert refused.status == 403
        assert 'scenario "s"' in refused.message
        http.delete(f"{SCENARIOS}/s")
        moved = http.post("/simulator/v1/advance", {"duration": "1m"})
        assert moved.json == {"now": "2026-01-01T00:01:00.000000Z"}
        http.close()


# -- what it looks like ----------------------------------------------------------------------------


def test_the_table_shows_phase_step_and_controller(live: Http) -> None:
    play(live, simple().done())
    table = live.get(SCENARIOS, TABLE).json
    columns = [column["name"] for column in table["columnDefinitions"]]
    assert columns == ["Name", "Phase", "Step", "StepPhase", "Controller", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:5] == ["s", "Succeeded", "1.2", "Finished", ""]
    assert row["cells"][5].endswith("s")
    assert "spec" not in row["object"]


def test_a_table_may_hold_whole_objects(live: Http) -> None:
    play(live, simple().done())
    row = live.get(f"{SCENARIOS}?includeObject=Object", TABLE).json["rows"][0]
    assert row["object"]["status"]["scenarioResult"]["timeline"]["1"]


def test_scenarios_have_short_names_and_a_status(live: Http) -> None:
    group = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1"
    found = {each["name"]: each for each in live.get(group).json["resources"]}
    assert found["scenarios"]["shortNames"] == ["scn"]
    assert found["scenarios"]["namespaced"] is False
    assert "scenarios/status" in found


# -- large ones ------------------------------------------------------------------------------------


def test_a_large_scenario_is_read_listed_patched_and_watched_like_any_other(live: Http) -> None:
    play(live, simple(pods=400))
    whole = get(live, "s")
    assert len(whole["status"]["scenarioResult"]["timeline"]["1"]) > 1000
    assert live.get(SCENARIOS).json["items"] == [{**whole, "apiVersion": whole["apiVersion"]}]
    labelled = live.patch(f"{SCENARIOS}/s", {"metadata": {"labels": {"a": "b"}}}).json
    assert labelled["status"] == whole["status"]
    with live.watch(f"{SCENARIOS}?watch=true") as events:
        assert events.next()["object"]["status"] == whole["status"]
        live.patch(f"{SCENARIOS}/s", {"metadata": {"labels": {"a": "c"}}})
        assert events.next()["object"]["status"] == whole["status"]
    deleted = live.delete(f"{SCENARIOS}/s")
    assert deleted.status == 200


@pytest.mark.parametrize(
    ("method", "path", "accept"),
    [
        ("GET", "/large", ""),
        ("GET", "/large", "*/*"),
        ("GET", "/large", "application/json, */*"),
        ("GET", "/large", "application/yaml"),
        ("GET", "", ""),
        ("GET", "", "application/yaml"),
        ("GET", "?includeObject=Object", TABLE),
        ("GET", "/large?includeObject=Object", TABLE),
        ("DELETE", "", ""),
    ],
)
def test_nobody_waits_while_a_large_scenario_is_put_into_words(
    live: Http, monkeypatch: pytest.MonkeyPatch, method: str, path: str, accept: str
) -> None:
    """The event loop answers others meanwhile."""
    maps = ScenarioBuilder("large").create(config_map("c-$(INDEX)"), count=1100).done()
    play(live, maps)
    threads = []
    join = KepTimeline.__bytes__

    def watched(timeline: KepTimeline) -> bytes:
        threads.append(current_thread().name)
        return join(timeline)

    monkeypatch.setattr(KepTimeline, "__bytes__", watched)
    if method == "DELETE":
        deleted = live.delete(SCENARIOS)
        assert deleted.status == 200
        assert deleted.json["items"][0]["metadata"]["name"] == "large"
    else:
        assert live.get(f"{SCENARIOS}{path}", accept).status == 200
    assert threads
    assert "kubescene-http" not in threads


def test_a_changed_scheduler_configuration_makes_a_scenario_fail(live: Http) -> None:
    play(live, simple())
    page = "/simulator/v1/schedulerconfiguration"
    reply = live.post(page, live.get(page).json)
    assert reply.status == 202, reply.body
    found = wait(live, "s", "Failed")
    assert "the scheduler configuration was changed" in found["message"]
    assert live.post(CONFIG_MAPS, config_map("c")).status == 201
    assert play(live, simple("next").done())["phase"] == "Succeeded"


@pytest.mark.parametrize("start", ["1999-01-01T00:00:00Z", "2100-01-01T00:00:00Z"])
def test_what_is_kept_across_a_scenario_has_an_age_whatever_its_time(
    live: Http, start: str
) -> None:
    play(live, simple().settings(startTime=start).done())
    for path in ("/api/v1/namespaces", "/api/v1/namespaces/default", "/api/v1/nodes"):
        table = live.get(path, TABLE).json
        column = [each["name"] for each in table["columnDefinitions"]].index("Age")
        ages = {row["cells"][column] for row in table["rows"]}
        assert ages
        assert "<invalid>" not in ages


def test_records_that_were_dropped_are_said_to_be(live_server: Server, live: Http) -> None:
    live_server.scenarios.finished.most_runs = 1
    for name in ("first", "second"):
        assert play(live, simple(name).done())["phase"] == "Succeeded"
    for page in ("summary", "timeline", "progress"):
        gone = live.get(f"/simulator/v1/scenarios/first/{page}")
        assert gone.status == 410
        assert 'the records of scenario "first" were dropped' in gone.json["message"]
        assert live.get(f"/simulator/v1/scenarios/second/{page}").status == 200
    timeline = get(live, "first")["status"]["scenarioResult"]["timeline"]
    assert len(timeline["1"]) == len(
        get(live, "second")["status"]["scenarioResult"]["timeline"]["1"]
    )
    assert live.delete(f"{SCENARIOS}/first").status == 200
    assert live.get("/simulator/v1/scenarios/first/summary").status == 404


def test_a_scenario_that_is_over_keeps_no_words(live_server: Server, live: Http) -> None:
    """Each of twenty kept up to 32 MB of them beside its log, once somebody had read it."""

    def kept() -> int:
        run = live_server.scenarios.run_named("s")
        assert run is not None
        view = run.scenario.timeline._view  # type: ignore[attr-defined]
        return int(view._cached) + len(view._cache) + len(view._text[1])

    def timeline() -> Any:
        return get(live, "s")["status"]["scenarioResult"]["timeline"]

    create(live, simple(pods=20))
    wait(live, "s", "Paused")
    before = timeline()
    assert live_server.engine.call(kept) > 1000
    add(live, "s", {"step": 2, "doneOperation": {}})
    wait(live, "s", "Succeeded")
    assert live_server.engine.call(kept) == 0
    after = timeline()
    assert after["1"] == before["1"]
    assert timeline() == after
    assert live_server.engine.call(kept) == 0


def test_the_pages_of_a_scenario_that_nobody_played_are_not_there(live: Http) -> None:
    for page in ("summary", "timeline", "progress"):
        missing = live.get(f"/simulator/v1/scenarios/nobody/{page}")
        assert missing.status == 404
    play(live, simple().done())
    assert live.get("/simulator/v1/scenarios/s/nothing").status == 404
    assert live.post("/simulator/v1/scenarios/s/summary", {}).status == 405
    assert live.get("/simulator/v1/scenarios/s/progress").json["bound"] == 2
