"""Scenarios over HTTP, as tests create and follow them."""

from collections.abc import Iterator
from typing import Any

from apiserver.http import Events, Http, Reply
from kubescene.client.verbs import AnyObject, plain

SCENARIOS = "/apis/simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1/scenarios"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
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
    """The status once the scenario is in one of these phases, by default at its end.

    Rows of a table are watched: whole objects would come with their whole timeline every time.
    """
    with http.watch(f"{SCENARIOS}?watch=true", TABLE) as events:
        while True:
            event = events.next()
            for row in event["object"]["rows"]:
                if row["cells"][0] == name and row["cells"][1] in (phases or ENDED):
                    # The kept connection may have been idle for too long: a new one is made.
                    http.close()
                    found: dict[str, Any] = get(http, name)["status"]
                    if found["phase"] in (phases or ENDED):
                        return found


def play(http: Http, scenario: AnyObject) -> dict[str, Any]:
    """Create a scenario and wait until it is over, or paused."""
    reply = create(http, scenario)
    assert reply.status == 201, reply.body
    return wait(http, plain(scenario)["metadata"]["name"])
