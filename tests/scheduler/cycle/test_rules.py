"""Rules of the scheduling cycle that belong to no single plugin, by their numbers."""

from dataclasses import replace
from typing import Any

import pytest

from kubescene.api.disruption_budgets import BUDGET
from kubescene.api.records import make_record
from kubescene.clock import SECOND
from kubescene.cluster import Cluster, ClusterOptions
from kubescene.controllers.kubelet import KubeletDelays
from kubescene.scheduler import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    Code,
    NodeTable,
    PodInfo,
    SchedulerOptions,
    Status,
)
from kubescene.scheduler.extenders.extenders import MAX_EXTENDER_SCORE
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.profile import Profile
from kubescene.scheduler.plugins.node_name import NodeName
from kubescene.scheduler.preemption.budgets import DisruptionBudgets
from kubescene.scheduler.preemption.victims import find_victims
from kubescene.testing import make_node, make_pod
from kubescene.testing.builders import PodBuilder
from kubescene.types import JsonObject
from scheduler.plugins.test_plugins import NODES, Bench, NoObjects
from scheduler.staging import Stage


def message(cluster: Cluster, pod: str) -> str:
    conditions = cluster.get("pods", pod)["status"]["conditions"]
    return str(next(each for each in conditions if each["type"] == "PodScheduled")["message"])


# -- statuses and scores -------------------------------------------------------------------------


def test_s_1_codes_have_the_numbers_of_the_framework() -> None:
    assert [code.name for code in sorted(Code)] == [
        "SUCCESS",
        "ERROR",
        "UNSCHEDULABLE",
        "UNRESOLVABLE",
        "WAIT",
        "SKIP",
        "PENDING",
    ]
    assert [int(code) for code in sorted(Code)] == [*range(7)]
    rejections = [code.name for code in Code if code.is_rejection]
    assert rejections == ["UNSCHEDULABLE", "UNRESOLVABLE", "PENDING"]


def test_s_2_a_message_is_all_reasons() -> None:
    assert Status.unschedulable("one", "two").message == "one, two"
    assert Status.error("broken").message == "broken"
    assert Status(Code.SUCCESS).message == ""


def test_s_4_the_limits_of_scores() -> None:
    assert (MIN_NODE_SCORE, MAX_NODE_SCORE, MAX_EXTENDER_SCORE) == (0, 100, 10)


def test_s_7_a_pod_that_is_being_deleted_keeps_its_room_until_it_is_gone() -> None:
    delays = KubeletDelays(terminate=20 * SECOND)
    cluster = Cluster(ClusterOptions(kubelet=delays))
    cluster.create(make_node("n").cpu("1"))
    cluster.create(make_pod("old").cpu("1"))
    cluster.settle().delete("pods", "old")
    cluster.create(make_pod("new").cpu("1"))
    assert cluster.settle().pod("new").is_pending
    cluster.advance("20s")
    assert cluster.pod("new").node == "n"


# -- the search ----------------------------------------------------------------------------------


def test_f_2_a_pod_that_names_a_node_fits_no_other() -> None:
    bench = Bench(make_node("a").build(), make_node("b").build())
    pod = bench.pod(make_pod("p").on("a").build())
    plugin = NodeName()
    said = [plugin.filter(CycleState(), pod, info) for info in bench.table.infos]
    assert said[0].ok
    assert (said[1].code, said[1].message) == (
        Code.UNRESOLVABLE,
        "node(s) didn't match the requested node name",
    )


def test_c_4_if_pre_filter_turns_a_pod_away_its_message_stands_for_all_nodes() -> None:
    """And it stands where the counted reasons would (M-1)."""
    cluster = Cluster()
    for name in "abc":
        cluster.create(make_node(name))
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}
    pod = make_pod("p").build()
    cluster.create({**pod, "spec": {**pod["spec"], "volumes": [claim]}})
    told = message(cluster.settle(), "p")
    assert told.startswith('0/3 nodes are available: persistentvolumeclaim "missing" not found.')


def test_c_9_c_10_one_more_than_wanted_is_looked_for_and_left_out() -> None:
    nodes = [make_node(f"n{number:03}").cpu("4").build() for number in range(250)]
    full = {3, 110}
    bench = Bench(*nodes)
    for number in full:
        neighbour = make_pod(f"full-{number}").cpu("4").build()
        bench.table.add_pod(bench.pod(neighbour), f"n{number:03}")
    decision = bench.cycle.decide(bench.pod(make_pod("p").cpu("1").build()))
    # C-10: one after the other. Of 250 nodes 48 % are wanted: 120. The last of 121 that fit is
    # dropped, the two that do not fit are counted.
    assert (decision.feasible, decision.evaluated) == (120, 122)
    assert bench.start.index == 122


def test_c_16_without_score_plugins_all_nodes_are_alike_and_one_is_enough() -> None:
    options = SchedulerOptions()
    bare = [without_scores(profile) for profile in options.profiles]
    cluster = Cluster(ClusterOptions(scheduler=SchedulerOptions(profiles=tuple(bare))))
    for name in "abc":
        cluster.create(make_node(name).cpu("4"))
    for number in range(3):
        cluster.create(make_pod(f"p{number}").cpu("1").label(app=str(number)))
    # The first that fits is taken, and the next search begins behind it.
    assert [cluster.settle().pod(f"p{number}").node for number in range(3)] == ["a", "b", "c"]


def without_scores(profile: Profile) -> Profile:
    points = {
        point: () if point.value in ("Score", "PreScore") else plugins
        for point, plugins in profile.points.items()
    }
    return replace(profile, points=points)


