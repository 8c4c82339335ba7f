"""Pods that change while requests are inside: nobody has more CPU than there is, and none is lost.

Held against the reference loops, which know nothing of pods.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from controllers.test_traffic import (
    SECOND,
    columns,
    constant,
    deployment,
    outcomes,
    serving,
    traffic,
    world,
)
from kubescene.cluster import ClusterWorld
from kubescene.flows.kernels import Service
from kubescene.flows.records import RequestColumns, RequestOutcome
from kubescene.types import JsonObject
from traffic.reference_loop import ReferenceProcessor

DEMAND = 20 * 10**9
"""20 ms of a core, in millicore-nanoseconds."""
GATE = "example.com/in-service"
SLOW: JsonObject = {"cpuTime": "20ms", "ioTime": "0s", "timeout": "4s"}


def is_in_service(cluster: ClusterWorld, value: bool) -> None:
    for pod in cluster.list("pods"):
        gate = {"type": GATE, "status": str(value)}
        name = pod["metadata"]["name"]
        cluster.patch("pods", name, {"status": {"conditions": [gate]}}, subresource="status")
    cluster.settle()


def gone(found: RequestColumns) -> Iterator[tuple[int, int, bool]]:
    """Row, instant and whether it was too late, of all who have left a pod."""
    for row in range(found.count):
        if found.outcome[row] in (RequestOutcome.OK, RequestOutcome.TIMEOUT):
            late = found.outcome[row] == RequestOutcome.TIMEOUT
            yield row, int(found.completed[row]), bool(late)


def reference(
    found: RequestColumns, capacity: int, resizes: dict[int, int], until: int, ceiling: int = 0
) -> list[tuple[int, int, bool]]:
    cpu = ReferenceProcessor(Service(DEMAND, timeout=4 * SECOND, ceiling=ceiling), capacity)
    due = sorted(resizes.items())
    for row, at in enumerate(found.arrived.tolist()):
        while due and due[0][0] <= at:
            instant, other = due.pop(0)
            cpu.resize(other, instant)
        if found.outcome[row] != RequestOutcome.REFUSED:
            cpu.arrive(row, at, DEMAND)
    cpu.run(until)
    return cpu.gone


@pytest.mark.parametrize("routing", ["roundRobin", "leastConnections"])
@pytest.mark.parametrize("rps", [20, 33])
def test_a_pod_that_is_ready_again_has_one_cpu_and_who_stayed(rps: float, routing: str) -> None:
    load = traffic(arrivals=constant(rps), request=SLOW, routing=routing)
    cluster = world(deployment(1, readinessGates=[{"conditionType": GATE}]), load)
    is_in_service(cluster, True)
    cluster.advance("10s")
    is_in_service(cluster, False)
    cluster.advance("700ms")
    is_in_service(cluster, True)
    cluster.advance("8s")
    found = columns(cluster)
    assert outcomes(cluster)["REFUSED"] == pytest.approx(0.7 * rps, abs=1)
    again = 10_700_000_000
    assert [*gone(found)] == sorted(reference(found, 500, {again: 500}, 18_700_000_000))
    used = serving(cluster)._flow.used(18_700_000_000)
    assert used <= 500 * 18_700_000_000


def test_whoever_drains_gets_its_share_once_others_contend_for_the_node() -> None:
    """The same as on a node that was shared from the beginning."""

    def played(*first: JsonObject) -> tuple[ClusterWorld, RequestColumns]:
        grace: Any = {"terminationGracePeriodSeconds": 60}
        greedy = deployment(0, "500m", name="b", limit="none")
        loads = [
            traffic(arrivals=constant(32), request=SLOW),
            traffic("b", to={"deployment": "b"}, arrivals=constant(90), request=SLOW),
        ]
        drains = deployment(1, "300m", limit="800m", **grace)
        cluster = world(*first, drains, greedy, *loads, nodes=1, cpu="1")
        cluster.advance("10s")
        cluster.patch("traffics", "load", {"spec": {"arrivals": constant(90)}})
        cluster.advance("3s")
        cluster.scale("deployments", "web", 0)
        cluster.advance("200ms")
        cluster.scale("deployments", "b", 1)
        cluster.advance("6s")
        return cluster, columns(cluster)

    idle = deployment(1, "1m", name="idle", limit="none")
    nobody = traffic("idle", to={"deployment": "idle"}, arrivals=constant(0.001))
    cluster, here = played()
    _, there = played(idle, nobody)
    assert here.outcome.tolist() == there.outcome.tolist()
    apart = abs(here.completed - there.completed)[here.outcome == RequestOutcome.OK]
    # Rates are rounded down to 2^-20 of a millicore there, and not at all here.
    assert apart.max() < 1000
    assert not cluster.list("pods", labels="app=web")
    used = sum(serving(cluster, name)._flow.used(19_200_000_000) for name in ("load", "b"))
    assert used <= 1000 * 19_200_000_000


def resize(cluster: ClusterWorld, cpu: str) -> None:
    [pod] = cluster.list("pods")
    resources = {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}
    containers = [{"name": "app", "resources": resources}]
    name = pod["metadata"]["name"]
    cluster.patch("pods", name, {"spec": {"containers": containers}}, subresource="resize")
    cluster.settle()


@pytest.mark.parametrize(("before", "after"), [(500, 3000), (3000, 500), (1000, 1500), (700, 400)])
def test_a_request_uses_no_more_than_it_may_after_a_resize(before: int, after: int) -> None:
    rps = 120 if before == 3000 else 55
    load = traffic(arrivals=constant(rps), request=SLOW)
    cluster = world(deployment(1, f"{before}m"), load)
    cluster.advance("10s")
    resize(cluster, f"{after}m")
    cluster.advance("8s")
    found, until = columns(cluster), 18 * SECOND
    assert [*gone(found)] == sorted(reference(found, before, {10 * SECOND: after}, until, 1000))


def test_a_pod_that_requests_more_after_a_resize_gets_more_of_its_node() -> None:
    objects = [deployment(1, "200m", limit="3"), deployment(1, "200m", name="b", limit="3")]
    loads = [
        traffic(arrivals=constant(300), request=SLOW),
        traffic("b", to={"deployment": "b"}, arrivals=constant(300), request=SLOW),
    ]
    cluster = world(*objects, *loads, nodes=1, cpu="2")
    cluster.advance("15s")
    pod = next(each for each in cluster.list("pods") if each["metadata"]["labels"]["app"] == "web")
    more = {"name": "app", "resources": {"requests": {"cpu": "600m"}}}
    name = pod["metadata"]["name"]
    cluster.patch("pods", name, {"spec": {"containers": [more]}}, subresource="resize")
    cluster.settle()
    cluster.advance("15s")
    now = cluster.clock.now()
    used = [
        each.resources["cpu"] for s in ("load", "b") for each in serving(cluster, s).scraped(now)
    ]
    assert used == [pytest.approx(1500, abs=1), pytest.approx(500, abs=1)]
