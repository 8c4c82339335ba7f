"""A cluster as the scenario engine and a server need it: its controllers, its gate, its owner.

A scenario finds the world empty and at the beginning of time, and leaves it until it is taken back
(`kubescene.cluster.lending`). The engine knows the protocol of `kubescene.scenario.world` only.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from kubescene.actors import Actor
from kubescene.api.gates import OpenGate, WriteGate
from kubescene.api.kinds import SCENARIO
from kubescene.api.records import Record
from kubescene.clock import parse_duration
from kubescene.cluster.cluster import Cluster
from kubescene.cluster.lending import Lending
from kubescene.cluster.options import SCHEDULER, ClusterOptions, use_options
from kubescene.control import Alarm, ControllerContext, Crank, Slot
from kubescene.control.patience import DEFAULT_MAX_ROUNDS
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.garbage import end_of_world
from kubescene.lane import Lane
from kubescene.registry import exports
from kubescene.registry.bootstrap import SCENARIOS, survives_wipe
from kubescene.registry.custom_resources import DEFINITIONS
from kubescene.scheduler.configuration.sources import SchedulerSource
from kubescene.scheduler.configuration.sources import scheduler_options as scheduler_from
from kubescene.store import Store
from kubescene.usage.registry import UsageRegistry


class ClusterWorld(Cluster):
    """A cluster whose controllers somebody else starts, turns and stops."""

    def __init__(self, options: ClusterOptions | None = None, **parts: Any) -> None:
        super().__init__(options, **parts)
        self.lending = Lending(self)

    @property
    def lane(self) -> Lane | None:
        """Where like pods pass, if this world has such a way (`kubescene.lane`)."""
        return self._lane if self.options.shortcuts.lane else None

    @property
    def creates_alike(self) -> Callable[..., int] | None:
        """How pods of one template are created many at a time, if this world has such a way."""
        lane = self._lane if self.options.shortcuts.bunches else None
        return None if lane is None else lane.create

    @property
    def revision(self) -> int:
        """The revision of the newest accepted write."""
        return self.store.revision

    def guard(self, gate: WriteGate) -> None:
        """From now on this gate has the last word before every write."""
        self.registry.gate = gate

    def count_objects(self) -> int:
        return self._count_objects()

    def serve_offers(self) -> None:
        """Define at once what is else defined when somebody names it: clients ask what there is."""
        self._serve_all_offers()

    # -- controllers ---------------------------------------------------------------------------

    def context(self, actor: Actor) -> ControllerContext:
        """What a controller needs to run in this world, for those who turn it by hand."""
        return self.manager.context(self.client(actor), Slot(actor.name))

    @property
    def registrations(self) -> ControllerRegistrations:
        """Which controllers there are, in settle order."""
        return self.manager.registrations

    @property
    def alarm(self) -> Alarm:
        """Rings when a controller has work."""
        return self.manager.alarm

    @property
    def usage(self) -> UsageRegistry:
        """Who says what pods do."""
        return self.manager.usage

    @property
    def slots(self) -> list[Slot]:
        """The controllers that run, in the order of their turns."""
        return self.manager.slots

    def start(self, names: Sequence[str]) -> Sequence[Slot]:
        """Make controllers anew, with fresh state, and let them see what exists."""
        self._define()
        return self.manager.start(names)

    def conclude(self) -> None:
        """A run is over: what controllers hold of others is given back, and nothing changes."""
        self.manager.conclude()

    def stop(self) -> None:
        """Let all controllers go: their watches end, and what they had planned is forgotten."""
        if self.manager.slots:
            self.manager.stop()
            end_of_world()

    def advancing(
        self, duration: str | int, crank: Crank, max_rounds: int = DEFAULT_MAX_ROUNDS
    ) -> Iterator[None]:
        """`advance` moment by moment, for a server that has other things to do in between.

        A number are nanoseconds.
        """
        length = parse_duration(duration) if isinstance(duration, str) else duration
        return self._advancing(length, crank, max_rounds)

    def advance_until(self, instant: int) -> None:
        """Settle, and let time pass until then."""
        self._settle(DEFAULT_MAX_ROUNDS)
        for _ in self._advancing(instant - self.clock.now(), self.crank, DEFAULT_MAX_ROUNDS):
            pass

    def twin_maker(self) -> "Callable[[], ClusterWorld]":
        """What makes a world of the same objects and settings at this instant, on any thread.

        For questions that take long: here is only noted which objects there are. The controllers of
        the twin begin anew, and nobody hears of what happens in it.
        """
        records, revision = exports.exported(self.store), self.store.revision
        # Other processes are told of this world only.
        plugins = tuple(each for each in self.options.autoscaler_plugins if isinstance(each, type))
        options = replace(
            self.options, events=False, start=self.clock.now(), autoscaler_plugins=plugins
        )
        registrations = self.registrations.copy()
        use_options(registrations, options)

        def make() -> ClusterWorld:
            store = Store()
            store.restore(records, revision)
            return ClusterWorld(options, store=store, controllers=registrations)

        return make

    # -- settings ------------------------------------------------------------------------------

    @property
    def own_options(self) -> ClusterOptions:
        """The settings of this world, also while a scenario has borrowed it and brought its own."""
        return self.lending.owners_options

    def use(self, options: ClusterOptions) -> None:
        """Controllers that are made from now on have these settings."""
        self._use(options)

    @property
    def scheduler_is_configurable(self) -> bool:
        """Whether the scheduler is the built-in one."""
        return self._has_builtin_scheduler()

    def configure_scheduler(self, scheduler: SchedulerSource) -> None:
        """The same; a world that a scenario has borrowed changes when it is back."""
        if not self.lending.is_lent:
            super().configure_scheduler(scheduler)
            self.lending.owners_options = self.options
            return
        self._check_scheduler()
        before = self.lending.owners_options
        options = replace(before, scheduler=scheduler_from(scheduler, before.scheduler))
        ClusterWorld(scheduler=options.scheduler).start((SCHEDULER,))
        self.lending.owners_options = options

    # -- beginning anew ------------------------------------------------------------------------

    def reset(self) -> None:
        self.stop()
        self.guard(OpenGate())
        self.lending.forget()
        super().reset()

    def clear(self, most: int) -> bool:
        """Let all controllers go, then take at most so many objects away; whether more are left.

        To let them go takes as long as to take objects away: nobody waits for both at once.
        """
        self.lending.touch()
        if self.slots:
            self.stop()
            return True
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
