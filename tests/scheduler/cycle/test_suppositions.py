"""What if: Filter as if pods came or went, against really moving them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.scheduler import (
    SKIP,
    SUCCESS,
    Code,
    Codes,
    CycleState,
    EnabledPlugin,
    ExtensionPoint,
    FilterDiagnosis,
    Handle,
    NodeInfo,
    NodeTable,
    PodInfo,
    PostFilterResult,
    Profile,
    Rows,
    Scheduler,
    Status,
    WhatIf,
)
from kubescene.testing.builders import make_node, make_pod, make_priority_class
from scheduler.staging import Stage, with_plugins

NODES = ("a", "b", "c")


@dataclass
class Colours:
    """How many pods of each colour a node has."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def change(self, pod: PodInfo, node: str, by: int) -> None:
        key = (node, pod.labels.get("colour", ""))
        self.counts[key] = self.counts.get(key, 0) + by

    def clone(self) -> "Colours":
        return Colours(dict(self.counts))


class OneOfAColour:
    """A node takes two pods of a colour at most; knows the pods from PreFilter alone."""

    name = "OneOfAColour"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> tuple[Status, None]:
        if "colour" not in pod.labels:
            return SKIP, None
        colours = Colours()
        for info in nodes.infos:
            for each in info.pods:
                colours.change(each, info.name, 1)
        state.write(self.name, colours)
        return SUCCESS, None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        if added.name == "poison":
            return Status.error("cannot count it")
        assert added in node.pods
        state.read(self.name, Colours).change(added, node.name, 1)
        return SUCCESS

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo
    ) -> Status:
        state.read(self.name, Colours).change(removed, node.name, -1)
        return SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        key = (node.name, pod.labels.get("colour", ""))
        full = state.read(self.name, Colours).counts.get(key, 0) >= 2
        return Status.unschedulable("colour is full") if full else SUCCESS


class FewPods:
    """A whole-cluster Filter without a per-node form: an even number of pods, cpu to spare."""

    name = "FewPods"

    def __init__(self, handle: Handle) -> None:
        del handle

    def filter_nodes(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        odd = nodes.requested("pods").take(rows) % 2
        heavy = nodes.nonzero_cpu.take(rows) > 3000
        lonely = np.array(
            [len(nodes.infos[row].pods) == 1 for row in rows.tolist()], dtype=np.int64
        )
        return odd + 2 * heavy + 4 * lonely

    def describe(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        return Status.unschedulable(f"code {code}")


def stage() -> Stage:
    made = Stage(OneOfAColour, FewPods)
    made.create(*(make_node(name).cpu("4").memory("8Gi") for name in NODES))
    return made


def put(stage: Stage, name: str, node: str, cpu: int, colour: str) -> None:
    stage.create(make_pod(name).cpu(f"{cpu}00m").label(colour=colour).on(node))


def pods_on(scheduler: Scheduler, node: str) -> list[PodInfo]:
    info = scheduler.nodes.info(node)
    assert info is not None
    return info.pods


def begin(stage: Stage, colour: str = "red", cpu: str = "1") -> tuple[CycleState, PodInfo]:
    """A pod that looks for a node, after its PreFilters."""
    stage.create(make_pod("new").cpu(cpu).label(colour=colour))
    entry = stage.scheduler.queue.get(stage.uid("new"))
    assert entry is not None
    cycle = stage.scheduler.cycle_of("default-scheduler")
    stage.scheduler.nodes.refresh()
    state = CycleState()
    assert cycle.pre_filter(state, entry.pod).status.ok
    return state, entry.pod


def really(stage: Stage, pod: PodInfo) -> dict[str, Status]:
    """What a fresh cycle says about every node as it is."""
    cycle = stage.scheduler.cycle_of("default-scheduler")
    state = CycleState()
    cycle.pre_filter(state, pod)
    filtering = cycle.filters.begin(state, pod)
    verdicts = filtering.judge(np.arange(len(NODES), dtype=np.intp))
    names = stage.scheduler.nodes.names
    return {names[row]: filtering.describe(int(code)) for row, code in enumerate(verdicts)}


PLACED = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(1, 15), st.sampled_from(["red", "blue"])),
    max_size=10,
)
MOVES = st.lists(st.tuples(st.booleans(), st.sampled_from(NODES), st.integers(0, 20)), max_size=8)


@settings(deadline=None, max_examples=60)
@given(PLACED, MOVES)
def test_supposing_equals_doing(
    placed: list[tuple[str, int, str]], moves: list[tuple[bool, str, int]]
) -> None:
    world = stage()
    for number, (node, cpu, colour) in enumerate(placed):
        put(world, f"p{number}", node, cpu, colour)
    state, pod = begin(world)
    nodes = world.scheduler.nodes
    before, versions = really(world, pod), nodes.versions.tolist()
    supposed = world.plugin("OneOfAColour").handle.suppose(state, pod)
    done: list[tuple[bool, PodInfo, str]] = []
    spare = [each for node in NODES for each in pods_on(world.scheduler, node)]
    for adds, node, choice in moves:
        here = supposed.node(node).pods
        if adds and spare:
            moved = spare[choice % len(spare)].assumed(node)
            if any(each.uid == moved.uid for each in here):
                continue
            supposed.add(moved, node)
        elif not adds and here:
            moved = here[choice % len(here)]
            supposed.remove(moved, node)
        else:
            continue
        done.append((adds, moved, node))
    said = {name: supposed.filter(name) for name in NODES}
    assert nodes.versions.tolist() == versions
    assert really(world, pod) == before
    for adds, moved, node in done:
        (nodes.add_pod if adds else nodes.remove_pod)(moved, node)
    assert said == really(world, pod)


