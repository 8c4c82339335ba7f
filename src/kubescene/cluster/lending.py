"""Whose world it is: its own, or lent to a scenario.

A scenario is given the world with settings of its own (`prepare`), finds it empty and at the
beginning of virtual time (`begin`), and leaves it as it is until the world is taken back. What it
made that outlives a wipe by its kind (definitions, roles, webhooks) goes when the next one begins.
"""

from enum import StrEnum
from typing import Protocol

import msgspec

from kubescene.clock import LentClock, VirtualClock
from kubescene.clock.clocks import DEFAULT_START
from kubescene.cluster.options import ClusterOptions
from kubescene.registry.bootstrap import LASTING
from kubescene.store import Store


class Holder(StrEnum):
    """Who has the world."""

    OWNER = "owner"
    SCENARIO = "scenario"
    """From the first object that is taken away for it until the world is taken back."""


NOTED = "lending"
"""The note of a store that says how a world was left that is opened again."""


class Left(msgspec.Struct, frozen=True):
    """Who had the world at what instant, and what the last scenario made that lasts."""

    holder: Holder
    now: int
    made: tuple[str, ...]


class Lent(Protocol):
    """What is lent."""

    @property
    def clock(self) -> LentClock | VirtualClock: ...

    @property
    def store(self) -> Store: ...

    @property
    def options(self) -> ClusterOptions: ...

    def use(self, options: ClusterOptions) -> None:
        """Controllers that are made from now on have these settings."""
        ...


class Lending:
    """Keeps the settings of the owner while a scenario plays with its own."""

    def __init__(self, world: Lent) -> None:
        self._world = world
        self.holder = Holder.OWNER
        self.owners_options = world.options
        self._next_options: ClusterOptions | None = None
        self._lasting_before: frozenset[str] = frozenset()
        self._made_by_scenario: frozenset[str] = frozenset()
        if (noted := world.store.notes.get(NOTED)) is not None:
            self._go_on(msgspec.json.decode(noted, type=Left))

    def _go_on(self, left: Left) -> None:
        """A world that a scenario has left, or was cut short in, is as it left it."""
        self._made_by_scenario = frozenset(left.made)
        self.holder = left.holder
        if self.is_lent and isinstance(self._world.clock, LentClock):
            self._world.clock.lend(left.now)

    def _note(self) -> None:
        left = Left(self.holder, self._world.clock.now(), tuple(sorted(self._made_by_scenario)))
        self._world.store.note(NOTED, msgspec.json.encode(left))

    @property
    def is_lent(self) -> bool:
        return self.holder is Holder.SCENARIO

    def prepare(self, options: ClusterOptions) -> None:
        """What the next scenario begins with, in place of the world's own settings.

        Nothing changes before `begin`. From then on until `take_back` time is virtual, whatever
        the world's own clock is: it begins at ``options.start``, or where all do.
        """
        self._next_options = options

    def touch(self) -> None:
        """The world is about to be emptied for the scenario that was prepared, if one was."""
        if self._next_options is not None and not self.is_lent:
            self.holder = Holder.SCENARIO
            self._note()

    def begin(self) -> None:
        """The world is empty: settings and time of the scenario are in force."""
        world = self._world
        if self._next_options is None:
            world.clock.reset(world.options.start)
        else:
            self.touch()
            world.use(self._next_options)
            self._next_options = None
            self._lend_time()
        self._lasting_before, self._made_by_scenario = self._lasting(), frozenset()
        self._note()

    def note_lasting(self) -> None:
        """A scenario has ended: the definitions, roles and webhooks that it made go with the rest.

        Nobody else could make any while it was under way; those of others stay.
        """
        self._made_by_scenario = self._lasting() - self._lasting_before
        self._note()

    def is_of_scenario(self, uid: str) -> bool:
        """Whether the last scenario made this object, which outlives a wipe by its kind."""
        return uid in self._made_by_scenario

    def take_back(self) -> None:
        """Time goes on from now at the world's own pace and settings."""
        self.forget()
        if isinstance(self._world.clock, LentClock):
            self._world.clock.take_back()

    def forget(self) -> None:
        """The world is its owner's, with the owner's settings."""
        self.holder = Holder.OWNER
        self._world.use(self.owners_options)
        self._note()

    def _lend_time(self) -> None:
        start = self._world.options.start
        start = DEFAULT_START if start is None else start
        clock = self._world.clock
        if isinstance(clock, LentClock):
            clock.lend(start)
        else:
            clock.reset(start)

    def _lasting(self) -> frozenset[str]:
        """The uids of what survives a wipe by its kind."""
        store = self._world.store
        return frozenset(record.uid for resource in LASTING for record in store.list(resource))
