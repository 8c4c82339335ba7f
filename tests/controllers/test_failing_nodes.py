"""What happens around nodes that fail: taints, evictions in their time, pods that are collected."""

from collections.abc import Callable
from typing import Any

import pytest

from kubescene.actors import ENGINE
from kubescene.api.kinds import NODE, POD
from kubescene.api.records.changes import Change
from kubescene.client import Client, ObjectRef
from kubescene.clock import SECOND, format_duration
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.builtin.nodes.node_conditions import CONDITION_TAINTS
from kubescene.controllers.builtin.nodes.node_lifecycle import ZoneHealth
from kubescene.controllers.builtin.nodes.pod_garbage_collector import EXCESS, PodGarbageCollector
from kubescene.controllers.reconcile import Delete, ObjectKey
from kubescene.testing import make_deployment, make_node, make_pod
from kubescene.types import JsonObject

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


def world(*nodes: str, zone: str = "", events: bool = False) -> Cluster:
    cluster = Cluster(ClusterOptions(events=events))
    for name in nodes:
        grow(cluster, name, zone)
    return cluster.settle()


def grow(cluster: Cluster, name: str, zone: str = "") -> None:
    node = make_node(name).cpu("64").memory("64Gi")
    cluster.create(node.label(**{"topology.kubernetes.io/zone": zone}) if zone else node)


def say(cluster: Cluster, node: str, ready: str, kind: str = "Ready") -> None:
    """Write a condition as a node, or who watches it, would."""
    ref, status = ObjectRef(NODE, node), {"conditions": [{"type": kind, "status": ready}]}
    cluster.client(ENGINE).patch(ref, {"status": status}, subresource="status")


def taint(cluster: Cluster, node: str, *keys: str) -> None:
    taints = [{"key": key, "effect": "NoExecute"} for key in keys]
    cluster.patch("nodes", node, {"spec": {"taints": taints or None}})
    cluster.settle()


def taints(cluster: Cluster, node: str) -> set[tuple[str, str]]:
    found = cluster.get("nodes", node)["spec"].get("taints") or ()
    return {(each["key"], each["effect"]) for each in found}


def driven(cluster: Cluster, *nodes: str) -> list[str]:
    """Those nodes whose pods are driven away."""
    return [n for n in nodes if any(effect == "NoExecute" for _, effect in taints(cluster, n))]


def names(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in cluster.list("pods")]


def tolerating(name: str, node: str, *given: JsonObject) -> JsonObject:
    pod = make_pod(name).on(node).build()
    return {**pod, "spec": {**pod["spec"], "tolerations": [*given]}}


# -- conditions and taints -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "status", "key"),
    [
        (kind, status, key)
        for kind, keys in CONDITION_TAINTS.items()
        for status, key in keys.items()
        if kind != "Ready"
    ],
)
def test_a_condition_keeps_pods_away_as_long_as_it_holds(kind: str, status: str, key: str) -> None:
    cluster = world("a", "b")
    say(cluster, "a", status, kind)
    assert taints(cluster.settle(), "a") == {(key, "NoSchedule")}
    say(cluster, "a", "False", kind)
    assert taints(cluster.settle(), "a") == set()


@pytest.mark.parametrize(("status", "key"), [("False", NOT_READY), ("Unknown", UNREACHABLE)])
def test_a_node_that_is_not_ready_is_tainted_until_it_is_back(status: str, key: str) -> None:
    cluster = world("a", "b")
    say(cluster, "a", status)
    assert taints(cluster.settle(), "a") == {(key, "NoSchedule"), (key, "NoExecute")}
    say(cluster, "a", "True")
    assert taints(cluster.settle(), "a") == set()


def test_not_ready_becomes_unreachable_at_once() -> None:
    cluster = world("a", "b", "c", "d")
    for name in ("a", "b"):
        say(cluster, name, "False")
    cluster.settle()
    say(cluster, "a", "Unknown")
    expected = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert taints(cluster.settle(), "a") == expected


def test_a_cordoned_node_is_tainted() -> None:
    cluster = world("a")
    cluster.patch("nodes", "a", {"spec": {"unschedulable": True}})
    taint_of_cordon = {("node.kubernetes.io/unschedulable", "NoSchedule")}
    assert taints(cluster.settle(), "a") == taint_of_cordon
    cluster.patch("nodes", "a", {"spec": {"unschedulable": None}})
    assert taints(cluster.settle(), "a") == set()


