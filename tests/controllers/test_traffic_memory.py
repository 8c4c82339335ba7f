"""Pods that run out of memory by what they serve: killed by that request, started again."""

from copy import deepcopy
from typing import Any

import pytest

from controllers.test_traffic import (
    SECOND,
    columns,
    constant,
    deployment,
    outcomes,
    rows,
    traffic,
    world,
)
from kubescene.cluster import ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.flows.records import RequestOutcome
from kubescene.types import JsonObject

REQUEST = {"cpuTime": "20ms", "ioTime": "5ms", "timeout": "5s"}
MEMORY = {"base": "500Mi", "perRequest": "16Mi"}
"""In 1 GiB there is room for 32 requests."""
ROOM = 32


def overloaded(routing: str = "roundRobin", spacing: str = "even", **more: Any) -> ClusterWorld:
    load = traffic(
        arrivals=constant(70, spacing), request=REQUEST, memory=MEMORY, routing=routing, **more
    )
    return world(deployment(2), load, kubelet=KubeletDelays(ready=2 * SECOND))


def statuses(cluster: ClusterWorld) -> list[JsonObject]:
    return [each["status"]["containerStatuses"][0] for each in cluster.list("pods")]


@pytest.mark.parametrize("routing", ["roundRobin", "random", "leastConnections"])
@pytest.mark.parametrize("spacing", ["even", "poisson"])
def test_a_pod_is_killed_by_the_first_request_that_does_not_fit(routing: str, spacing: str) -> None:
    cluster = overloaded(routing, spacing)
    cluster.advance("12s")
    found = columns(cluster)
    killed = found.outcome == RequestOutcome.KILLED
    assert killed.any()
    for number in sorted(set(found.replica[killed].tolist())):
        mine = killed & (found.replica == number)
        [at] = set(found.completed[mine].tolist())
        assert int(mine.sum()) == ROOM + 1
        assert int(found.arrived[mine].max()) + 1 == at
        # It never had more before.
        own = (found.replica == number) & (found.outcome != RequestOutcome.OPEN)
        for came in found.arrived[own].tolist():
            inside = own & (found.arrived <= came) & (found.completed > came)
            assert int(inside.sum()) <= ROOM + 1


def test_it_starts_again_with_a_back_off_as_any_container_that_is_killed() -> None:
    cluster = overloaded()
    cluster.advance("100s")
    assert [each["restartCount"] for each in statuses(cluster)] == [4, 4]
    last = statuses(cluster)[0]["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("OOMKilled", 137)
    assert statuses(cluster)[0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert outcomes(cluster)["KILLED"] == 5 * 2 * (ROOM + 1)


@pytest.mark.parametrize("cut", ["100ms", "1700ms", "30s"])
def test_however_time_is_cut_the_same_are_killed(cut: str) -> None:
    whole, pieces = overloaded(spacing="poisson"), overloaded(spacing="poisson")
    whole.advance("30s")
    while pieces.clock.now() < whole.clock.now():
        pieces.advance(cut)
    if pieces.clock.now() == whole.clock.now():
        assert rows(pieces) == rows(whole)
    fork = deepcopy(whole)
    for each in (whole, fork):
        each.advance("30s")
    assert rows(whole) == rows(fork)


def test_without_a_limit_nobody_is_killed() -> None:
    objects = deployment(2)
    del objects["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    load = traffic(arrivals=constant(70), request=REQUEST, memory=MEMORY)
    cluster = world(objects, load)
    cluster.advance("30s")
    assert "KILLED" not in outcomes(cluster)


def test_a_base_beyond_the_limit_kills_whoever_starts() -> None:
    load = traffic(arrivals=constant(1), memory={"base": "2Gi"})
    cluster = world(deployment(1), load)
    cluster.advance("100s")
    assert statuses(cluster)[0]["restartCount"] >= 3
    assert "OK" not in outcomes(cluster)


def test_a_pod_whose_kubelet_is_silent_is_dead_all_the_same() -> None:
    cluster = overloaded()
    cluster.advance("3s")
    for each in ("n0", "n1"):
        stopped = {"metadata": {"annotations": {"kubescene.dev/kubelet": "stopped"}}}
        cluster.patch("nodes", each, stopped)
    cluster.settle()
    cluster.advance("20s")
    assert outcomes(cluster)["KILLED"] == 2 * (ROOM + 1)
    assert [each["restartCount"] for each in statuses(cluster)] == [0, 0]


def test_on_a_shared_node_too() -> None:
    load = traffic(arrivals=constant(70), request=REQUEST, memory=MEMORY)
    cluster = world(deployment(1, limit="none"), load, nodes=1, cpu="1")
    cluster.advance("5s")
    found = columns(cluster)
    killed = found.outcome == RequestOutcome.KILLED
    assert int((killed & (found.replica == 1)).sum()) == ROOM + 1


def test_a_pod_that_may_use_more_memory_holds_more() -> None:
    load = traffic(arrivals=constant(70), request=REQUEST, memory=MEMORY)
    cluster = world(deployment(1), load)
    [pod] = cluster.list("pods")
    both = {"cpu": "500m", "memory": "8Gi"}
    more = {"name": "app", "resources": {"limits": both, "requests": both}}
    name = pod["metadata"]["name"]
    cluster.patch("pods", name, {"spec": {"containers": [more]}}, subresource="resize")
    cluster.settle()
    cluster.advance("20s")
    assert "KILLED" not in outcomes(cluster)
    assert outcomes(cluster)["TIMEOUT"] > 100
