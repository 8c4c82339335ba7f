"""What would it take: each kind of single change, and how they are put in order."""

from typing import Any

import pytest

import kubescene
from kubescene.clock import SECOND
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.errors import ConfigurationError, NotFoundError
from kubescene.remedies import Remedy, apply_remedy, find_remedies
from kubescene.remedies.requests import reduced
from kubescene.scenario import ScenarioBuilder
from kubescene.testing import make_node, make_pod


def world(*objects: Any) -> ClusterWorld:
    cluster = ClusterWorld()
    for obj in objects:
        cluster.create(obj)
        cluster.settle()
    return cluster


def texts(cluster: ClusterWorld, pod: str = "a") -> list[str]:
    return [f"{each.cost} {each.text}" for each in cluster.remedies(pod)]


def test_the_cheapest_change_comes_first_and_says_where_the_pod_went() -> None:
    cluster = world(
        make_node("small").cpu("2"),
        make_node("big").cpu("8").taint("keep", value="out"),
        make_pod("old").cpu("1500m"),
        make_pod("a").cpu("1"),
    )
    remedies = cluster.remedies("default/a")
    assert [(each.kind, each.cost, each.node) for each in remedies] == [
        ("Toleration", 3, "big"),
        ("Request", 5, "small"),
        ("Victim", 6, "small"),
        ("Node", 8, "small-twin-1"),
    ]
    assert [each.text for each in remedies] == [
        "tolerate the taint keep=out:NoSchedule",
        "request 500m cpu less: 500m instead of 1",
        "delete default/old from small",
        "add a node like small (tried as small-twin-1)",
    ]


def test_the_world_notices_nothing() -> None:
    cluster = world(make_node("n").cpu("1"), make_pod("a").cpu("2"))
    before, revision = cluster.export(), cluster.revision
    assert cluster.remedies("a") == cluster.remedies("a")
    assert (cluster.export(), cluster.revision) == (before, revision)


def test_a_label_or_a_term_less() -> None:
    cluster = world(make_node("n").cpu("1").label(zone="a"), make_pod("a").select(zone="b"))
    assert texts(cluster) == ["2 label node n with zone=b", "4 drop nodeSelector zone=b"]


@pytest.mark.parametrize(
    ("requirement", "label"),
    [
        (("disk", "In", "ssd", "nvme"), "disk=ssd"),
        (("disk", "Exists"), "disk=true"),
        (("size", "Gt", "7"), "size=8"),
    ],
)
def test_a_label_that_a_node_affinity_asks_for(requirement: tuple[str, ...], label: str) -> None:
    cluster = world(make_node("n"), make_pod("a").require(*requirement))
    assert texts(cluster)[0] == f"2 label node n with {label}"


def test_a_node_that_lacks_two_labels_is_not_proposed() -> None:
    cluster = world(make_node("n"), make_pod("a").select(x="1", y="2"))
    assert texts(cluster) == []


def test_a_spread_constraint_or_an_anti_affinity_can_be_dropped() -> None:
    away = make_pod("a").label(app="x").away_from("kubernetes.io/hostname", app="x")
    cluster = world(make_node("n").label(**{"kubernetes.io/hostname": "n"}), make_pod("b"), away)
    assert cluster.pod("a").node == "n"
    twin = make_pod("c").label(app="x").away_from("kubernetes.io/hostname", app="x")
    cluster.create(twin)
    cluster.settle()
    # The others' anti-affinity holds as well: dropping the pod's own term does not help.
    assert texts(cluster, "c") == [
        "6 delete default/a from n",
        "8 add a node like n (tried as n-twin-1)",
    ]


def test_a_cordoned_node_takes_a_toleration() -> None:
    cluster = world(make_node("n").unschedulable(), make_pod("a"))
    assert texts(cluster) == [
        "3 tolerate the taint node.kubernetes.io/unschedulable:NoSchedule",
    ]


