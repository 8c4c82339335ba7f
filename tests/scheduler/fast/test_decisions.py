"""The usual decision is the one that a whole cycle comes to, whatever has happened before."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from kubescene.api.records import make_record
from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    NodeTable,
    Reads,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)
from kubescene.scheduler.fast.kept_rows import KeptRows
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.state.pods import PodInfo
from kubescene.shortcuts import ALL, PLAIN
from kubescene.testing.builders import make_pod
from kubescene.types import JsonObject
from scheduler.fast.lives import STORAGE, Life, compare, probe
from scheduler.staging import Stage, fast_of
from scheduler.tables import PODS


@pytest.mark.parametrize("taints", [("NoSchedule",), ("NoSchedule", "PreferNoSchedule")])
@pytest.mark.parametrize("seed", range(3))
def test_the_usual_decision_is_that_of_a_whole_cycle(seed: int, taints: tuple[str, ...]) -> None:
    life = Life(seed, taints=taints)
    kinds, made = life.kinds(), 0
    for kind in kinds:
        life.world.scheduler.cycle_of("default-scheduler").decide(probe(life, kind))
    for _ in range(60):
        for _ in range(1 + life.random.below(6)):
            life.happen()
        made += sum(compare(life, life.one(*kinds)) for _ in range(2))
    assert made > 60


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_of_a_class_follows_whatever_happens(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few nodes change between two pods of a class, some, or many; now and then all rows move."""
    ways: Counter[str] = Counter()
    told_of = ("_tell_few", "_tell_many")
    for way in told_of:
        count_calls(monkeypatch, ways, way)
    life = Life(seed, taints=("NoSchedule",), moving=3)
    kinds = life.kinds()
    for _ in range(70):
        for _ in range(life.one(1, 2, 6, 14, 25, 60)):
            life.happen()
        for _ in range(life.one(1, 4)):
            compare(life, life.one(*kinds))
    assert min(ways[way] for way in told_of) > 15


def count_calls(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], name: str) -> None:
    method = getattr(KeptRows, name)

    def counted(*arguments: Any) -> Any:
        calls[name] += 1
        return method(*arguments)

    monkeypatch.setattr(KeptRows, name, counted)


def test_a_pod_that_fits_nowhere_is_left_to_a_whole_cycle() -> None:
    world = Stage()
    world.nodes("a", "b")
    assert world.place(make_pod("first").cpu("1"), make_pod("second").cpu("1")) == [
        "first:a",
        "second:b",
    ]
    world.place(make_pod("large").cpu("8"))
    attempt = world.attempts.made[-1]
    assert attempt.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_a_pod_makes_room_for_one_that_is_nominated() -> None:
    world = Stage()
    world.nodes("a", "b")
    world.place(*(make_pod(f"p{number}").cpu("1") for number in range(4)))
    nominated = probe_named(world, "high", nominated="a")
    world.scheduler.nominations.add(nominated, "a")
    pod = probe_named(world, "low")
    cycle = world.scheduler.cycle_of("default-scheduler")
    cycle.decide(pod)
    assert cycle.fast.decide(pod, None) is None
    world.scheduler.nominations.remove(nominated)
    assert cycle.fast.decide(pod, None) is not None


class Filtering(FilterPlugin):
    name = "Filtering"
    reads = Reads.NODE

    def __init__(self, handle: Handle) -> None:
        del handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class Scoring(ScorePlugin):
    name = "Scoring"
    reads = Reads.NODE

    def __init__(self, handle: Handle) -> None:
        del handle

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1


@pytest.mark.parametrize("plugin", [Filtering, Scoring])
@pytest.mark.parametrize("reads", Reads)
def test_plugins_of_others_are_as_usual_if_they_read_nothing_but_the_node(
    plugin: type, reads: Reads
) -> None:
    attributes = {"reads": reads, "stamp": lambda *_: 0}
    world = Stage(type(plugin.__name__, (plugin,), attributes))
    world.nodes("a", "b")
    assert world.place(make_pod("first"), make_pod("second")) == ["first:a", "second:b"]
    cycle = world.scheduler.cycle_of("default-scheduler")
    pod = probe_named(world, "third")
    assert cycle.decide(pod).node
    is_usual = reads is Reads.NODE or plugin is Scoring
    assert (cycle.fast.decide(pod, None) is not None) == is_usual


class Wary(FilterPlugin, ScorePlugin):
    """Refuses a node, and does not know how to rate it."""

    name = "Wary"
    reads = Reads.NODE

    def __init__(self, handle: Handle) -> None:
        del handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("no") if "shunned" in node.name else SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        assert "shunned" not in node.name
        return len(node.name)


@pytest.mark.parametrize("shunned", [1, 30])
def test_no_plugin_rates_a_node_that_is_refused(shunned: int) -> None:
    """Whether few nodes are told of at a time, or many."""
    world = Stage(Wary)
    world.nodes("a", "bb", *(f"shunned-{number}" for number in range(shunned)))
    names = [f"p{number}" for number in range(6)]
    placed = world.place(*(make_pod(name).cpu("100m") for name in names))
    assert [each[3:] for each in placed] == ["bb", "a"] * 3
    pod = probe_named(world, "p")
    assert world.scheduler.cycle_of("default-scheduler").fast.decide(pod, None) is not None