def test_taints_of_others_stay_and_those_of_a_condition_that_does_not_hold_go() -> None:
    cluster = world("a")
    own = [
        {"key": "mine", "effect": "NoSchedule"},
        {"key": NOT_READY, "effect": "NoSchedule"},
        {"key": NOT_READY, "effect": "PreferNoSchedule"},
        {"key": UNREACHABLE, "effect": "NoExecute"},
    ]
    cluster.patch("nodes", "a", {"spec": {"taints": own}})
    assert taints(cluster.settle(), "a") == {
        ("mine", "NoSchedule"),
        (NOT_READY, "PreferNoSchedule"),
    }


# -- one node after the other ----------------------------------------------------------------------


def test_one_node_in_ten_seconds_in_each_zone() -> None:
    cluster = world("a1", "a2", "a3", "a4", "a5", "a6", zone="a")
    for name in ("b1", "b2", "b3"):
        grow(cluster, name, "b")
    failed = ("a1", "a2", "a3", "b1", "b2")
    for name in failed:
        say(cluster.settle(), name, "Unknown")
    assert driven(cluster.settle(), *failed) == ["a1", "b1"]
    cluster.advance("9s")
    assert driven(cluster, *failed) == ["a1", "b1"]
    cluster.advance("1s")
    assert driven(cluster, *failed) == ["a1", "a2", "b1", "b2"]
    cluster.advance("10s")
    assert driven(cluster, *failed) == [*failed]


def test_a_node_that_is_back_before_its_turn_is_left_alone() -> None:
    cluster = world("a", "b", "c", "d", "e")
    for name in ("a", "b"):
        say(cluster, name, "False")
    cluster.settle()
    say(cluster, "b", "True")
    cluster.settle().advance("60s")
    assert driven(cluster, "a", "b") == ["a"]


def test_in_a_small_zone_that_is_mostly_down_nobody_is_driven_away() -> None:
    failed = ("a", "b", "c")
    cluster = world(*failed, "d", "e")
    for name in failed:
        say(cluster, name, "Unknown")
    cluster.settle().advance("600s")
    assert driven(cluster, *failed) == []
    say(cluster, "c", "True")
    cluster.settle().advance("30s")
    assert driven(cluster, "a", "b") == ["a", "b"]


@pytest.mark.parametrize(
    ("size", "down", "interval_s"),
    [
        (1, 0, 10),
        (4, 2, 10),
        (5, 3, None),
        (6, 3, 10),
        (20, 11, None),
        (20, 10, 10),
        (50, 28, None),
        (51, 29, 100),
        (51, 28, 10),
        (51, 51, 10),
        (3, 3, 10),
    ],
)
def test_the_pace_of_a_zone(size: int, down: int, interval_s: int | None) -> None:
    zone = ZoneHealth()
    for number in range(size):
        zone.put(str(number), is_up=number >= down)
    assert zone.pace == (None if interval_s is None else interval_s * SECOND)


def test_a_zone_that_is_down_altogether_is_evicted_if_another_one_is_up() -> None:
    failed = ("a1", "a2", "a3")
    cluster = world(*failed, zone="a")
    grow(cluster, "b1", "b")
    for name in failed:
        say(cluster.settle(), name, "Unknown")
    cluster.settle().advance("30s")
    assert driven(cluster, *failed) == [*failed]


def test_if_every_zone_is_down_nobody_is_driven_away_and_taints_are_taken_back() -> None:
    cluster = world("a", zone="a")
    grow(cluster, "b", "b")
    say(cluster.settle(), "a", "Unknown")
    assert driven(cluster.settle(), "a", "b") == ["a"]
    say(cluster, "b", "Unknown")
    cluster.settle().advance("600s")
    assert driven(cluster, "a", "b") == []
    assert (UNREACHABLE, "NoSchedule") in taints(cluster, "a")
    say(cluster, "b", "True")
    cluster.settle().advance("10s")
    assert driven(cluster, "a", "b") == ["a"]


# -- who goes, and when ----------------------------------------------------------------------------

FOR_EVER: JsonObject = {"key": "k", "operator": "Exists"}
SHORT: JsonObject = {
    "key": "k",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 30,
}
LONG: JsonObject = {
    "key": "j",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 60,
}
NEVER: JsonObject = {
    "key": "k",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": -1,
}


