"""Where a world is put together: clock, store, registry, controllers and scheduler.

A `Cluster` knows nothing of scenarios. Its controllers run only when somebody turns the crank:
`settle` here, the scenario engine elsewhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

from kubescene.actors import Actor, Role
from kubescene.api.builtin import builtin_scheme
from kubescene.api.kinds import SCENARIO
from kubescene.api.objects import Node, Pod
from kubescene.api.scheme import ResourceType
from kubescene.client import DirectClient
from kubescene.client.verbs import Verbs
from kubescene.clock import Clock, EventQueue, Identities, Streams, VirtualClock
from kubescene.control.loops import Controller, ControllerContext, begin_step, nothing
from kubescene.control.settling import settle
from kubescene.control.timers import Timers
from kubescene.controllers.builtin.deployment import deployment
from kubescene.controllers.builtin.garbage_collector import garbage_collector
from kubescene.controllers.builtin.namespace import namespace
from kubescene.controllers.builtin.replicaset import replicaset
from kubescene.controllers.builtin.storage_protection import storage_protection
from kubescene.controllers.kubelet import NO_DELAYS, KubeletDelays, kubelet
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.registry import Registry, exports
from kubescene.registry.admission import AdmissionChain
from kubescene.registry.admission_plugins import default_chain
from kubescene.registry.bootstrap import bootstrap, survives_wipe
from kubescene.scheduler import kube_scheduler
from kubescene.store import Store
from kubescene.timeline import Instrument, Instruments
from kubescene.timeline.explanations import Explain

SCHEDULER = "kube-scheduler"
USER = Actor("user")

SCENARIO_TYPE = ResourceType(
    gvk=SCENARIO,
    plural="scenarios",
    namespaced=False,
    singular="scenario",
    short_names=("scn",),
    subresources=frozenset({"status"}),
    custom=True,
)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What a world is made with. The same options give the same world."""

    seed: int = 0
    start: int | None = None
    explain: Explain = Explain.AUTO
    kubelet: KubeletDelays = NO_DELAYS


def builtin_controllers(options: ClusterOptions) -> ControllerRegistrations:
    """The controllers that every world has, in settle order."""
    registrations = ControllerRegistrations()
    registrations.register("deployment", deployment)
    registrations.register("replicaset", replicaset)
    registrations.register("namespace", namespace)
    registrations.register("storage-protection", storage_protection)
    registrations.register("garbage-collector", garbage_collector)
    registrations.register("kubelet", partial(kubelet, delays=options.kubelet))
    scheduler = partial(kube_scheduler, explain=options.explain)
    registrations.register(SCHEDULER, scheduler, schedules=True)
    return registrations


def virtual_clock(options: ClusterOptions) -> Clock:
    """The clock of a rehearsal; a served world is given the machine's instead."""
    return VirtualClock() if options.start is None else VirtualClock(options.start)


Controllers: TypeAlias = list[Controller]
Clients: TypeAlias = list[DirectClient]


