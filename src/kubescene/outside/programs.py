"""A program outside as the server sees it: what it asks, what it follows, what it waits for.

All of it belongs to the engine thread. While no scenario has called the program its gate is open
and nothing here makes a difference. During one, requests that could tell or change something are
held, never refused, until the program's turn: a refusal would make it back off or give up.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kubescene.actors import Actor
from kubescene.api.changes import Change
from kubescene.api.scheme import GroupResource
from kubescene.clock import Clock
from kubescene.errors import ScenarioError
from kubescene.outside.asking import Asked, Treatment, treatment_of
from kubescene.outside.feeds import Feed
from kubescene.outside.round_trips import Errand, at_once

MOST_HELD = 1000
"""Requests of one program that wait at the same time: more is not work but a flood."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that the gate gives itself: a JSON document."""

    body: bytes
    code: int = 200


@dataclass(slots=True, eq=False)
class Held:
    """A request that waits. ``resolve`` lets it in, or answers it without."""

    asked: Asked
    resolve: Callable[[Reply | None], None]
    product: str = ""
    """The program that it says it comes from, as in ``kubectl/v1.36``: kubectl."""
    is_let_in: bool = False


class Program:
    """One program outside, by the name under which it speaks."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.actor = Actor(name)
        self.pid: int | None = None
        self._clock = clock
        self.feeds: list[Feed] = []
        self.held: list[Held] = []
        self.parkings: list[Held] = []
        """Writes of the status of park pods: its scheduling loop stands still there."""
        self.parked: list[Held] = []
        """Calls that say that a loop is over, and wait for the next turn."""
        self.has_parked = False
        self.is_open = True
        self.may_read = False
        self.passed = 0
        """Requests that were let in and are not answered yet."""
        self.last_heard = 0
        self.entered = 0
        """Requests whose head the event loop has read. It counts them itself."""
        self._arrived = 0
        self.errand: Errand = at_once
        self.fault = ""
        self.wake: Callable[[], None] | None = None

    # -- watches -------------------------------------------------------------------------------

    def open_feed(self, resource: GroupResource, mark: Callable[[], None]) -> Feed:
        feed = Feed(resource, mark, self._changed)
        feed.is_open = self.is_open
        self.feeds.append(feed)
        self.last_heard = self._clock.now()
        return feed

    def close_feed(self, feed: Feed) -> None:
        if feed in self.feeds:
            self.feeds.remove(feed)

    @property
    def has_seen(self) -> bool:
        """Whether all that it was given has gone out."""
        return all(feed.is_sent for feed in self.feeds)

    def feeds_of(self, resource: GroupResource) -> Iterator[Feed]:
        return (feed for feed in self.feeds if feed.resource == resource)

    def give_all(self) -> bool:
        """Let it see everything up to now; whether there was anything."""
        given = False
        for feed in self.feeds:
            changes: list[Change] = feed.pull()
            if changes:
                feed.release(changes)
                given = True
        return given

    def _changed(self) -> None:
        if self.wake is not None:
            self.wake()

    # -- requests ------------------------------------------------------------------------------

    def arrive(self, held: Held) -> None:
        """A request is there: let it in, or keep it."""
        self.last_heard = self._clock.now()
        treatment = treatment_of(held.asked)
        if treatment is Treatment.PARK_POD and not self.is_open:
            self.parkings.append(held)
        elif self.is_open or (treatment is Treatment.READ and self.may_read):
            self.let_in(held)
        elif len(self.held) >= MOST_HELD:
            self.fault = self.fault or f"more than {MOST_HELD} of its requests wait: {held.asked}"
            self._pass(held)
        else:
            self.held.append(held)

    def arrived(self) -> None:
        """A request that has `entered` is known here, or will never be."""
        self._arrived += 1

    @property
    def is_served(self) -> bool:
        """Whether one of its requests is being read or carried out."""
        return self.passed > 0 or self.entered > self._arrived

    def let_in(self, held: Held) -> None:
        """The request is carried out now; `answered` follows."""
        if held in self.held:
            self.held.remove(held)
        self._pass(held)

    def _pass(self, held: Held) -> None:
        held.is_let_in = True
        self.passed += 1
        held.resolve(None)

    def answered(self) -> None:
        """A request that was let in has its answer, and the program has it."""
        self.passed -= 1
        self.last_heard = self._clock.now()

    def drop(self, held: Held) -> bool:
        """Whoever sent it has gone: it is not carried out. False if it was decided already."""
        for waiting in (self.held, self.parkings, self.parked):
            if held in waiting:
                waiting.remove(held)
                return True
        return False

    def park(self, held: Held) -> None:
        """It says that its loop is over."""
        self.last_heard = self._clock.now()
        self.parked.append(held)
        self.has_parked = True

    def unpark(self, most: int = MOST_HELD) -> None:
        """Its next loop may begin, or that of the first of its workers."""
        going, self.parked = self.parked[:most], self.parked[most:]
        for held in going:
            self._pass(held)

    def let_read(self) -> None:
        """Its turn: what it wants to know it may know."""
        self.may_read = True
        for held in [each for each in self.held if each.asked.reads]:
            self.let_in(held)

    @property
    def is_waiting(self) -> bool:
        """Whether something that it has asked is kept."""
        return bool(self.held or self.parkings or self.parked)

    @property
    def writes(self) -> list[Held]:
        """The writes that wait, in an order that does not depend on when they came."""
        return sorted((each for each in self.held if not each.asked.reads), key=order_of)

    # -- being called ----------------------------------------------------------------------------

    def close(self) -> None:
        """From now on it moves in turns only."""
        self.is_open = False
        for feed in self.feeds:
            feed.is_open = False

    def release(self, too_late: Reply) -> None:
        """The scenario is over: nothing is held any more, and late writes change nothing."""
        self.is_open, self.may_read, self.wake = True, False, None
        for held in self._taken(self.held) + self._taken(self.parkings):
            if held.asked.reads:
                self._pass(held)
            else:
                held.resolve(too_late)
        self.unpark()
        for feed in self.feeds:
            feed.is_open = True
            feed.release(feed.pull())

    def check(self) -> None:
        """Raise what has gone wrong with it."""
        if self.fault:
            raise ScenarioError(self.fault, where=f"controller {self.name}")

    @staticmethod
    def _taken(waiting: list[Held]) -> list[Held]:
        taken = list(waiting)
        waiting.clear()
        return taken


def order_of(held: Held) -> tuple[str, str, str, str, str, str, bytes]:
    return held.asked.order
