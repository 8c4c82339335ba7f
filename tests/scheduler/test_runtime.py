"""Plugins that are not ours: how they are registered, checked, adapted and blamed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from kubescene.actors import Actor, Role
from kubescene.api.changes import Change
from kubescene.cluster import Cluster
from kubescene.errors import ConfigurationError, PluginError
from kubescene.scheduler import (
    ExtensionPoint,
    Profile,
    Scheduler,
    default_profile,
    default_registry,
    kube_scheduler,
)
from kubescene.scheduler.cluster_events import NODE_ADDED
from kubescene.scheduler.config import EnabledPlugin
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.interfaces import (
    Codes,
    EventRegistration,
    Handle,
    Hint,
    Plugin,
    Reads,
    Rows,
)
from kubescene.scheduler.nodes import NodeInfo, NodeTable
from kubescene.scheduler.pods import PodInfo
from kubescene.scheduler.status import SUCCESS, Status
from kubescene.testing.builders import make_node, make_pod
from kubescene.timeline import Instrument
from kubescene.timeline.attempts import SchedulingAttempt


class Attempts(Instrument):
    def __init__(self) -> None:
        self.made: list[SchedulingAttempt] = []

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self.made.append(attempt)


def profile(plugin: str, *points: ExtensionPoint, weight: int = 1) -> Profile:
    """The default profile with one more plugin at the end of some points."""
    default = default_profile()
    added = {point: (*default.at(point), EnabledPlugin(plugin, weight)) for point in points}
    return Profile(default.scheduler_name, {**default.points, **added})


class Stage:
    """Nodes a and b, each with 4 cpus, and a scheduler with one foreign plugin."""

    def __init__(self, plugin: Any, *points: ExtensionPoint) -> None:
        self.attempts = Attempts()
        self.cluster = Cluster(instruments=[self.attempts])
        self.client = self.cluster.client(Actor("test", Role.USER))
        registry = default_registry()

        def make(arguments: Mapping[str, Any], handle: Handle) -> Plugin:
            made: Plugin = plugin
            return made

        registry.register(plugin.name, make)
        context = self.cluster.context(Actor("test", Role.USER))
        profiles = [profile(plugin.name, *points)]
        self.scheduler: Scheduler = kube_scheduler(context, profiles, registry=registry)
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


class Forgetful:
    name = "Forgetful"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("not today")

    def events_to_register(self) -> list[EventRegistration]:
        return [EventRegistration(NODE_ADDED, self.after_node)]

    def after_node(self, pod: PodInfo, change: Change) -> Hint:
        raise KeyError(change.record.name)


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
        self, state: CycleState, pod: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[Status, str]:
        seen = ", ".join(f"{name}={status.code.name}" for name, status in statuses.items())
        return Status.unschedulable(f"tried [{seen}]"), ""


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
def test_a_score_out_of_range_fails_the_attempt(score: int) -> None:
    attempt = Stage(Scoring(a=50, b=score), ExtensionPoint.SCORE).attempt()
    assert attempt.reason == "SchedulerError"
    expected = f'plugin "Scoring" returns an invalid score {score}, it should in the range of'
    assert expected in attempt.message


def test_a_plugin_that_raises_ends_the_run() -> None:
    stage = Stage(Broken(), ExtensionPoint.FILTER)
    with pytest.raises(PluginError, match="plugin 'Broken' at Filter: RuntimeError: disk on fire"):
        stage.attempt()


def test_a_queueing_hint_that_raises_ends_the_run() -> None:
    stage = Stage(Forgetful(), ExtensionPoint.FILTER)
    stage.attempt()
    with pytest.raises(PluginError, match="plugin 'Forgetful' at QueueingHint: KeyError"):
        stage.client.create(make_node("c").build())


def test_an_answer_of_the_wrong_length_is_blamed_on_the_plugin() -> None:
    with pytest.raises(PluginError, match=r"'Miscounting' at Filter: .* 3 codes for 2 nodes"):
        Stage(Miscounting(), ExtensionPoint.FILTER).attempt()


def test_a_filter_error_fails_the_attempt() -> None:
    attempt = Stage(Failing(), ExtensionPoint.FILTER).attempt()
    assert attempt.message == 'running "Failing" filter plugin: no idea'
    assert (attempt.reason, attempt.plugins) == ("SchedulerError", ())


def test_post_filter_sees_every_node_and_ends_the_message() -> None:
    attempt = Stage(Hopeless(), ExtensionPoint.FILTER, ExtensionPoint.POST_FILTER).attempt()
    tried = "tried [a=UNSCHEDULABLE, b=UNSCHEDULABLE]"
    assert attempt.message == f"0/2 nodes are available: 2 never. {tried}"


def test_a_late_rejection_gives_everything_back() -> None:
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
    cluster = Cluster()
    context = cluster.context(Actor("test"))
    broken = Profile("default-scheduler", {**default_profile().points, **changed})
    with pytest.raises(ConfigurationError, match=message):
        kube_scheduler(context, [broken])
