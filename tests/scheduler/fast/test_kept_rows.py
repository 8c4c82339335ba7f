"""What is kept of a class, how it is renewed, and that it comes to the same."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kubescene.api.records import make_record
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Stream
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.scoring import ScoreSplit
from kubescene.scheduler.cycle.search import StartIndex, among, search
from kubescene.scheduler.fast import decisions
from kubescene.scheduler.fast.cpu_memory import LARGEST, CpuMemoryColumns, FitFilter, Pairs
from kubescene.scheduler.fast.kept_scoring import CommonColumns
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubescene.scheduler.plugins.taint_toleration import TaintToleration
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY
from kubescene.scheduler.state.row_types import Window
from kubescene.testing.builders import make_node, make_pod
from scheduler.staging import NODE, Stage, fast_of
from scheduler.tables import NODES as NODES_RESOURCE
from scheduler.tables import PODS

NODES = 300
"""Of which 144 are looked at: 48 of a hundred."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plugins that were asked themselves about nodes."""
    made: list[str] = []

    def noting(plugin: type, method: str) -> None:
        ask = getattr(plugin, method)

        def noted(self: Any, *arguments: Any) -> Any:
            made.append(f"{plugin.__name__}.{method}")
            return ask(self, *arguments)

        monkeypatch.setattr(plugin, method, noted)

    for method in ("filter", "filter_nodes", "score", "score_nodes"):
        noting(NodeResourcesFit, method)
    for method in ("score", "score_nodes"):
        noting(TaintToleration, method)
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


