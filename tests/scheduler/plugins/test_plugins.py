"""The built-in plugins: worked numbers, the agreement of their two forms, and whom they wake."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.clock import Streams, VirtualClock
from kubescene.scheduler import default_profile, default_registry
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.informers import Informer
from kubescene.scheduler.framework.interfaces import Action, ClusterEvent, Hint
from kubescene.scheduler.framework.normalization import normalize_by_maximum
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.queue.cluster_events import node_events, pod_events
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing.builders import NodeBuilder, PodBuilder, make_node, make_pod, merged
from kubescene.types import JsonObject

NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")


class NoObjects:
    """There is nothing but nodes and pods."""

    def __init__(self) -> None:
        self.shared: dict[Any, Any] = {}

    def lister(self, gvk: GroupVersionKind) -> Informer:
        return Informer(gvk, self.notify)

    def notify(self, event: ClusterEvent, change: Change) -> None:
        raise AssertionError(f"{event} of nothing")


class Bench:
    """Nodes and the default plugins, without a cluster around them."""

    def __init__(self, *nodes: JsonObject) -> None:
        self.table = NodeTable()
        self.nominations = Nominations()
        self.start = StartIndex()
        self.classes = PodClasses()
        nobody: Any = None
        nothing: Any = NoObjects()
        self.handle = SchedulerHandle(
            "default-scheduler",
            nobody,
            VirtualClock(),
            Streams().stream("test"),
            nodes=self.table,
            nominations=self.nominations,
            waiting_pods=nobody,
            informers=nothing,
            events=nobody,
        )
        self.framework = Framework(default_profile(), default_registry(), self.handle)
        for node in nodes:
            self.table.set_node(make_record(NODES, node, 1), node)
        self.table.refresh()
        self.cycle = self.fresh_cycle()

    def fresh_cycle(self) -> Cycle:
        """A cycle that remembers nothing of earlier pods."""
        cycle = Cycle(self.framework, self.table, self.nominations, self.start)
        self.handle.connect(cycle=cycle)
        return cycle

    def pod(self, obj: JsonObject) -> PodInfo:
        obj = merged(obj, {"metadata": {"uid": obj["metadata"]["name"]}})
        return PodInfo.read(make_record(PODS, obj, 1), obj, self.classes)

    def scores(self, pod: PodBuilder) -> dict[str, list[int]]:
        decision = self.cycle.decide(self.pod(pod.build()), explain=Explain.FULL)
        assert decision.explanation is not None
        columns = {each.plugin: list(each.normalized) for each in decision.explanation.scores}
        return columns | {"totals": list(decision.explanation.totals)}


def test_sc_9_base_scores_by_the_number_of_pods_that_are_there() -> None:
    bench = Bench(*(make_node(f"n{k}").cpu("4").memory("32Gi").build() for k in range(6)))
    plain = make_pod("p").cpu("100m").memory("500Mi")
    for count in range(6):
        for number in range(count):
            neighbour = merged(plain.build(), {"metadata": {"name": f"{count}-{number}"}})
            bench.table.add_pod(bench.pod(neighbour), f"n{count}")
    scores = bench.scores(plain)
    assert scores["NodeResourcesFit"] == [97, 95, 93, 91, 89, 87]
    assert scores["NodeResourcesBalancedAllocation"] == [74, 75, 74, 75, 74, 75]
    assert scores["TaintToleration"] == [100] * 6
    assert scores["totals"] == [471, 470, 467, 466, 463, 462]


def test_sc_4_a_pod_without_requests_is_not_balanced() -> None:
    bench = Bench(*(make_node(name).cpu("4").memory("32Gi").build() for name in "ab"))
    assert "NodeResourcesBalancedAllocation" not in bench.scores(make_pod("p"))


@pytest.mark.parametrize(
    ("raw", "reverse", "expected"),
    [
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([1, 2, 3], False, [33, 66, 100]),
        ([1, 2, 3], True, [67, 34, 0]),
    ],
)
def test_normalizing_by_the_maximum(raw: list[int], reverse: bool, expected: list[int]) -> None:
    scores = np.array(raw, dtype=np.int64)
    assert normalize_by_maximum(scores, reverse=reverse).tolist() == expected


def test_c_11_room_is_kept_for_nominated_pods_of_the_same_priority() -> None:
    bench = Bench(make_node("a").cpu("2").build(), make_node("b").cpu("1").build())
    waiting = bench.pod(make_pod("preemptor").cpu("2").build())
    bench.nominations.add(waiting, "a")
    assert bench.cycle.decide(bench.pod(make_pod("p").cpu("1").build())).node == "b"
    assert bench.cycle.decide(waiting).node == "a"
    assert bench.table.requested("cpu").tolist() == [0, 0]
    important = merged(make_pod("q").cpu("1").build(), {"spec": {"priority": 10}})
    bench.nominations.remove(waiting)
    bench.nominations.add(waiting, "b")
    assert bench.cycle.decide(bench.pod(important)).feasible == 2


def test_the_nominated_node_is_tried_first_and_alone() -> None:
    bench = Bench(*(make_node(name).cpu("4").build() for name in "abc"))
    nominated = merged(make_pod("p").cpu("1").build(), {"status": {"nominatedNodeName": "c"}})
    decision = bench.cycle.decide(bench.pod(nominated))
    assert (decision.node, decision.evaluated) == ("c", 1)


# -- properties ----------------------------------------------------------------------------------

KEYS = st.sampled_from(["disk", "gen"])
VALUES = st.sampled_from(["1", "2", "30", "ssd"])
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
TAINTS = st.fixed_dictionaries({"key": KEYS, "value": VALUES, "effect": EFFECTS})
TOLERATIONS = st.fixed_dictionaries(
    {"operator": st.sampled_from(["Exists", "Equal"])},
    optional={"key": KEYS, "value": VALUES, "effect": EFFECTS},
)


@st.composite
def expressions(draw: st.DrawFn) -> JsonObject:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    expression: JsonObject = {"key": draw(KEYS), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = draw(st.lists(VALUES, min_size=1, max_size=2))
    if operator in ("Gt", "Lt"):
        expression["values"] = [draw(st.sampled_from(["1", "2"]))]
    return expression


TERMS = st.fixed_dictionaries(
    {"matchExpressions": st.lists(expressions(), max_size=2)},
    optional={
        "matchFields": st.just([{"key": "metadata.name", "operator": "In", "values": ["n1"]}])
    },
)


@st.composite
def nodes(draw: st.DrawFn) -> list[JsonObject]:
    made = []
    for number in range(draw(st.integers(1, 7))):
        builder = make_node(f"n{number}").labels(draw(st.dictionaries(KEYS, VALUES)))
        for resource in ("cpu", "memory", "example.com/gpu"):
            builder = builder.capacity(resource, str(draw(st.integers(0, 4))))
        spec = {"taints": draw(st.lists(TAINTS, max_size=2)), "unschedulable": draw(st.booleans())}
        made.append(merged(builder.build(), {"spec": spec}))
    return made


@st.composite
def pods(draw: st.DrawFn) -> JsonObject:
    builder = make_pod("p")
    for resource in draw(st.sets(st.sampled_from(["cpu", "memory", "example.com/gpu"]))):
        builder = builder.request(resource, str(draw(st.integers(0, 3))))
    node_affinity: JsonObject = {}
    if draw(st.booleans()):
        required = {"nodeSelectorTerms": draw(st.lists(TERMS, min_size=1, max_size=2))}
        node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    if draw(st.booleans()):
        node_affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(st.integers(1, 100)), "preference": draw(TERMS)}
        ]
    spec = {
        "tolerations": draw(st.lists(TOLERATIONS, max_size=2)),
        "affinity": {"nodeAffinity": node_affinity},
    }
    return merged(builder.build(), {"spec": spec})


@settings(deadline=None, max_examples=150)
@given(nodes(), pods())
def test_both_forms_of_every_plugin_agree(made: list[JsonObject], obj: JsonObject) -> None:
    bench = Bench(*made)
    pod, state = bench.pod(obj), CycleState()
    rows = np.arange(len(bench.table))
    bench.cycle.pre_filter(state, pod)
    bench.cycle.pre_score(state, pod, rows)
    for each in bench.framework.filters:
        if each.name in state.skipped_filters:
            continue
        codes = each.filter_nodes(state, pod, bench.table, rows).tolist()
        for info, code in zip(bench.table.infos, codes, strict=True):
            assert each.one is not None
            whole = each.describe(state, pod, code) if code else each.one(state, pod, info)
            assert each.one(state, pod, info) == whole, each.name
            assert each.one(state, pod, info).ok is (code == 0), each.name
    for score in bench.framework.scores:
        if score.name in state.skipped_scores:
            continue
        assert score.one is not None
        one_by_one = [score.one(state, pod, info) for info in bench.table.infos]
        assert score.score_nodes(state, pod, bench.table, rows).tolist() == one_by_one, score.name


def told(decision: Decision) -> dict[str, Any]:
    assert decision.explanation is not None
    return decision.explanation.to_dict() | {"node": decision.node, "message": decision.message}


@settings(deadline=None, max_examples=60)
@given(nodes(), st.lists(pods(), min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=12))
def test_what_is_kept_per_class_never_changes_a_decision(
    made: list[JsonObject], classes: list[JsonObject], order: list[int]
) -> None:
    bench = Bench(*made)
    for number, choice in enumerate(order):
        obj = merged(classes[choice % len(classes)], {"metadata": {"name": f"p{number}"}})
        pod = bench.pod(obj)
        start = bench.start.index
        decision = bench.cycle.decide(pod, explain=Explain.FULL)
        bench.start.index = start
        assert told(bench.fresh_cycle().decide(pod, explain=Explain.FULL)) == told(decision)
        if decision.node:
            bench.table.add_pod(pod.assumed(decision.node), decision.node)


# -- queueing hints ------------------------------------------------------------------------------


def node_change(before: NodeBuilder | None, after: NodeBuilder) -> Change:
    old = None if before is None else make_record(NODES, before.build(), 1)
    kind = ChangeType.ADDED if old is None else ChangeType.MODIFIED
    return Change(kind, make_record(NODES, after.build(), 2), old, Store())


def hint(plugin: str, action: Action, pod: PodInfo, change: Change) -> Hint:
    bench = Bench()
    for registration in bench.framework.events()[plugin]:
        if registration.event.action & action:
            return Hint.QUEUE if registration.hint is None else registration.hint(pod, change)
    raise AssertionError(f"{plugin} did not register {action!r}")


SMALL, LARGE = make_node("n").cpu("1"), make_node("n").cpu("8")
TAINTED, CORDONED = make_node("n").cpu("8").taint("gpu"), make_node("n").cpu("8").unschedulable()
SSD, HDD = make_node("n").label(disk="ssd"), make_node("n").label(disk="hdd")
ASKING = make_pod("p").cpu("2")
CHOOSY = make_pod("p").select(disk="ssd")


@pytest.mark.parametrize(
    ("plugin", "pod", "before", "after", "expected"),
    [
        ("NodeResourcesFit", ASKING, None, LARGE, Hint.QUEUE),
        ("NodeResourcesFit", ASKING, None, SMALL, Hint.SKIP),
        ("NodeResourcesFit", ASKING, SMALL, LARGE, Hint.QUEUE),
        ("NodeResourcesFit", ASKING, LARGE, LARGE, Hint.SKIP),
        ("TaintToleration", ASKING, None, TAINTED, Hint.SKIP),
        ("TaintToleration", ASKING, TAINTED, LARGE, Hint.QUEUE),
        ("TaintToleration", ASKING, LARGE, LARGE, Hint.SKIP),
        ("NodeUnschedulable", ASKING, None, CORDONED, Hint.SKIP),
        ("NodeUnschedulable", ASKING, CORDONED, LARGE, Hint.QUEUE),
        ("NodeAffinity", CHOOSY, None, SSD, Hint.QUEUE),
        ("NodeAffinity", CHOOSY, None, HDD, Hint.SKIP),
        ("NodeAffinity", CHOOSY, HDD, SSD, Hint.QUEUE),
        ("NodeAffinity", CHOOSY, SSD, SSD, Hint.SKIP),
        ("NodeName", ASKING, None, SMALL, Hint.QUEUE),
    ],
)
def test_a_node_wakes_the_pods_it_may_help(
    plugin: str, pod: PodBuilder, before: NodeBuilder | None, after: NodeBuilder, expected: Hint
) -> None:
    waiting = Bench().pod(pod.build())
    assert hint(plugin, Action.ADD, waiting, node_change(before, after)) is expected


@pytest.mark.parametrize("plugin", ["NodeUnschedulable", "TaintToleration"])
@pytest.mark.parametrize("own", [True, False])
def test_only_its_own_tolerations_wake_a_pod(plugin: str, own: bool) -> None:
    waiting = Bench().pod(make_pod("p").build())
    uid = {"metadata": {"uid": waiting.uid if own else "another"}}
    after = make_pod("p").tolerate("node.kubernetes.io/unschedulable")
    old, new = (make_record(PODS, merged(each.build(), uid), 1) for each in (make_pod("p"), after))
    change = Change(ChangeType.MODIFIED, new, old, Store())
    expected = Hint.QUEUE if own else Hint.SKIP
    assert hint(plugin, Action.UPDATE_POD_TOLERATION, waiting, change) is expected


def actions(events: list[ClusterEvent]) -> list[Action]:
    return [event.action for event in events]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (CORDONED, LARGE, [Action.UPDATE_NODE_TAINT]),
        (LARGE, CORDONED, []),
        (SMALL, LARGE, [Action.UPDATE_NODE_ALLOCATABLE]),
        (SSD, HDD, [Action.UPDATE_NODE_LABEL]),
        (TAINTED, LARGE, [Action.UPDATE_NODE_TAINT]),
        (LARGE, LARGE.annotate({"a": "b"}), [Action.UPDATE_NODE_ANNOTATION]),
    ],
)
def test_q_15_events_of_a_node_update(
    before: NodeBuilder, after: NodeBuilder, expected: list[Action]
) -> None:
    assert actions(node_events(before.build(), after.build())) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ASKING, ASKING, [Action.UPDATE]),
        (ASKING, ASKING.label(a="b"), [Action.UPDATE_POD_LABEL]),
        (ASKING, ASKING.cpu("1"), [Action.UPDATE_POD_SCALE_DOWN]),
        (ASKING, ASKING.cpu("3"), [Action.UPDATE]),
        (ASKING.gate("g"), ASKING, [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED]),
        (ASKING, ASKING.tolerate("gpu"), [Action.UPDATE_POD_TOLERATION]),
    ],
)
def test_q_14_events_of_a_pod_update(
    before: PodBuilder, after: PodBuilder, expected: list[Action]
) -> None:
    assert actions(pod_events(before.build(), after.build())) == expected
