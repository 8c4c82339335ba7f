"""Instances of a counted create, many at a time: they differ in nothing but their names."""

from collections.abc import Iterable

from kubescene.actors import Actor, Role
from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin, WriteOptions
from kubescene.api.records import Record
from kubescene.instruments import Instrument, Instruments, ObjectWrite
from kubescene.lane.guard import NotNowError, recorder_of
from kubescene.registry import EmbeddedRegistry
from kubescene.types import JsonObject


class Creations:
    """Creates the instances of one operation for an actor."""

    def __init__(self, registry: EmbeddedRegistry, instruments: Instruments, actor: Actor) -> None:
        self._registry = registry
        self._store = registry.store
        self._actor = actor
        self._role = registry.role_of(actor)
        if self._role is not Role.ENGINE or self._store.is_journaled:
            raise NotNowError("somebody has a say in every write")
        self._recorder = recorder = recorder_of(instruments)
        onlookers = instruments.overriding(Instrument.object_written)
        self._hooks = [each.object_written for each in onlookers if each is not recorder]

    def create(
        self, obj: JsonObject, options: WriteOptions, named: Iterable[tuple[str, OperationOrigin]]
    ) -> int:
        """Create pods like ``obj`` that have other names, until one takes a closer look.

        Returns how many.
        """
        bunch = self._registry.bunch_of(self._actor, obj, options)
        if bunch is None:
            raise NotNowError("an object unlike those before")
        store, route, count = self._store, None, 0
        for name, origin in named:
            change = bunch.create(name)
            if change is None:
                break
            if route is None:
                route = store.route_of(change)
            store.tell_some(change, route)
            self._recorder.created(self._actor, self._role, change.record, origin)
            if self._hooks:
                self._show(change.record, obj, origin)
            count += 1
        return count

    def _show(self, pod: Record, obj: JsonObject, origin: OperationOrigin) -> None:
        written = ObjectWrite(
            self._actor, self._role, "create", "", POD, pod, None, obj, "", origin, True
        )
        for hook in self._hooks:
            hook(written)