@pytest.mark.parametrize(
    ("given", "keys", "gone_after_s"),
    [
        ((), ("k",), 0),
        ((FOR_EVER,), ("k",), None),
        ((SHORT,), ("k",), 30),
        ((NEVER,), ("k",), 0),
        ((LONG,), ("k",), 0),
        ((SHORT,), ("k", "j"), 0),
        ((LONG, SHORT), ("k", "j"), 30),
        ((FOR_EVER, LONG), ("k", "j"), 60),
        ((FOR_EVER, SHORT), ("k",), None),
    ],
)
def test_a_pod_goes_when_its_shortest_toleration_is_over(
    given: tuple[JsonObject, ...], keys: tuple[str, ...], gone_after_s: int | None
) -> None:
    cluster = world("a")
    cluster.create(tolerating("p", "a", *given))
    taint(cluster.settle(), "a", *keys)
    if gone_after_s:
        assert names(cluster) == ["p"]
        cluster.advance(format_duration(gone_after_s * SECOND - 1))
        assert names(cluster) == ["p"]
        cluster.advance("1ns")
    elif gone_after_s is None:
        cluster.advance("3600s")
    assert names(cluster) == (["p"] if gone_after_s is None else [])


def test_a_pod_that_comes_to_a_tainted_node_goes_too() -> None:
    cluster = world("a")
    taint(cluster, "a", "k")
    cluster.create(tolerating("late", "a"))
    cluster.create(tolerating("later", "a", SHORT))
    assert names(cluster.settle()) == ["later"]
    cluster.advance("30s")
    assert names(cluster) == []


def test_if_the_taint_goes_in_time_the_pod_stays_and_the_next_one_counts_anew() -> None:
    cluster = world("a")
    cluster.create(tolerating("p", "a", SHORT))
    taint(cluster.settle(), "a", "k")
    cluster.advance("20s")
    taint(cluster, "a")
    cluster.advance("20s")
    assert names(cluster) == ["p"]
    taint(cluster, "a", "k")
    cluster.advance("29s")
    assert names(cluster) == ["p"]
    cluster.advance("1s")
    assert names(cluster) == []


def test_another_taint_does_not_delay_what_was_decided() -> None:
    cluster = world("a")
    cluster.create(tolerating("p", "a", SHORT, LONG))
    taint(cluster.settle(), "a", "k")
    cluster.advance("20s")
    taint(cluster, "a", "k", "j")
    cluster.advance("10s")
    assert names(cluster) == []


def test_at_the_same_instant_the_shorter_toleration_counts() -> None:
    cluster = world("a")
    cluster.create(tolerating("p", "a", SHORT, LONG))
    taint(cluster.settle(), "a", "j")
    taint(cluster, "a", "j", "k")
    cluster.advance("30s")
    assert names(cluster) == []


def test_a_pod_that_the_scheduler_puts_on_a_tainted_node_goes_in_its_time() -> None:
    cluster = world("a")
    taint(cluster, "a", "k")
    cluster.create(make_pod("other"))
    cluster.settle()
    pod = make_pod("p").build()
    cluster.create({**pod, "spec": {**pod["spec"], "tolerations": [SHORT]}})
    assert cluster.settle().pod("p").node == "a"
    cluster.advance("30s")
    assert names(cluster) == ["other"]


def test_a_toleration_that_is_added_saves_a_pod() -> None:
    cluster = world("a")
    cluster.create(tolerating("p", "a", SHORT))
    taint(cluster.settle(), "a", "k")
    pod = cluster.get("pods", "p")
    given = [{"key": "k", "operator": "Exists"}, *pod["spec"]["tolerations"]]
    cluster.patch("pods", "p", {"spec": {"tolerations": given}})
    cluster.settle().advance("600s")
    assert names(cluster) == ["p"]


def test_another_pod_of_the_name_is_not_the_one_that_was_to_go() -> None:
    cluster = world("a", "b")
    cluster.create(tolerating("p", "a", SHORT))
    taint(cluster.settle(), "a", "k")
    cluster.delete("pods", "p")
    cluster.settle().create(tolerating("p", "b"))
    cluster.settle().advance("600s")
    assert names(cluster) == ["p"]


