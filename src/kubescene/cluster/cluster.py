"""A simulated cluster as people use it: put together here, and moved by nobody but them.

What a scenario engine or a server needs of it beyond that is in `kubescene.cluster.world`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kubescene.actors import ENGINE, Actor
from kubescene.api.builtin import builtin_scheme
from kubescene.api.copies import own_copy
from kubescene.api.kinds import SCENARIO
from kubescene.api.objects import Node, Pod
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType
from kubescene.client import DirectClient
from kubescene.client.verbs import Verbs
from kubescene.clock import (
    LAST_INSTANT,
    MICROSECOND,
    SECOND,
    Clock,
    EventQueue,
    Identities,
    LentClock,
    Streams,
    VirtualClock,
    format_duration,
    format_micro_time,
    format_time,
    parse_duration,
)
from kubescene.clock.clocks import PacedClock
from kubescene.cluster.manager import ControllerManager
from kubescene.cluster.options import (
    SCHEDULER,
    ClusterOptions,
    builtin_controllers,
    use_options,
)
from kubescene.control import Crank
from kubescene.control.patience import DEFAULT_MAX_ROUNDS
from kubescene.controllers.registrations import ControllerRegistrations, OfferedDefinition
from kubescene.errors import BadRequestError, ConfigurationError, InternalError
from kubescene.instruments import Instrument, Instruments
from kubescene.lane import Lane
from kubescene.node_autoscaling.controller import NAME as AUTOSCALER
from kubescene.registry import EmbeddedRegistry, Registry, RegistryParts, exports
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.admission.plugins import default_chain
from kubescene.registry.bootstrap import bootstrap
from kubescene.registry.custom_resources import DEFINITIONS, served_by
from kubescene.remedies import Remedies, find_remedies
from kubescene.scheduler import kube_scheduler
from kubescene.scheduler.configuration.sources import SchedulerSource
from kubescene.scheduler.configuration.sources import scheduler_options as scheduler_from
from kubescene.shortcuts import PLAIN
from kubescene.store import Store
from kubescene.types import JsonObject

if TYPE_CHECKING:
    from kubescene.runs.recording import Recording

NODES, PODS = GroupResource("", "nodes"), GroupResource("", "pods")
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

    Nothing happens in it until `settle` or `advance` is called. What is written is written as the
    user ``user``::

        cluster = kubescene.Cluster()
        cluster.create(make_node("n1").cpu("4").memory("8Gi"))
        cluster.create(make_pod("a").cpu("2"))
        assert cluster.settle().pod("a").node == "n1"

    With ``recorded=True`` it keeps an account of what happens, for `tables`, `measures`, `explain`
    and `report`: each `settle` or `advance` is a step of it.
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
        recorded: bool = False,
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
        self._serves_offers = False
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
            shortcuts=self.options.shortcuts,
        )
        self.manager.writes_events = options.events
        self.crank = Crank(self.event_queue, self._count_objects)
        self._lane = self._make_lane()
        self._furnish()
        self._recording = recording_of(self) if recorded else None

    def _make_registry(self, server_clock: Clock | None) -> Registry:
        shortcuts = self.options.shortcuts
        return EmbeddedRegistry(shortcuts=shortcuts, **self._registry_parts(server_clock))

    def _registry_parts(self, server_clock: Clock | None) -> RegistryParts:
        """What every registry of this world is made of."""
        return {
            "scheme": self.scheme,
            "store": self.store,
            "clock": self.clock,
            "identities": Identities(self.options.seed, self.store.lives),
            "admission": AdmissionChain(default_chain()),
            "instruments": self.instruments,
            "server_clock": server_clock,
            "gates": self.options.gates,
        }

    def _furnish(self) -> None:
        """Make what has to be there before anybody comes; a store that holds a world has it."""
        if not self.store.revision:
            bootstrap(self.registry)
        self._define()

    def _define(self) -> None:
        """The kinds that the controllers bring along, as they are today.

        They are part of the world, as built-in ones: where somebody has taken one away, or does not
        serve it any more, it is made again.
        """
        for definition in self.manager.registrations.definitions:
            if not self._has(definition):
                self.registry.create(ENGINE, own_copy(definition))
        if self._serves_offers:
            self._serve_all_offers()
        else:
            self.scheme.offered = self._take_offer

    def _serve_all_offers(self) -> None:
        """Define at once what is else defined when somebody names it: clients ask what there is."""
        self._serves_offers, self.scheme.offered = True, None
        for offer in self.manager.registrations.offers:
            self._accept(offer)

    def _take_offer(self, wanted: GroupVersionKind) -> None:
        for offer in self.manager.registrations.offers_of(wanted.group, wanted.kind):
            self._accept(offer)

    def _accept(self, offer: OfferedDefinition) -> None:
        definition = offer.load()
        registry = self.registry
        assert isinstance(registry, EmbeddedRegistry)
        if not self._has(definition):
            registry.define(own_copy(definition))

    def _has(self, definition: JsonObject) -> bool:
        """Whether its kinds are served. One that somebody has switched off makes place.

        One that an earlier version has left in a world on disk is brought up to date.
        """
        name = definition["metadata"]["name"]
        found = self.store.get(DEFINITIONS, "", name)
        if found is None:
            return False
        if all(gvk in self.scheme for gvk in served_by(definition)):
            if self.store.lives and self.store.decoded(found)["spec"] != definition["spec"]:
                self.registry.update(ENGINE, own_copy(definition))
            return True
        self.store.remove(DEFINITIONS, "", name)
        self.registry.custom.uninstall(name)
        return False

    def _make_lane(self) -> Lane | None:
        registry = self.registry
        assert isinstance(registry, EmbeddedRegistry)
        return Lane(registry, self.instruments, self.clock)

    def observe(self, *instruments: Instrument) -> None:
        """Attach instruments, at any time; ``cluster.instruments.detach`` lets them go."""
        self.instruments.attach(*instruments)

    def client(self, actor: Actor) -> DirectClient:
        """A client that writes in this actor's name."""
        return DirectClient(self.registry, actor)

    def configure_scheduler(self, scheduler: SchedulerSource) -> None:
        """From now on the scheduler is made with other options; one that runs is made anew.

        Pods that it had decided about but not bound are decided about again. Nothing changes if
        these options cannot be used.
        """
        self._check_scheduler()
        before = self.options
        follows = before.autoscaler is not None and bool(before.autoscaler.profile)
        self._use(replace(before, scheduler=scheduler_from(scheduler, before.scheduler)))
        try:
            self.manager.restart(SCHEDULER)
        except Exception:
            self._use(before)
            raise
        if follows:
            self.manager.restart(AUTOSCALER)

    def _check_scheduler(self) -> None:
        if not self._has_builtin_scheduler():
            raise ConfigurationError(
                f"the {SCHEDULER} of this world was registered by somebody else: configure it there"
            )

    def _has_builtin_scheduler(self) -> bool:
        known = self.manager.registrations.find(SCHEDULER)
        return isinstance(known, partial) and known.func is kube_scheduler

    # -- letting things happen ---------------------------------------------------------------

    def settle(self, max_rounds: int = DEFAULT_MAX_ROUNDS) -> Self:
        """Run every controller until none has anything to do; time stands still."""
        self._settle(max_rounds)
        self._end_step()
        return self

    def advance(
        self, duration: str | timedelta | float, max_rounds: int = DEFAULT_MAX_ROUNDS
    ) -> Self:
        """Let time pass: ``"5m"``, a ``timedelta``, or seconds such as ``0.5``.

        Controllers act when something is due. A whole number is refused, since it might be seconds
        or nanoseconds: write ``"5s"`` or ``5.0``.
        """
        length = as_duration(duration)
        if self._recording is not None:
            self._recording.advanced(length)
        self._settle(max_rounds)
        for _ in self._advancing(length, self.crank, max_rounds):
            pass
        self._end_step()
        return self

    def _settle(self, max_rounds: int) -> None:
        manager = self.manager
        if not manager.slots:
            self._define()
            manager.start(tuple(manager.registrations))
        for slot in manager.slots:
            slot.begin_step()
        self.crank.settle(manager.slots, max_rounds)

    def _end_step(self) -> None:
        if self._recording is not None:
            self._recording.end_step()

    def _advancing(self, duration: int, crank: Crank, max_rounds: int) -> Iterator[None]:
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
            while crank.round(self.manager.slots, patience):
                yield
            if not (failed := crank.release(self.manager.slots)):
                return
        now = format_micro_time(self.clock.now())
        raise InternalError(
            f"{', '.join(failed)} failed {TRIES_AT_ONCE} times at {now}: time stands still there; "
            "the server's log says why"
        )

    def _deadline(self, duration: int) -> int:
        deadline = self.clock.now() + duration
        if not self.clock.now() <= deadline <= LAST_INSTANT:
            told = format_duration(duration)
            raise BadRequestError(f"{told} from now is in the past, or beyond the year 9999")
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
        self.manager.stop()
        self.clock.reset(self._begins_at if isinstance(self.clock, VirtualClock) else None)
        self.streams.reset(self.options.seed)
        self.manager.stamps.reset()
        exports.reset(self.registry)
        self._define()
        if self._recording is not None:
            self._recording = self._recording.anew(self)

    def _use(self, options: ClusterOptions) -> None:
        """Controllers that are made from now on have these settings."""
        self.options = options
        self.manager.writes_events = options.events
        use_options(self.manager.registrations, options)

    def _count_objects(self) -> int:
        return sum(self.store.count(resource) for resource in self.store.resources())

    # -- what came of it -----------------------------------------------------------------------

    @property
    def tables(self) -> Mapping[str, Any]:
        """What happened so far as tables: pods, nodes, steps, attempts, measures, by name."""
        return self.recording.tables

    @property
    def measures(self) -> dict[str, int | float]:
        """The numbers that it comes down to so far, by name."""
        return self.recording.measures

    def explain(self, pod: str) -> Sequence[Any]:
        """The attempts at ``NAMESPACE/NAME`` (or a name in ``default``), node by node."""
        return self.recording.explain(pod)

    def report(self, path: str | Path) -> Path:
        """Write what happened so far as one page that can be passed around."""
        return self.recording.report(path)

    @property
    def recording(self) -> "Recording":
        """The account of what happened, of which `tables` and the others are made."""
        if self._recording is None:
            raise ConfigurationError(
                "this cluster keeps no account of what happens: make it with "
                "kubescene.Cluster(recorded=True)"
            )
        return self._recording

    def __repr__(self) -> str:
        pods = self.store.list(PODS)
        waiting = sum(not pod.node for pod in pods)
        nodes = self.store.count(NODES)
        told = f"{nodes} node{'s' * (nodes != 1)}, {len(pods)} pod{'s' * (len(pods) != 1)}"
        told += f", {waiting} without a node"
        return f"<{type(self).__name__} at {format_time(self.clock.now())}: {told}>"

    def _repr_html_(self) -> str:
        from kubescene.results.notebooks import cluster_html

        return cluster_html(self)


def recording_of(cluster: Cluster) -> "Recording":
    """The account of what happens from now on."""
    from kubescene.runs.recording import Recording

    return Recording(cluster)


def as_duration(duration: str | timedelta | float) -> int:
    """Nanoseconds. Text is a Go duration such as ``90s`` or ``1h30m``, a float are seconds."""
    if isinstance(duration, timedelta):
        return (duration // timedelta(microseconds=1)) * MICROSECOND
    if isinstance(duration, float) and isfinite(duration):
        return round(duration * SECOND)
    if isinstance(duration, str):
        return parse_duration(duration)
    told = f"{duration!r} is no duration"
    if isinstance(duration, int) and not isinstance(duration, bool):
        told += f': seconds are "{duration}s", {duration}.0 or timedelta(seconds={duration})'
    raise TypeError(told)
