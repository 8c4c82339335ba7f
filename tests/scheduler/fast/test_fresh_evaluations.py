"""Who gets a fresh look, and what it comes to."""

import copy
from typing import Any

import numpy as np
import pytest

from kubescene.api.records import make_record
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Stream
from kubescene.scheduler.cycle.class_scores import ScoreSplit
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.cycle.summed_scores import CommonColumns
from kubescene.scheduler.fast import cpu_memory_decisions
from kubescene.scheduler.fast.cpu_memory import FitFilter
from kubescene.scheduler.fast.cpu_memory_columns import LARGEST, CpuMemoryColumns, Pairs
from kubescene.scheduler.fast.fresh_evaluations import FreshEvaluation
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.testing.builders import make_node, make_pod
from scheduler.staging import NODE, Stage, fast_of
from scheduler.tables import NODES as NODES_RESOURCE
from scheduler.tables import PODS

NODES = 300
"""Of which 144 are looked at: 48 of a hundred."""


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[FreshEvaluation]:
    """The fresh looks that are taken."""
    made: list[FreshEvaluation] = []
    judge = FreshEvaluation.judge

    def noted(self: FreshEvaluation, *arguments: Any) -> Any:
        made.append(self)
        return judge(self, *arguments)

    monkeypatch.setattr(FreshEvaluation, "judge", noted)
    return made


def world(*, cpu: str = "32", pods: str = "110") -> Stage:
    stage = Stage()
    for number in range(NODES):
        stage.create(make_node(f"n{number}").cpu(cpu).memory("64Gi").pods(pods))
    return stage


def cycle_of(stage: Stage) -> Cycle:
    return stage.scheduler.cycle_of("default-scheduler")


def probe(stage: Stage, pod: Any) -> PodInfo:
    obj = {**pod.build(), "metadata": {"name": "probe", "namespace": "default", "uid": "probe"}}
    return PodInfo.read(make_record(PODS, obj, 1), obj, stage.scheduler.watcher.classes)


def decide(stage: Stage, pod: PodInfo) -> Decision | None:
    """The routine decision, which must be that of a whole cycle, explained or not."""
    cycle, scheduler = cycle_of(stage), stage.scheduler
    at = cycle.start.index
    quick = cycle.fast.decide(pod, None)
    cycle.start.index = at
    made = cycle.fast.decide(pod, Explain.FULL)
    fresh = Cycle(cycle.framework, scheduler.nodes, scheduler.nominations, StartIndex())
    fresh.start.index = at
    wanted = fresh.decide(pod, explain=Explain.FULL)
    if made is None or quick is None:
        assert not wanted.node
        return None
    assert said(made) == said(wanted)
    assert cycle.start.index == fresh.start.index
    assert quick.node == made.node
    return made


def said(decision: Decision) -> dict[str, Any]:
    why = decision.explanation
    assert why is not None
    counts = (decision.evaluated, decision.feasible)
    return {"node": decision.node, "counts": counts, "why": why.to_dict(), "at": [*why.examined]}


@pytest.mark.parametrize(("cpu", "pods"), [("32", "110"), ("2", "110"), ("32", "2")])
def test_a_fresh_look_finds_the_node_of_a_whole_cycle(
    looked: list[FreshEvaluation], cpu: str, pods: str
) -> None:
    """Each pod is a class of its own; nodes get full, are cordoned, come."""
    stage, random = world(cpu=cpu, pods=pods), Stream(3)
    stage.create(make_node("tainted").cpu("64").memory("9Gi").taint("t", effect="NoSchedule"))
    decided = 0
    for number in range(200):
        pod = make_pod(f"p{number}").cpu(f"{100 + number * 7}m").memory("64Mi")
        info = probe(stage, pod)
        decided += decide(stage, info) is not None
        stage.place(pod)
        if number % 7 == 0:
            patch = {"spec": {"unschedulable": True}}
            stage.client.patch(ObjectRef(NODE, f"n{random.below(NODES)}"), patch)
        if number % 31 == 0:
            stage.create(make_node(f"new{number}").cpu(cpu).memory("9Gi").pods(pods))
    assert decided > 150
    assert len(looked) > 500