class Cluster(Verbs):
    """One simulated cluster, on a virtual clock unless another is given.

    `create`, `apply`, `get`, `list`, `watch`, `patch` and `delete` speak as the user ``user``::

        cluster = kubescene.Cluster()
        cluster.create(make_node("n1").cpu("4").memory("8Gi"))
        cluster.create(make_pod("a").cpu("2"))
        assert cluster.settle().pod("a").node == "n1"
    """

    def __init__(
        self,
        options: ClusterOptions | None = None,
        *,
        controllers: ControllerRegistrations | None = None,
        instruments: Iterable[Instrument] = (),
        clock: Clock | None = None,
        server_clock: Clock | None = None,
    ) -> None:
        options = options or ClusterOptions()
        self.options = options
        self.clock = clock or virtual_clock(options)
        self.event_queue = EventQueue(self.clock)
        self.streams = Streams(options.seed)
        self.store = Store()
        self.scheme = builtin_scheme()
        self.scheme.register(SCENARIO_TYPE)
        self._instruments = tuple(instruments)
        self.instruments = Instruments(*self._instruments)
        registry = Registry(
            scheme=self.scheme,
            store=self.store,
            clock=self.clock,
            identities=Identities(options.seed),
            admission=AdmissionChain(default_chain()),
            instruments=self.instruments,
            server_clock=server_clock,
        )
        super().__init__(registry, USER)
        self.registrations = controllers or builtin_controllers(options)
        self.controllers: Controllers = []
        self._controller_clients: Clients = []
        bootstrap(self.registry)

    def observe(self, *instruments: Instrument) -> None:
        """Attach instruments; before controllers start, since those keep what they were given."""
        self._instruments += instruments
        self.instruments = Instruments(*self._instruments)
        self.registry.instruments = self.instruments

    def client(self, actor: Actor) -> DirectClient:
        """A client that writes in this actor's name."""
        return DirectClient(self.registry, actor)

    def start(self, names: Sequence[str], role: Role) -> Controllers:
        """Make controllers anew, with fresh state, and let them see what exists."""
        started = [
            self.registrations.factory(name)(self.context(self._actor(name, role)))
            for name in names
        ]
        self.controllers += started
        return started

    def stop(self) -> None:
        """Let all controllers go: their watches end, and what they had planned is forgotten."""
        for client in self._controller_clients:
            client.close()
        self._controller_clients.clear()
        self.controllers.clear()
        self.event_queue.clear()

    def settle(self, max_rounds: int = 10_000) -> Self:
        """Run every controller until none has anything to do."""
        if not self.controllers:
            self.start(tuple(self.registrations), Role.PRESIMULATION)
        begin_step(self.controllers)
        settle(self.controllers, max_rounds, objects=lambda: self.object_count)
        return self

    def pod(self, name: str, namespace: str = "default") -> Pod:
        return Pod(self.get("pods", name, namespace))

    def node(self, name: str) -> Node:
        return Node(self.get("nodes", name))

    def export(self) -> bytes:
        """Every object as one Kubernetes ``List``; the same calls give the same bytes."""
        return exports.export(self.registry)

    def load(self, document: bytes | Mapping[str, Any]) -> int:
        """Put the objects of an export, or of a list from a real cluster, into this world."""
        return exports.import_objects(self.registry, self.actor, document)

    def reset(self) -> None:
        """Back to an empty cluster: objects, controllers, time and names."""
        self.stop()
        if isinstance(self.clock, VirtualClock):
            self.clock.reset()
        self.streams.reset()
        exports.reset(self.registry)

    def begin_anew(self) -> None:
        """A fresh world for a new scenario: nobody, nothing, time and names from the start."""
        self.stop()
        self.wipe()
        if isinstance(self.clock, VirtualClock):
            self.clock.reset()
        self.streams.reset()
        self.registry.identities.reset(self.options.seed)

    def wipe(self) -> None:
        """Remove everything except what the API server itself owns or a user marked to keep."""
        for resource in self.store.resources():
            for record in self.store.list(resource):
                if not survives_wipe(resource, self.store.decoded(record)):
                    self.store.remove(resource, record.namespace, record.name)

    @property
    def object_count(self) -> int:
        return sum(self.store.count(resource) for resource in self.store.resources())

    def _actor(self, name: str, role: Role) -> Actor:
        return Actor(name, role, schedules=self.registrations.schedules(name))

    def context(self, actor: Actor) -> ControllerContext:
        """What a controller needs to run in this world."""
        client = self.client(actor)
        self._controller_clients.append(client)
        return ControllerContext(
            client=client,
            clock=self.clock,
            timers=Timers(self.event_queue, nothing),
            streams=self.streams,
            instruments=self.instruments,
            scheme=self.scheme,
        )


__all__ = ["Cluster", "ClusterOptions", "builtin_controllers"]
