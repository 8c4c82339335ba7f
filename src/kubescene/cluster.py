"""Where a world is put together: clock, store, registry, controllers and scheduler.

A `Cluster` knows nothing of scenarios. Its controllers run only when somebody turns the crank:
`settle` here, the scenario engine elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.builtin import builtin_scheme
from kubescene.api.copies import own_copy
from kubescene.api.gates import OpenGate, WriteGate
from kubescene.api.kinds import SCENARIO
from kubescene.api.objects import Node, Pod
from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.scheme import ResourceType
from kubescene.client import DirectClient
from kubescene.client.verbs import Verbs
from kubescene.clock import (
    LAST_INSTANT,
    Clock,
    EventQueue,
    Identities,
    LentClock,
    Streams,
    VirtualClock,
    format_micro_time,
    parse_duration,
)
from kubescene.clock.clocks import DEFAULT_START, PacedClock
from kubescene.control import Alarm, ControllerContext, Crank, Slot, Timers
from kubescene.control.patience import DEFAULT_MAX_ROUNDS
from kubescene.controllers.authoring import controller_from
from kubescene.controllers.builtin.deployment import deployment
from kubescene.controllers.builtin.disruption import disruption
from kubescene.controllers.builtin.ephemeral_volume import ephemeral_volume
from kubescene.controllers.builtin.event_expiry import event_expiry
from kubescene.controllers.builtin.garbage_collector import garbage_collector
from kubescene.controllers.builtin.namespace import namespace
from kubescene.controllers.builtin.node_lifecycle import node_lifecycle
from kubescene.controllers.builtin.nodeset import NodeSetReconciler
from kubescene.controllers.builtin.persistent_volume_binder import persistent_volume_binder
from kubescene.controllers.builtin.pod_garbage_collector import pod_garbage_collector
from kubescene.controllers.builtin.replicaset import replicaset
from kubescene.controllers.builtin.resource_claim import resource_claim
from kubescene.controllers.builtin.storage_protection import storage_protection
from kubescene.controllers.builtin.taint_eviction import taint_eviction
from kubescene.controllers.kubelet import NO_DELAYS, KubeletDelays, kubelet
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import BadRequestError, ConfigurationError, InternalError
from kubescene.lane import Lane
from kubescene.recording import SILENT, EventRecorder, EventStamps, Recorder
from kubescene.registry import Registry, exports
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.bootstrap import LASTING, SCENARIOS, bootstrap, survives_wipe
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.remedies import Remedies, find_remedies
from kubescene.scheduler import SchedulerOptions, kube_scheduler
from kubescene.scheduler.configuration.sources import SchedulerSource
from kubescene.scheduler.configuration.sources import scheduler_options as scheduler_from
from kubescene.shortcuts import ALL, PLAIN, Shortcuts
from kubescene.store import Store
from kubescene.timeline import Instrument, Instruments
from kubescene.timeline.explanations import Explain

SCHEDULER = "kube-scheduler"
TRIES_AT_ONCE = 3
USER = Actor("user")

R = TypeVar("R", bound=Registry)

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
    events: bool = False
    """Whether components write Event objects. A served world does (see `kubescene.recording`)."""
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    shortcuts: Shortcuts = ALL
    """What is only faster; `kubescene.shortcuts.PLAIN` plays without any of it, to the same end."""


def builtin_controllers(options: ClusterOptions) -> ControllerRegistrations:
    """The controllers that every world has, in settle order."""
    registrations = ControllerRegistrations()
    registrations.add(controller_from(NodeSetReconciler))
    registrations.register("deployment", deployment)
    registrations.register("replicaset", replicaset)
    registrations.register("disruption", disruption)
    registrations.register("namespace", namespace)
    registrations.register("storage-protection", storage_protection)
    registrations.register("ephemeral-volume", ephemeral_volume)
    registrations.register("persistentvolume-binder", persistent_volume_binder)
    registrations.register("resourceclaim", resource_claim)
    registrations.register("node-lifecycle", node_lifecycle)
    registrations.register("taint-eviction", taint_eviction)
    registrations.register("pod-garbage-collector", pod_garbage_collector)
    registrations.register("garbage-collector", garbage_collector)
    if options.events:
        registrations.register("event-expiry", event_expiry)
    registrations.register("kubelet", partial(kubelet, delays=options.kubelet))
    scheduler = partial(kube_scheduler, options=scheduler_options(options))
    registrations.register(SCHEDULER, scheduler, schedules=True)
    return registrations


def scheduler_options(options: ClusterOptions) -> SchedulerOptions:
    """The scheduler's options; explanations are the world's unless they say otherwise."""
    scheduler = options.scheduler
    return scheduler if scheduler.explain else replace(scheduler, explain=options.explain)


def virtual_clock(options: ClusterOptions) -> VirtualClock:
    """The clock of a rehearsal; a served world is given the machine's instead."""
    return VirtualClock() if options.start is None else VirtualClock(options.start)


