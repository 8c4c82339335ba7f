"""Upgrades and deschedulers in clusters whose right answers are arithmetic."""

from pathlib import Path

import pytest

import kubescene
from hand_made import asked, budget, nodes, rows, workload
from kubescene.errors import ConfigurationError
from kubescene.results.cost.prices import Prices
from kubescene.testing import make_node, make_pod
from kubescene.what_if.descheduling import Thresholds
from kubescene.what_if.upgrading import UpgradeFlags

MINUTE = 60


@pytest.mark.parametrize(
    ("surge", "unavailable", "rounds"), [(1, 0, 5), (2, 0, 3), (5, 0, 1), (0, 1, 5), (1, 1, 3)]
)
def test_1_so_many_nodes_are_on_their_way_at_once(
    cluster: kubescene.Cluster, tmp_path: Path, surge: int, unavailable: int, rounds: int
) -> None:
    nodes(cluster, 5)
    cluster.create(workload("Deployment", "web", "1", replicas=5))
    what_if = asked(cluster, tmp_path, prices=Prices(default=0.6))
    answer = what_if.upgrade(flags=UpgradeFlags(surge, unavailable, boot="3m"))
    assert answer.measures["nodes"] == 5
    assert answer.measures["seconds"] == rounds * 3 * MINUTE
    assert answer.measures["pending"] == answer.measures["forced"] == 0
    # A machine costs 0.03 in three minutes, and is paid for beside the old one only by surge.
    # (Of one of each, the one without surge is free first when both are ready, and takes the last.)
    beside = 2 if unavailable and surge else 5 * (surge > 0)
    assert answer.measures["cost"] == pytest.approx(0.03 * beside)


def test_2_without_surge_the_room_of_a_node_is_missing_while_it_boots(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 3)
    cluster.create(workload("Deployment", "web", "4", replicas=3))
    what_if = asked(cluster, tmp_path)
    answer = what_if.upgrade("pool=general", flags=UpgradeFlags(0, 1, boot="4m"))
    assert answer.measures["seconds"] == 3 * 4 * MINUTE
    # Each of the three pods fills a node, and so waits until its node is back: 4 minutes a node.
    assert rows(answer, "Workloads with fewer ready pods") == [
        ("default/web (Deployment)", 3, 2, 3, 3 * 4 * MINUTE)
    ]
    assert answer.measures["unavailable"] == answer.measures["pending"] == 0
    with_surge = what_if.upgrade("pool=general", flags=UpgradeFlags(1, 0, boot="4m"))
    assert with_surge.measures["lacking"] == 0


