"""Ten small clusters whose right answers are arithmetic."""

from pathlib import Path

import pytest

import kubescene
from hand_made import asked, budget, nodes, rows, workload
from kubescene.errors import ConfigurationError, SnapshotError
from kubescene.results.cost.prices import Prices
from kubescene.snapshots import Snapshot, read_snapshot
from kubescene.testing import make_node, make_pod
from kubescene.types import JsonObject
from kubescene.what_if import WhatIf
from kubescene.what_if.repacking import NewNode
from kubescene.what_if.selecting import selected


def test_1_half_of_the_nodes_are_lost_and_the_other_half_has_just_the_room(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)  # 2 zones, 8 cores each
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    what_if = asked(cluster, tmp_path)
    answer = what_if.lose("zone=a")
    on_a = sum(each["spec"]["nodeName"] in ("n0", "n2") for each in what_if.world.list("pods"))
    assert answer.measures["pods"] == on_a
    assert answer.measures["pending"] == answer.measures["unavailable"] == 0
    # Nobody hears of a kubelet for 50 s; the second node is tainted 10 s after the first; then
    # pods are tolerated for 300 s.
    assert rows(answer, "Workloads") == [("default/web (Deployment)", on_a, 8, 8, "6m", 310.0)]
    assert answer.sentence == (
        f"If 2 nodes of zone=a fell silent, all {on_a} pods there would be back after 6m."
    )
    # Whose nodes are deleted is made again at once.
    assert rows(what_if.lose("zone=a", removed=True), "Workloads")[0][4] == "at once"


def test_2_what_finds_no_room_after_a_zone_is_lost_is_counted(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)
    cluster.create(workload("Deployment", "web", "1", replicas=12))
    answer = asked(cluster, tmp_path).lose("zone=a", removed=True)
    assert answer.measures["pending"] == answer.measures["unavailable"] == 12 - 8
    assert {why.split(": ", 1)[1].split(".")[0] for _, why in rows(answer, "Pods that wait")} == {
        "2 Insufficient cpu"
    }


def test_3_a_volume_holds_its_pod_in_the_zone_that_is_lost(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    affinity = {
        "required": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {
                            "key": "topology.kubernetes.io/zone",
                            "operator": "In",
                            "values": ["a"],
                        }
                    ]
                }
            ]
        }
    }
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "csi": {"driver": "d", "volumeHandle": "v"},
        "nodeAffinity": affinity,
    }
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": volume,
        }
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    cluster.create(
        workload(
            "StatefulSet",
            "db",
            "1",
            replicas=1,
            serviceName="db",
            volumeClaimTemplates=[claim],
        )
    )
    what_if = asked(cluster, tmp_path)
    silent = what_if.lose("zone=a")
    # A StatefulSet waits until its pod is known to be gone, which nobody can say.
    assert rows(silent, "Pods that stay Terminating") == [("default/db-0",)]
    assert silent.measures["unavailable"] == 1
    removed = what_if.lose("zone=a", removed=True)
    ((pod, why),) = rows(removed, "Pods that wait")
    assert pod == "default/db-0"
    assert "didn't match PersistentVolume's node affinity" in why


def test_4_a_budget_of_all_pods_never_lets_one_go(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 3)
    cluster.create(workload("Deployment", "web", "1", replicas=3))
    cluster.create(budget("web", minAvailable="100%"))
    answer = asked(cluster, tmp_path).drain("node=n0")
    assert answer.measures["undrained"] == 1
    ((node, _, why),) = rows(answer, "Pods in the way")
    assert node == "n0"
    assert why == (
        "budget web: minAvailable 100%, 3 of 3 healthy, 0 may go: it never allows one to go"
    )


def test_5_a_budget_that_allows_one_lets_them_go_one_by_one(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 1)
    cluster.create(workload("Deployment", "web", "1", replicas=3))
    cluster.settle()
    nodes_later = make_node("spare").cpu("8").memory("16Gi").build()
    cluster.create(nodes_later)
    cluster.create(budget("web", maxUnavailable=1))
    answer = asked(cluster, tmp_path, start_delay="20s").drain("node=n0")
    # One goes at 0 s, and each next once the one before is ready after 20 s: asked every 5 s.
    assert answer.measures == {
        "nodes": 1,
        "undrained": 0,
        "blocking": 0,
        "evicted": 3,
        "pending": 0,
        "seconds": 40.0,
    }


