"""Preemption in a served world, seen over HTTP."""

from apiserver.http import Events, Http
from kubescene.testing import make_node, make_pod, make_priority_class

PODS = "/api/v1/namespaces/default/pods"


def test_a_pod_of_high_priority_takes_the_place_of_another(live: Http) -> None:
    live.post("/api/v1/nodes", make_node("n").cpu("1").memory("1Gi").build())
    live.post("/apis/scheduling.k8s.io/v1/priorityclasses", make_priority_class("high", 9).build())
    with live.watch(f"{PODS}?watch=true") as events:
        live.post(PODS, make_pod("low").cpu("1").build())
        until_bound(events, "low")
        live.post(PODS, make_pod("new").cpu("1").priority_class("high").build())
        seen = until_bound(events, "new")
    assert "DELETED low" in seen
    assert live.get(f"{PODS}/low").status == 404
    reasons = {each["reason"] for each in told(live)}
    assert {"Preempted", "Scheduled", "FailedScheduling"} <= reasons


def until_bound(events: Events, name: str) -> list[str]:
    """What happens to pods until one of them has a node."""
    seen = []
    while True:
        event = events.next()
        found = event["object"]["metadata"]["name"]
        seen.append(f"{event['type']} {found}")
        if found == name and event["object"]["spec"].get("nodeName"):
            return seen


def told(live: Http) -> list[dict[str, str]]:
    found: list[dict[str, str]] = live.get("/api/v1/namespaces/default/events").json["items"]
    return found
