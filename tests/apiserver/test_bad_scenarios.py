"""Scenarios that cannot be played: refused or Failed with a reason, and the next one plays."""

import json
import random  # noqa: TID251 - which mutations are tried is no part of a simulation
from threading import Event
from typing import Any

import pytest

from apiserver.http import Http
from apiserver.scenarios import SCENARIOS, add, create, play, status, wait
from kubescene.apiserver.server import Server
from kubescene.live import LiveRun
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

API_VERSION = "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1"


def good(name: str = "good") -> ScenarioBuilder:
    return ScenarioBuilder(name).create(make_node("n").cpu("4")).create(make_pod("p")).done()


def scenario(name: str, spec: Any) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": spec,
    }


FAILED: dict[str, tuple[Any, str]] = {
    "no body": ({"operations": [{"id": "a", "step": 1}]}, "exactly one of"),
    "two bodies": (
        {"operations": [{"step": 1, "doneOperation": {}, "advanceOperation": {"duration": "1s"}}]},
        "exactly one of",
    ),
    "step 0": ({"operations": [{"step": 0, "doneOperation": {}}]}, "step"),
    "unknown field": ({"operations": [{"step": 1, "doneOperation": {}, "stepp": 2}]}, "stepp"),
    "unknown member": ({"operations": [], "operatoins": []}, "operatoins"),
    "twice the same id": (
        {"operations": [{"id": "a", "step": 1, "doneOperation": {}}] * 2},
        "used twice",
    ),
    "unknown controller": (
        {"controllers": {"simulationControllers": {"enabled": [{"name": "nobody"}]}}},
        "no controller is named 'nobody'",
    ),
    "bad seed": ({"operations": [], "simulation": {"startTime": "yesterday"}}, "startTime"),
    "both forms": (
        {
            "operations": [{"step": 1, "doneOperation": {}}],
            "events": [{"step": 1, "operation": "Done", "doneOperation": {"done": True}}],
        },
        "spec.events",
    ),
    "file of the author": (
        {"operations": [{"step": 1, "createOperation": {"objectFrom": "pods.yaml"}}]},
        "objectFrom",
    ),
    "bad plugin": (
        {
            "operations": [{"step": 1, "doneOperation": {}}],
            "simulation": {
                "schedulerConfig": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Nobody"}]}}}],
                }
            },
        },
        "Nobody",
    ),
}


@pytest.mark.parametrize("case", FAILED)
def test_a_fault_of_the_spec_is_told_before_anything_is_touched(live: Http, case: str) -> None:
    spec, why = FAILED[case]
    live.post("/api/v1/nodes", make_node("mine").build())
    reply = create(live, scenario("bad", spec))
    assert reply.status == 201, reply.body
    found = wait(live, "bad")
    assert found["phase"] == "Failed"
    assert why in found["message"]
    assert live.get("/api/v1/nodes/mine").status == 200
    # Nothing was touched, so nothing stands still.
    assert live.patch("/api/v1/nodes/mine", {"metadata": {"labels": {"a": "b"}}}).status == 200
    assert play(live, good())["phase"] == "Succeeded"


REFUSED: dict[str, Any] = {
    "spec is text": scenario("bad", "x"),
    "operations is text": scenario("bad", {"operations": "x"}),
    "operations is an object": scenario("bad", {"operations": {"a": 1}}),
    "an operation is text": scenario("bad", {"operations": ["x"]}),
    "step is text": scenario("bad", {"operations": [{"step": "1", "doneOperation": {}}]}),
    "controllers is a list": scenario("bad", {"controllers": []}),
    "spec is a list": {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": "bad"},
        "spec": [None],
    },
    "bad name": scenario("Not A Name", {"operations": []}),
    "bad label": scenario("bad", {}) | {"metadata": {"name": "bad", "labels": {"a b": "c"}}},
}


