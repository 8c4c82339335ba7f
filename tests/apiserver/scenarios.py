"""Scenarios over HTTP, as tests create and follow them."""

from collections.abc import Iterator
from typing import Any

from apiserver.http import Events, Http, Reply
from kubescene.client.verbs import AnyObject, plain

SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
ENDED = ("Succeeded", "Failed", "Paused")


def create(http: Http, scenario: AnyObject) -> Reply:
    return http.post(SCENARIOS, plain(scenario))


def get(http: Http, name: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"{SCENARIOS}/{name}").json
    return found


def status(http: Http, name: str) -> dict[str, Any]:
    found: dict[str, Any] = get(http, name).get("status", {})
    return found


def add(http: Http, name: str, *operations: dict[str, Any]) -> Reply:
    """What ``kubectl patch --type=json`` on ``/spec/operations/-`` sends."""
    patch = [{"op": "add", "path": "/spec/operations/-", "value": each} for each in operations]
    return http.patch(f"{SCENARIOS}/{name}", patch, "json-patch+json")


def changes(events: Events, name: str) -> Iterator[dict[str, Any]]:
    """The statuses of one scenario as they come."""
    while True:
        event = events.next()
        if event["object"]["metadata"]["name"] == name:
            yield event["object"].get("status", {}) if event["type"] != "DELETED" else {}


def wait(http: Http, name: str, *phases: str) -> dict[str, Any]:
    """The status once the scenario is in one of these phases, by default at its end."""
    with http.watch(f"{SCENARIOS}?watch=true") as events:
        for found in changes(events, name):
            if found.get("phase") in (phases or ENDED):
                # The kept connection may have been idle for too long meanwhile: a new one is made.
                http.close()
                return found
    raise AssertionError("unreachable")


def play(http: Http, scenario: AnyObject) -> dict[str, Any]:
    """Create a scenario and wait until it is over, or paused."""
    reply = create(http, scenario)
    assert reply.status == 201, reply.body
    return wait(http, plain(scenario)["metadata"]["name"])
