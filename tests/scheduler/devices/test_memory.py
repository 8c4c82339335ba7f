"""What the scheduler remembers of devices, against one that begins anew; both forms of Filter."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kubescene.actors import Actor, Component
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.scheduler import Scheduler, SchedulerOptions, kube_scheduler
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.status import SUCCESS
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject
from scheduler.plugins.test_dynamic_resources import DRIVER, SLICE, Devices, claim, pod, resource

POD = GroupVersionKind("", "v1", "Pod")
NODES = ("a", "b", "c")
PLACES: dict[str, JsonObject] = {
    **{name: {"nodeName": name} for name in NODES},
    "all": {"allNodes": True},
}
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("slice"), st.sampled_from([*PLACES]), st.integers(0, 3)),
        st.tuples(st.just("pod"), st.integers(1, 2)),
        st.tuples(st.just("free"), st.integers(0, 3)),
        st.tuples(st.just("label"), st.sampled_from(NODES)),
    ),
    max_size=8,
)


class Play:
    """Plays events and asks two schedulers."""

    def __init__(self) -> None:
        self.stage = Devices()
        self.stage.nodes(*NODES)
        self.held: list[str] = []
        probe: Any = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
        self.stage.create(claim("probe", probe))

    def happen(self, event: tuple[Any, ...]) -> None:
        getattr(self, f"_{event[0]}")(*event[1:])
        self.stage.work()

    def _slice(self, place: str, count: int) -> None:
        ref = ObjectRef(SLICE, f"s-{place}")
        if self.stage.client.find(ref) is not None:
            self.stage.client.delete(ref)
        pool = {"name": place, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"d{at}"} for at in range(count)]
        spec = {"driver": DRIVER, "pool": pool, "devices": devices, **PLACES[place]}
        self.stage.create(resource("ResourceSlice", f"s-{place}", spec))

    def _pod(self, count: int) -> None:
        name = f"c{len(self.held)}"
        asked: Any = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}
        self.stage.create(claim(name, asked), pod(f"p{len(self.held)}", name))
        self.held.append(name)

    def _free(self, at: int) -> None:
        if at < len(self.held):
            self.stage.write_status(self.held[at], allocation=None, reservedFor=None)

    def _label(self, node: str) -> None:
        ref = ObjectRef(GroupVersionKind("", "v1", "Node"), node)
        self.stage.client.patch(ref, {"metadata": {"labels": {"x": "y"}}})

    def asked(self, scheduler: Scheduler) -> list[Any]:
        """What the probe would get on each node, by both forms of Filter."""
        cycle = scheduler.cycle_of("default-scheduler")
        cycle.nodes.refresh()
        plugin: Any = cycle.framework.plugins["DynamicResources"]
        made = self._probe(scheduler)
        state = CycleState()
        assert plugin.pre_filter(state, made, cycle.nodes)[0] is SUCCESS
        rows = np.arange(len(cycle.nodes), dtype=np.intp)
        codes = plugin.filter_nodes(state, made, cycle.nodes, rows).tolist()
        found: list[Any] = []
        for row, code in enumerate(codes):
            node = cycle.nodes.infos[row]
            status = plugin.describe(state, made, code) if code else SUCCESS
            assert status == plugin.filter(state, made, node)
            found.append(status.reasons or plugin.allocations(state, made, node.name))
        return found

    def _probe(self, scheduler: Scheduler) -> PodInfo:
        ref = ObjectRef(POD, "probe", "default")
        if self.stage.client.find(ref) is None:
            waiting = pod("probe", "probe")
            waiting["spec"]["schedulingGates"] = [{"name": "never"}]
            self.stage.create(waiting)
        entry = scheduler.queue.get(self.stage.uid("probe"))
        assert entry is not None
        return entry.pod


@settings(max_examples=30, deadline=None)
@given(EVENTS)
def test_a_scheduler_that_followed_equals_one_that_begins_anew(events: list[Any]) -> None:
    play = Play()
    for event in events:
        play.happen(event)
        followed = play.asked(play.stage.scheduler)
        context = play.stage.cluster.context(Actor("other", Component.SCHEDULER))
        assert followed == play.asked(kube_scheduler(context, SchedulerOptions()))