def test_3_a_budget_that_lets_nobody_go_costs_the_timeout_and_is_broken(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    cluster.create(workload("Deployment", "web", "1", replicas=1))
    cluster.create(budget("web", minAvailable="100%"))
    answer = asked(cluster, tmp_path).upgrade(flags=UpgradeFlags(1, 0, boot="2m", timeout="10m"))
    # One of two nodes has the pod; the pod comes to the other one, old or new, once it is deleted.
    times = answer.measures["forced"]
    assert times in (1, 2)
    assert answer.measures["seconds"] == (2 * 2 + 10 * times) * MINUTE
    assert answer.measures["waited"] == times
    assert rows(answer, "Pods that wait for a budget")[0][2].startswith(
        "web: minAvailable 100%, 1 of 1 healthy, 0 may go"
    )
    assert len(rows(answer, "Pods deleted against a budget")) == times


def test_4_a_budget_that_lets_one_go_waits_until_the_next_is_ready(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    cluster.create(make_node("n0").cpu("4").memory("16Gi"))
    cluster.create(workload("Deployment", "web", "1", replicas=2))
    cluster.create(budget("web", maxUnavailable=1))
    what_if = asked(cluster, tmp_path, start_delay="62s")
    answer = what_if.upgrade(flags=UpgradeFlags(1, 0, boot="3m"))
    # The second is asked for every 5 s, and may go when the first is ready after 62: at 65.
    assert rows(answer, "Nodes, the slowest first") == [("n0", "", "4m5s", "1m5s", 2, 0)]
    assert answer.measures["waited"] == 1
    # One lacks for 62 s after each of both evictions; in the three seconds between, none.
    assert rows(answer, "Workloads with fewer ready pods")[0][4] == 2 * 62


def test_5_who_is_made_by_nobody_is_lost_and_the_control_plane_stays(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    nodes(cluster, 2)
    plane = make_node("plane").cpu("4").memory("16Gi").build()
    plane["metadata"]["labels"] = {"node-role.kubernetes.io/control-plane": ""}
    plane["spec"] = {"unschedulable": True}
    cluster.create(plane)
    cluster.create(make_pod("bare").cpu("1"))
    what_if = asked(cluster, tmp_path)
    answer = what_if.upgrade()
    assert answer.measures["nodes"] == 2
    assert rows(answer, "Pods that nobody makes again") == [("default/bare",)]
    assert "1 node of the control plane stay" in answer.unknown
    assert what_if.upgrade("node=plane").measures["nodes"] == 1


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (UpgradeFlags(0, 0), "no node could ever be replaced"),
        (UpgradeFlags(boot="soon"), "--boot: "),
        (UpgradeFlags(timeout="0s"), "--timeout must be longer"),
    ],
)
def test_an_upgrade_that_cannot_be_is_refused(
    cluster: kubescene.Cluster, tmp_path: Path, flags: UpgradeFlags, complaint: str
) -> None:
    nodes(cluster, 1)
    with pytest.raises(ConfigurationError, match=complaint):
        asked(cluster, tmp_path).upgrade(flags=flags)


def lopsided(cluster: kubescene.Cluster, full: int = 8) -> None:
    """Two nodes of 10 cores: one with so many pods of one core, one that came later."""
    cluster.create(make_node("n0").cpu("10").memory("100Gi"))
    cluster.create(workload("Deployment", "web", "1", replicas=full))
    cluster.settle()
    cluster.create(make_node("n1").cpu("10").memory("100Gi"))


def test_6_an_overused_node_gives_pods_until_it_is_not(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    lopsided(cluster)
    what_if = asked(cluster, tmp_path)
    answer = what_if.balance(thresholds=Thresholds(0.2, 0.5))
    # 8 of 10 cores, and 5 are allowed; the other node is empty, so that is where they go.
    assert answer.measures["moves"] == answer.measures["moved"] == 8 - 5
    assert [row[1:3] for row in rows(answer, "Moves, one after the other")] == [("n0", "n1")] * 3
    # Loads are 0.8 and 0 before, so 0.4 from their mean; 0.5 and 0.3 afterwards.
    assert answer.measures["scatter_before"] == pytest.approx(0.4)
    assert answer.measures["scatter_after"] == pytest.approx(0.1)
    assert what_if.balance(moves=2).measures["moves"] == 2
    assert "no more than 2 moves were asked for" in what_if.balance(moves=2).sentence
    assert what_if.balance(thresholds=Thresholds(0.2, 0.8)).measures["moves"] == 0
    # Room is taken from what underused nodes have below the upper threshold: 1 core, one move.
    assert what_if.balance(thresholds=Thresholds(0.05, 0.1)).measures["moves"] == 1


def test_7_an_underused_node_is_emptied_where_the_scheduler_packs(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    cluster.create(make_node("n0").cpu("10").memory("100Gi"))
    cluster.create(workload("Deployment", "web", "1", replicas=5))
    cluster.settle()
    cluster.create(make_node("n1").cpu("10").memory("100Gi"))
    cluster.patch("node", "n0", {"spec": {"unschedulable": True}})
    cluster.create(workload("Deployment", "few", "1", replicas=2))
    cluster.settle()
    cluster.patch("node", "n0", {"spec": {"unschedulable": None}})
    packing = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [FIT]}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": MOST}],
            }
        ],
    }
    policies = ["HighNodeUtilization"]
    thresholds = Thresholds(0.3, 0.9)
    prices = Prices(default=1.0)
    packs = asked(cluster, tmp_path, scheduler=packing, prices=prices)
    answer = packs.balance(policies=policies, thresholds=thresholds)
    assert answer.measures["moved"] == 2
    assert answer.measures["freed"] == 1
    assert answer.measures["saved_an_hour"] == 1.0
    assert rows(answer, "Nodes")[1][4] == 1
    # The default scheduler prefers the emptier node: pods come back, and nothing is gained.
    spreads = asked(cluster, tmp_path).balance(policies=policies, thresholds=thresholds)
    assert spreads.measures["freed"] == 0
    assert spreads.measures["returned"] > 0