@pytest.mark.parametrize(
    ("why", "spec", "owned"),
    [
        ("no controller would make it again", {}, False),
        ("it has an emptyDir", {"volumes": [{"name": "v", "emptyDir": {}}]}, True),
    ],
)
def test_6_pods_that_kubectl_does_not_touch_are_named(
    cluster: kubescene.Cluster, tmp_path: Path, why: str, spec: JsonObject, owned: bool
) -> None:
    nodes(cluster, 2)
    if owned:
        cluster.create(workload("Deployment", "web", "1", replicas=1, pod_spec=spec))
    else:
        cluster.create(make_pod("alone").cpu("1"))
    what_if = asked(cluster, tmp_path)
    (pod,) = what_if.world.list("pods")
    answer = what_if.drain(f"node={pod['spec']['nodeName']}")
    ((_, name, told),) = rows(answer, "Pods in the way")
    assert name == f"default/{pod['metadata']['name']}"
    assert told.startswith(why)


def test_7_as_many_nodes_go_as_the_requests_leave_over(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 6)  # 24 cores
    cluster.create(workload("Deployment", "web", "1", replicas=9))  # need 3 nodes of 4
    what_if = asked(cluster, tmp_path)
    answer = what_if.shrink("pool=general")
    assert answer.measures["removable"] == 3
    # With a quarter kept free 9 cores need 12 of 16: only two nodes may go.
    assert what_if.shrink("pool=general", keep=0.25).measures["removable"] == 3
    assert what_if.shrink("pool=general", keep=0.30).measures["removable"] == 2
    assert "would stay free" in what_if.shrink("pool=general", keep=0.30).sentence


def test_8_the_pod_limit_of_a_node_and_daemons_count_for_what_fits(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    for number in range(3):
        node = make_node(f"n{number}").cpu("4").memory("16Gi").build()
        for part in ("capacity", "allocatable"):
            node["status"][part]["pods"] = "5"
        cluster.create(node)
    cluster.create(workload("DaemonSet", "agent", "500m"))
    what_if = asked(cluster, tmp_path)
    small = make_pod("small").cpu("100m").build()
    answer = what_if.fit([small])
    assert answer.measures["fits"] == 3 * (5 - 1)  # the agent is a pod, too
    assert "Too many pods" in answer.sentence
    big = make_pod("big").cpu("1").build()
    assert what_if.fit([big]).measures["fits"] == 3 * 3  # 3.5 cores are left on each
    # Together: 2 small and 1 big are 1.2 cores and 3 pods; a node has 3.5 cores and 4 pods.
    both = what_if.fit([small, small, big])
    assert both.measures["fits"] == 12 // 3


def test_9_spreading_forbids_what_there_is_room_for(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)
    spread = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    }
    cluster.create(workload("Deployment", "web", "1", replicas=4, pod_spec=spread))
    what_if = asked(cluster, tmp_path)
    # Both nodes of zone b are silent: the zone still counts, so only one more than there may go
    # to zone a. All four pods of it had two cores there.
    answer = what_if.lose("zone=b")
    assert answer.measures["pending"] == answer.measures["unavailable"] > 0
    reasons = " ".join(why for _, why in rows(answer, "Pods that wait"))
    assert "didn't match pod topology spread constraints" in reasons or "untolerated" in reasons