def test_a_namespace_that_a_scenario_cannot_have_is_cleared(live: Http) -> None:
    """As kube-apiserver does for every kind without namespaces."""
    given = scenario("odd", {}) | {"metadata": {"name": "odd", "namespace": "default"}}
    reply = create(live, given)
    assert reply.status == 201
    assert "namespace" not in reply.json["metadata"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_scenario_is_refused(live: Http, case: str) -> None:
    reply = create(live, REFUSED[case])
    assert 400 <= reply.status < 500
    assert reply.message


@pytest.mark.parametrize(
    "spoil",
    [
        lambda builder: builder.create(make_node("n")),
        lambda builder: builder.delete("v1", "Pod", "nobody"),
        lambda builder: builder.create({"apiVersion": "v1", "kind": "Nothing"}),
    ],
    ids=["exists", "not found", "no such kind"],
)
def test_an_operation_that_fails_leaves_the_server_and_the_next_scenario_unharmed(
    live: Http, spoil: Any
) -> None:
    builder = ScenarioBuilder("bad").create(make_node("n").cpu("4"))
    found = play(live, spoil(builder))
    assert found["phase"] == "Failed"
    assert "step 1" in found["message"]
    assert found["scenarioResult"]["timeline"]["1"][0]["operation"] == "Create"
    assert play(live, good())["phase"] == "Succeeded"


def mutated(draw: random.Random, value: Any) -> Any:
    """The value with one thing in it replaced by something odd."""
    odd: list[Any] = [
        None,
        True,
        -1,
        2**63,
        1.5,
        "",
        "$(INDEX)",
        [],
        {},
        [[]],
        {"a": {"b": 1}},
        "é" * 300,
    ]
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {(f"{k}x" if k == key else k): v for k, v in value.items()}
        return {k: (mutated(draw, v) if k == key else v) for k, v in value.items()}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        return [mutated(draw, v) if i == at else v for i, v in enumerate(value)]
    return draw.choice(odd)


def whole() -> JsonObject:
    builder = (
        ScenarioBuilder("fuzz")
        .settings(seed=1, startTime="2030-01-01T00:00:00Z", kubelet={"startDelay": "1s"})
        .simulate("kube-scheduler")
        .create(make_node("n-$(INDEX)").cpu("4"), count=2)
        .create(make_pod("p").cpu("1"))
        .next_step()
        .patch("v1", "Pod", "p", {"metadata": {"labels": {"a": "b"}}})
        .delete("v1", "Pod", "p")
        .advance("5s")
        .done()
    )
    return builder.build()


def test_odd_scenarios_are_refused_or_played_and_never_hurt_the_server(live: Http) -> None:
    draw, seen = random.Random(8), set()
    original = whole()
    for _ in range(150):
        document = {**original, "spec": mutated(draw, original["spec"])}
        reply = create(live, document)
        assert reply.status == 201 or 400 <= reply.status < 500, (document, reply.body)
        if reply.status == 201:
            found = wait(live, "fuzz")
            seen.add(found["phase"])
            assert found["phase"] != "Failed" or found["message"], document
            assert "internal error" not in found.get("message", ""), (document, found["message"])
            live.delete(f"{SCENARIOS}/fuzz")
        else:
            assert json.loads(reply.body)["message"]
    assert {"Succeeded", "Failed"} <= seen
    assert play(live, good())["phase"] == "Succeeded"


def test_odd_edits_are_refused_or_taken_and_never_hurt_the_server(live: Http) -> None:
    play(live, ScenarioBuilder("fuzz").create(make_node("n").cpu("4")))
    draw, step = random.Random(9), 2
    template = {"id": "x", "step": 2, "createOperation": {"object": make_pod("p").build()}}
    for number in range(60):
        operation = mutated(draw, {**template, "id": f"x{number}", "step": step})
        reply = add(live, "fuzz", operation)
        assert reply.status == 200 or 400 <= reply.status < 500, (operation, reply.body)
        found = status(live, "fuzz")
        if found["phase"] == "Failed":
            live.delete(f"{SCENARIOS}/fuzz")
            play(live, ScenarioBuilder("fuzz").create(make_node("n").cpu("4")))
            step = 2
        elif "stepStatus" in found:
            step = max(step, found["stepStatus"]["step"]["major"]) + 1
    assert live.delete(f"{SCENARIOS}/fuzz").status == 200
    assert play(live, good())["phase"] == "Succeeded"


def test_a_scenario_that_touched_nothing_does_not_stop_the_time_of_the_world(
    live_server: Server,
) -> None:
    http, engine = Http(live_server.host, live_server.port), live_server.engine
    happened = Event()
    bad = scenario("bad", {"operations": [{"step": 1}]})
    engine.call(lambda: live_server.cluster.event_queue.after(3_000_000_000, happened.set))
    engine.call(lambda: live_server.cluster.create(bad))
    assert happened.wait(120)
    assert status(http, "bad")["phase"] == "Failed"
    http.close()


def test_a_scenario_that_cannot_even_be_prepared_makes_way_for_the_next(
    live_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = Http(live_server.host, live_server.port)

    def broken(run: LiveRun, **_: Any) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(LiveRun, "attach", broken)
        assert create(http, good("first")).status == 201
        failed = wait(http, "first")
    assert failed["phase"] == "Failed"
    assert "internal error: RuntimeError('a bug')" in failed["message"]
    assert play(http, good("second"))["phase"] == "Succeeded"
    http.close()
