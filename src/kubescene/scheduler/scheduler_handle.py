"""The `Handle` of one profile: what its plugins may ask of the scheduler."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct

from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import Client
from kubescene.clock import Clock, Stream
from kubescene.errors import ConfigurationError
from kubescene.recording import Recorder
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.suppositions import Supposition
from kubescene.scheduler.cycle.trials import TryingOut
from kubescene.scheduler.extenders.extenders import NO_EXTENDERS, Extenders
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.feature_gates import DEFAULT_GATES, FeatureGates
from kubescene.scheduler.framework.informers import Informer, Informers
from kubescene.scheduler.framework.interfaces import Handle
from kubescene.scheduler.preemption.evictions import VictimEvictions
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.state.pods import Identified, PodInfo

T = TypeVar("T")


class SchedulerHandle:
    """Made before the plugins; cycle and queue come when they exist."""

    def __init__(
        self,
        scheduler_name: str,
        client: Client,
        clock: Clock,
        random: Stream,
        *,
        nodes: NodeTable,
        nominations: Nominations,
        waiting_pods: WaitingRoom,
        informers: Informers,
        events: Recorder,
        tell: Callable[[Struct], None] | None = None,
        extenders: Extenders = NO_EXTENDERS,
        evictions: VictimEvictions | None = None,
        pod_groups: PodGroups | None = None,
        feature_gates: FeatureGates = DEFAULT_GATES,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.client = client
        self.clock = clock
        self.random = random
        self.nodes = nodes
        self.nominations = nominations
        self.waiting_pods = waiting_pods
        self.events = events
        self.extenders = extenders
        self.pod_groups = PodGroups(()) if pod_groups is None else pod_groups
        self.feature_gates = feature_gates
        self._tell = tell
        self._evictions = evictions
        self._informers = informers
        self._cycle: Cycle | None = None
        self._queue: SchedulingQueue | None = None

    def connect(self, *, cycle: Cycle | None = None, queue: SchedulingQueue | None = None) -> None:
        """Take over what was made after the plugins."""
        self._cycle = self._cycle if cycle is None else cycle
        self._queue = self._queue if queue is None else queue

    def lister(self, gvk: GroupVersionKind) -> Informer:
        return self._informers.lister(gvk)

    def shared(self, make: Callable[[Handle], T]) -> T:
        found: T | None = self._informers.shared.get(make)
        if found is None:
            found = self._informers.shared[make] = make(self)
        return found

    def tell(self, fact: Struct) -> None:
        if self._tell is not None:
            self._tell(fact)

    def activate(self, pods: Iterable[Identified]) -> None:
        if self._queue is None:
            raise ConfigurationError("a plugin cannot activate pods while it is being made")
        self._queue.activate(pods)

    def is_evicting_for(self, pod: PodInfo) -> bool:
        return self._evictions is not None and self._evictions.is_running_for(pod)

    def try_out(self, state: CycleState, pod: PodInfo) -> TryingOut:
        if self._cycle is None:
            raise ConfigurationError("a plugin cannot try anything out while it is being made")
        return self._cycle.try_out(state, pod)

    def suppose(self, state: CycleState, pod: PodInfo) -> Supposition:
        if self._cycle is None:
            raise ConfigurationError("a plugin cannot suppose anything while it is being made")
        return self._cycle.suppose(state, pod)
