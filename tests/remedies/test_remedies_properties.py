"""In random small worlds every remedy does what it says, and no smaller reduction would do."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubescene import Cluster
from kubescene.api.resource_requests import pod_requests
from kubescene.remedies import Remedy, RemedyKind, apply_remedy
from kubescene.remedies.remedy import fresh
from kubescene.remedies.requests import reduced
from kubescene.testing import make_node, make_pod

ZONES = ("a", "b", "c")


@st.composite
def worlds(draw: st.DrawFn) -> Cluster:
    cluster = Cluster()
    for number in range(draw(st.integers(1, 4))):
        node = make_node(f"n{number}").cpu(draw(st.sampled_from(["1", "2", "4"])))
        node = node.memory(draw(st.sampled_from(["1Gi", "3Gi"]))).zone(draw(st.sampled_from(ZONES)))
        node = node.label(**{"kubernetes.io/hostname": f"n{number}"})
        if draw(st.booleans()):
            node = node.taint("keep", value=draw(st.sampled_from(["out", "off"])))
        cluster.create(node)
    for number in range(draw(st.integers(0, 5))):
        pod = make_pod(f"p{number}").cpu(draw(st.sampled_from(["300m", "900m", "2"])))
        cluster.create(pod.label(app=draw(st.sampled_from(["x", "y"]))).tolerate("keep"))
    cluster.settle()
    for obj in cluster.list("pods"):
        if not obj["spec"].get("nodeName"):
            cluster.delete("Pod", obj["metadata"]["name"], grace_period_s=0)
    cluster.create(draw(waiting_pods()))
    return cluster.settle()


@st.composite
def waiting_pods(draw: st.DrawFn) -> Any:
    pod = make_pod("a").label(app="x").cpu(draw(st.sampled_from(["250m", "1700m", "5"])))
    pod = pod.memory(draw(st.sampled_from(["1Mi", "1500Mi"])))
    zone = "topology.kubernetes.io/zone"
    if draw(st.booleans()):
        pod = pod.select(**{zone: draw(st.sampled_from([*ZONES, "d"]))})
    if draw(st.booleans()):
        pod = pod.away_from(zone, app=draw(st.sampled_from(["x", "y"])))
    if draw(st.booleans()):
        pod = pod.spread(zone, app="x")
    return pod


def place_after(cluster: Cluster, remedy: Remedy) -> str:
    fork = cluster.fork()
    apply_remedy(fork, remedy)
    return fork.settle().pod("a").node


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(worlds())
def test_every_remedy_lets_the_pod_be_placed(cluster: Cluster) -> None:
    if cluster.pod("a").node:
        return
    remedies = cluster.remedies("a")
    assert [each.cost for each in remedies] == sorted(each.cost for each in remedies)
    for remedy in remedies:
        assert place_after(cluster, remedy) == remedy.node
        if remedy.kind is RemedyKind.REQUEST:
            assert_smallest(cluster, remedy)


def assert_smallest(cluster: Cluster, remedy: Remedy) -> None:
    """One unit more fits nowhere."""
    pod, less = cluster.get("Pod", "a"), remedy.edits[0].object
    before, after = pod_requests(pod), pod_requests(less)
    (resource,) = [name for name in before if before[name] != after.get(name, 0)]
    units = before[resource] - after.get(resource, 0) - 1
    fork = cluster.fork()
    fork.delete("Pod", "a", grace_period_s=0)
    fork.create(fresh(reduced(pod, resource, units)))
    assert not fork.settle().pod("a").node