class Wrong(FilterPlugin, ScorePlugin):
    """Answers with something that is no answer, once a pod has landed."""

    name = "Wrong"
    reads = Reads.NODE
    answer: Any = None

    def __init__(self, handle: Handle) -> None:
        del handle

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        answer: Status = self.answer if self.answer == "filter" and node.pods else SUCCESS
        return answer

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return {"bool": True, "score": "1", "large": 101}.get(self.answer, 1) if node.pods else 1  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("filter", "answered with 'filter', expected a Status"),
        ("score", "answered with '1', expected an integer"),
        ("bool", "answered with True, expected an integer"),
        ("large", "returns an invalid score 101"),
    ],
)
def test_an_answer_that_is_none_is_noticed_however_few_nodes_are_asked_about(
    answer: str, message: str
) -> None:
    for shortcuts in (ALL, PLAIN):
        world = Stage(type("Wrong", (Wrong,), {"answer": answer}), shortcuts=shortcuts)
        world.nodes("a", "b")
        world.place(*(make_pod(name).cpu("100m") for name in ("p", "q")))
        assert message in world.attempts.made[-1].message


def test_verdicts_on_node_objects_are_shared_by_classes_that_are_signed_alike() -> None:
    world = Stage()
    world.nodes("a", "b")
    world.place(*(make_pod(f"p{cpu}").cpu(f"{cpu}m") for cpu in (100, 200, 300)))
    world.place(make_pod("choosy").cpu("100m").select(disk="ssd"))
    routines = fast_of(world.scheduler.cycle_of("default-scheduler"))
    specs = [each.judges._spec for each in routines._kept.values()]
    assert len(specs) == 4
    assert specs[0] is specs[1] is specs[2]
    assert specs[3] is not specs[0]


def probe_named(world: Stage, name: str, nominated: str = "") -> PodInfo:
    pod: JsonObject = make_pod(name).cpu("1").build()
    pod["metadata"].update(uid=name, namespace="default")
    pod["status"] = {"nominatedNodeName": nominated} if nominated else {}
    return PodInfo.read(make_record(PODS, pod, 1), pod, world.scheduler.watcher.classes)


@pytest.mark.parametrize("more", [{}, {STORAGE: "1Gi"}])
def test_what_explanations_have_in_common_holds_for_the_same_plugins_and_as_many_nodes(
    more: dict[str, str],
) -> None:
    """Of a class that is looked up by cpu and memory alone, and of one that is not."""
    life = Life(0, taints=("NoSchedule",))
    asked = make_pod("p").cpu("100m")
    for resource, amount in more.items():
        asked = asked.request(resource, amount)
    pod = probe(life, asked.build())
    routines = fast_of(life.world.scheduler.cycle_of(pod.scheduler_name))
    for _ in range(3):
        decision = routines.decide(pod, Explain.FULL)
    assert decision is not None
    shared = routines._scoring._common
    state, count = decision.state, decision.feasible
    assert shared is not None
    assert shared.fits(state, count)
    assert not shared.fits(state, count - 1)
    state.skipped_scores |= {"NodeResourcesFit"}
    assert not shared.fits(state, count)


class Odd(ScorePlugin):
    """Gives no node a score, and makes something else of that."""

    name = "Odd"
    reads = Reads.NODE
    normalizes_alone = True
    made: Any = None

    def __init__(self, handle: Handle) -> None:
        del handle

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        if self.made == "fault":
            raise ZeroDivisionError
        return np.arange(scores.size) * 50 if self.made == "order" else scores + 101


@pytest.mark.parametrize("made", ["order", "fault", "large"])
def test_what_a_plugin_makes_of_no_scores_is_not_overlooked(made: str) -> None:
    """Be it something else for each node, a fault, or a score that is none."""
    plugin = type("Odd", (Odd,), {"made": made})
    ends = []
    for shortcuts in (ALL, PLAIN):
        world = Stage(plugin, shortcuts=shortcuts)
        world.nodes("a", "b", "c")
        world.place(*(make_pod(f"p{number}").cpu("100m") for number in range(3)))
        ends.append([(each.node, each.message) for each in world.attempts.made])
    assert ends[0] == ends[1]
    assert {node for node, _ in ends[0]} == ({"c"} if made == "order" else {""})


class OnlyWhole(ScorePlugin):
    """Rates nodes in columns alone, by their names, and does or does not normalize."""

    name = "OnlyWhole"
    reads = Reads.NODE

    def __init__(self, handle: Handle) -> None:
        del handle

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        infos = [nodes.infos[row] for row in rows.tolist()]
        return np.array([len(each.name) * 10 - 8 * len(each.pods) for each in infos], np.int64)


class OnlyWholeNormalized(OnlyWhole):
    """Is normalized, node by node."""

    name = "OnlyWholeNormalized"
    normalizes_alone = True

    def normalize(self, state: CycleState, pod: PodInfo, scores: Scores) -> Scores:
        return scores


@pytest.mark.parametrize("plugin", [OnlyWhole, OnlyWholeNormalized])
def test_one_node_is_rated_by_a_plugin_that_rates_only_many_at_once(plugin: type) -> None:
    """As it is when one node has changed since the pod before."""
    placed = []
    for shortcuts in (ALL, PLAIN):
        world = Stage(plugin, shortcuts=shortcuts)
        world.nodes(*("n" * length for length in range(1, 10)), cpu="64")
        placed.append(world.place(*(make_pod(f"p{each}").cpu("1m") for each in range(12))))
    assert placed[0] == placed[1]
    assert len({each.partition(":")[2] for each in placed[0]}) > 2
