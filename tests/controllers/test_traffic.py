"""Traffic objects: real pods serve requests, and it is the same as what traffic runs simulate."""

from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.builtin.traffic.facts import TrafficMeasured
from kubescene.controllers.builtin.traffic.reconciler import TrafficReconciler
from kubescene.controllers.builtin.traffic.serving import Serving
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.flows.records import RequestColumns, RequestOutcome
from kubescene.instruments import Instrument
from kubescene.testing import make_node
from kubescene.traffic import run, spec_of
from kubescene.types import JsonObject
from traffic.reference_node import Pod, play

SECOND = 10**9
REQUEST = {"cpuTime": "20ms", "ioTime": "5ms", "timeout": "1s"}


def deployment(
    replicas: int = 2, cpu: str = "500m", *, name: str = "web", limit: str = "", **spec: Any
) -> JsonObject:
    limits = {"cpu": limit or cpu} if limit != "none" else {}
    resources = {"requests": {"cpu": cpu}, "limits": {**limits, "memory": "1Gi"}}
    container = {"name": "app", "image": "web", "resources": resources}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def constant(rps: float, spacing: str = "even") -> JsonObject:
    return {"pattern": "constant", "spacing": spacing, "constant": {"rps": rps}}


def traffic(name: str = "load", **spec: Any) -> JsonObject:
    given_spec = {
        "to": {"deployment": "web"},
        "arrivals": constant(40),
        "request": REQUEST,
        "begin": "AtOnce",
        **spec,
    }
    return {
        "apiVersion": "kubescene.dev/v1alpha1",
        "kind": "Traffic",
        "metadata": {"name": name},
        "spec": given_spec,
    }


class Listener(Instrument):
    def __init__(self) -> None:
        self.told: list[TrafficMeasured] = []

    def fact_told(self, actor: object, fact: object) -> None:
        del actor
        if isinstance(fact, TrafficMeasured):
            self.told.append(fact)


def world(*objects: JsonObject, nodes: int = 2, cpu: str = "16", **options: Any) -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(**options))
    for number in range(nodes):
        cluster.create(make_node(f"n{number}").cpu(cpu).memory("64Gi"))
    for each in objects:
        cluster.create(each)
    cluster.settle()
    return cluster


def heard(*objects: JsonObject, **options: Any) -> tuple[ClusterWorld, list[TrafficMeasured]]:
    cluster, listener = world(**options), Listener()
    cluster.instruments.attach(listener)
    for each in objects:
        cluster.create(each)
    cluster.settle()
    return cluster, listener.told


def serving(cluster: ClusterWorld, name: str = "load") -> Serving:
    reconciler = cluster.manager.usage._sources["traffic"]
    assert isinstance(reconciler, TrafficReconciler)
    found = reconciler._known["default"][name].serving
    assert found is not None
    return found


def columns(cluster: ClusterWorld, name: str = "load") -> RequestColumns:
    """All requests so far, those that are inside as open."""
    found = deepcopy(serving(cluster, name))
    now = cluster.clock.now() - found._origin
    found._flow.advance(now)
    assert found._flow.now == now or not now
    found._flow.columns.close(now)
    return found._flow.columns


def rows(cluster: ClusterWorld, name: str = "load") -> bytes:
    return columns(cluster, name).rows().tobytes()


def status(cluster: ClusterWorld, name: str = "load") -> JsonObject:
    found: JsonObject = cluster.get("traffics", name).get("status") or {}
    return found


def outcomes(cluster: ClusterWorld) -> dict[str, int]:
    counts = np.bincount(columns(cluster).outcome, minlength=len(RequestOutcome)).tolist()
    return {each.name: counts[each] for each in RequestOutcome if counts[each]}


