"""Pods that are created together: each differs from one that is there in nothing but its name."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from kubescene.actors import Actor, Role
from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin, WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.templates import Blueprint
from kubescene.instruments import Instrument, Instruments, ObjectWrite
from kubescene.lane.guard import NotNowError, recorder_of
from kubescene.registry import EmbeddedRegistry
from kubescene.registry.shortcuts.templates import Bunch
from kubescene.store.subscriptions import Route
from kubescene.types import JsonObject


class Wish(NamedTuple):
    """A pod to be created that differs from ``like`` in nothing but its name.

    ``options`` are those with which such pods are created; ``origin`` asks for this one.
    """

    name: str
    origin: OperationOrigin
    like: JsonObject
    options: WriteOptions


CreateAlike: TypeAlias = Callable[[Actor, Iterable[Wish]], int]
"""Creates pods in their order until one takes a closer look; how many of them."""


class Creations:
    """Creates the instances of one operation, or what operations ask for that are alike."""

    def __init__(self, registry: EmbeddedRegistry, instruments: Instruments, actor: Actor) -> None:
        self._registry = registry
        self._store = registry.store
        self._actor = actor
        self._role = registry.role_of(actor)
        if self._role is not Role.ENGINE:
            raise NotNowError("somebody has a say in every write")
        self._recorder = recorder = recorder_of(instruments)
        onlookers = instruments.overriding(Instrument.object_written)
        self._hooks = [each.object_written for each in onlookers if each is not recorder]
        self._bunches: dict[Blueprint | None, Bunch | None] = {}
        self._routes: dict[Bunch, Route] = {}

    def create(self, wishes: Iterable[Wish]) -> int:
        """Create pods until one takes a closer look; how many of them."""
        store, routes, count = self._store, self._routes, 0
        for wish in wishes:
            bunch = self._bunch_of(wish)
            change = None if bunch is None else bunch.create(wish.name)
            if bunch is None or change is None:
                break
            route = routes.get(bunch)
            if route is None:
                route = routes[bunch] = store.route_of(change)
            store.tell_some(change, route)
            self._recorder.created(self._actor, self._role, change.record, wish.origin)
            if self._hooks:
                self._show(change.record, wish)
            count += 1
        if not count:
            raise NotNowError("an object unlike those before")
        return count

    def _bunch_of(self, wish: Wish) -> Bunch | None:
        """How to create such pods. What admission looks at is none of them, so it stays so."""
        blueprint = wish.options.blueprint
        if blueprint not in self._bunches:
            bunch = self._registry.bunch_of(self._actor, wish.like, wish.options)
            self._bunches[blueprint] = bunch
        return self._bunches[blueprint]

    def _show(self, pod: Record, wish: Wish) -> None:
        written = ObjectWrite(
            self._actor, self._role, "create", "", POD, pod, None, wish.like, "", wish.origin
        )
        for hook in self._hooks:
            hook(written)
