"""One kind followed for good: listed, watched, mended when the connection breaks.

A watch goes on from the last revision it has seen. When the server has forgotten that revision
(410), or was started anew and has not come as far, the state is listed anew and the difference is
told. A server that cannot be reached is tried again, ever more slowly; once that has lasted longer
than the owner's patience, the owner is told by an exception.
"""

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from kubescene.api.records import Record, make_record, versioned
from kubescene.api.records.changes import Change, ChangeType, RecordDecoder
from kubescene.client.http.discovery import ApiResource
from kubescene.client.http.listing import list_all, newest_revision
from kubescene.client.http.records import (
    Items,
    WatchEvent,
    parse_bookmark,
    parse_event,
    parse_object,
)
from kubescene.client.http.requests import Requests, target
from kubescene.client.http.statuses import error_of_reply
from kubescene.client.http.watch_connections import WatchConnection
from kubescene.client.http.wire import MalformedResponseError, WireRequest
from kubescene.client.interfaces import Objects
from kubescene.clock import MILLISECOND, SECOND
from kubescene.errors import ApiError, ExpiredError, UnreachableError

WATCH_TIMEOUT_S = 300
"""After this time the server is to end a watch, which is then asked for again."""
SILENCE = (WATCH_TIMEOUT_S + 30) * SECOND
"""A connection that says nothing for so long is dead, even if nobody closed it."""
STABLE = SECOND
FIRST_RETRY = 20 * MILLISECOND
LAST_RETRY = 5 * SECOND