@pytest.mark.parametrize("cpu", ["500m", "1", "1500m"])
@pytest.mark.parametrize("routing", ["roundRobin", "leastConnections"])
@pytest.mark.parametrize("arrivals", [constant(47.3), constant(130)])
def test_pods_serve_as_replicas_of_a_traffic_run_do(
    cpu: str, routing: str, arrivals: JsonObject
) -> None:
    """Evenly spaced requests to pods that are there from the first instant: the same bytes."""
    cluster = world(deployment(3, cpu), traffic(arrivals=arrivals, routing=routing))
    cluster.advance("45s")
    replicas = {"initial": 3, "cpu": cpu, "launchDelay": "0s", "requestCpu": "1"}
    same = spec_of(
        {
            "duration": "45s",
            "traffic": arrivals,
            "request": REQUEST,
            "routing": routing,
            "replicas": replicas if cpu == "1500m" else {**replicas, "requestCpu": "0"},
        }
    )
    assert rows(cluster) == run(same).requests.rows().tobytes()


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.integers(1, 40_000), max_size=12),
    st.sampled_from(["constant", "exponential"]),
    st.sampled_from(["roundRobin", "random", "leastConnections"]),
    st.sampled_from(["300m", "none"]),
)
def test_however_time_is_cut_requests_are_the_same(
    pieces: list[int], demand: str, routing: str, limit: str
) -> None:
    """Also through scaling, and however often somebody looks."""

    def played(cut: Callable[[ClusterWorld, int], object]) -> list[bytes]:
        request = {**REQUEST, "demand": demand}
        arrivals = constant(60, "poisson")
        load = traffic(arrivals=arrivals, request=request, routing=routing)
        delays = KubeletDelays(1 * SECOND, 2 * SECOND, SECOND)
        # One of the nodes becomes contended when the second Deployment grows.
        other = deployment(0, "300m", name="other", limit=limit)
        more = traffic("more", to={"deployment": "other"}, arrivals=arrivals, begin="WhenReady")
        objects = (deployment(2), other, load, more)
        cluster = world(*objects, kubelet=delays, nodes=3, cpu="2")
        for replicas in (2, 5, 1):
            cluster.scale("deployments", "web", replicas)
            cluster.scale("deployments", "other", replicas)
            cut(cluster, 41 * SECOND)
        return [rows(cluster), rows(cluster, "more")]

    def in_pieces(cluster: ClusterWorld, length: int) -> None:
        for piece in pieces:
            step = min(piece * 10**6 + 1, length)
            if step:
                cluster.advance(f"{step}ns")
                list(serving(cluster).scraped(cluster.clock.now()))
            length -= step
        if length:
            cluster.advance(f"{length}ns")

    whole = played(lambda cluster, length: cluster.advance(f"{length}ns"))
    assert played(in_pieces) == whole


def test_a_fork_goes_on_as_its_original() -> None:
    cluster = world(deployment(3), traffic(arrivals=constant(100, "poisson")))
    cluster.advance("37s")
    fork = cluster.fork()
    fork.advance("30s")
    cluster.advance("10s")
    cluster.advance("20s")
    assert rows(fork) == rows(cluster)


def test_one_more_traffic_changes_nothing_for_another_that_has_pods_of_its_own() -> None:
    alone = world(deployment(2), traffic(arrivals=constant(60, "poisson")))
    other = traffic("aaa", to={"selector": {"matchLabels": {"app": "other"}}})
    together = world(deployment(2), other, traffic(arrivals=constant(60, "poisson")))
    for cluster in (alone, together):
        cluster.advance("1m")
    assert rows(alone) == rows(together)


def test_without_time_no_request_comes() -> None:
    cluster, told = heard(deployment(), traffic())
    assert columns(cluster).count == 0
    assert not told
    assert status(cluster)["ready"] == 2


def test_the_first_request_comes_once_a_pod_is_ready_and_rates_count_from_the_creation() -> None:
    points = [{"at": "0s", "rps": 10}, {"at": "20s", "rps": 100}]
    arrivals = {"pattern": "piecewise", "spacing": "even", "piecewise": {"points": points}}
    delays = KubeletDelays(start=3 * SECOND, ready=10 * SECOND)
    waits = traffic(arrivals=arrivals, begin="WhenReady")
    cluster = world(deployment(), waits, kubelet=delays)
    cluster.advance("30s")
    arrived = columns(cluster).arrived
    assert 13 * SECOND <= arrived[0] < 13.2 * SECOND
    assert int((arrived < 20 * SECOND).sum()) == 70
    assert int((arrived >= 20 * SECOND).sum()) == 1000
    at_once = world(deployment(), traffic(arrivals=arrivals), kubelet=delays)
    at_once.advance("30s")
    assert outcomes(at_once)["REFUSED"] == 130