def test_a_deployment_is_whole_again_five_minutes_after_its_node_has_failed() -> None:
    cluster = world("a", "b", "c", events=True)
    cluster.create(make_deployment("web").replicas(3))
    cluster.settle()
    lost = next(p for p in cluster.list("pods") if p["spec"]["nodeName"] == "a")["metadata"]["name"]
    say(cluster, "a", "False")
    cluster.settle().advance("299.999999999s")
    assert lost in names(cluster)
    cluster.advance("1ns")
    assert sorted(pod["spec"]["nodeName"] for pod in cluster.list("pods")) in (
        ["b", "b", "c"],
        ["b", "c", "c"],
    )
    said = [event["message"] for event in cluster.list("events") if "Taint" in event["reason"]]
    assert said == [f"Marking for deletion Pod default/{lost}"]


# -- nobody hears of a node ------------------------------------------------------------------------


def condition(cluster: Cluster, pod: str, kind: str) -> JsonObject:
    found = cluster.get("pods", pod)["status"]["conditions"]
    return next((each for each in found if each["type"] == kind), {})


def test_pods_of_a_node_that_nobody_hears_of_are_not_ready_and_wait_for_it() -> None:
    cluster = world("a", "b")
    cluster.create(tolerating("p", "a"))
    cluster.create(tolerating("q", "a"))
    say(cluster.settle(), "a", "Unknown")
    cluster.create(tolerating("late", "a"))
    assert condition(cluster.settle(), "p", "Ready")["status"] == "False"
    assert cluster.get("pods", "late")["status"]["phase"] == "Pending"
    cluster.delete("pods", "q")
    assert names(cluster.settle()) == ["late", "p", "q"]
    say(cluster, "a", "True")
    assert names(cluster.settle()) == ["late", "p"]
    assert condition(cluster, "p", "Ready")["status"] == "True"
    assert cluster.get("pods", "late")["status"]["phase"] == "Running"


def test_an_evicted_pod_says_why_it_goes() -> None:
    cluster = world("a", "b")
    cluster.create(make_pod("p").on("a"))
    say(cluster.settle(), "a", "Unknown")
    cluster.settle().advance("300s")
    assert cluster.get("pods", "p")["metadata"]["deletionTimestamp"]
    told = condition(cluster, "p", "DisruptionTarget")
    assert (told["status"], told["reason"]) == ("True", "DeletionByTaintManager")
    assert told["message"] == "Taint manager: deleting due to NoExecute taint"


# -- what is collected -----------------------------------------------------------------------------


def test_pods_of_a_node_that_is_gone_are_collected_after_forty_seconds() -> None:
    cluster = world("a", "b")
    cluster.create(make_pod("p").on("a"))
    cluster.create(make_pod("q").on("b"))
    cluster.settle().delete("nodes", "a")
    cluster.settle().advance("39.999999999s")
    assert names(cluster) == ["p", "q"]
    cluster.advance("1ns")
    assert names(cluster) == ["q"]


def test_a_node_that_is_back_in_time_keeps_its_pods() -> None:
    cluster = world("a", "b")
    cluster.create(make_pod("p").on("a"))
    cluster.settle().delete("nodes", "a")
    cluster.settle().advance("20s")
    grow(cluster, "a")
    cluster.settle().advance("60s")
    assert names(cluster) == ["p"]
    cluster.delete("nodes", "a")
    cluster.settle().advance("39s")
    assert names(cluster) == ["p"]


def test_a_pod_of_a_node_that_never_was_is_collected() -> None:
    cluster = world("a")
    cluster.create(make_pod("p").on("nowhere"))
    cluster.settle().advance("40s")
    assert names(cluster) == []


def held(pod: JsonObject) -> JsonObject:
    return {**pod, "metadata": {**pod["metadata"], "finalizers": ["example.com/hold"]}}


