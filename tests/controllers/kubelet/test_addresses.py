"""The addresses that pods and nodes have: handed out in order, shown where somebody looks."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubescene
from kubescene.cluster import ClusterOptions, ClusterWorld
from kubescene.controllers.kubelet.addresses import BLOCKS, Addresses
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject

SELECTOR = {"app": "web"}


def service(selector: Mapping[str, str] | None = None) -> JsonObject:
    spec = {"selector": selector or SELECTOR, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def world(*, events: bool = True, nodes: int = 2, plain: bool = False) -> ClusterWorld:
    cluster = ClusterWorld(ClusterOptions(events=events, shortcuts=PLAIN if plain else ALL))
    for number in range(nodes):
        cluster.create(make_node(f"n{number}").cpu("640").memory("640Gi").pods("5000"))
    return cluster.settle()


def start(cluster: ClusterWorld, name: str, node: str = "n0", **spec: object) -> None:
    pod = make_pod(name).labels(SELECTOR).build()
    pod["spec"] |= {"nodeName": node, **spec}
    cluster.create(pod)
    cluster.settle()


def address(cluster: ClusterWorld, name: str) -> str:
    return str(cluster.get("Pod", name)["status"].get("podIP", ""))


def reached(cluster: ClusterWorld) -> list[str]:
    [found] = cluster.settle().list("EndpointSlice", namespace="default")
    return sorted(each["addresses"][0] for each in found["endpoints"])


class TestWhoGetsWhich:
    def test_nodes_have_blocks_and_pods_their_places_there(self) -> None:
        cluster = world()
        for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1")):
            start(cluster, name, node)
        found = [address(cluster, name) for name in "abc"]
        assert found == ["10.128.0.2", "10.128.0.3", "10.128.1.2"]
        status = cluster.get("Pod", "c")["status"]
        assert status["hostIP"] == "172.16.0.3"
        assert status["hostIPs"] == [{"ip": "172.16.0.3"}]
        assert status["podIPs"] == [{"ip": "10.128.1.2"}]
        assert cluster.get("Node", "n1")["status"]["addresses"] == [
            {"type": "InternalIP", "address": "172.16.0.3"},
            {"type": "Hostname", "address": "n1"},
        ]

    def test_what_was_given_back_comes_again_when_the_block_was_gone_through(self) -> None:
        cluster = world(nodes=1)
        start(cluster, "first")
        cluster.delete("Pod", "first", grace_period_s=0)
        start(cluster, "stays")
        assert address(cluster, "stays") == "10.128.0.3"
        for number in range(251):
            start(cluster, "again")
            assert address(cluster, "again") == f"10.128.0.{number + 4}"
            cluster.delete("Pod", "again", grace_period_s=0)
        start(cluster, "round")
        assert address(cluster, "round") == "10.128.0.2"
        start(cluster, "next")
        assert address(cluster, "next") == "10.128.0.4", "the third is still somebody's"

    def test_a_pod_that_has_ended_gives_it_back_and_still_shows_it(self) -> None:
        cluster = world(nodes=1)
        start(cluster, "task", restartPolicy="Never")
        ended = {"status": {"phase": "Succeeded"}}
        cluster.patch("Pod", "task", ended, subresource="status", patch_type="merge")
        cluster.settle()
        assert address(cluster, "task") == "10.128.0.2"
        for number in range(252):
            start(cluster, f"p{number}")
        start(cluster, "round")
        assert address(cluster, "round") == "10.128.0.2"

    def test_a_full_node_takes_another_block(self) -> None:
        cluster = world(nodes=1)
        for number in range(254):
            start(cluster, f"p{number}")
        assert address(cluster, "p252") == "10.128.0.254"
        assert address(cluster, "p253") == "10.128.1.2"

    def test_host_network_is_the_nodes_address(self) -> None:
        cluster = world()
        start(cluster, "agent", hostNetwork=True)
        assert address(cluster, "agent") == "172.16.0.2"

    def test_what_a_node_says_of_itself_counts(self) -> None:
        cluster = world(nodes=0)
        node = make_node("own").cpu("4").memory("4Gi").pods("10").build()
        node["spec"] = {"podCIDR": "10.128.0.0/23"}
        node["status"]["addresses"] = [{"type": "InternalIP", "address": "192.168.7.1"}]
        cluster.create(node)
        cluster.create(make_node("other").cpu("4").memory("4Gi").pods("10"))
        start(cluster.settle(), "a", "own")
        start(cluster, "b", "other")
        status = cluster.get("Pod", "a")["status"]
        assert (status["podIP"], status["hostIP"]) == ("10.128.0.2", "192.168.7.1")
        assert address(cluster, "b") == "10.128.3.2", "two blocks are in the range of the first"
        assert len(cluster.get("Node", "own")["status"]["addresses"]) == 1

    def test_an_address_that_a_pod_has_stays(self) -> None:
        cluster = world()
        pod = make_pod("known").build()
        pod["spec"]["nodeName"] = "n0"
        pod["status"] = {
            "phase": "Running",
            "podIP": "10.128.0.2",
            "podIPs": [{"ip": "10.128.0.2"}],
        }
        cluster.create(pod)
        patch = {"status": pod["status"]}
        cluster.patch("Pod", "known", patch, subresource="status", patch_type="merge")
        cluster.settle()
        assert address(cluster, "known") == "10.128.0.2"

    def test_a_node_that_went_leaves_its_block_to_others_later(self) -> None:
        cluster = world(nodes=1)
        cluster.delete("Node", "n0")
        for name in ("n1", "n0"):
            cluster.create(make_node(name).cpu("4").memory("4Gi").pods("10"))
        start(cluster.settle(), "a", "n1")
        start(cluster, "b", "n0")
        assert [address(cluster, "a"), address(cluster, "b")] == ["10.128.1.2", "10.128.2.2"]

    def test_blocks_come_again_and_end(self) -> None:
        addresses = Addresses()
        for number in range(BLOCKS + 1):
            addresses.node_came(make_node(f"n{number}").build())
        assert addresses.of_node(f"n{BLOCKS - 1}")[0]["address"] == "172.16.128.1"
        assert addresses.of_node(f"n{BLOCKS}") == []
        addresses.node_left("n7")
        addresses.node_came(make_node("late").build())
        assert addresses.of_node("late")[0]["address"] == "172.16.0.9"


class TestWhoLooks:
    def test_without_services_and_people_nothing_is_written(self) -> None:
        cluster = world(events=False)
        start(cluster, "a")
        assert address(cluster, "a") == ""
        assert "addresses" not in cluster.get("Node", "n0")["status"]

    def test_a_service_makes_them_matter(self) -> None:
        cluster = world(events=False)
        start(cluster, "early")
        cluster.create(service())
        assert reached(cluster) == ["10.128.0.2"]
        start(cluster, "late")
        assert reached(cluster) == ["10.128.0.2", "10.128.0.3"]
        assert cluster.get("Node", "n0")["status"]["addresses"][0]["address"] == "172.16.0.2"

    def test_a_service_without_pods_does_not(self) -> None:
        cluster = world(events=False)
        headless = service()
        del headless["spec"]["selector"]
        cluster.create(headless)
        start(cluster, "a")
        assert address(cluster, "a") == ""

    @pytest.mark.parametrize("plain", [False, True])
    @pytest.mark.parametrize("early", [False, True])
    def test_they_are_the_same_whether_people_look_or_not(self, early: bool, plain: bool) -> None:
        def played(*, events: bool) -> list[str]:
            cluster = world(events=events, plain=plain)
            cluster.create(service({"app": "web"} if early else {"app": "others"}))
            if not early:
                cluster.delete("Service", "web")
            for number in range(4):
                cluster.create(make_pod(f"p{number}").labels(SELECTOR))
            cluster.settle()
            cluster.delete("Pod", "p1", grace_period_s=0)
            cluster.create(make_pod("last").labels(SELECTOR))
            cluster.settle()
            if not early:
                cluster.create(service())
            return reached(cluster)

        assert played(events=True) == played(events=False)
        assert len(set(played(events=False))) == 4

    def test_they_are_the_same_in_the_lane(self, tmp_path: Path) -> None:
        """Many pods that are alike pass without their kubelet being asked."""
        pod = make_pod("p-$(INDEX)").labels(SELECTOR).build()
        node = make_node("n$(INDEX)").cpu("64").memory("64Gi").pods("100").build()
        gone = {"typeMeta": {"apiVersion": "v1", "kind": "Pod"}, "count": 5}
        steps: list[JsonObject] = [
            {"createOperation": {"object": node, "count": 3}},
            {"createOperation": {"object": pod, "count": 30}},
            {"deleteOperation": {**gone, "objectMeta": {"name": "p-$(INDEX)"}}},
            {"createOperation": {"object": pod, "count": 5}},
            {"createOperation": {"object": service()}},
        ]
        operations = [
            {"id": f"o{number}", "step": number + 1, **step} for number, step in enumerate(steps)
        ]
        scenario = {
            "apiVersion": "simulation.kube-scheduler-simulator.x-k8s.io/v1alpha1",
            "kind": "Scenario",
            "metadata": {"name": "lane"},
            "spec": {"operations": operations},
        }
        written = []
        for name, plain in (("fast", False), ("plain", True)):
            assert kubescene.run(scenario, out=tmp_path / name, plain=plain).ok
            written.append((tmp_path / name / "timeline.jsonl").read_bytes())
        assert written[0] == written[1]
        assert b'"10.128.0.14"' in written[0], "not given again so soon"
        assert b'"10.128.2.2"' in written[0]

    def test_pods_of_a_silent_node_are_told_when_it_is_back(self) -> None:
        cluster = world(events=False)
        start(cluster, "a")
        stopped = {"metadata": {"annotations": {"kubescene.dev/kubelet": "stopped"}}}
        cluster.patch("Node", "n0", stopped, patch_type="merge")
        cluster.create(service())
        assert reached(cluster) == []
        stopped["metadata"]["annotations"]["kubescene.dev/kubelet"] = None  # type: ignore[assignment]
        cluster.patch("Node", "n0", stopped, patch_type="merge")
        assert reached(cluster) == ["10.128.0.2"]

    def test_pods_with_a_life_have_one_before_their_images(self) -> None:
        cluster = world()
        pod = make_pod("slow").labels(SELECTOR).build()
        annotations = {"kubescene.dev/start-time": "2s", "kubescene.dev/pull-time": "10s"}
        pod["metadata"]["annotations"] = annotations
        cluster.create(pod)
        cluster.create(service())
        cluster.settle()
        assert address(cluster, "slow") == ""
        cluster.advance("2s")
        assert address(cluster, "slow") == "10.128.0.2"
        [found] = cluster.list("Endpoints", namespace="default")
        assert [each["ip"] for each in found["subsets"][0]["notReadyAddresses"]] == ["10.128.0.2"]
        cluster.advance("10s")
        [found] = cluster.list("Endpoints", namespace="default")
        assert [each["ip"] for each in found["subsets"][0]["addresses"]] == ["10.128.0.2"]

    @pytest.mark.parametrize("plain", [False, True])
    def test_pods_that_live_alike_have_theirs_from_their_start(self, plain: bool) -> None:
        """Also where nobody sees them yet: who comes later does not get one of theirs."""

        def played(*, events: bool) -> dict[str, str]:
            cluster = world(events=events, nodes=1, plain=plain)
            for name in ("p0", "p1", "p2"):
                pod = make_pod(name).labels(SELECTOR).build()
                pod["metadata"]["annotations"] = {"kubescene.dev/run-time": "1h"}
                cluster.create(pod)
            cluster.settle()
            cluster.delete("Pod", "p1", grace_period_s=0)
            start(cluster, "last")
            cluster.create(service())
            cluster.settle()
            return {name: address(cluster, name) for name in ("p0", "p2", "last")}

        expected = {"p0": "10.128.0.2", "p2": "10.128.0.4", "last": "10.128.0.5"}
        assert played(events=False) == played(events=True) == expected

    def test_a_fork_goes_on_alike(self) -> None:
        cluster = world()
        start(cluster, "a")
        fork = cluster.fork()
        for each in (cluster, fork):
            start(each, "b")
            assert address(each, "b") == "10.128.0.3"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.booleans()), max_size=60))
def test_no_two_pods_ever_have_one_address(moves: list[tuple[str, int, bool]]) -> None:
    """A node of six places, and others; pods come and go in any order."""
    addresses = Addresses()
    has: dict[str, str] = {}
    small = make_node("a").build()
    small["spec"] = {"podCIDR": "10.200.0.0/29"}
    for node in (small, make_node("b").build(), make_node("c").build()):
        addresses.node_came(node)
    for node_name, number, comes in moves:
        uid = f"{node_name}{number}"
        if comes:
            addresses.give(node_name, uid)
            pod = make_pod(uid).build()
            pod["metadata"]["uid"], pod["spec"]["nodeName"] = uid, node_name
            found = addresses.of_pod({**pod, "status": {}})["podIP"]
            assert has.setdefault(uid, found) == found
        else:
            addresses.take_back(node_name, uid)
            has.pop(uid, None)
        assert len(set(has.values())) == len(has)