@pytest.mark.parametrize("kept", [1, 3, 1000])
@pytest.mark.parametrize(("cpu", "pods"), [("32", "110"), ("2", "110"), ("32", "2")])
def test_many_classes_in_turns_find_the_nodes_of_a_whole_cycle(
    cpu: str, pods: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they push each other out or not; nodes get full, are cordoned, come."""
    monkeypatch.setattr(decisions, "POLICY", replace(POLICY, fewest_kept=kept, cells_kept=0))
    stage, random = world(cpu=cpu, pods=pods), Stream(3)
    stage.create(make_node("tainted").cpu("64").memory("9Gi").taint("t", effect="NoSchedule"))
    decided = 0
    for number in range(100):
        kind = number if number % 3 else number % 5
        pod = make_pod(f"p{number}").cpu(f"{100 + kind * 7}m").memory("64Mi")
        info = probe(stage, pod)
        decided += decide(stage, info) is not None
        stage.place(pod)
        if number % 7 == 0:
            patch = {"spec": {"unschedulable": True}}
            stage.client.patch(ObjectRef(NODE, f"n{random.below(NODES)}"), patch)
        if number % 31 == 0:
            stage.create(make_node(f"new{number}").cpu(cpu).memory("9Gi").pods(pods))
    assert decided > 75
    assert len(fast_of(cycle_of(stage))._kept) == min(kept, 136)  # Probes have no tolerations.


def test_of_more_classes_than_can_be_kept_the_ones_last_used_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decisions, "POLICY", replace(POLICY, fewest_kept=3, cells_kept=0))
    stage = world()
    infos = [probe(stage, make_pod("p").cpu(f"{number}")) for number in range(1, 6)]
    for number in (0, 1, 2, 0, 3, 0, 4):
        assert decide(stage, infos[number]) is not None
    kept = fast_of(cycle_of(stage))._kept
    assert [*kept] == [infos[number].pod_class for number in (3, 0, 4)]


@pytest.mark.parametrize("more", [0, 1, 3])
def test_a_class_that_nobody_had_while_nodes_came_and_went_finds_those_of_a_whole_cycle(
    more: int,
) -> None:
    """Also if more often than anybody remembers where the rows have gone."""
    stage, random = world(cpu="2"), Stream(5)
    early, late = (probe(stage, make_pod("p").cpu(f"{number}")) for number in (1, 2))
    layouts = stage.scheduler.nodes.layout
    assert decide(stage, early) is not None
    while stage.scheduler.nodes.layout < layouts + POLICY.moves_kept + more:
        number = stage.scheduler.nodes.layout
        stage.create(make_node(f"new{number}").cpu("9").memory("9Gi").pods("110"))
        stage.client.delete(ObjectRef(NODE, f"n{random.below(NODES // 2) + number % 2 * 150}"))
        stage.place(make_pod(f"p{number}").cpu("1"))
        assert decide(stage, late) is not None
    assert decide(stage, early) is not None


@pytest.mark.parametrize("others", [0, 20])
@pytest.mark.parametrize("memory", ["0", str(LARGEST + 1)])
def test_nodes_without_memory_or_with_too_much_are_left_to_the_plugins(
    memory: str, others: int, asked: list[str]
) -> None:
    """Whether few nodes have changed since the last pod of the class, or many."""
    stage = world()
    stage.place(*(make_pod(f"p{number}").cpu("1") for number in range(4)))
    pod = probe(stage, make_pod("p").cpu("1"))
    for turn, amount in enumerate((memory, "64Gi")):
        node = make_node("n7").cpu("32").memory(amount).pods("110").build()
        stage.scheduler.nodes.set_node(make_record(NODES_RESOURCE, node, 1), node)
        stage.place(*(make_pod(f"o{turn}-{n}").cpu(f"{n + 2}m") for n in range(others)))
        cycle_of(stage).start.index = 0
        asked.clear()
        made = cycle_of(stage).fast.decide(pod, None)
        assert any("Fit" in each for each in asked) == (amount == memory)
        assert made is not None
        cycle_of(stage).start.index = 0
        assert decide(stage, pod) is not None


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
        cycle_of(stage).start.index = 0
        assert decide(stage, pod) is not None
        kept = fast_of(cycle_of(stage))._kept[pod.pod_class]
        assert np.count_nonzero(kept.verdicts[:count]) == refused


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
    for kept in fast_of(cycle_of(stage))._kept.values():
        spec = kept.judges._spec
        assert spec is not None
        assert spec.codes is not None
        assert np.count_nonzero(spec.codes) == 1


def test_who_rates_node_objects_is_asked_only_if_one_has_a_score(asked: list[str]) -> None:
    stage = world()
    stage.place(make_pod("first").cpu("1"))
    assert [*dict.fromkeys(asked)] == ["TaintToleration.score_nodes"]
    asked.clear()
    stage.place(*(make_pod(f"p{number}").cpu("1") for number in range(4)))
    assert not asked
    stage.create(make_node("shunned").memory("1Gi").taint("t", effect="PreferNoSchedule"))
    stage.place(*(make_pod(f"q{number}").cpu("1") for number in range(4)))
    assert "TaintToleration.score" in asked
    stage.delete("shunned", NODE)
    for _ in range(3):
        assert decide(stage, probe(stage, make_pod("p").cpu("1"))) is not None


@pytest.mark.parametrize("start", [0, 3, 290])
@pytest.mark.parametrize("wanted", [1, 70, 144, NODES])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.4, 0.99, 1.0])
def test_a_search_among_known_verdicts_finds_what_a_search_by_chunks_does(
    start: int, wanted: int, share: float
) -> None:
    chance = Stream(start + wanted)
    verdicts = np.array([chance.below(100) < 100 * share for _ in range(NODES)]).astype(np.int64)
    ring = np.tile(np.arange(NODES, dtype=np.intp), 2)

    class Known:
        def judge(self, rows: Rows, window: Window | None = None) -> Codes:
            return verdicts.take(rows)

    found = among(verdicts, ring, start, wanted)
    expected = search(Known(), ring, start, wanted, every=True)
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert one.tolist() == other.tolist()
    if found.window is not None:
        assert found.window.on(verdicts, found.rows).tolist() == found.verdicts.tolist()
        assert found.feasible.size == found.rows.size == found.window.size


def test_where_no_plugin_rates_all_totals_are_zero() -> None:
    """Every Score plugin may have skipped the pod."""
    common = CommonColumns([], ScoreSplit([]), CycleState(), 3)
    told = common.with_own(np.zeros((0, 3), dtype=np.int8))
    assert (len(told.columns), len(told.totals), [*told.totals]) == (0, 3, [0, 0, 0])


def test_images_that_nodes_hold_are_not_overlooked() -> None:
    stage = world()
    stocked = make_node("stocked").cpu("1").memory("1Gi").build()
    stocked["status"]["images"] = [{"names": ["app:1"], "sizeBytes": 900_000_000}]
    pod = make_pod("p").cpu("1")
    pod_of = pod.build()
    pod_of["spec"]["containers"][0]["image"] = "app:1"
    stage.place(pod_of)
    stage.create(stocked)
    obj = {**pod_of, "metadata": {"name": "probe", "namespace": "default", "uid": "probe"}}
    info = PodInfo.read(make_record(PODS, obj, 1), obj, stage.scheduler.watcher.classes)
    for _ in range(3):
        assert decide(stage, info) is not None


def test_a_pod_that_fits_nowhere_has_no_node_judged_anew_by_the_whole_cycle(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    judge, judge_one = FitFilter.judge, FitFilter.judge_one

    def many(self: FitFilter, pod_class: Any, pairs: Pairs) -> Any:
        judged.append(pairs.balance.size)
        return judge(self, pod_class, pairs)

    def one(self: FitFilter, pod_class: Any, node: Any) -> int:
        judged.append(1)
        return judge_one(self, pod_class, node)

    monkeypatch.setattr(FitFilter, "judge", many)
    monkeypatch.setattr(FitFilter, "judge_one", one)
    stage = world()
    stage.place(make_pod("large").cpu("64"))
    assert judged[0] == NODES
    assert judged.count(1) == len(judged) - 1 <= 10  # Few are judged again rather than looked up.
    assert not [each for each in asked if each.startswith("NodeResourcesFit.filter")]
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
    rows = np.arange(NODES)
    assert sum(mine.of(rows).requested[0]) == 3000
    assert sum(other.of(rows).requested[0]) == 1000
