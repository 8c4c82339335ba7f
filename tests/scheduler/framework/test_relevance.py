"""Plugins that have nothing to do with most pods, and say so."""

import pytest

from kubescene.scheduler import (
    SUCCESS,
    CycleState,
    Handle,
    NodeInfo,
    NodeTable,
    PodInfo,
    PodSignature,
    Rows,
    Scores,
    Status,
)
from kubescene.scheduler.framework.explain import Explain
from kubescene.testing.builders import make_pod
from scheduler.staging import Stage


class Guests:
    """Concerned with pods that have a label ``guest``, or with all while ``everybody`` is set."""

    name = "Guests"

    def __init__(self, handle: Handle) -> None:
        self.calls: list[str] = []
        self.everybody = False
        self.concern_version = 0

    def concerns(self, signature: PodSignature) -> bool:
        return self.everybody or "guest" in signature.labels

    def concerns_scoring(self, signature: PodSignature) -> bool:
        return self.concerns(signature)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable
    ) -> tuple[Status, frozenset[str] | None]:
        self.calls.append(f"PreFilter {pod.name}")
        return SUCCESS, None

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.name == "b" else Status.unschedulable("no guests here")

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.calls.append(f"Reserve {pod.name}")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append(f"Unreserve {pod.name}")

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.calls.append(f"PreBind {pod.name}")
        return Status.unschedulable("never") if pod.name == "refused" else SUCCESS


class Preferences:
    """Rates nodes for pods that have a label ``guest``; has no PreScore."""

    name = "Preferences"

    def __init__(self, handle: Handle) -> None:
        self.rated = 0

    def concerns_scoring(self, signature: PodSignature) -> bool:
        return "guest" in signature.labels

    def score_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        self.rated += 1
        return rows * 100


class PreparedPreferences(Preferences):
    name = "PreparedPreferences"

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Status:
        return SUCCESS


def test_a_plugin_is_asked_about_the_pods_that_concern_it_only() -> None:
    stage = Stage(Guests)
    stage.nodes("a", "b")
    plain, guest = make_pod("plain"), make_pod("guest").label(guest="yes")
    assert stage.place(plain, guest) == ["plain:a", "guest:b"]
    calls = ["PreFilter guest", "Reserve guest", "PreBind guest"]
    assert stage.plugin("Guests").calls == calls


def test_what_was_reserved_is_given_back() -> None:
    stage = Stage(Guests)
    stage.nodes("a", "b")
    stage.place(make_pod("refused").label(guest="yes"))
    assert stage.plugin("Guests").calls[-1] == "Unreserve refused"


def test_answers_hold_until_the_version_changes() -> None:
    stage = Stage(Guests)
    stage.nodes("a", "b")
    plugin = stage.plugin("Guests")
    assert stage.place(make_pod("p")) == ["p:a"]
    plugin.everybody = True
    assert stage.place(make_pod("q")) == ["q:b"]
    assert plugin.calls == []
    plugin.concern_version += 1
    assert stage.place(make_pod("r").cpu("1")) == ["r:b"]
    assert plugin.calls == ["PreFilter r", "Reserve r", "PreBind r"]


@pytest.mark.parametrize("plugin", [Preferences, PreparedPreferences])
def test_scores_that_concern_nobody_are_zero_or_skipped(plugin: type[Preferences]) -> None:
    stage = Stage(plugin, explain=Explain.FULL)
    stage.nodes("a", "b")
    stage.create(make_pod("plain"), make_pod("guest").label(guest="yes"))
    plain, guest = stage.work()
    assert plain.node == "a"
    assert guest.node == "b"
    columns = [
        {each.plugin: list(each.raw) for each in attempt.explanation.scores}
        for attempt in (plain, guest)
        if attempt.explanation is not None
    ]
    assert columns[0].get(plugin.name) == (None if plugin is PreparedPreferences else [0, 0])
    assert columns[1][plugin.name] == [0, 100]