def test_m_10_an_error_is_its_own_message() -> None:
    stage = Stage(Broken)
    stage.nodes("a")
    stage.create(make_pod("p"))
    stage.work()
    [condition] = stage.pod("p")["status"]["conditions"]
    assert condition["reason"] == "SchedulerError"
    assert "broken on purpose" in condition["message"]
    assert "nodes are available" not in condition["message"]


class Broken:
    def __init__(self, handle: Any) -> None: ...

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        return Status.error("broken on purpose"), None


def test_n_5_a_node_that_came_takes_part_from_the_next_cycle_on() -> None:
    bench = Bench(make_node("a").cpu("1").build())
    late = make_node("b").cpu("8").build()
    bench.table.set_node(make_record(NODES, late, 2), late)
    assert [*bench.table.names] == ["a"]
    bench.table.refresh()
    assert [*bench.table.names] == ["a", "b"]


def test_n_8_a_pod_takes_its_room_before_its_binding_is_heard_of() -> None:
    stage = Stage()
    stage.nodes("a", cpu="1")
    told = stage.place(make_pod("p").cpu("1"), make_pod("q").cpu("1"))
    assert told[0] == "p:a"
    assert stage.pod("q")["spec"].get("nodeName") is None


# -- scores --------------------------------------------------------------------------------------


def test_sc_1_untolerated_soft_taints_count_against_a_node() -> None:
    plain, one, two = (make_node(name).cpu("4").memory("8Gi") for name in "abc")
    one = one.taint("x", effect="PreferNoSchedule")
    two = two.taint("x", effect="PreferNoSchedule").taint("y", effect="PreferNoSchedule")
    bench = Bench(plain.build(), one.build(), two.build())
    assert bench.scores(make_pod("p"))["TaintToleration"] == [100, 50, 0]
    soft = make_pod("q").tolerate("x", effect="PreferNoSchedule")
    assert bench.scores(soft)["TaintToleration"] == [100, 100, 0]
    hard = make_pod("r").tolerate("x", effect="NoSchedule")
    assert bench.scores(hard)["TaintToleration"] == [100, 50, 0]
    assert bench.scores(make_pod("s").tolerate("x", effect=""))["TaintToleration"] == [100, 100, 0]


def test_sc_8_volume_binding_gives_no_scores_while_its_gate_is_off() -> None:
    assert "VolumeBinding" not in Bench(make_node("a").build(), make_node("b").build()).scores(
        make_pod("p")
    )


def test_r_3_what_a_pod_does_not_ask_for_counts_in_scores_but_takes_no_room() -> None:
    bench = Bench(make_node("a").cpu("1").memory("1Gi").build())
    bench.table.add_pod(bench.pod(make_pod("silent").build()), "a")
    info = bench.table.infos[0]
    assert (info.requested.get("cpu", 0), info.requested.get("memory", 0)) == (0, 0)
    assert (info.nonzero_cpu, info.nonzero_memory) == (100, 200 * 1024 * 1024)


# -- preemption ----------------------------------------------------------------------------------

PREEMPTIBLE: dict[str, tuple[PodBuilder, bool]] = {
    "room": (make_pod("p").cpu("2"), True),
    "more than the node has": (make_pod("p").cpu("9"), False),
    "node selector": (make_pod("p").cpu("2").select(disk="ssd"), False),
}


@pytest.mark.parametrize("case", PREEMPTIBLE)
def test_pr_16_only_what_other_pods_take_can_be_made_free(case: str) -> None:
    pod, expected = PREEMPTIBLE[case]
    cluster = world_of_two()
    cluster.create(important(pod))
    assert cluster.settle().pod("p").node == ("n" if expected else "")


def test_pr_16_a_taint_is_no_reason_to_preempt() -> None:
    cluster = world_of_two()
    cluster.patch("nodes", "n", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
    cluster.create(important(make_pod("p").cpu("2")))
    assert cluster.settle().pod("p").is_pending
    assert cluster.pod("low").node == "n"


def test_pr_12_a_preemptor_is_nominated_at_once_and_bound_in_another_attempt() -> None:
    cluster = Cluster(ClusterOptions(kubelet=KubeletDelays(terminate=20 * SECOND)))
    furnish(cluster)
    cluster.create(important(make_pod("p").cpu("2")))
    pod = cluster.settle().get("pods", "p")
    assert "nodeName" not in pod["spec"]
    assert pod["status"]["nominatedNodeName"] == "n"
    cluster.advance("20s")
    assert cluster.pod("p").node == "n"


class Roomy:
    """A node on which everybody fits after all."""

    def add(self, pod: PodInfo) -> None: ...

    def remove(self, pod: PodInfo) -> None: ...

    def filter(self) -> Status:
        return Status(Code.SUCCESS)


def test_pr_9_a_node_that_needs_no_victim_is_an_error() -> None:
    bench = Bench(make_node("n").build())
    trial: Any = Roomy()
    budgets = DisruptionBudgets(NoObjects().lister(BUDGET))
    found = find_victims([bench.pod(make_pod("low").build())], trial, "n", budgets)
    assert found.status.code is Code.ERROR
    assert found.status.message == 'expected at least one victim pod on node "n"'


def world_of_two() -> Cluster:
    cluster = Cluster()
    furnish(cluster)
    return cluster


def furnish(cluster: Cluster) -> None:
    """A node, and a pod that takes most of it."""
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 100,
        }
    )
    cluster.create(make_node("n").cpu("2"))
    cluster.create(make_pod("low").cpu("1"))
    cluster.settle()


def important(pod: PodBuilder) -> JsonObject:
    built: JsonObject = pod.priority_class("high").build()
    return built