def test_results_are_kept_once_a_class_has_seen_a_fourth_of_the_nodes(
    looked: list[FreshEvaluation],
) -> None:
    stage = world()
    stage.place(*(make_pod(f"p{number}").cpu("1") for number in range(8)))
    assert len(looked) == 1  # 4 * 144 > 300
    assert len(fast_of(cycle_of(stage))._by_cpu_memory._kept) == 1


@pytest.mark.parametrize(("beyond", "looks"), [(-1, 0), (0, 1)])
def test_a_class_that_comes_back_late_is_seldom_seen_again(
    looked: list[FreshEvaluation], beyond: int, looks: int
) -> None:
    """Its own pod was the first change."""
    stage = world()
    stage.place(*(make_pod(f"p{number}").cpu("1") for number in range(8)))
    others = range(POLICY.most_changes + beyond)
    stage.place(*(make_pod(f"o{number}").cpu(f"{number + 1}m") for number in others))
    looked.clear()
    stage.place(make_pod("late").cpu("1"))
    assert len(looked) == looks


def test_of_more_classes_than_can_be_kept_the_ones_last_used_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu_memory_decisions, "entries_kept", lambda nodes: 3)
    stage = world(cpu="3")
    pods = [make_pod("p").cpu(f"{number}") for number in (1, 2, 1, 3, 2, 1, 3)]
    for number in range(60):
        pod = pods[number % 7].cpu(f"{1 + (number * number + number // 9) % 5 * 250}m")
        assert decide(stage, probe(stage, pod)) is not None
        stage.place({**pod.build(), "metadata": {"name": f"p{number}", "namespace": "default"}})
    looks = fast_of(cycle_of(stage))._by_cpu_memory
    assert len(looks._kept) == 3
    kept = [visits for visits in looks._visits.values() if visits.rows is not None]
    assert {*map(id, kept)} == {*map(id, looks._kept.values())}


@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize("memory", ["0", str(LARGEST + 1)])
def test_nodes_without_memory_or_with_too_much_are_left_to_the_plugins(
    memory: str, others: int
) -> None:
    """Whether few nodes have changed since the last pod of the class, or many."""
    stage = world()
    stage.place(*(make_pod(f"p{number}").cpu("1") for number in range(4)))
    looks, pod = fast_of(cycle_of(stage))._by_cpu_memory, probe(stage, make_pod("p").cpu("1"))
    assert len(looks._kept) == 1
    for amount, kept in ((memory, 0), ("64Gi", 1)):
        node = make_node("n7").cpu("32").memory(amount).pods("110").build()
        stage.scheduler.nodes.set_node(make_record(NODES_RESOURCE, node, 1), node)
        stage.place(*(make_pod(f"o{kept}-{n}").cpu(f"{n + 2}m") for n in range(others)))
        for _ in range(3):
            assert decide(stage, pod) is not None
        assert (pod.pod_class in looks._kept) == bool(kept)


@pytest.mark.parametrize("count", [3, 20])
def test_nodes_that_refused_a_class_pass_again_when_their_pods_have_left(count: int) -> None:
    """Whether few of them change at a time, or many."""
    stage = world(cpu="2")
    stage.place(*(make_pod(f"p{number}").cpu("100m") for number in range(4)))
    nodes, large = stage.scheduler.nodes, probe(stage, make_pod("large").cpu("2"))
    pod, names = probe(stage, make_pod("p").cpu("100m")), nodes.names[:count]
    for change, refused in ((nodes.add_pod, count), (nodes.remove_pod, 0)):
        for name in names:
            change(large.assumed(name), name)
        assert decide(stage, pod) is not None
        rows = fast_of(cycle_of(stage))._by_cpu_memory._kept[pod.pod_class].rows
        assert rows is not None
        assert rows._refused == np.count_nonzero(rows._verdicts) == refused