def test_a_pod_that_is_deleted_finishes_what_it_has() -> None:
    """100 a second to one pod that can serve 25: it is deleted with many inside."""
    slow = {**REQUEST, "timeout": "4s", "cpuTime": "20ms"}
    load = traffic(arrivals=constant(30), request=slow)
    cluster = world(deployment(1, "500m", terminationGracePeriodSeconds=30), load)
    cluster.advance("10s")
    inside = outcomes(cluster)["OPEN"]
    assert inside > 40
    cluster.scale("deployments", "web", 0)
    assert len(cluster.list("pods")) == 1
    cluster.advance("5s")
    assert not cluster.list("pods")
    found = outcomes(cluster)
    assert found["REFUSED"] == 150
    assert "KILLED" not in found


def test_who_is_inside_when_the_grace_period_is_over_is_killed() -> None:
    slow = {**REQUEST, "timeout": "20s"}
    load = traffic(arrivals=constant(30), request=slow)
    cluster = world(deployment(1, "500m", terminationGracePeriodSeconds=1), load)
    cluster.advance("20s")
    inside = outcomes(cluster)["OPEN"]
    cluster.scale("deployments", "web", 0)
    cluster.advance("900ms")
    assert len(cluster.list("pods")) == 1
    cluster.advance("100ms")
    assert not cluster.list("pods")
    cluster.advance("1s")
    found = columns(cluster)
    killed = found.outcome == RequestOutcome.KILLED
    assert set(found.completed[killed].tolist()) == {21 * SECOND}
    done = (found.outcome == RequestOutcome.OK) & (found.completed >= 20 * SECOND)
    assert int(killed.sum()) + int(done.sum()) == inside
    assert int(killed.sum()) > 100


def test_who_is_inside_a_pod_that_is_gone_at_once_is_killed_there_and_then() -> None:
    slow = {**REQUEST, "timeout": "20s"}
    load = traffic(arrivals=constant(30), request=slow)
    cluster = world(deployment(1, "500m", terminationGracePeriodSeconds=60), load)
    cluster.advance("20s")
    [pod] = cluster.list("pods")
    cluster.scale("deployments", "web", 0)
    cluster.advance("1s")
    before = outcomes(cluster)["OPEN"]
    cluster.delete("pods", pod["metadata"]["name"], grace_period_s=0)
    cluster.advance("1s")
    found = columns(cluster)
    killed = found.outcome == RequestOutcome.KILLED
    assert int(killed.sum()) == before
    assert set(found.completed[killed].tolist()) == {21 * SECOND}


def test_other_rates_hold_from_their_change_on() -> None:
    cluster = world(deployment(), traffic(arrivals=constant(40)))
    cluster.advance("10500ms")
    cluster.patch("traffics", "load", {"spec": {"arrivals": constant(10)}})
    cluster.settle()
    cluster.advance("10s")
    arrived = columns(cluster).arrived
    assert int((arrived < 10.5 * SECOND).sum()) == 420
    assert int((arrived >= 10.5 * SECOND).sum()) == 100


def test_what_holds_for_requests_on_their_way_cannot_be_changed() -> None:
    cluster = world(deployment(), traffic())
    cluster.advance("1s")
    cluster.patch("traffics", "load", {"spec": {"request": {"cpuTime": "1ms"}}})
    cluster.settle()
    assert status(cluster)["message"] == ("spec.request cannot be changed: create another Traffic")
    cluster.advance("15s")
    assert columns(cluster).count == 640


def test_nobody_comes_once_it_is_deleted() -> None:
    cluster, told = heard(deployment(), traffic())
    cluster.advance("20s")
    cluster.delete("traffics", "load")
    cluster.advance("1m")
    assert [each.counts.arrived for each in told] == [600, 200]
    assert [each.window for each in told] == [15 * SECOND, 5 * SECOND]