def use_options(registrations: ControllerRegistrations, options: ClusterOptions) -> None:
    """Let those built-in controllers that have settings begin with these; others stay."""
    built_in = builtin_controllers(options)
    for name in built_in:
        new, known = built_in.factory(name), registrations.find(name)
        if isinstance(new, partial) and isinstance(known, partial) and new.func is known.func:
            registrations.replace(name, new)


class Cluster:
    """One simulated cluster, on a virtual clock unless another is given.

    `create`, `update`, `apply`, `get`, `list`, `watch`, `patch`, `scale`, `evict` and `delete` are
    those of `kubescene.client.verbs.Verbs` and speak as the user ``user``::

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
        clock: PacedClock | None = None,
        server_clock: Clock | None = None,
        scheduler: SchedulerSource | None = None,
        plain: bool = False,
    ) -> None:
        """``plain`` leaves out everything that is only faster (`kubescene.shortcuts`)."""
        options = options or ClusterOptions()
        if plain:
            options = replace(options, shortcuts=PLAIN)
        if scheduler is not None:
            options = replace(options, scheduler=scheduler_from(scheduler, options.scheduler))
        self.options = self._own_options = options
        self._next_options: ClusterOptions | None = None
        self._lasting_before: frozenset[str] = frozenset()
        self._of_scenario: frozenset[str] = frozenset()
        self.is_lent = False
        self.clock: LentClock | VirtualClock
        # The plain clock of a rehearsal is read too often to stand behind another.
        self.clock = LentClock(clock) if clock is not None else virtual_clock(options)
        self._begins_at = self.clock.now()
        self.event_queue = EventQueue(self.clock)
        self.streams = Streams(options.seed)
        self.store = Store()
        self.scheme = builtin_scheme()
        self.scheme.register(SCENARIO_TYPE)
        self.instruments = Instruments(*instruments)
        self.registry = self._make_registry(server_clock)
        self.registrations = controllers or builtin_controllers(options)
        self.crank = Crank(self.event_queue, self.count_objects)
        self.alarm = Alarm()
        self.slots: list[Slot] = []
        self._controller_clients: list[DirectClient] = []
        self._lane = self._make_lane()
        self._event_stamps = EventStamps(self.clock)
        self._speak_as(USER)
        self._furnish()

    def _make_registry(self, server_clock: Clock | None) -> Registry:
        return self._registry_of(Registry, server_clock)

    def _registry_of(self, kind: type[R], server_clock: Clock | None) -> R:
        """What lies between clients and the store of this world."""
        return kind(
            scheme=self.scheme,
            store=self.store,
            clock=self.clock,
            identities=Identities(self.options.seed),
            admission=AdmissionChain(default_chain()),
            instruments=self.instruments,
            server_clock=server_clock,
        )

    def _furnish(self) -> None:
        """Make what has to be there before anybody comes."""
        bootstrap(self.registry)
        self._define()

    def _define(self) -> None:
        """The kinds that the controllers bring along."""
        for definition in self.registrations.definitions:
            self.registry.create(ENGINE, own_copy(definition))

    def _speak_as(self, actor: Actor) -> None:
        verbs = self.verbs = Verbs(self.registry, actor)
        self.create = verbs.create
        self.update = verbs.update
        self.apply = verbs.apply
        self.get = verbs.get
        self.list = verbs.list
        self.watch = verbs.watch
        self.patch = verbs.patch
        self.delete = verbs.delete
        self.scale = verbs.scale
        self.evict = verbs.evict

    @property
    def lane(self) -> Lane | None:
        """Where like pods pass, if this world has such a way (`kubescene.lane`)."""
        return self._lane if self.options.shortcuts.lane else None

    def _make_lane(self) -> Lane | None:
        return Lane(self.registry, self.instruments, self.clock)

    # -- what the scenario engine and the server need of a world -----------------------------

    @property
    def revision(self) -> int:
        """The revision of the newest accepted write."""
        return self.store.revision

    def observe(self, *instruments: Instrument) -> None:
        """Attach instruments, at any time; ``cluster.instruments.detach`` lets them go."""
        self.instruments.attach(*instruments)

    def guard(self, gate: WriteGate) -> None:
        """From now on this gate has the last word before every write."""
        self.registry.gate = gate

    def client(self, actor: Actor) -> DirectClient:
        """A client that writes in this actor's name."""
        return DirectClient(self.registry, actor)

    def context(self, actor: Actor) -> ControllerContext:
        """What a controller needs to run in this world, for those who turn it by hand."""
        return self._context(self.client(actor), Slot(actor.name))

    def start(self, names: Sequence[str], role: Role) -> Sequence[Slot]:
        """Make controllers anew, with fresh state, and let them see what exists."""
        started = []
        for name in names:
            started.append(self._start(name, role))
            self.slots.append(started[-1])
        return started

    def stop(self) -> None:
        """Let all controllers go: their watches end, and what they had planned is forgotten."""
        for client in self._controller_clients:
            client.close()
        self._controller_clients.clear()
        self.slots.clear()
        self.event_queue.clear()

    @property
    def own_options(self) -> ClusterOptions:
        """The settings of this world, also while a scenario has borrowed it and brought its own."""
        return self._own_options

    @property
    def scheduler_is_configurable(self) -> bool:
        """Whether the scheduler is the built-in one."""
        known = self.registrations.find(SCHEDULER)
        return isinstance(known, partial) and known.func is kube_scheduler

    def configure_scheduler(self, scheduler: SchedulerSource) -> None:
        """From now on the scheduler is made with other options; one that runs is made anew.

        Pods that it had decided about but not bound are decided about again. Nothing changes if
        these options cannot be used. A world that a scenario has borrowed changes when it is back.
        """
        if not self.scheduler_is_configurable:
            raise ConfigurationError(
                f"the {SCHEDULER} of this world was registered by somebody else: configure it there"
            )
        before = self._own_options
        options = replace(before, scheduler=scheduler_from(scheduler, before.scheduler))
        if self.is_lent:
            Cluster(scheduler=options.scheduler).start((SCHEDULER,), Role.PRESIMULATION)
            self._own_options = options
            return
        self._use(options)
        try:
            self._restart(SCHEDULER)
        except Exception:
            self._use(before)
            raise
        self._own_options = options

    def _restart(self, name: str) -> None:
        """Make one controller anew where it stands; the old one goes when there is a new one."""
        for at, slot in enumerate(self.slots):
            if slot.name == name:
                client = next(each for each in self._controller_clients if each is slot.watcher)
                self.slots[at] = self._start(name, client.actor.role)
                client.close()
                self._controller_clients.remove(client)
                slot.retire()

    # -- letting things happen ---------------------------------------------------------------

    def settle(self, max_rounds: int = DEFAULT_MAX_ROUNDS) -> Self:
        """Run every controller until none has anything to do; time stands still."""
        if not self.slots:
            self.start(tuple(self.registrations), Role.PRESIMULATION)
        for slot in self.slots:
            slot.begin_step()
        self.crank.settle(self.slots, max_rounds)
        return self

    def advance(self, duration: str | int, max_rounds: int = DEFAULT_MAX_ROUNDS) -> Self:
        """Let time pass, as ``"5m"`` or in nanoseconds; controllers act when something is due."""
        self.settle(max_rounds)
        for _ in self.advancing(duration, self.crank, max_rounds):
            pass
        return self

    def advancing(
        self, duration: str | int, crank: Crank, max_rounds: int = DEFAULT_MAX_ROUNDS
    ) -> Iterator[None]:
        """The same moment by moment, for a server that has other things to do in between."""
        deadline = self._deadline(duration)
        yield from self._settling(crank, max_rounds)
        while (due := self.event_queue.peek()) is not None and due <= deadline:
            self._move_time(due)
            yield from self._settling(crank, max_rounds)
        self._move_time(deadline)

    def _settling(self, crank: Crank, max_rounds: int) -> Iterator[None]:
        """To rest at one instant. A controller that fails must not miss it: time is about to move.

        It may try a few times at once. For one that never works time stands still: going on
        without it would be another world.
        """
        patience = crank.patience(max_rounds)
        for _ in range(TRIES_AT_ONCE):
            while crank.round(self.slots, patience):
                yield
            if not (failed := crank.release(self.slots)):
                return
        now = format_micro_time(self.clock.now())
        raise InternalError(
            f"{', '.join(failed)} failed {TRIES_AT_ONCE} times at {now}: time stands still there; "
            "the server's log says why"
        )

    def _deadline(self, duration: str | int) -> int:
        deadline = self.clock.now() + as_duration(duration)
        if not self.clock.now() <= deadline <= LAST_INSTANT:
            raise BadRequestError(f"{duration} from now is in the past, or beyond the year 9999")
        return deadline

    def _move_time(self, instant: int) -> None:
        self.clock.wait_until(instant)
        for hook in self.instruments.time_advanced:
            hook(instant)

    def fork(self) -> Self:
        """An independent copy of this world that goes on alike.

        Objects, controllers with all they remember, queues, clock and streams are copied; what
        never changes is shared. Of the instruments those come along that say so.
        """
        return deepcopy(self)

    def remedies(self, pod: str) -> Remedies:
        """What it would take to place a waiting pod, ``NAMESPACE/NAME``: the cheapest first.

        Every change was tried in a fork, and the pod was placed; see `kubescene.remedies`.
        """
        return find_remedies(self, pod)

    def pod(self, name: str, namespace: str = "default") -> Pod:
        return Pod(self.get("pods", name, namespace))

    def node(self, name: str) -> Node:
        return Node(self.get("nodes", name))

    def export(self) -> bytes:
        """Every object as one Kubernetes ``List``; the same calls give the same bytes."""
        return exports.export(self.registry)

    def load(self, document: bytes | Mapping[str, Any]) -> int:
        """Put the objects of an export, or of a list from a real cluster, into this world."""
        return exports.import_objects(self.registry, USER, document)

    def reset(self) -> None:
        """Back to an empty cluster: objects, controllers, settings, time and names."""
        self.stop()
        self.guard(OpenGate())
        self.is_lent = False
        self._use(self._own_options)
        self.clock.reset(self._begins_at if isinstance(self.clock, VirtualClock) else None)
        self.streams.reset(self.options.seed)
        self._event_stamps.reset()
        exports.reset(self.registry)
        self._define()

    # -- lending it to a scenario --------------------------------------------------------------

    def prepare(self, options: ClusterOptions) -> None:
        """What the next scenario begins with, in place of the world's own settings.

        Nothing changes before `begin_anew`. From then on until `take_back` time is virtual,
        whatever the world's own clock is: it begins at ``options.start``, or where all do.
        """
        self._next_options = options

    def clear(self, most: int) -> bool:
        """Let all controllers go and take at most so many objects away; whether more are left."""
        self.stop()
        self.is_lent = self.is_lent or self._next_options is not None
        taken = list(islice(self._left_over(), most))
        self._take_away(taken)
        return len(taken) == most

    def begin_anew(self) -> None:
        """A fresh world for a new scenario: nobody, nothing, time and names from the start."""
        self.stop()
        self.wipe()
        if self._next_options is None:
            self.clock.reset(self.options.start)
        else:
            self._use(self._next_options)
            self._next_options = None
            self.is_lent = True
            self._lend_time()
        self.streams.reset(self.options.seed)
        self._event_stamps.reset()
        self.registry.identities.reset(self.options.seed, kept=(SCENARIO.kind,))
        self._lasting_before, self._of_scenario = self._lasting(), frozenset()

    def note_lasting(self) -> None:
        """A scenario has ended: the definitions, roles and webhooks that it made go with the rest.

        Nobody else could make any while it was under way; those of others stay.
        """
        self._of_scenario = self._lasting() - self._lasting_before

    def _lasting(self) -> frozenset[str]:
        """The uids of what survives a wipe by its kind."""
        store = self.store
        return frozenset(record.uid for resource in LASTING for record in store.list(resource))

    def take_back(self) -> None:
        """Let the controllers go; time goes on from now at the world's own pace and settings."""
        self.stop()
        self.is_lent = False
        self._use(self._own_options)
        if isinstance(self.clock, LentClock):
            self.clock.take_back()

    def _use(self, options: ClusterOptions) -> None:
        self.options = options
        use_options(self.registrations, options)

    def _lend_time(self) -> None:
        start = DEFAULT_START if self.options.start is None else self.options.start
        if isinstance(self.clock, LentClock):
            self.clock.lend(start)
        else:
            self.clock.reset(start)

    def wipe(self) -> None:
        """Remove everything except what the API server itself owns or a user marked to keep."""
        self._take_away(self._left_over())

    def _take_away(self, records: Iterable[Record]) -> None:
        for record in records:
            self.store.remove(record.resource, record.namespace, record.name)
            if record.resource == DEFINITIONS:
                self.registry.custom.uninstall(record.name)

    def _left_over(self) -> Iterator[Record]:
        """What a new scenario takes away, in order of creation."""
        store = self.store
        for resource in store.resources():
            records = store.in_order_of_creation(resource)
            # Scenarios stay in any case, and are not decoded to see that: one may be large.
            for record in () if resource == SCENARIOS else records:
                is_made = record.uid in self._of_scenario
                if not survives_wipe(resource, store.decoded(record), of_a_scenario=is_made):
                    yield record

    def count_objects(self) -> int:
        return sum(self.store.count(resource) for resource in self.store.resources())

    def _start(self, name: str, role: Role) -> Slot:
        slot = Slot(name, self.alarm)
        actor = Actor(name, role, schedules=self.registrations.schedules(name))
        client = slot.watcher = DirectClient(self.registry, actor, slot.wake)
        self._controller_clients.append(client)
        context = self._context(client, slot)
        slot.timers = context.timers
        try:
            slot.controller = self.registrations.factory(name)(context)
        except Exception:
            client.close()
            self._controller_clients.remove(client)
            slot.retire()
            raise
        if not client.is_watching:
            # Who watches nothing may look at everything: any change may mean work.
            client.watch_all(ignore, patient=True)
        return slot

    def _context(self, client: DirectClient, slot: Slot) -> ControllerContext:
        return ControllerContext(
            client=client,
            clock=self.clock,
            timers=Timers(self.event_queue, slot.wake),
            streams=self.streams,
            instruments=self.instruments,
            scheme=self.scheme,
            wake=slot.wake,
            recorder=self._recorder(client),
        )

    def _recorder(self, client: DirectClient) -> Recorder:
        if not self.options.events:
            return SILENT
        return EventRecorder(client, self.clock, self.event_queue, self._event_stamps)


def ignore(change: Change) -> None:
    """A handler for those who only want to be woken."""


def as_duration(duration: str | int) -> int:
    """Nanoseconds; text is a Go duration such as ``90s`` or ``1h30m``."""
    return parse_duration(duration) if isinstance(duration, str) else duration


__all__ = ["Cluster", "ClusterOptions", "builtin_controllers"]
