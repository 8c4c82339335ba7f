"""Events go an hour after they were last written.

On a real cluster that is a lease in etcd, not a controller. All Events live equally long, so they
expire in the order in which they were written, and one timer serves them all.
"""

from collections import deque
from typing import NamedTuple

from kubescene.api.kinds import EVENT
from kubescene.api.records.changes import Change, ChangeType
from kubescene.client import ObjectRef
from kubescene.clock import MINUTE
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.errors import NotFoundError

EVENT_LIFETIME = 60 * MINUTE


class Expiry(NamedTuple):
    """When an Event goes, unless it is written again before."""

    instant: int
    namespace: str
    name: str
    revision: int


class EventExpiry:
    """Deletes Events that are old enough."""

    name = "event-expiry"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._timers = context.timers
        self._waiting: deque[Expiry] = deque()
        self._newest: dict[tuple[str, str], int] = {}
        self._client.watch(EVENT, self._changed, quiet=True)

    def run_once(self) -> Progress:
        """Delete what is due. Nobody waits for it, so it counts as nothing written."""
        now = self._clock.now()
        while self._waiting and self._waiting[0].instant <= now:
            self._expire(self._waiting.popleft())
        if self._waiting:
            self._set_timer()
        return IDLE

    def _changed(self, change: Change) -> None:
        record = change.record
        if change.type is ChangeType.DELETED:
            self._newest.pop((record.namespace, record.name), None)
            return
        self._newest[record.namespace, record.name] = record.revision
        instant = self._clock.now() + EVENT_LIFETIME
        self._waiting.append(Expiry(instant, record.namespace, record.name, record.revision))
        if len(self._waiting) == 1:
            self._set_timer()

    def _set_timer(self) -> None:
        # The timer wakes this controller: there is nothing else for it to do.
        self._timers.at(self._waiting[0].instant, _nothing, name=self.name)

    def _expire(self, expiry: Expiry) -> None:
        if self._newest.get((expiry.namespace, expiry.name)) != expiry.revision:
            return
        try:
            self._client.delete(ObjectRef(EVENT, expiry.name, expiry.namespace))
        except NotFoundError:
            return


def _nothing() -> None:
    """What happens when the time has come is up to `EventExpiry.run_once`."""


def event_expiry(context: ControllerContext) -> EventExpiry:
    """The factory of the controller."""
    return EventExpiry(context)
