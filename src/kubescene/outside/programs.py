"""A program outside as the server sees it: what it asks, what it follows, what it waits for.

All of it belongs to the engine thread. While no scenario has called the program its gate is open
and nothing here makes a difference. During one, requests that could tell or change something are
held, never refused, until the program's turn: a refusal would make it back off or give up.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import orjson

from kubescene.actors import Actor
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource
from kubescene.clock import Clock
from kubescene.errors import ApiError, ForbiddenError, ScenarioError, TooManyRequestsError
from kubescene.outside.feeds import WatchFeed
from kubescene.outside.requests import OutsideRequest, Treatment, treatment_of
from kubescene.outside.round_trips import Errand, at_once

MOST_HELD = 1000
"""Requests of one program that wait at the same time: more is not work but a flood.

Beside one for each of the pods that a scheduler was given at once.
"""


@dataclass(frozen=True, slots=True)
class GateReply:
    """An answer that the gate gives itself: a JSON document."""

    body: bytes
    code: int = 200

    @classmethod
    def refusing(cls, error: ApiError) -> "GateReply":
        return cls(orjson.dumps(error.to_status()), error.code)


@dataclass(slots=True, eq=False)
class Held:
    """A request that waits. ``resolve`` lets it in, or answers it without."""

    asked: OutsideRequest
    resolve: Callable[[GateReply | None], None]
    product: str = ""
    """The program that it says it comes from, as in ``kubectl/v1.36``: kubectl."""
    is_let_in: bool = False


class OutsideProgram:
    """One program outside, by the name under which it speaks."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.actor = Actor(name)
        self.pid: int | None = None
        self._clock = clock
        self.feeds: list[WatchFeed] = []
        self.held: list[Held] = []
        self._sorted: list[Held] | None = None
        self.allowance = 0
        """How many more requests than usual may wait."""
        self.parkings: list[Held] = []
        """Writes of the status of park pods: its scheduling loop stands still there."""
        self.parked: list[Held] = []
        """Calls that say that a loop is over, and wait for the next turn."""
        self.has_parked = False
        self.is_open = True
        self.is_gathering = False
        """Whether a scenario has called it and waits for the others."""
        self.may_read = False
        self.sees_pods_in_turn = False
        """Whether it is shown pods one by one, so that it may not list them."""
        self.passed = 0
        """Requests that were let in and are not answered yet."""
        self.last_heard = 0
        self.entered = 0
        """Requests whose head the event loop has read. It counts them itself."""
        self._arrived = 0
        self.errand: Errand = at_once
        self.fault = ""
        """What it did that made the scenario worthless."""
        self.last_words = ""
        """How it ended, if somebody saw that."""
        self.is_alone = False
        """Whether nobody else has a reason to speak in its name."""
        self._products: dict[str, None] = {}
        self.wake: Callable[[], None] | None = None

    # -- watches -------------------------------------------------------------------------------

    def open_feed(
        self, resource: GroupResource, mark: Callable[[], None], product: str = ""
    ) -> WatchFeed:
        feed = WatchFeed(resource, mark, self._changed, product)
        feed.is_open = self.is_open
        self.feeds.append(feed)
        self.last_heard = self._clock.now()
        return feed

    def close_feed(self, feed: WatchFeed) -> None:
        if feed in self.feeds:
            self.feeds.remove(feed)
        if not self.feeds:
            # It hears of nothing any more: in its turn one will see whether it comes back.
            self._changed()

    @property
    def has_seen(self) -> bool:
        """Whether all that it was given has gone out."""
        return all(feed.is_sent for feed in self.feeds)

    def feeds_of(self, resource: GroupResource) -> Iterator[WatchFeed]:
        return (feed for feed in self.feeds if feed.resource == resource)

    def give_all(self) -> int:
        """Let it see everything up to now; how much there was."""
        given = 0
        for feed in self.feeds:
            changes: list[Change] = feed.pull()
            if changes:
                feed.release(changes)
                given += len(changes)
        return given

    def _changed(self) -> None:
        if self.wake is not None:
            self.wake()

    # -- requests ------------------------------------------------------------------------------

    def arrive(self, held: Held) -> None:
        """A request is there: let it in, or keep it."""
        self.last_heard = self._clock.now()
        treatment = treatment_of(held.asked)
        if self.is_open and not self._is_early(held):
            self._products[held.product] = None
            self._pass(held)
        elif self._is_of_another(held):
            self._refuse(held, ForbiddenError(self._tell_another(held)))
        elif treatment is Treatment.PARK_POD:
            self.parkings.append(held)
        elif self.may_read and treatment is Treatment.READ and self._may_know(held.asked):
            self._pass(held)
        elif len(self.held) >= MOST_HELD + self.allowance:
            self._refuse(held, TooManyRequestsError(self._tell_flood(held)))
        else:
            self.held.append(held)
            self._sorted = None

    def _is_early(self, held: Held) -> bool:
        """Whether one that parks writes before the first step: a loop that began before."""
        return self.is_gathering and self.has_parked and not held.asked.reads

    @property
    def stands(self) -> bool:
        """Whether it said that its loop is over, or waits in the middle of one for its turn."""
        return bool(self.parked) or (self.has_parked and bool(self.writes))

    def _is_of_another(self, held: Held) -> bool:
        return self.is_alone and bool(self._products) and held.product not in self._products

    def _tell_another(self, held: Held) -> str:
        known = " and ".join(each or "a program without a name" for each in self._products)
        return (
            f"{held.product or 'somebody'} spoke in its name ({held.asked}), which is that of "
            f"{known}: every program needs a name of its own (kubescene kubeconfig --as NAME)"
        )

    def _tell_flood(self, held: Held) -> str:
        most = MOST_HELD + self.allowance
        return f"more than {most} of its requests wait at once, the last one is: {held.asked}"

    def _refuse(self, held: Held, error: ApiError) -> None:
        """What makes the scenario worthless is not carried out either."""
        self.fault = self.fault or str(error)
        held.resolve(GateReply.refusing(error))
        self._changed()

    def arrived(self) -> None:
        """A request that has `entered` is known here, or will never be."""
        self._arrived += 1

    @property
    def is_served(self) -> bool:
        """Whether one of its requests is being read or carried out."""
        return self.passed > 0 or self.entered > self._arrived

    def let_in(self, held: Held) -> None:
        """One that is held is carried out now; `answered` follows, unless its sender has gone."""
        if held in self.held:
            self._remove(held)
            self._pass(held)

    def _remove(self, held: Held) -> None:
        self.held.remove(held)
        if self._sorted is not None and not held.asked.reads:
            self._sorted.remove(held)

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
        if held in self.held:
            self._remove(held)
            return True
        for waiting in (self.parkings, self.parked):
            if held in waiting:
                waiting.remove(held)
                return True
        return False

    def park(self, held: Held) -> None:
        """It says that its loop is over."""
        self.last_heard = self._clock.now()
        self.parked.append(held)
        self.has_parked = True

    def unpark(self, most: int | None = None) -> None:
        """Its next loop may begin, or that of the first of its workers."""
        most = len(self.parked) if most is None else most
        going, self.parked = self.parked[:most], self.parked[most:]
        for held in going:
            self._pass(held)

    def let_read(self) -> None:
        """Its turn: what it wants to know it may know."""
        self.may_read = True
        for held in [each for each in self.held if self._may_know(each.asked)]:
            self.let_in(held)

    def _may_know(self, asked: OutsideRequest) -> bool:
        return asked.reads and not (self.sees_pods_in_turn and asked.lists_pods)

    @property
    def is_waiting(self) -> bool:
        """Whether something that it has asked is kept."""
        return bool(self.held or self.parkings or self.parked)

    @property
    def writes(self) -> list[Held]:
        """The writes that wait, in an order that does not depend on when they came."""
        if self._sorted is None:
            writes = (each for each in self.held if not each.asked.reads)
            self._sorted = sorted(writes, key=order_of)
        return list(self._sorted)

    # -- being called ----------------------------------------------------------------------------

    def enter(self, *, is_alone: bool) -> None:
        """A scenario calls it; whoever speaks in its name until `close` is part of it."""
        self.is_alone, self.fault, self.allowance = is_alone, "", 0
        self.is_gathering = True
        self._products = {feed.product: None for feed in self.feeds}

    def close(self) -> None:
        """From now on it moves in turns only."""
        self.is_open = self.is_gathering = False
        for feed in self.feeds:
            feed.is_open = False

    def release(self, too_late: GateReply) -> None:
        """The scenario is over: nothing is held any more, and late writes change nothing."""
        self.sees_pods_in_turn = self.is_gathering = False
        self.is_open, self.may_read, self.wake, self._sorted = True, False, None, None
        for held in self._taken(self.held) + self._taken(self.parkings):
            if held.asked.reads:
                self._pass(held)
            else:
                held.resolve(too_late)
        self.unpark()
        for feed in self.feeds:
            feed.is_open = True
            feed.release(feed.pull())

    @property
    def has_failed(self) -> bool:
        return bool(self.fault or self.last_words)

    def check(self) -> None:
        """Raise what has gone wrong with it."""
        if told := self.fault or self.last_words:
            raise ScenarioError(told, where=f"controller {self.name}")

    @staticmethod
    def _taken(waiting: list[Held]) -> list[Held]:
        taken = list(waiting)
        waiting.clear()
        return taken


def order_of(held: Held) -> tuple[str, str, str, str, str, str, bytes]:
    return held.asked.order
