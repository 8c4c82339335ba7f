"""``GET /simulator/v1/remedies`` while a scenario has the world."""

from typing import Any

from apiserver.http import PODS, Http
from apiserver.scenarios import SCENARIOS, play, wait
from kubescene.testing import make_node, make_pod
from random_scenarios import API_VERSION

LARGE = "/simulator/v1/remedies?pod=default/large"


def create(step: int, obj: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"step": step, "createOperation": {"object": obj, **more}}


def scenario(*operations: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": "under-way"},
        "spec": {"operations": [create(1, make_node("a").cpu("1").build()), *operations], **spec},
    }


def keep_a_large_pod(http: Http) -> None:
    kept = make_pod("large").cpu("2").build()
    kept["metadata"]["annotations"] = {"kubescene.dev/keep": "true"}
    assert http.post(PODS, kept).status == 201


def test_a_pod_can_be_remedied_while_a_scenario_is_played(live: Http) -> None:
    keep_a_large_pod(live)
    many = create(2, make_pod("p-$(INDEX)").cpu("1m").build(), count=3_000)
    assert live.post(SCENARIOS, scenario(many)).status == 201

    while (reply := live.get(LARGE)).status == 409:  # it is new, and the scheduler had no turn yet
        assert "fits" not in reply.message
    assert reply.status == 200, reply.body
    assert live.get(f"{SCENARIOS}/under-way").json["status"]["phase"] == "Running"


def test_a_pod_of_a_scenario_that_is_paused_can_be_remedied(live: Http) -> None:
    assert play(live, scenario(create(2, make_pod("large").cpu("2").build())))["phase"] == "Paused"
    reply = live.get(LARGE)
    assert reply.status == 200, reply.body
    assert reply.json["complete"]
    assert reply.json["remedies"]


def test_a_world_with_programs_outside_says_why_it_cannot_be_tried(live: Http) -> None:
    keep_a_large_pod(live)
    names = {"simulationControllers": {"enabled": [{"name": "kube-scheduler"}]}}
    outside = {"outside": [{"name": "late", "kind": "operator"}]}
    assert live.post(SCENARIOS, scenario(controllers=names | outside)).status == 201
    wait(live, "under-way", "Running")
    reply = live.get(LARGE)
    assert reply.status == 409
    assert "late takes part cannot be copied: that program runs outside" in reply.message
