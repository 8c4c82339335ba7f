"""Where a world is put together: clock, store, registry, controllers and scheduler.

Controllers run only when somebody turns the crank: `settle` here, the scenario engine elsewhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Self

from kubescene.actors import ENGINE, Actor, Role
from kubescene.api.builtin import builtin_scheme
from kubescene.api.copies import own_copy
from kubescene.api.gates import OpenGate, WriteGate
from kubescene.api.kinds import SCENARIO
from kubescene.api.objects import Node, Pod
from kubescene.api.records import Record
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
from kubescene.clock.clocks import PacedClock
from kubescene.cluster.lending import Lending
from kubescene.cluster.manager import ControllerManager
from kubescene.cluster.options import (
    SCHEDULER,
    ClusterOptions,
    builtin_controllers,
    use_options,
)
from kubescene.control import Alarm, ControllerContext, Crank, Slot
from kubescene.control.patience import DEFAULT_MAX_ROUNDS
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import BadRequestError, ConfigurationError, InternalError
from kubescene.lane import Lane
from kubescene.registry import EmbeddedRegistry, Registry, exports
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.bootstrap import SCENARIOS, bootstrap, survives_wipe
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.remedies import Remedies, find_remedies
from kubescene.scheduler import kube_scheduler
from kubescene.scheduler.configuration.sources import SchedulerSource
from kubescene.scheduler.configuration.sources import scheduler_options as scheduler_from
from kubescene.shortcuts import PLAIN
from kubescene.store import Store
from kubescene.timeline import Instrument, Instruments

TRIES_AT_ONCE = 3
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


class Cluster(Verbs):
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
        store: Store | None = None,
        plain: bool = False,
    ) -> None:
        """``plain`` leaves out everything that is only faster (`kubescene.shortcuts`).

        ``store`` is where the objects are, such as one with a journal.
        """
        options = options or ClusterOptions()
        if plain:
            options = replace(options, shortcuts=PLAIN)
        if scheduler is not None:
            options = replace(options, scheduler=scheduler_from(scheduler, options.scheduler))
        self.options = options
        # The plain clock of a rehearsal is read too often to stand behind another.
        self.clock: LentClock | VirtualClock
        self.clock = LentClock(clock) if clock is not None else options.virtual_clock()
        self._begins_at = self.clock.now()
        self.event_queue = EventQueue(self.clock)
        self.streams = Streams(options.seed)
        self.store = Store() if store is None else store
        self.scheme = builtin_scheme()
        self.scheme.register(SCENARIO_TYPE)
        self.instruments = Instruments(*instruments)
        super().__init__(self._make_registry(server_clock), USER)
        self.manager = ControllerManager(
            self.registry,
            controllers or builtin_controllers(options),
            clock=self.clock,
            event_queue=self.event_queue,
            streams=self.streams,
            scheme=self.scheme,
            instruments=self.instruments,
        )
        self.manager.writes_events = options.events
        self.crank = Crank(self.event_queue, self.count_objects)
        self._lane = self._make_lane()
        self.lending = Lending(self)
        self._furnish()

    def _make_registry(self, server_clock: Clock | None) -> Registry:
        shortcuts = self.options.shortcuts
        return EmbeddedRegistry(shortcuts=shortcuts, **self._registry_parts(server_clock))

    def _registry_parts(self, server_clock: Clock | None) -> dict[str, Any]:
        """What every registry of this world is made of."""
        return {
            "scheme": self.scheme,
            "store": self.store,
            "clock": self.clock,
            "identities": Identities(self.options.seed),
            "admission": AdmissionChain(default_chain()),
            "instruments": self.instruments,
            "server_clock": server_clock,
        }

    def _furnish(self) -> None:
        """Make what has to be there before anybody comes."""
        bootstrap(self.registry)
        self._define()

    def _define(self) -> None:
        """The kinds that the controllers bring along."""
        for definition in self.registrations.definitions:
            self.registry.create(ENGINE, own_copy(definition))

    @property
    def lane(self) -> Lane | None:
        """Where like pods pass, if this world has such a way (`kubescene.lane`)."""
        return self._lane if self.options.shortcuts.lane else None

    @property
    def creates_alike(self) -> Callable[..., int] | None:
        """How pods of one template are created many at a time, if this world has such a way."""
        lane = self._lane if self.options.shortcuts.bunches else None
        return None if lane is None else lane.create

    def _make_lane(self) -> Lane | None:
        registry = self.registry
        assert isinstance(registry, EmbeddedRegistry)
        return Lane(registry, self.instruments, self.clock)

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
        return self.manager.context(self.client(actor), Slot(actor.name))

    @property
    def registrations(self) -> ControllerRegistrations:
        """Which controllers there are, in settle order."""
        return self.manager.registrations

    @property
    def own_options(self) -> ClusterOptions:
        """The settings of this world, also while a scenario has borrowed it and brought its own."""
        return self.lending.owners_options

    @property
    def alarm(self) -> Alarm:
        """Rings when a controller has work."""
        return self.manager.alarm

    @property
    def slots(self) -> list[Slot]:
        """The controllers that run, in the order of their turns."""
        return self.manager.slots

    def start(self, names: Sequence[str], role: Role) -> Sequence[Slot]:
        """Make controllers anew, with fresh state, and let them see what exists."""
        return self.manager.start(names, role)

    def stop(self) -> None:
        """Let all controllers go: their watches end, and what they had planned is forgotten."""
        self.manager.stop()

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
        before = self.lending.owners_options
        options = replace(before, scheduler=scheduler_from(scheduler, before.scheduler))
        if self.lending.is_lent:
            Cluster(scheduler=options.scheduler).start((SCHEDULER,), Role.PRESIMULATION)
            self.lending.owners_options = options
            return
        self.use(options)
        try:
            self.manager.restart(SCHEDULER)
        except Exception:
            self.use(before)
            raise
        self.lending.owners_options = options

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
        self.lending.forget()
        self.clock.reset(self._begins_at if isinstance(self.clock, VirtualClock) else None)
        self.streams.reset(self.options.seed)
        self.manager.stamps.reset()
        exports.reset(self.registry)
        self._define()

    # -- beginning anew ------------------------------------------------------------------------

    def clear(self, most: int) -> bool:
        """Let all controllers go and take at most so many objects away; whether more are left."""
        self.stop()
        self.lending.touch()
        taken = list(islice(self._left_over(), most))
        self._take_away(taken)
        return len(taken) == most

    def begin_anew(self) -> None:
        """A fresh world for a new scenario: nobody, nothing, time and names from the start."""
        self.stop()
        self.wipe()
        self.lending.begin()
        self.streams.reset(self.options.seed)
        self.manager.stamps.reset()
        self.registry.identities.reset(self.options.seed, kept=(SCENARIO.kind,))

    def take_back(self) -> None:
        """Let the controllers go; time goes on from now at the world's own pace and settings."""
        self.stop()
        self.lending.take_back()

    def use(self, options: ClusterOptions) -> None:
        """Controllers that are made from now on have these settings."""
        self.options = options
        self.manager.writes_events = options.events
        use_options(self.registrations, options)

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
                is_made = self.lending.is_of_scenario(record.uid)
                if not survives_wipe(resource, store.decoded(record), of_a_scenario=is_made):
                    yield record

    def count_objects(self) -> int:
        return sum(self.store.count(resource) for resource in self.store.resources())


def as_duration(duration: str | int) -> int:
    """Nanoseconds; text is a Go duration such as ``90s`` or ``1h30m``."""
    return parse_duration(duration) if isinstance(duration, str) else duration
