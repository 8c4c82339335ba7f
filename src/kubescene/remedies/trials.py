"""The trials of one question: a pod, changed or not, put before the scheduler of a forked world.

The scheduler decides as it always does, PreFilter to Score and extenders included, about a pod as
it might be and over nodes as they might be; nothing is bound and nobody is evicted. Nodes and pods
that are changed for a trial are put back afterwards.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.errors import ConfigurationError
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.suppositions import Supposition
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.scheduler import Scheduler
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.types import JsonObject

NODES, PODS = GroupResource("", "nodes"), GroupResource("", "pods")
REVISION = 0
"""What is made up for a trial was never written."""


class WholeWorld(Protocol):
    """A world with its controllers, for changes that they have to act on."""

    @property
    def create(self) -> Any: ...

    @property
    def patch(self) -> Any: ...

    @property
    def delete(self) -> Any: ...

    @property
    def get(self) -> Any: ...

    @property
    def list(self) -> Any: ...

    def fork(self) -> Self: ...

    def settle(self) -> Self: ...


class TrialsSpentError(Exception):
    """There may be no further trial: what was found until now has to do."""


class Trials:
    """A bounded number of decisions about one pod."""

    def __init__(
        self,
        scheduler: Scheduler,
        pod: JsonObject,
        most: int,
        go_on: Callable[[], bool] | None = None,
        world: WholeWorld | None = None,
    ) -> None:
        self.pod = pod
        self.left = most
        self._go_on = go_on
        self._world = world
        self._scheduler = scheduler
        self._classes = PodClasses()
        self.info = self._info(pod)
        if (name := self.info.scheduler_name) not in scheduler.cycles:
            raise ConfigurationError(
                f"{self.key} asks for the scheduler {name!r}: no profile has it"
            )
        self._cycle = scheduler.cycle_of(name)
        # Whether others could be driven away is another question; it is asked once, by victims.
        self._cycle.framework.post_filter = ()

    @property
    def key(self) -> str:
        return self.info.key

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        """The nodes in the scheduler's order."""
        self._scheduler.nodes.refresh()
        return self._scheduler.nodes.infos

    def place(self, pod: JsonObject | None = None) -> str:
        """The node that the pod, or what is made of it, would get; empty if there is none."""
        return self.decide(pod).node

    def decide(self, pod: JsonObject | None = None) -> Decision:
        """The whole decision, explained."""
        self._spend()
        info = self.info if pod is None else self._info(pod)
        return self._cycle.decide(info, explain=Explain.FULL)

    def another_world(self) -> WholeWorld | None:
        """A fork of the whole world, for one trial; None if there is none."""
        self._spend()
        return None if self._world is None else self._world.fork()

    def listed(self, kind: str) -> Sequence[JsonObject]:
        """The objects of a kind as they are."""
        found: Sequence[JsonObject] = () if self._world is None else self._world.list(kind)
        return found

    def _spend(self) -> None:
        if self.left <= 0 or (self._go_on is not None and not self._go_on()):
            raise TrialsSpentError
        self.left -= 1

    @contextmanager
    def node(self, obj: JsonObject) -> Iterator[None]:
        """As if a node were as this object says, be it known or new."""
        table, name = self._scheduler.nodes, obj["metadata"]["name"]
        before = table.info(name)
        known = None if before is None or not before.exists else before.record
        table.set_node(make_record(NODES, obj, REVISION), obj)
        try:
            yield
        finally:
            if known is None:
                table.remove_node(name)
            else:
                table.set_node(known, known.decode())

    @contextmanager
    def without(self, victims: Sequence[PodInfo], node: str) -> Iterator[None]:
        """As if some pods of a node were gone."""
        table = self._scheduler.nodes
        for victim in victims:
            table.remove_pod(victim, node)
        try:
            yield
        finally:
            for victim in victims:
                table.add_pod(victim, node)

    def suppose(self) -> Supposition | None:
        """The Filters of the pod, for questions about other pods; None if PreFilter refuses."""
        state = CycleState()
        self._scheduler.nodes.refresh()
        if not self._cycle.pre_filter(state, self.info).status.ok:
            return None
        return self._cycle.suppose(state, self.info)

    def _info(self, pod: JsonObject) -> PodInfo:
        record = make_record(PODS, pod, REVISION)
        return PodInfo.read(record, pod, self._classes)