def test_a_collected_pod_has_failed_and_says_why() -> None:
    cluster = world("a", "b")
    cluster.create(held(make_pod("p").on("a").build()))
    cluster.settle().delete("nodes", "a")
    cluster.settle().advance("40s")
    assert cluster.get("pods", "p")["status"]["phase"] == "Failed"
    told = condition(cluster, "p", "DisruptionTarget")
    assert (told["reason"], told["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
    assert cluster.get("pods", "p")["metadata"]["deletionGracePeriodSeconds"] == 0


def test_a_pod_that_goes_without_ever_having_had_a_node_has_failed() -> None:
    cluster = world()
    cluster.create(held(make_pod("p").build()))
    cluster.settle().delete("pods", "p")
    assert cluster.advance("19s").get("pods", "p")["status"]["phase"] == "Pending"
    assert cluster.advance("1s").get("pods", "p")["status"]["phase"] == "Failed"


def test_a_node_out_of_service_lets_its_pods_go() -> None:
    cluster = world("a", "b")
    cluster.create(tolerating("p", "a", {"operator": "Exists"}))
    cluster.create(tolerating("q", "a", {"operator": "Exists"}))
    say(cluster.settle(), "a", "Unknown")
    cluster.settle().delete("pods", "p")
    assert names(cluster.settle()) == ["p", "q"]
    kept = cluster.get("nodes", "a")["spec"]["taints"]
    mark = {"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"}
    cluster.patch("nodes", "a", {"spec": {"taints": [*kept, mark]}})
    assert names(cluster.settle()) == ["q"]
    cluster.delete("pods", "q")
    assert names(cluster.settle()) == []


def ended(cluster: Cluster, name: str, **status: Any) -> None:
    cluster.create(make_pod(name))
    ref = ObjectRef(POD, name, "default")
    cluster.client(ENGINE).patch(ref, {"status": status}, subresource="status")


def test_of_very_many_pods_that_have_ended_evicted_and_oldest_ones_go() -> None:
    cluster = world()
    collector = PodGarbageCollector(most_ended=1)
    client = cluster.client(ENGINE)
    for number, name in enumerate(("b", "a", "evicted")):
        cluster.advance("1s" if number == 2 else "0s")
        reason = {"reason": "Evicted"} if name == "evicted" else {}
        ended(cluster, name, phase="Failed" if reason else "Succeeded", **reason)
    keys: list[ObjectKey] = []
    client.watch(POD, lambda change: keys.extend(collector.observe(change)))
    plan = collector.reconcile(keys[-1], client, cluster.clock.now())
    assert [each.ref.name for each in plan.writes if isinstance(each, Delete)] == ["evicted", "a"]


class CountingReader:
    """Counts what is read of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.read = 0

    def find(self, ref: ObjectRef) -> Any:
        self.read += 1
        return self._client.find(ref)


def excess(collector: PodGarbageCollector, reader: Any) -> list[str]:
    plan = collector.reconcile(EXCESS, reader, 0)
    return [each.ref.name for each in plan.writes if isinstance(each, Delete)]


def told(collector: PodGarbageCollector) -> Callable[[Change], None]:
    def tell(change: Change) -> None:
        list(collector.observe(change))

    return tell


def test_with_every_pod_that_ends_the_others_are_not_ranked_anew() -> None:
    cluster = world()
    collector = PodGarbageCollector(most_ended=20)
    client = cluster.client(ENGINE)
    client.watch(POD, told(collector))
    for number in range(25):
        ended(cluster, f"p{number:02}", phase="Succeeded")
    reader = CountingReader(client)
    assert excess(collector, reader) == [f"p{number:02}" for number in range(5)]
    for number in range(5):
        cluster.delete("pods", f"p{number:02}")
    reader.read = 0
    for number in range(25, 45):
        ended(cluster, f"p{number:02}", phase="Succeeded")
        assert excess(collector, reader) == [f"p{number - 20:02}"]
        cluster.delete("pods", f"p{number - 20:02}")
    assert reader.read <= 2 * 20


def test_an_ended_pod_that_is_said_to_be_evicted_later_goes_first_then() -> None:
    cluster = world()
    collector = PodGarbageCollector(most_ended=2)
    client = cluster.client(ENGINE)
    client.watch(POD, told(collector))
    for name in "abc":
        ended(cluster, name, phase="Failed")
    assert excess(collector, client) == ["a"]
    ref = ObjectRef(POD, "c", "default")
    client.patch(ref, {"status": {"reason": "Evicted"}}, subresource="status")
    assert excess(collector, client) == ["c"]
    cluster.delete("pods", "c")
    assert excess(collector, client) == []
    ended(cluster, "c", phase="Succeeded")
    assert excess(collector, client) == ["a"]
