"""What is kept and added up for preemption never changes a decision, and leaves no trace."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.clock import Streams, VirtualClock
from kubescene.scheduler import EnabledPlugin, ExtensionPoint, default_profile, default_registry
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.informers import Informer
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.testing.builders import make_node, make_pod, merged
from kubescene.types import JsonObject

NODES, PODS = GroupResource("", "nodes"), GroupResource("", "pods")
BUDGETS = GroupResource("policy", "poddisruptionbudgets")


class Nosy:
    """Passes every node, but might look at anything: with it, nothing is judged by amounts."""

    name = "Nosy"

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS


class Listers:
    """One budget, and nothing else."""

    def __init__(self, allowed: int | None) -> None:
        self._allowed = allowed
        self.shared: dict[Any, Any] = {}

    def lister(self, gvk: GroupVersionKind) -> Any:
        found = Informer(gvk, self._nobody)
        if gvk.kind == "PodDisruptionBudget" and self._allowed is not None:
            found._objects["default", "db"] = {
                "metadata": {"name": "db", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": "db"}}},
                "status": {"disruptionsAllowed": self._allowed},
            }
        return found

    def _nobody(self, *arguments: object) -> None:
        raise AssertionError(arguments)


class World:
    """A table and its nominations, looked at by schedulers that keep much or nothing."""

    def __init__(self, sizes: list[int], allowed: int | None) -> None:
        self.table = NodeTable()
        self.nominations = Nominations()
        self.classes = PodClasses()
        self.allowed = allowed
        self.placed: list[PodInfo] = []
        for number, cpu in enumerate(sizes):
            obj = make_node(f"n{number}").cpu(str(cpu)).memory("8Gi").build()
            self.table.set_node(make_record(NODES, obj, 1), obj)
        self.table.refresh()
        self.kept = self.cycle()

    def cycle(self, *, nosy: bool = False) -> Cycle:
        nobody: Any = None
        listers: Any = Listers(self.allowed)
        handle = SchedulerHandle(
            "default-scheduler",
            nobody,
            VirtualClock(),
            Streams().stream("test"),
            nodes=self.table,
            nominations=self.nominations,
            waiting_pods=nobody,
            informers=listers,
            events=nobody,
        )
        profile, registry = default_profile(), default_registry()
        if nosy:
            filters = (*profile.at(ExtensionPoint.FILTER), EnabledPlugin("Nosy"))
            profile = replace(profile, points={**profile.points, ExtensionPoint.FILTER: filters})
            made: Any = Nosy()
            registry.register("Nosy", lambda arguments, handle: made)
        framework = Framework(profile, registry, handle)
        cycle = Cycle(framework, self.table, self.nominations, StartIndex())
        handle.connect(cycle=cycle)
        return cycle

    def pod(self, name: str, spec: JsonObject, **status: str) -> PodInfo:
        obj = merged(make_pod(name).build(), {"metadata": {"uid": name}} | spec)
        obj["status"] = status
        return PodInfo.read(make_record(PODS, obj, 1), obj, self.classes)

    def place(self, pod: PodInfo, node: int) -> None:
        name = f"n{node % len(self.table)}"
        self.placed.append(pod.assumed(name))
        self.table.add_pod(self.placed[-1], name)

    def remove(self, index: int) -> None:
        if self.placed:
            pod = self.placed.pop(index % len(self.placed))
            self.table.remove_pod(pod, pod.node)


def requests(cpu: int, priority: int, *, protected: bool = False) -> JsonObject:
    resources = {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}
    container = {"name": "c", "image": "i", "resources": resources}
    metadata = {"labels": {"app": "db"}} if protected else {}
    return {"metadata": metadata, "spec": {"priority": priority, "containers": [container]}}


SPECS = st.builds(
    requests,
    st.sampled_from([500, 900]),
    st.sampled_from([0, 5, 100]),
    protected=st.booleans(),
)
STARTS = st.sampled_from(["", "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"])
EVENTS = st.one_of(
    st.tuples(st.just("place"), SPECS, st.integers(0, 5), STARTS),
    st.tuples(st.just("remove"), st.integers(0, 40)),
    st.tuples(st.just("nominate"), SPECS, st.integers(0, 5)),
    st.tuples(st.just("withdraw"), st.integers(0, 10)),
    st.tuples(st.just("decide"), SPECS),
)


def told(decision: Decision) -> tuple[Any, ...]:
    victims = [pod.key for pod in decision.victims]
    return decision.node, decision.message, decision.nominated, victims, decision.preemption


def name_of(world: World, spec: JsonObject, number: int) -> PodInfo:
    metadata = spec["metadata"] | {"uid": f"p{number}"}
    return world.pod(f"p{number}", {**spec, "metadata": metadata})


@settings(deadline=None, max_examples=120)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.one_of(st.none(), st.integers(0, 2)),
    st.lists(EVENTS, max_size=40),
)
def test_what_is_kept_and_added_up_decides_as_suppositions_do(
    sizes: list[int], allowed: int | None, events: list[Any]
) -> None:
    world = World(sizes, allowed)
    waiting: list[PodInfo] = []
    for number, event in enumerate(events):
        if event[0] == "place":
            pod = world.pod(f"p{number}", _named(event[1], number), startTime=event[3])
            world.place(pod, event[2])
        elif event[0] == "remove":
            world.remove(event[1])
        elif event[0] == "nominate":
            waiting.append(name_of(world, event[1], number))
            world.nominations.add(waiting[-1], f"n{event[2] % len(sizes)}")
        elif event[0] == "withdraw" and waiting:
            world.nominations.remove(waiting.pop(event[1] % len(waiting)))
        elif event[0] == "decide":
            compare(world, name_of(world, event[1], number))
    for pod in waiting:
        compare(world, pod)


def _named(spec: JsonObject, number: int) -> JsonObject:
    return {**spec, "metadata": spec["metadata"] | {"uid": f"p{number}"}}


def compare(world: World, pod: PodInfo) -> None:
    before = world.table.versions.tolist(), world.table.version, world.nominations.version
    ours = told(world.kept.decide(pod, explain=Explain.FULL))
    assert (world.table.versions.tolist(), world.table.version, world.nominations.version) == before
    assert ours == told(world.cycle().decide(pod, explain=Explain.FULL))
    assert ours == told(world.cycle(nosy=True).decide(pod, explain=Explain.FULL))


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.booleans(), SPECS, st.integers(0, 3), st.integers(0, 5)), max_size=30),
    st.lists(st.sampled_from([-10, 0, 5, 100]), min_size=1, max_size=3),
)
def test_crowds_corrected_step_by_step_equal_those_made_anew(
    steps: list[tuple[bool, JsonObject, int, int]], askers: list[int]
) -> None:
    world = World([4, 4, 4, 4], None)
    asking = [world.pod(f"asks-{each}", requests(100, each)) for each in askers]
    world.nominations.add(world.pod("first", requests(100, 100)), "n0")
    for each in asking:
        world.nominations.amounts(each, world.table)
    known: list[PodInfo] = []
    for number, (comes, spec, node, index) in enumerate(steps):
        if comes or not known:
            known.append(name_of(world, spec, number))
            world.nominations.add(known[-1], f"n{node}")
        else:
            world.nominations.remove(known.pop(index % len(known)))
    anew = Nominations()
    for pod in [world.nominations.on(f"n{node}") for node in range(4)]:
        for each in pod:
            anew.add(each, world.nominations.node_of(each))
    for each in asking:
        ours, theirs = (made.amounts(each, world.table) for made in (world.nominations, anew))
        assert ours is not None
        assert theirs is not None
        names = {*ours.columns, *theirs.columns}
        nothing = np.zeros(4, dtype=np.int64)
        for name in names:
            left, right = ours.columns.get(name, nothing), theirs.columns.get(name, nothing)
            assert left.tolist() == right.tolist(), name