def test_the_fewest_pods_go_if_one_is_not_enough() -> None:
    pods = [make_pod(f"p{number}").cpu("1") for number in range(4)]
    cluster = world(make_node("n").cpu("4"), *pods, make_pod("a").cpu("2"))
    victims = [each for each in cluster.remedies("a") if each.kind == "Victim"]
    assert [(each.cost, len(each.edits)) for each in victims] == [(12, 2)]


def test_memory_is_reduced_to_the_byte() -> None:
    cluster = world(make_node("n").memory("1000"), make_pod("a").memory("1001"))
    assert texts(cluster)[0] == "1 request 1 memory less: 1k instead of 1001"


def test_the_greatest_container_gives_first_and_init_containers_follow() -> None:
    pod = make_pod("a").cpu("1").build()
    pod["spec"]["containers"].append(
        {"name": "b", "image": "b", "resources": {"requests": {"cpu": "3"}}}
    )
    pod["spec"]["initContainers"] = [
        {"name": "i", "image": "i", "resources": {"requests": {"cpu": "4"}}}
    ]
    spec = reduced(pod, "cpu", 2500)["spec"]
    asked = [each["resources"]["requests"]["cpu"] for each in spec["containers"]]
    assert asked == ["1", "500m"]
    assert spec["initContainers"][0]["resources"]["requests"]["cpu"] == "1500m"


def test_limits_that_must_agree_go_down_as_well() -> None:
    amounts = {"example.com/gpu": "4"}
    pod = make_pod("a").build()
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": dict(amounts)}
    container = reduced(pod, "example.com/gpu", 3)["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"example.com/gpu": "1"}


def _of_another_scheduler() -> dict[str, Any]:
    pod = make_pod("a").build()
    pod["spec"]["schedulerName"] = "other"
    return pod


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (make_pod("a"), "is on n: there is nothing to remedy"),
        (make_pod("a").gate("later"), "waits for its scheduling gates: later"),
        (_of_another_scheduler(), "default/a asks for the scheduler 'other': no profile has it"),
    ],
)
def test_a_pod_that_waits_for_no_node_is_refused(pod: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        world(make_node("n"), pod).remedies("a")


def test_an_unknown_pod_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        world(make_node("n")).remedies("a")


def test_the_number_of_trials_is_bounded() -> None:
    cluster = world(make_node("n").cpu("1"), make_pod("a").cpu("2"))
    assert find_remedies(cluster, "a", most=1) == []
    asked: list[None] = []

    def once() -> bool:
        asked.append(None)
        return len(asked) < 2

    assert find_remedies(cluster, "a", go_on=once) == []
    assert len(asked) == 2


def test_a_run_knows_the_remedies_of_its_last_moment() -> None:
    scenario = ScenarioBuilder("s").create(make_node("n").cpu("1"), make_pod("a").cpu("2"))
    run = kubescene.run(scenario.done())
    (first, *_) = run.remedies("a")
    assert isinstance(first, Remedy)
    assert repr(first) == ("<request 1 cpu less: 1 instead of 2: default/a fits n, cost 5>")
    fork = run.cluster.fork()
    apply_remedy(fork, first)
    assert fork.settle().pod("a").node == "n"


def test_room_that_is_promised_to_others_counts_as_taken() -> None:
    """The node falls short by nothing, and yet the pod must give way to the nominated one."""
    slow = KubeletDelays(0, 0, 60 * SECOND)
    cluster = ClusterWorld(ClusterOptions(kubelet=slow))
    for name, value in (("low", 1), ("high", 9)):
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
        cluster.create({**kind, "metadata": {"name": name}})
    cluster.create(make_node("n").cpu("10").memory("10Gi"))
    cluster.create(make_pod("victim").cpu("1").memory("10Gi").priority_class("low"))
    cluster.settle()
    cluster.create(make_pod("promised").cpu("4").memory("5Gi").priority_class("high"))
    cluster.settle()
    cluster.create(make_pod("a").cpu("8").priority_class("high"))
    cluster.settle()
    assert cluster.pod("victim").node == "n"
    assert texts(cluster)[0] == "4 request 3 cpu less: 5 instead of 8"