def test_windows_add_up_to_all_requests() -> None:
    """Counted from the columns, in another way."""
    request = {**REQUEST, "demand": "exponential", "timeout": "30s"}
    load = traffic(arrivals=constant(24, "poisson"), request=request)
    cluster, told = heard(deployment(1), load)
    cluster.advance("1m")
    found = columns(cluster)
    for number, fact in enumerate(told):
        since, until = number * 15 * SECOND, (number + 1) * 15 * SECOND
        done = (found.completed >= since) & (found.completed < until)
        done &= found.outcome != RequestOutcome.OPEN
        times = sorted((found.completed - found.arrived)[done & (found.outcome == 1)].tolist())
        counts = fact.counts
        assert counts.arrived == int(((found.arrived >= since) & (found.arrived < until)).sum())
        assert counts.succeeded == len(times)
        assert counts.timed_out == int((done & (found.outcome == 2)).sum())
        assert counts.served[-1] == (times[-1] if times else None)
        assert counts.served[0] == (times[(len(times) + 1) // 2 - 1] if times else None)
        assert sum(count for _, count in counts.times) == len(times)
        for (lower, count), (upper, _) in pairwise([*counts.times, (1 << 62, 0)]):
            inside = [time for time in times if lower <= time < upper]
            assert len(inside) == count
            assert all(time <= lower + lower // 16 + 1 for time in inside)
        assert counts.good == sum(time <= SECOND for time in times)
    assert len(told) == 4


@pytest.mark.parametrize(
    ("to", "message"),
    [
        ({"deployment": "gone"}, 'deployments.apps "gone" not found'),
        ({"service": "gone"}, 'services "gone" not found'),
        ({}, "one of service, deployment, scale, selector has to be said, found nothing"),
        ({"deployment": "a", "service": "b"}, "found service and deployment"),
    ],
)
def test_a_target_that_makes_no_sense_is_said_in_the_status(to: JsonObject, message: str) -> None:
    cluster = world(traffic(to=to))
    assert message in status(cluster)["message"]


def test_a_service_that_comes_later_is_found() -> None:
    cluster = world(deployment(), traffic(to={"service": "front"}))
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    cluster.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": service}
    )
    cluster.settle()
    assert status(cluster)["ready"] == 2


def test_a_node_that_is_lost_takes_its_requests_along() -> None:
    cluster = world(deployment(4), traffic())
    cluster.advance("10s")
    [first, *_] = cluster.list("nodes")
    name = first["metadata"]["name"]
    there = sum(pod["spec"]["nodeName"] == name for pod in cluster.list("pods"))
    assert there
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    cluster.patch("nodes", name, {"status": {"conditions": [condition]}}, subresource="status")
    cluster.settle()
    assert status(cluster)["ready"] == 4 - there


def test_pods_without_limits_share_their_node_by_what_they_request() -> None:
    """Two of one core, both overloaded: 3 to 1, as the reference loop has it to the byte."""
    objects = [deployment(1, "600m", limit="none"), deployment(1, "200m", name="b", limit="none")]
    request = {"cpuTime": "20ms", "ioTime": "0s", "timeout": "3s"}
    loads = [
        traffic(arrivals=constant(90), request=request),
        traffic("b", to={"deployment": "b"}, arrivals=constant(70), request=request),
    ]
    cluster = world(*objects, *loads, nodes=1, cpu="1")
    cluster.advance("20s")
    pods, first = [], 0
    for weight, name in ((600, "load"), (200, "b")):
        arrived = columns(cluster, name).arrived.tolist()
        pod = Pod(0, weight, 3 * SECOND)
        pod.arrivals = [(at, first + row, 20 * 10**9) for row, at in enumerate(arrived)]
        first += len(arrived)
        pods.append(pod)
    play(1000, pods, 20 * SECOND)
    offset = 0
    for pod, name in zip(pods, ("load", "b"), strict=True):
        found = columns(cluster, name)
        left = {
            row: (int(found.completed[row]), found.outcome[row] == RequestOutcome.TIMEOUT)
            for row in range(found.count)
            if found.outcome[row] != RequestOutcome.OPEN
        }
        assert left == {row - offset: (at, late) for row, at, late in pod.ended}
        offset += found.count
    # 0.75 and 0.25 of a core.
    used = [pod.used + pod.rate * (20 * SECOND - pod.used_until) for pod in pods]
    assert used[0] / used[1] == pytest.approx(3, rel=0.01)


def test_a_pod_that_shares_its_node_drains_before_it_goes() -> None:
    request = {**REQUEST, "timeout": "4s"}
    load = traffic(arrivals=constant(60), request=request)
    grace: Any = {"terminationGracePeriodSeconds": 30}
    cluster = world(deployment(1, limit="none", **grace), load, nodes=1, cpu="1")
    cluster.advance("10s")
    assert outcomes(cluster)["OPEN"] > 20
    cluster.scale("deployments", "web", 0)
    cluster.advance("100ms")
    assert len(cluster.list("pods")) == 1
    cluster.advance("6s")
    assert not cluster.list("pods")
    assert "KILLED" not in outcomes(cluster)
    assert outcomes(cluster)["REFUSED"] == 366
    assert "OPEN" not in outcomes(cluster)


def test_who_shares_a_node_is_killed_when_the_grace_period_is_over() -> None:
    request = {**REQUEST, "timeout": "20s"}
    load = traffic(arrivals=constant(80), request=request)
    grace: Any = {"terminationGracePeriodSeconds": 1}
    cluster = world(deployment(1, limit="none", **grace), load, nodes=1, cpu="1")
    cluster.advance("10s")
    cluster.scale("deployments", "web", 0)
    cluster.advance("3s")
    found = columns(cluster)
    killed = found.outcome == RequestOutcome.KILLED
    assert int(killed.sum()) > 100
    assert set(found.completed[killed].tolist()) == {11 * SECOND}


def test_a_node_of_which_more_can_be_allocated_serves_more() -> None:
    """What a pod without a limit gets is what its node has."""
    load = traffic(arrivals=constant(300), request={**REQUEST, "ioTime": "0s"})
    cluster = world(deployment(1, limit="none"), load, nodes=1, cpu="1")
    cluster.advance("15s")
    [before] = serving(cluster).scraped(cluster.clock.now())
    status = {"allocatable": {"cpu": "3", "memory": "64Gi", "pods": "110"}}
    cluster.patch("nodes", "n0", {"status": status}, subresource="status")
    cluster.advance("15s")
    [after] = serving(cluster).scraped(cluster.clock.now())
    used = before.resources["cpu"], after.resources["cpu"]
    assert used == pytest.approx((1000, 3000), abs=1)


def test_stolen_cpu_is_nobodys() -> None:
    load = traffic(arrivals=constant(300), request={**REQUEST, "ioTime": "0s"})
    cluster = world(deployment(1, limit="none"), load, nodes=1, cpu="4")
    cluster.advance("15s")
    outage = {"nodes": {}, "what": "CpuStolen", "cpuShare": 0.25, "for": "15s"}
    kind = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "Outage", "metadata": {"name": "o"}}
    cluster.create({**kind, "spec": outage})
    used = []
    for _ in range(2):
        cluster.advance("15s")
        [pod] = serving(cluster).scraped(cluster.clock.now())
        used.append(pod.resources["cpu"])
    assert used == [pytest.approx(3000, abs=1), pytest.approx(4000, abs=1)]


def test_two_traffics_to_one_pod_say_that_they_share_nothing() -> None:
    cluster = world(deployment(), traffic(), traffic("other"))
    assert status(cluster)["message"] == (
        "pods serve default/other, too: each of both has all of their CPU"
    )
    cluster.delete("traffics", "other")
    cluster.advance("15s")
    assert "message" not in status(cluster)


def test_pods_whose_limits_do_not_fit_any_more_share_what_is_left() -> None:
    """Two of half a core on one core, of which a half is stolen."""
    load = traffic(arrivals=constant(200), request={**REQUEST, "ioTime": "0s"})
    cluster = world(deployment(2), load, nodes=1, cpu="1")
    cluster.advance("15s")
    outage = {"nodes": {}, "what": "CpuStolen", "cpuShare": 0.5}
    kind = {"apiVersion": "kubescene.dev/v1alpha1", "kind": "Outage", "metadata": {"name": "o"}}
    cluster.create({**kind, "spec": outage})
    cluster.advance("15s")
    used = [each.resources["cpu"] for each in serving(cluster).scraped(cluster.clock.now())]
    assert used == [pytest.approx(250, abs=1)] * 2


def test_scrapes_are_at_whole_multiples_whenever_a_traffic_begins() -> None:
    cluster = world(deployment(1))
    cluster.advance("7s")
    cluster.create(traffic())
    cluster.settle()
    cluster.advance("7s")
    assert not list(serving(cluster).scraped(cluster.clock.now()))
    cluster.advance("5s")
    [pod] = serving(cluster).scraped(cluster.clock.now())
    assert pod.time % (15 * SECOND) == 0
    # 40 a second since it came, in the 8 seconds before the scrape.
    assert pod.metrics["requests_per_second"] == 40_000
