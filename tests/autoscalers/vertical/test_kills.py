"""Out-of-memory kills, noticed in pods and in evictions (section 2.4 of the rules)."""

from typing import Any

import pytest

from autoscalers.vertical.vertical_worlds import MI, START, make_pod, make_recommender
from kubescene.autoscalers.vertical import OomKill, kills, kills_of_eviction
from kubescene.clock import MINUTE, format_time

AT = START + MINUTE
RUNS: dict[str, Any] = {"running": {}}
WAITS: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff"}}


def ended(reason: str = "OOMKilled") -> dict[str, Any]:
    return {"terminated": {"reason": reason, "finishedAt": format_time(AT)}}


def pod(
    state: dict[str, Any],
    restarts: int = 0,
    memory: str = "100Mi",
    last: dict[str, Any] | None = None,
) -> dict[str, Any]:
    status = {"name": "app", "state": state, "restartCount": restarts, "lastState": last or {}}
    resources = {"app": {"requests": {"memory": memory}}}
    return make_pod(containers=resources, containerStatuses=[status])


KILL = [OomKill("web-0", "app", 200 * MI, AT)]
BEFORE = [OomKill("web-0", "app", 100 * MI, AT)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (pod(RUNS), pod(ended(), memory="200Mi"), KILL),
        (pod(WAITS), pod(ended(), memory="200Mi"), KILL),
        (pod(ended()), pod(ended(), 1, "200Mi"), KILL),
        (pod(ended()), pod(ended()), []),
        (pod(RUNS), pod(ended("Error")), []),
        (pod(RUNS), pod(RUNS, 1, "200Mi", ended()), BEFORE),
        (pod(RUNS), pod(RUNS, 0, "200Mi", ended()), []),
        (pod(RUNS), pod(RUNS, 1, "200Mi", ended("Error")), []),
        (pod(WAITS), pod(RUNS, 1, "200Mi", ended()), []),
    ],
    ids=[
        "killed",
        "killed before it was seen running",
        "killed again",
        "known already",
        "ended otherwise",
        "restarted",
        "not restarted",
        "restarted otherwise",
        "counted before it waited",
    ],
)
def test_a_kill_is_noticed_once(before: Any, after: Any, expected: list[OomKill]) -> None:
    assert list(kills(before, after)) == expected


def test_a_container_that_is_new_was_not_killed() -> None:
    assert list(kills(make_pod(), pod(ended()))) == []


def test_what_a_container_had_is_in_its_status_if_that_says_so() -> None:
    after = pod(ended())
    after["status"]["containerStatuses"][0]["resources"] = {"requests": {"memory": "300Mi"}}
    assert [each.memory for each in kills(pod(RUNS), after)] == [300 * MI]


def event(reason: str = "Evicted", kind: str = "Pod", **annotations: str) -> dict[str, Any]:
    told = {
        "offending_containers": "app,side",
        "offending_containers_usage": "1200Ki,5Mi",
        "starved_resource": "memory,ephemeral-storage",
    }
    metadata = {"creationTimestamp": format_time(AT), "annotations": told | annotations}
    return {
        "reason": reason,
        "involvedObject": {"kind": kind, "name": "web-0"},
        "metadata": metadata,
    }


def test_an_eviction_for_want_of_memory_tells_what_was_used() -> None:
    assert list(kills_of_eviction(event())) == [OomKill("web-0", "app", 1200 * 1024, AT)]


@pytest.mark.parametrize(
    "told",
    [
        event("Killing"),
        event(kind="Node"),
        event(offending_containers="app"),
        event(offending_containers_usage="much,5Mi"),
        event(starved_resource="cpu,cpu"),
        {"reason": "Evicted", "involvedObject": {"kind": "Pod"}},
    ],
)
def test_other_events_tell_nothing(told: dict[str, Any]) -> None:
    assert list(kills_of_eviction(told)) == []


def test_a_kill_raises_what_is_recommended() -> None:
    recommender = make_recommender()
    [kill] = kills(pod(RUNS), pod(ended(), memory="1000Mi"))
    assert recommender.usage.add_oom("pod", kill.container, kill.memory, kill.time)
    peak = recommender.histories(AT)["app"].memory.percentile(1.0)
    assert peak > 1200 * MI