FIT = {"name": "NodeResourcesFit"}
MOST = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}


def test_8_more_of_one_owner_than_an_even_share_go(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    lopsided(cluster, full=6)
    answer = asked(cluster, tmp_path).balance(policies=["RemoveDuplicates"])
    # Six on two nodes: three would be even.
    assert answer.measures["moves"] == 3
    assert {row[4] for row in rows(answer, "Moves, one after the other")} == {
        "6 of its kind on n0, 3 would be even"
    }


def test_9_who_does_not_belong_where_he_is_goes(cluster: kubescene.Cluster, tmp_path: Path) -> None:
    nodes(cluster, 2)
    zoned = {"nodeSelector": {"tier": "gold"}}
    for name in ("n0", "n1"):
        cluster.patch("node", name, {"metadata": {"labels": {"tier": "gold"}}})
    cluster.create(workload("Deployment", "gold", "1", replicas=2, pod_spec=zoned))
    cluster.create(workload("Deployment", "plain", "1", replicas=2))
    cluster.settle()
    cluster.patch("node", "n0", {"metadata": {"labels": {"tier": "iron"}}})
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    cluster.patch("node", "n0", {"spec": {"taints": [taint]}})
    what_if = asked(cluster, tmp_path)
    here = [
        pod["metadata"]["labels"]["app"]
        for pod in what_if.world.list("pods")
        if pod["spec"]["nodeName"] == "n0"
    ]
    assert sorted(here) == ["gold", "plain"]
    labels = what_if.balance(policies=["RemovePodsViolatingNodeAffinity"])
    assert labels.measures["moved"] == labels.measures["moves"] == 1
    taints = what_if.balance(policies=["RemovePodsViolatingNodeTaints"])
    assert taints.measures["moved"] == taints.measures["moves"] == 2


def test_10_whom_the_default_evictor_spares_stays_and_budgets_are_asked(
    cluster: kubescene.Cluster, tmp_path: Path
) -> None:
    cluster.create(make_node("n0").cpu("10").memory("100Gi"))
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    cluster.create(workload("DaemonSet", "agent", "1"))
    cluster.create(workload("Deployment", "local", "2", replicas=1, pod_spec=volume))
    cluster.create(workload("Deployment", "kept", "2", replicas=1))
    cluster.create(budget("kept", minAvailable=1))
    cluster.create(make_pod("bare").cpu("2"))
    cluster.settle()
    cluster.create(make_node("n1").cpu("10").memory("100Gi"))
    answer = asked(cluster, tmp_path).balance(thresholds=Thresholds(0.2, 0.5))
    assert answer.measures["moves"] == 0
    assert answer.measures["refused"] == 1
    assert rows(answer, "Pods that may not go")[0][0].startswith("default/kept-")


def test_a_policy_that_is_not_there_is_refused(cluster: kubescene.Cluster, tmp_path: Path) -> None:
    nodes(cluster, 1)
    what_if = asked(cluster, tmp_path)
    with pytest.raises(ConfigurationError, match="there is no policy 'X'; there are: LowNodeUtil"):
        what_if.balance(policies=["X"])
    with pytest.raises(ConfigurationError, match="has PodLifeTime, but it is not simulated"):
        what_if.balance(policies=["PodLifeTime"])