def test_10_a_waiting_pod_is_explained_with_what_would_place_it(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    cluster.create(make_pod("huge").cpu("5"))
    answer = asked(cluster, tmp_path).explain("default/huge")
    assert answer.measures["pending"] == 1
    assert "2 Insufficient cpu" in answer.sentence
    changes = [change for _, change, _ in rows(answer, "What would place it")]
    assert any("cpu" in change for change in changes)


def test_11_packing_uses_as_few_nodes_as_the_pods_need(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    packing = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 1}],
                            }
                        },
                    }
                ],
                "plugins": {
                    "score": {
                        "disabled": [
                            {"name": "NodeResourcesBalancedAllocation"},
                            {"name": "PodTopologySpread"},
                        ]
                    }
                },
            }
        ],
    }
    answer = asked(cluster, tmp_path).schedule(packing)
    assert answer.measures["unplaced"] == 8
    placements = {row[0]: row[1] for row in rows(answer, "Placements")}
    assert placements == {"before": 4, "anew": 4, "other": 2}
    assert answer.measures["pending"] == 0


def test_12_a_more_important_deployment_takes_the_place_of_others(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 1000,
    }
    pay = workload("Deployment", "pay", "2", replicas=1, pod_spec={"priorityClassName": "high"})
    answer = asked(cluster, tmp_path).apply([high, pay])
    assert answer.measures["unavailable"] == 2
    assert rows(answer, "Who is worse off") == [("default/web (Deployment)", 8, 6)]
    assert answer.measures["pending"] == 2


def test_13_other_nodes_pay_the_daemons_once_each(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)
    cluster.create(workload("DaemonSet", "agent", "500m"))
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    prices = Prices(hourly={"large": 0.5, "small": 0.1}, default=0.2)
    what_if = asked(cluster, tmp_path, prices=prices)
    large = what_if.repack(shape=NewNode({"cpu": "16", "memory": "64Gi", "pods": "110"}, "large"))
    assert large.measures["nodes_after"] == 1  # 8 + 0.5 of 16
    assert large.measures["cost_before"] == pytest.approx(4 * 0.2)
    assert large.measures["cost_after"] == pytest.approx(0.5)
    small = what_if.repack(shape=NewNode({"cpu": "2", "memory": "8Gi", "pods": "110"}, "small"))
    assert small.measures["nodes_after"] == 8  # 1 + 0.5 of 2 on each
    few = what_if.repack(shape=NewNode({"cpu": "16", "memory": "64Gi", "pods": "4"}, "large"))
    assert few.measures["nodes_after"] == 3  # three pods and an agent on each: 8 need three
    none = what_if.repack(shape=NewNode({"cpu": "1", "memory": "8Gi", "pods": "110"}, "small"))
    assert none.measures["pending"] == 8


def test_the_same_question_has_the_same_answer_and_the_snapshot_is_not_changed(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 4)
    cluster.create(workload("Deployment", "web", "1", replicas=8))
    what_if = asked(cluster, tmp_path)
    before = what_if.world.export()
    first = what_if.lose("zone=a")
    what_if.shrink()
    what_if.fit([make_pod("p").cpu("1").build()])
    assert what_if.world.export() == before
    assert what_if.lose("zone=a") == first
    assert WhatIf(read_snapshot(tmp_path / "cluster.json")).lose("zone=a") == first


def test_a_question_about_nodes_that_are_not_there_names_those_that_are(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    what_if = asked(cluster, tmp_path)
    with pytest.raises(ConfigurationError, match="no node has zone=c; there are: a, b"):
        what_if.lose("zone=c")
    with pytest.raises(ConfigurationError, match="there is no pod default/x in the snapshot"):
        what_if.explain("x")


def test_a_snapshot_without_nodes_answers_nothing(tmp_path: Path) -> None:
    snapshot = Snapshot([make_pod("p").build()])
    with pytest.raises(SnapshotError, match="there is no Node in it, so no question"):
        WhatIf(snapshot).lose("zone=a")


@pytest.mark.parametrize(("number", "told"), [(20, "n-19"), (21, "n-19 and 1 more")])
def test_of_many_that_could_be_meant_twenty_are_named(number: int, told: str) -> None:
    nodes = [make_node(f"n-{index:02}").build() for index in range(number)]
    with pytest.raises(ConfigurationError) as caught:
        selected(nodes, ["node=nobody"])
    assert str(caught.value).rstrip(".)").endswith(told)