def test_what_one_class_finds_too_small_is_not_held_against_another() -> None:
    """Though they share the verdicts on node objects, of which one is cordoned."""
    stage = world(cpu="2")
    stage.client.patch(ObjectRef(NODE, "n7"), {"spec": {"unschedulable": True}})
    nodes, large = stage.scheduler.nodes, probe(stage, make_pod("large").cpu("1500m"))
    kinds = [probe(stage, make_pod("p").cpu(cpu)) for cpu in ("1", "100m")]
    for kind in kinds:
        assert decide(stage, kind) is not None  # Twice: so the results are kept.
    for name in nodes.names[:3]:
        nodes.add_pod(large.assumed(name), name)
    for kind in kinds:
        cycle_of(stage).start.index = 0
        assert decide(stage, kind) is not None
    for visits in fast_of(cycle_of(stage))._by_cpu_memory._visits.values():
        assert visits.spec is not None
        assert visits.spec.codes is not None
        assert np.count_nonzero(visits.spec.codes) == 1


def test_scores_that_node_objects_decide_are_kept(looked: list[FreshEvaluation]) -> None:
    stage = world()
    stage.create(make_node("shunned").memory("1Gi").taint("t", effect="PreferNoSchedule"))
    stage.place(make_pod("first").cpu("1"))
    assert not looked
    stage.delete("shunned", NODE)
    stage.place(make_pod("second").cpu("2"))
    assert looked


def test_where_no_plugin_rates_all_totals_are_zero() -> None:
    """Every Score plugin may have skipped the pod."""
    common = CommonColumns([], ScoreSplit([]), CycleState(), 3)
    told = common.with_own(np.zeros((0, 3), dtype=np.int8))
    assert (len(told.columns), len(told.totals), [*told.totals]) == (0, 3, [0, 0, 0])


def test_images_that_nodes_hold_are_not_overlooked(looked: list[FreshEvaluation]) -> None:
    stage = world()
    stocked = make_node("stocked").cpu("1").memory("1Gi").build()
    stocked["status"]["images"] = [{"names": ["app:1"], "sizeBytes": 900_000_000}]
    stage.create(stocked)
    pod = make_pod("p").cpu("1").build()
    pod["spec"]["containers"][0]["image"] = "app:1"
    stage.place(pod)
    assert not looked


def test_a_pod_that_fits_nowhere_has_each_node_judged_once(
    looked: list[FreshEvaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = {"filter_nodes": 0, "judge": 0}

    def counting(owner: type, method: str) -> None:
        judge = getattr(owner, method)

        def counted(self: Any, *arguments: Any) -> Any:
            rows = arguments[-1]
            judged[method] += rows.balance.size if isinstance(rows, Pairs) else rows.size
            return judge(self, *arguments)

        monkeypatch.setattr(owner, method, counted)

    counting(NodeResourcesFit, "filter_nodes")
    counting(FitFilter, "judge")
    stage = world()
    stage.place(make_pod("large").cpu("64"))
    assert looked
    assert judged == {"filter_nodes": 0, "judge": NODES}
    message = stage.attempts.made[-1].message
    assert message.startswith("0/300 nodes are available: 300 Insufficient cpu.")


def test_a_copy_of_the_world_has_its_own_picture_of_the_nodes() -> None:
    stage = world()
    stage.place(make_pod("p").cpu("1"))
    nodes = stage.scheduler.nodes
    twin = copy.deepcopy(nodes)
    mine, other = nodes.shared(CpuMemoryColumns), twin.shared(CpuMemoryColumns)
    assert other is not mine
    assert other._nodes is twin
    stage.place(make_pod("q").cpu("2"))
    assert mine.is_exact()
    assert other.is_exact()
    assert sum(mine.all().requested[0]) == 3000
    assert sum(other.all().requested[0]) == 1000