def test_a_supposition_can_be_taken_further_in_two_ways() -> None:
    world = stage()
    put(world, "p", "a", 1, "red")
    put(world, "q", "a", 1, "red")
    state, pod = begin(world)
    first: WhatIf = world.plugin("OneOfAColour").handle.suppose(state, pod)
    assert first.filter("a").reasons == ("colour is full",)
    second = first.clone()
    p, q = pods_on(world.scheduler, "a")
    second.remove(p, "a")
    assert second.filter("a").reasons == ("code 5",)
    second.remove(q, "a")
    assert second.filter("a").ok
    assert first.filter("a").reasons == ("colour is full",)
    assert [each.name for each in first.node("a").pods] == ["p", "q"]


def test_a_plugin_that_cannot_follow_makes_it_an_error() -> None:
    world = stage()
    put(world, "poison", "b", 1, "red")
    state, pod = begin(world)
    supposed = world.plugin("OneOfAColour").handle.suppose(state, pod)
    supposed.add(pods_on(world.scheduler, "b")[0].assumed("a"), "a")
    status = supposed.filter("a")
    assert status.code is Code.ERROR
    text = 'running AddPod on PreFilter plugin "OneOfAColour": cannot count it'
    assert status.message == text


def nominate(world: Stage, name: str, node: str, **labels: str) -> None:
    """A pending pod of high priority that holds a node."""
    pod = make_pod(name).cpu("100m").label(**labels).build()
    pod["spec"]["schedulingGates"] = [{"name": "later"}]
    world.create(pod)
    entry = world.scheduler.queue.get(world.uid(name))
    assert entry is not None
    world.scheduler.nominations.add(entry.pod, node)


def test_nominated_pods_are_told_to_plugins_and_leave_no_trace() -> None:
    world = stage()
    put(world, "p", "a", 1, "red")
    put(world, "q", "a", 1, "blue")
    nominate(world, "holder", "a", colour="red")
    state, pod = begin(world)
    versions = world.scheduler.nodes.versions.tolist()
    (attempt,) = [each for each in world.work() if each.pod.name == "new"]
    assert attempt.node in ("b", "c")
    info: Any = world.scheduler.nodes.info("a")
    assert [each.name for each in info.pods] == ["p", "q"]
    assert world.scheduler.nodes.versions.tolist()[0] == versions[0]
    supposed = world.plugin("OneOfAColour").handle.suppose(state, pod)
    assert supposed.filter("a").reasons == ("colour is full",)
    assert supposed.filter("a", nominated=False).ok


def test_an_error_about_a_nominated_pod_fails_the_attempt() -> None:
    world = stage()
    nominate(world, "poison", "a", colour="red")
    begin(world)
    (attempt,) = [each for each in world.work() if each.pod.name == "new"]
    assert attempt.reason == "SchedulerError"
    assert 'running AddPod on PreFilter plugin "OneOfAColour"' in attempt.message


class MakingRoom:
    """A preemption in small: the first node that fits once its lowest pods are gone."""

    name = "MakingRoom"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: FilterDiagnosis
    ) -> PostFilterResult:
        for row in diagnosis.rows_with(Code.UNSCHEDULABLE).tolist():
            node = self.handle.nodes.names[row]
            supposed = self.handle.suppose(state, pod)
            victims = [each for each in supposed.node(node).pods if each.priority < pod.priority]
            for victim in victims:
                supposed.remove(victim, node)
            if victims and supposed.filter(node).ok:
                return PostFilterResult(SUCCESS, node, tuple(victims))
        return PostFilterResult(Status.unschedulable("no victims"), "")


def test_a_post_filter_plugin_can_make_room_with_what_it_is_given() -> None:
    profile = with_plugins({"OneOfAColour": OneOfAColour, "MakingRoom": MakingRoom})
    alone = {ExtensionPoint.POST_FILTER: (EnabledPlugin("MakingRoom"),)}
    only = Profile(profile.scheduler_name, {**profile.points, **alone})
    world = Stage(OneOfAColour, MakingRoom, profiles=(only,))
    world.nodes("a", "b", cpu="1")
    world.create(make_node("t").cpu("8").taint("gpu"))
    for name, node in (("p", "a"), ("q", "b")):
        world.create(make_pod(name).cpu("1").on(node))
    world.create(make_priority_class("high", 10))
    world.create(make_pod("new").cpu("1").label(colour="red").priority_class("high"))
    attempt = world.work()[0]
    assert attempt.nominated == "a"
    assert world.pod("new")["status"]["nominatedNodeName"] == "a"
    assert [each.name for each in attempt.victims] == ["p"]
    assert world.pod("p")["metadata"]["deletionTimestamp"]
