"""Owners count a pod that has become ready: a status of its ReplicaSet, and of its Deployment.

What their controllers would write is asked of them (`Counting`), and written directly, in the order
in which they would have had their turns. As soon as somebody else is awake, or one of them has more
to do than to count, all of them settle as ever.
"""

from collections.abc import Sequence

from kubescene.actors import Actor, Role
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.control import Alarm, Slot
from kubescene.controllers.reconcile import Recount
from kubescene.controllers.runtime import ReconcilerController
from kubescene.instruments import Instrument, Instruments, ObjectWrite
from kubescene.registry import EmbeddedRegistry
from kubescene.store.subscriptions import Route
from kubescene.timeline import TimelineRecorder

STATUS = "status"


class Sleepers:
    """Controllers that all sleep, and who of them has been woken since."""

    def __init__(self, slots: Sequence[Slot], alarm: Alarm) -> None:
        self._slots = dict.fromkeys(slots)
        self._woken = alarm.woken
        self._woken.clear()

    def awake(self) -> list[Slot]:
        """Those that are awake now, in no particular order."""
        if not self._woken:
            return []
        # Whoever sleeps in another thread may be woken meanwhile.
        found = [slot for slot in list(self._woken) if slot.awake and slot in self._slots]
        if not found:
            self._woken.clear()
        return found

    def settled(self) -> None:
        """They had their turns; whoever failed in a served world is awake all the same."""
        self._woken.clear()
        self._woken.update(dict.fromkeys([slot for slot in self._slots if slot.awake]))


class Owners:
    """The controllers that settle after a pod, as far as they count."""

    def __init__(
        self,
        sleepers: Sleepers,
        registry: EmbeddedRegistry,
        recorder: TimelineRecorder,
        instruments: Instruments,
    ) -> None:
        self._sleepers = sleepers
        self._registry = registry
        self._store = registry.store
        self._writes = registry.lane_writes
        self._recorder = recorder
        onlookers = instruments.overriding(Instrument.object_written)
        self._hooks = [each.object_written for each in onlookers if each is not recorder]
        self.counted = 0
        """How many statuses were written."""
        self._routes: dict[GroupVersionKind, Route] = {}

    def settled(self) -> None:
        """Others had their turns: who listens may be somebody else."""
        self._routes.clear()

    def count(self) -> bool:
        """Write what is to be counted; False if somebody has to have a turn all the same."""
        while awake := self._sleepers.awake():
            controller = awake[0].controller
            if len(awake) > 1 or type(controller) is not ReconcilerController:
                return False
            recount = controller.recount()
            if recount is None or not self._write(controller, recount):
                return False
            awake[0].awake = False
        return True

    def _write(self, controller: ReconcilerController, recount: Recount) -> bool:
        """Make the write of a controller's turn; False if it takes a closer look."""
        registry, store, actor = self._registry, self._store, controller.actor
        kind = registry.type_of(recount.gvk)
        owner = store.get(kind.group_resource, *recount.key)
        counted = None if owner is None else self._writes.counted(owner, kind, recount.counts)
        if owner is None or counted is None or not self._recorder.tells_all_of(actor):
            return False
        registry.gate.before_write(actor, kind, STATUS, owner.name)
        change = self._writes.count(owner, counted)
        controller.recounted(recount)
        self.counted += 1
        route = self._routes.get(recount.gvk)
        if route is None:
            own = controller.watches[recount.gvk].handler
            route = tuple([each for each in store.route_of(change) if each != own])
            self._routes[recount.gvk] = route
        store.tell_some(change, route)
        self._tell(actor, registry.role_of(actor), recount, change)
        return True

    def _tell(self, actor: Actor, role: Role, recount: Recount, change: Change) -> None:
        body = {STATUS: recount.status}
        self._recorder.counted(actor, role, recount.gvk, change.record, body)
        if self._hooks:
            before, record = change.previous, change.record
            written = ObjectWrite(
                actor, role, "patch", STATUS, recount.gvk, record, before, body, PatchType.MERGE
            )
            for hook in self._hooks:
                hook(written)