_log = logging.getLogger(__name__)

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class KindStream:
    """The objects of one kind, as one server tells of them."""

    def __init__(
        self,
        api: ApiResource,
        requests: Requests,
        decoder: RecordDecoder,
        *,
        page_size: int,
        patience_s: float,
    ) -> None:
        self.api = api
        self.cache = Cache(decoder)
        self.delivered = 0
        """How far the owner has heard of everything."""
        self.changed = 0
        """The newest revision of an object that the owner has heard of."""
        self.is_stopped = False
        self.connection: WatchConnection | None = None
        self._requests = requests
        self._clock = requests.clock
        self._page_size = page_size
        self._patience = int(patience_s * SECOND)
        self._arrived: deque[Arrival] = deque()
        self._received = 0
        self._is_expired = True
        self._is_doubtful = False
        self._connected_at = self._heard_at = self._retry_at = 0
        self._failing_since: int | None = None
        self._failures = 0

    # -- what the owner asks -----------------------------------------------------------------

    @property
    def retry_at(self) -> int | None:
        """When `mend` has something to do; None if the watch is open."""
        return None if self.connection is not None else self._retry_at

    def start(self) -> None:
        """List what exists; raises `ApiError`. `mend` opens the watch that goes on from there."""
        self._list()

    def next_change(self) -> Change | None:
        """Take over the next thing that has arrived; None if there is no more to tell."""
        while self._arrived:
            arrival = self._arrived.popleft()
            self.delivered = max(self.delivered, arrival.revision)
            if change := self.cache.apply(arrival):
                self.changed = max(self.changed, change.revision)
                return change
        return None

    def last(self, record: Record) -> Record | None:
        """The last state that was delivered of the object of a record, if it is the same one."""
        held = self.cache.records.get(record.key)
        is_same = held is not None and record.uid in ("", held.uid)
        return held if is_same else None

    def receive(self) -> None:
        """Read what has arrived, without waiting."""
        connection = self.connection
        if connection is None:
            return
        try:
            for line in connection.receive():
                self._take(parse_event(line))
        except (MalformedResponseError, ApiError) as error:
            connection.error = error
            connection.has_ended = True
        if connection.has_ended:
            self._end(connection)

    def mend(self) -> None:
        """Open the watch if it is not and may be; raises once that has failed for too long.

        Only when everything that arrived was taken over: a new list is compared with it.
        """
        now = self._clock.now()
        if self.connection is not None:
            if now > self._heard_at + SILENCE:
                self.connection.error = TimeoutError("nothing was heard for too long")
                self._end(self.connection)
            return
        if self._arrived or now < self._retry_at:
            return
        try:
            self._check_history()
            if self._is_expired:
                self._list()
            self.connection = WatchConnection(self._requests, self._request())
            self._connected_at = self._heard_at = self._clock.now()
        except (OSError, ApiError) as error:
            self._fail(error)

    def empty(self) -> None:
        """Queue the end of all objects: their kind is no more."""
        self._arrived += self.cache.difference([], self._received)

    def stop(self) -> None:
        """End it: nobody follows the kind any more."""
        self.is_stopped = True
        self._disconnect()

    def _disconnect(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    # -- listing -----------------------------------------------------------------------------

    def _list(self) -> None:
        """Find out what exists, and queue how it differs from what is known."""
        page = list_all(self._requests, self.api, page_size=self._page_size)
        self._arrived += self.cache.difference(page.items, page.revision)
        self._received = page.revision
        self._is_expired = False

    def _check_history(self) -> None:
        """A server that broke off may have been started anew, with another history."""
        if not self._is_expired and self._is_doubtful:
            newest = newest_revision(self._requests, self.api)
            self._is_expired = newest < self._received
        self._is_doubtful = False

    # -- watching ----------------------------------------------------------------------------

    def _request(self) -> WireRequest:
        return WireRequest(
            "GET",
            target(
                self.api.collection(),
                watch="true",
                allowWatchBookmarks="true",
                resourceVersion=str(self._received),
                timeoutSeconds=str(WATCH_TIMEOUT_S),
            ),
        )

    def _take(self, event: WatchEvent) -> None:
        match event.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                record = parse_object(self.api.form, bytes(event.object)).record
                arrival = Arrival(record, event.type == "DELETED", record.revision)
            case "BOOKMARK":
                arrival = Arrival(None, is_gone=False, revision=parse_bookmark(event.object))
            case "ERROR":
                raise error_of_reply(0, bytes(event.object))
            case _:
                raise MalformedResponseError(f"a watch event is of type {event.type[:60]!r}")
        if arrival.revision < self._received:
            raise ExpiredError(
                f"the server went back from revision {self._received} to {arrival.revision}"
            )
        self._arrived.append(arrival)
        self._received = arrival.revision
        self._heard_at = self._clock.now()
        self._failing_since, self._failures = None, 0

    def _end(self, connection: WatchConnection) -> None:
        """The connection is over: in good order, or not."""
        error = connection.error
        self._disconnect()
        if isinstance(error, ExpiredError):
            _log.info("the watch of %s is listed anew: %s", self.api.resource, error)
            self._is_expired = True
        now = self._clock.now()
        self._is_doubtful = now < self._connected_at + WATCH_TIMEOUT_S * SECOND
        has_worked = self._heard_at > self._connected_at or self._is_stable(now)
        if has_worked and (error is None or self._is_expired):
            self._failing_since, self._failures, self._retry_at = None, 0, now
        elif self._is_expired and self._failing_since is None:
            # Where little happens, what was seen last grows too old: to list it is no failure.
            self._failing_since, self._retry_at = now, now
        else:
            told = f"the server ended the watch at once: {error}".removesuffix(": None")
            self._fail(ConnectionError(told) if error is None or self._is_expired else error)

    def _is_stable(self, now: int) -> bool:
        return now > self._connected_at + STABLE

    def _fail(self, error: Exception) -> None:
        """Try again later, unless it has lasted too long or waiting would not help."""
        now = self._clock.now()
        if self._failing_since is None or (self._connected_at and self._is_stable(now)):
            self._failing_since, self._failures = now, 0
        self._connected_at = 0
        self._retry_at = now + min(FIRST_RETRY << min(self._failures, 10), LAST_RETRY)
        self._failures += 1
        _log.warning("the watch of %s broke off: %s", self.api.resource, error)
        if isinstance(error, ApiError) and 400 <= error.code < 429:
            raise error
        if now > self._failing_since + self._patience:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> UnreachableError:
        if isinstance(error, UnreachableError):
            return error
        return self._requests.failure(self._request(), error)


class Arrival(NamedTuple):
    """Something that the server said: that an object is, or is no more, or how far it has come.

    ``revision`` is how far the watch has come with it; 0 where that is not known.
    """

    record: Record | None
    is_gone: bool
    revision: int


class Cache:
    """The objects of one kind, in the order in which they were first heard of."""

    def __init__(self, decoder: RecordDecoder) -> None:
        self.records: dict[Key, Record] = {}
        self._decoder = decoder

    def apply(self, arrival: Arrival) -> Change | None:
        """Take over what was said; None if nobody needs to hear of it."""
        record = arrival.record
        if record is None:
            return None
        previous = self.records.get(record.key)
        if arrival.is_gone:
            return None if previous is None else self._removed(record, previous)
        self.records[record.key] = record
        kind = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        return Change(kind, record, previous, self._decoder)

    def difference(self, items: Items, revision: int) -> Iterator[Arrival]:
        """What must have happened if these are all objects at ``revision``."""
        now = {listed.record.key: listed for listed in items}
        for key, known in self.records.items():
            found = now.get(key)
            if found is None or found.record.uid != known.uid:
                yield Arrival(at_revision(known, revision), is_gone=True, revision=0)
        for listed in sorted(now.values(), key=lambda listed: listed.order):
            record = listed.record
            held = self.records.get(record.key)
            if held is None or held.uid != record.uid or held.revision != record.revision:
                yield Arrival(record, is_gone=False, revision=0)
        yield Arrival(None, is_gone=False, revision=revision)

    def as_added(self) -> Iterable[Change]:
        """All that exists, for somebody who joins late."""
        return [Change(ChangeType.ADDED, it, None, self._decoder) for it in self.records.values()]

    def owned(self, owner_uid: str) -> Objects:
        """Objects whose managing controller has this uid, in order of creation."""
        held = self.records.values()
        return [self._decoder.decoded(record) for record in held if record.owner == owner_uid]

    def _removed(self, record: Record, previous: Record) -> Change:
        del self.records[record.key]
        return Change(ChangeType.DELETED, record, previous, self._decoder)


def at_revision(record: Record, revision: int) -> Record:
    """The last state of an object, at the revision at which it was found to be gone."""
    return make_record(record.resource, versioned(record.decode(), revision), revision)
