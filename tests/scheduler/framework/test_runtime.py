"""Plugins that are not ours: how they are registered, checked, adapted and blamed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kubescene.actors import Actor
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.errors import ConfigurationError
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler import (
    ExtensionPoint,
    Profile,
    Scheduler,
    SchedulerOptions,
    default_profile,
    default_registry,
    kube_scheduler,
)
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.interfaces import (
    Codes,
    EventRegistration,
    FilterDiagnosis,
    Handle,
    Plugin,
    PostFilterResult,
    Reads,
    Rows,
    Scores,
)
from kubescene.scheduler.framework.profile import EnabledPlugin
from kubescene.scheduler.framework.runtime import AdaptedFilter
from kubescene.scheduler.framework.status import SUCCESS, Code, Status
from kubescene.scheduler.queue.waiting_places import Place
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodInfo
from kubescene.testing.builders import make_node, make_pod
from kubescene.timeline import Instrument

POD = GroupVersionKind("", "v1", "Pod")


class Attempts(Instrument):
    def __init__(self) -> None:
        self.made: list[SchedulingAttempt] = []

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self.made.append(attempt)


def profile(plugin: str, *points: ExtensionPoint, weight: int = 1) -> Profile:
    """The default profile with one more plugin at the end of some points, and no preemption."""
    default = without_preemption(default_profile())
    added = {point: (*default.at(point), EnabledPlugin(plugin, weight)) for point in points}
    return Profile(default.scheduler_name, {**default.points, **added})


def without_preemption(profile: Profile) -> Profile:
    point = ExtensionPoint.POST_FILTER
    left = tuple(each for each in profile.at(point) if each.name != "DefaultPreemption")
    return Profile(profile.scheduler_name, {**profile.points, point: left})


class Stage:
    """Nodes a and b, each with 4 cpus, and a scheduler with one foreign plugin."""

    def __init__(self, plugin: Any, *points: ExtensionPoint) -> None:
        self.attempts = Attempts()
        self.cluster = ClusterWorld(instruments=[self.attempts])
        self.client = self.cluster.client(Actor("test"))

        def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
            made: Plugin = plugin
            return made

        context = self.cluster.context(Actor("test"))
        options = SchedulerOptions((profile(plugin.name, *points),), {plugin.name: make})
        self.scheduler: Scheduler = kube_scheduler(context, options)
        for name in ("a", "b"):
            self.client.create(make_node(name).cpu("4").memory("8Gi").build())

    def attempt(self, name: str = "p") -> SchedulingAttempt:
        self.client.create(make_pod(name).cpu("1").build())
        while self.scheduler.run_once().more:
            pass
        return self.attempts.made[-1]


class OnlyB:
    name = "OnlyB"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == "b" else Status.unschedulable("not b")


class CountingOnlyB(OnlyB):
    reads = Reads.NODE

    def __init__(self) -> None:
        self.asked: list[str] = []

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked.append(node.name)
        return super().filter(state, pod, node)


class Scoring:
    name = "Scoring"

    def __init__(self, **scores: int) -> None:
        self._scores = scores

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self._scores[node.name]


class Broken:
    name = "Broken"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        raise RuntimeError("disk on fire")


class Failing:
    name = "Failing"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.error("no idea") if node.name == "b" else SUCCESS


class Miscounting:
    name = "Miscounting"

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return np.zeros(rows.size + 1, dtype=np.int64)

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return SUCCESS


class Hopeless:
    name = "Hopeless"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("never")

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult:
        codes = [Code(code).name for code in diagnosis.codes.tolist()]
        nodes = diagnosis.nodes_with(Code.UNSCHEDULABLE)
        seen = ", ".join(f"{name}={code}" for name, code in zip(nodes, codes, strict=True))
        return PostFilterResult(Status.unschedulable(f"tried [{seen}]"))


class Reserving:
    name = "Reserving"

    def __init__(self) -> None:
        self.held: list[str] = []

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.held.append(node)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.held.remove(node)

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        return Status.unschedulable("volume is gone")


def test_a_per_node_filter_is_adapted() -> None:
    assert Stage(OnlyB(), ExtensionPoint.FILTER).attempt().node == "b"


def test_a_filter_that_reads_the_node_is_asked_again_only_for_changed_nodes() -> None:
    plugin = CountingOnlyB()
    stage = Stage(plugin, ExtensionPoint.FILTER)
    stage.attempt("p")
    plugin.asked.clear()
    stage.attempt("q")
    assert set(plugin.asked) == {"b"}


def test_a_per_node_score_is_adapted_and_weighed() -> None:
    attempt = Stage(Scoring(a=1, b=100), ExtensionPoint.SCORE).attempt()
    assert attempt.node == "b"
    assert attempt.explanation is not None
    column = attempt.explanation.scores[-1]
    assert (column.plugin, list(column.raw)) == ("Scoring", [1, 100])


@pytest.mark.parametrize("score", [-1, 101])
def test_c_13_a_score_out_of_range_fails_the_attempt(score: int) -> None:
    attempt = Stage(Scoring(a=50, b=score), ExtensionPoint.SCORE).attempt()
    assert attempt.reason == "SchedulerError"
    expected = f'plugin "Scoring" returns an invalid score {score}, it should in the range of'
    assert expected in attempt.message


def test_a_plugin_that_raises_is_named() -> None:
    attempt = Stage(Broken(), ExtensionPoint.FILTER).attempt()
    assert attempt.message == "plugin 'Broken' at Filter: RuntimeError: disk on fire"


def test_an_answer_of_the_wrong_length_is_blamed_on_the_plugin() -> None:
    attempt = Stage(Miscounting(), ExtensionPoint.FILTER).attempt()
    assert attempt.message.startswith("plugin 'Miscounting' at Filter: ")
    assert attempt.message.endswith("3 codes for 2 nodes")


def test_c_12_a_filter_error_fails_the_attempt() -> None:
    attempt = Stage(Failing(), ExtensionPoint.FILTER).attempt()
    assert attempt.message == 'running "Failing" filter plugin: no idea'
    assert (attempt.reason, attempt.plugins) == ("SchedulerError", ())


def test_m_3_post_filter_sees_every_node_and_ends_the_message() -> None:
    attempt = Stage(Hopeless(), ExtensionPoint.FILTER, ExtensionPoint.POST_FILTER).attempt()
    tried = "tried [a=UNSCHEDULABLE, b=UNSCHEDULABLE]"
    assert attempt.message.startswith("0/2 nodes are available: 2 never. ")
    assert attempt.message.endswith(f", {tried}")


def test_m_8_a_late_rejection_gives_everything_back() -> None:
    plugin = Reserving()
    stage = Stage(plugin, ExtensionPoint.RESERVE, ExtensionPoint.PRE_BIND)
    attempt = stage.attempt()
    assert attempt.message == "0/1 nodes are available: 1 volume is gone."
    assert (attempt.reason, attempt.plugins) == ("Unschedulable", ("Reserving",))
    assert plugin.held == []
    assert stage.scheduler.nodes.requested("pods").tolist() == [0, 0]


def test_a_plugin_must_implement_its_points() -> None:
    message = 'plugin "OnlyB" does not extend Score plugin: it has no method score_nodes or score'
    with pytest.raises(ConfigurationError, match=message):
        Stage(OnlyB(), ExtensionPoint.SCORE)


def test_names_are_unique() -> None:
    registry = default_registry()
    with pytest.raises(ConfigurationError, match="'NodeName' is registered already"):
        registry.register("NodeName", lambda arguments, handle: OnlyB())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({ExtensionPoint.QUEUE_SORT: ()}, "only one queue sort plugin required .* but got 0"),
        ({ExtensionPoint.BIND: ()}, "at least one bind plugin is needed"),
        ({ExtensionPoint.FILTER: (EnabledPlugin("Nix"),)}, "'Nix' does not exist; registered are"),
    ],
    ids=["no queue sort", "no bind", "unknown"],
)
def test_a_profile_must_be_complete(
    changed: dict[ExtensionPoint, tuple[EnabledPlugin, ...]], message: str
) -> None:
    cluster = ClusterWorld()
    context = cluster.context(Actor("test"))
    broken = Profile("default-scheduler", {**default_profile().points, **changed})
    with pytest.raises(ConfigurationError, match=message):
        kube_scheduler(context, SchedulerOptions((broken,)))


class Chatty(OnlyB):
    """Never gives the same reason twice."""

    name = "Chatty"
    reads = Reads.NODE

    def __init__(self) -> None:
        self.count = 0

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.count += 1
        return Status.unschedulable(f"reason {self.count}")

    def events_to_register(self) -> list[EventRegistration]:
        return []


def test_ever_new_reasons_do_not_fill_memory() -> None:
    plugin = Chatty()
    adapted = AdaptedFilter(plugin, kept=3)
    stage = Stage(plugin, ExtensionPoint.FILTER)
    stage.attempt()
    nodes, pod = stage.scheduler.nodes, stage.scheduler.queue.waiting(Place.UNSCHEDULABLE)[0]
    rows = np.array([0, 1], dtype=np.intp)
    plugin.count = 0
    told = []
    for _ in range(3):
        state = CycleState()
        codes = adapted.filter_nodes(state, pod, nodes, rows).tolist()
        told += [adapted.describe(state, pod, code).message for code in codes]
    assert told == [f"reason {number}" for number in range(1, 7)]
    assert len(adapted._statuses) == 3


def test_verdicts_with_reasons_of_one_attempt_are_not_kept() -> None:
    plugin = Chatty()
    stage = Stage(plugin, ExtensionPoint.FILTER)
    extension = stage.scheduler.cycle_of("default-scheduler").framework.filters[-1]
    whole: Any = extension.filter_nodes
    whole.args[0].__self__._kept = 1
    first, second = stage.attempt("p").message, stage.attempt("q").message
    assert first.count("1 reason") == second.count("1 reason") == 2
    assert first != second


class OnlyWhole:
    """Scores in whole-cluster form alone, and reads nothing but the node."""

    name = "OnlyWhole"
    reads = Reads.NODE

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.array([10 * row for row in rows.tolist()], dtype=np.int64)


def test_a_whole_cluster_score_is_asked_about_few_rows_too() -> None:
    stage = Stage(OnlyWhole(), ExtensionPoint.SCORE)
    assert [stage.attempt(name).node for name in ("p", "q")] == ["b", "a"]


def test_the_results_name_the_filters_that_ran() -> None:
    explanation = Stage(OnlyB(), ExtensionPoint.FILTER).attempt().explanation
    assert explanation is not None
    assert explanation.filter_plugins == (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeResourcesFit",
        "OnlyB",
    )


class Nominating(Hopeless):
    """Answers PostFilter as it is told."""

    name = "Nominating"
    result = PostFilterResult(SUCCESS, "a")

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult:
        return self.result

    def events_to_register(self) -> list[EventRegistration]:
        return []


@pytest.mark.parametrize(
    ("second", "nominated"),
    [("b", "b"), ("", ""), (None, "a")],
    ids=["another node", "cleared", "left"],
)
def test_post_filter_nominates_clears_or_leaves(second: str | None, nominated: str) -> None:
    plugin = Nominating()
    stage = Stage(plugin, ExtensionPoint.FILTER, ExtensionPoint.POST_FILTER)
    stage.attempt("p")
    plugin.result = PostFilterResult(Status.unschedulable("no"), second)
    stage.scheduler.queue.activate(stage.scheduler.queue.waiting(Place.UNSCHEDULABLE))
    stage.scheduler.run_once()
    pod = stage.client.get(ObjectRef(POD, "p", "default"))
    assert pod["status"].get("nominatedNodeName", "") == nominated


def test_a_diagnosis_tells_plugin_and_reason_of_each_node() -> None:
    seen: list[tuple[str, str, str]] = []

    class Curious(Nominating):
        def post_filter(
            self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
        ) -> PostFilterResult:
            for row in range(3):
                status = diagnosis.status(row)
                seen.append((status.code.name, status.plugin, status.message))
            return PostFilterResult(Status.unschedulable())

    stage = Stage(Curious(), ExtensionPoint.FILTER, ExtensionPoint.POST_FILTER)
    stage.client.create(make_node("c").cpu("4").taint("gpu").build())
    stage.attempt()
    assert seen[:3] == [
        ("UNSCHEDULABLE", "Nominating", "never"),
        ("UNSCHEDULABLE", "Nominating", "never"),
        ("UNRESOLVABLE", "TaintToleration", "node(s) had untolerated taint(s)"),
    ]
