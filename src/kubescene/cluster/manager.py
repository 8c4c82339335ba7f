"""The controllers of a world: made with fresh state, let go, one of them made anew."""

from collections.abc import Sequence

from kubescene.api.records.changes import Change
from kubescene.api.scheme import Scheme
from kubescene.client import DirectClient
from kubescene.clock import Clock, EventQueue, Streams
from kubescene.control import Alarm, ControllerContext, Slot, Timers
from kubescene.control.loops import Concluding
from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.instruments import Instruments
from kubescene.recording import SILENT, EventRecorder, EventStamps, Recorder
from kubescene.registry import Registry
from kubescene.shortcuts import ALL, Shortcuts
from kubescene.usage.registry import UsageRegistry


class ControllerManager:
    """Gives each controller its slot, client, timers and streams; nobody runs by himself."""

    def __init__(
        self,
        registry: Registry,
        registrations: ControllerRegistrations,
        *,
        clock: Clock,
        event_queue: EventQueue,
        streams: Streams,
        scheme: Scheme,
        instruments: Instruments,
        shortcuts: Shortcuts = ALL,
    ) -> None:
        self.registrations = registrations
        self.slots: list[Slot] = []
        self.alarm = Alarm()
        self.stamps = EventStamps(clock)
        self.writes_events = False
        self.usage = UsageRegistry()
        self._registry = registry
        self._clock = clock
        self._event_queue = event_queue
        self._streams = streams
        self._scheme = scheme
        self._instruments = instruments
        self._shortcuts = shortcuts
        self._clients: dict[str, DirectClient] = {}
        self._recorders: dict[str, Recorder] = {}

    def start(self, names: Sequence[str]) -> list[Slot]:
        """Make controllers with fresh state, and let them see what exists."""
        started = []
        for name in names:
            started.append(self._start(name))
            self.slots.append(started[-1])
        return started

    def stop(self) -> None:
        """Let all go: their watches end, and what they had planned is forgotten."""
        for slot in self.slots:
            self._let_go(slot, self._clients.pop(slot.name), self._recorders.pop(slot.name))
        self.slots.clear()
        self.usage.clear()

    def conclude(self) -> None:
        """A run is over, and its world may still be looked at."""
        for slot in self.slots:
            controller: object = slot.controller
            if isinstance(controller, Concluding):
                controller.conclude()

    def restart(self, name: str) -> None:
        """Make one controller anew where it stands; the old one goes when there is a new one."""
        for at, slot in enumerate(self.slots):
            if slot.name == name:
                client, recorder = self._clients[name], self._recorders[name]
                self.slots[at] = self._start(name)
                self._let_go(slot, client, recorder)

    def context(self, client: DirectClient, slot: Slot) -> ControllerContext:
        """What a controller needs to run in this world."""
        recorder: Recorder = SILENT
        if self.writes_events:
            recorder = EventRecorder(client, self._clock, self._event_queue, self.stamps)
        return ControllerContext(
            client=client,
            clock=self._clock,
            timers=Timers(self._event_queue, slot.wake),
            streams=self._streams,
            instruments=self._instruments,
            scheme=self._scheme,
            wake=slot.wake,
            recorder=recorder,
            actor=client.actor,
            shortcuts=self._shortcuts,
            usage=self.usage,
        )

    def _start(self, name: str) -> Slot:
        slot = Slot(name, self.alarm)
        actor = self.registrations.actor(name)
        client = slot.watcher = DirectClient(self._registry, actor, slot.wake)
        context = self.context(client, slot)
        slot.timers = context.timers
        try:
            slot.controller = self.registrations.factory(name)(context)
        except Exception:
            self._let_go(slot, client, context.recorder)
            raise
        if not client.is_watching:
            # Who watches nothing may look at everything: any change may mean work.
            client.watch_all(ignore, patient=True)
        self._clients[name], self._recorders[name] = client, context.recorder
        return slot

    def _let_go(self, slot: Slot, client: DirectClient, recorder: Recorder) -> None:
        client.close()
        slot.retire()
        if isinstance(recorder, EventRecorder):
            recorder.withdraw()


def ignore(change: Change) -> None:
    """A handler for those who only want to be woken."""
