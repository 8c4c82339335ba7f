"""All watches of one client: which kinds are followed, who is told of what, and in which order.

Nothing is read and nobody is told anything except inside `turn`, on the caller's thread. Handlers
of one change run in the order of their `watch` calls. One that raises does not keep the others
from hearing; its error comes out afterwards. `OwnWrites` knows which of the client's own writes
were not delivered yet.
"""

import selectors
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from kubescene.api.kinds import BOOKKEEPING
from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.client.http.discovery import ApiResource, Discovery
from kubescene.client.http.records import DecodedObjects
from kubescene.client.http.requests import Requests
from kubescene.client.http.streams import KindStream
from kubescene.client.http.watch_connections import WatchConnection
from kubescene.client.interfaces import EventHandler
from kubescene.clock import SECOND
from kubescene.errors import NotFoundError, ReentrantWriteError
from kubescene.types import JsonObject

DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
DISCOVERY_RETRY = SECOND
LONGEST_WAIT_S = 30.0

Streams: TypeAlias = list[KindStream]


class HttpSubscription:
    """One handler of one kind, or of all if ``gvk`` is None."""

    __slots__ = ("_following", "gvk", "handler")

    def __init__(
        self, following: "Following", gvk: GroupVersionKind | None, handler: EventHandler
    ) -> None:
        self._following = following
        self.gvk = gvk
        self.handler = handler

    def cancel(self) -> None:
        """Stop. Safe to call twice."""
        self._following.end(self)


class Following:
    """The open watches of a client."""

    def __init__(
        self, requests: Requests, discovery: Discovery, *, page_size: int, patience_s: float
    ) -> None:
        self._requests = requests
        self._discovery = discovery
        self._page_size = page_size
        self._patience_s = patience_s
        self._decoder = DecodedObjects()
        self._streams: dict[GroupVersionKind, KindStream] = {}
        self._subscriptions: list[HttpSubscription] = []
        self._selector = selectors.DefaultSelector()
        self._registered: dict[GroupVersionKind, WatchConnection] = {}
        self._everything: dict[GroupVersionKind, None] = {}
        self._look_again_at: int | None = None
        self._telling: Change | None = None
        self._told = 0

    # -- subscribing -------------------------------------------------------------------------

    def watch(self, api: ApiResource, handler: EventHandler) -> HttpSubscription:
        """Tell ``handler`` of what exists, and of what `turn` brings from now on."""
        self._follow(api)
        self._catch_up(api.gvk, handler)
        return self._subscribed(api.gvk, handler)

    def watch_all(self, handler: EventHandler) -> HttpSubscription:
        self._look_for_kinds()
        for gvk in self._everything:
            self._catch_up(gvk, handler)
        self._expect_kinds()
        return self._subscribed(None, handler)

    def end(self, subscription: HttpSubscription) -> None:
        if subscription not in self._subscriptions:
            return
        self._subscriptions.remove(subscription)
        if not self._hears_everything():
            self._everything.clear()
        for gvk in [gvk for gvk in self._streams if not self._is_wanted(gvk)]:
            self._drop(gvk)

    def close(self) -> None:
        for subscription in list(self._subscriptions):
            self.end(subscription)
        self._register()

    def streams_of(self, resource: GroupResource) -> Streams:
        return [it for it in self._streams.values() if it.api.resource == resource]

    def known(self, api: ApiResource) -> KindStream | None:
        """The watch of a kind, if there is one."""
        return self._streams.get(api.gvk)

    @property
    def newest(self) -> int:
        """The newest revision that anybody was told of."""
        return max((stream.delivered for stream in self._streams.values()), default=0)

    def changed_since(self, revision: int) -> bool:
        """Whether a change after ``revision`` was told; of bookkeeping only to who asked for it."""
        followed = [
            stream
            for gvk, stream in self._streams.items()
            if stream.api.resource not in BOOKKEEPING or self._is_named(gvk)
        ]
        return not followed or any(stream.changed > revision for stream in followed)

    def refuse_writes(self) -> None:
        """Raises while a handler is being told of something."""
        if self._telling is not None:
            raise ReentrantWriteError(
                f"a handler tried to write while it was being told of {self._telling!r}: "
                "enqueue the work and write when your turn comes"
            )

    # -- taking turns ------------------------------------------------------------------------

    def turn(self, timeout_s: float) -> int:
        """Read what has arrived, waiting for up to ``timeout_s``, and tell it; how many changes."""
        self.refuse_writes()
        before = self._told
        self._mend()
        self._tell()
        self._receive(0 if self._told > before else timeout_s)
        self._tell()
        return self._told - before

    def _receive(self, timeout_s: float) -> None:
        """Read from the connections on which something has arrived."""
        self._register()
        ready = {gvk for gvk, it in self._registered.items() if it.has_more}
        timeout_s = 0 if ready else min(timeout_s, self._next_look_s())
        ready |= {key.data for key, _ in self._selector.select(timeout_s)}
        for gvk in [gvk for gvk in self._registered if gvk in ready]:
            self._guarded(gvk, self._streams[gvk].receive)

    def _register(self) -> None:
        """Let the selector know which connections are open now."""
        for gvk, connection in list(self._registered.items()):
            stream = self._streams.get(gvk)
            if stream is None or stream.connection is not connection:
                self._selector.unregister(self._registered.pop(gvk))
        for gvk, stream in self._streams.items():
            if stream.connection is not None and gvk not in self._registered:
                self._registered[gvk] = stream.connection
                self._selector.register(stream.connection, selectors.EVENT_READ, gvk)

    def _next_look_s(self) -> float:
        """How long until something has to be mended."""
        due = [it.retry_at for it in self._streams.values() if it.retry_at is not None]
        if self._look_again_at is not None:
            due.append(self._look_again_at)
        if not due:
            return LONGEST_WAIT_S
        return min(max(min(due) - self._requests.clock.now(), 0) / SECOND, LONGEST_WAIT_S)

    def _mend(self) -> None:
        """Open what has broken off, and follow kinds that are new."""
        if self._look_again_at is not None and self._requests.clock.now() >= self._look_again_at:
            self._look_for_kinds()
        for gvk, stream in list(self._streams.items()):
            self._guarded(gvk, stream.mend)

    def _guarded(self, gvk: GroupVersionKind, act: Callable[[], None]) -> None:
        """A kind that only those follow who follow everything may cease to exist."""
        try:
            act()
        except NotFoundError:
            if self._is_named(gvk):
                raise
            self._forget(gvk)

    # -- telling -----------------------------------------------------------------------------

    def _tell(self) -> None:
        """Hand over what has arrived, kind by kind."""
        for gvk in list(self._streams):
            self._tell_kind(gvk)

    def _tell_kind(self, gvk: GroupVersionKind) -> None:
        while (stream := self._streams.get(gvk)) and (change := stream.next_change()):
            self._tell_of(change, gvk)

    def _tell_of(self, change: Change, gvk: GroupVersionKind) -> None:
        self._told += 1
        if change.record.resource == DEFINITIONS and self._hears_everything():
            self._look_again_at = self._requests.clock.now()
        failures = [
            error
            for it in self._subscriptions.copy()
            if self._is_for(it, gvk) and (error := self._call(it.handler, change))
        ]
        if failures:
            raise failures[0]

    def _call(self, handler: EventHandler, change: Change) -> Exception | None:
        before, self._telling = self._telling, change
        try:
            handler(change)
        except Exception as error:
            return error
        finally:
            self._telling = before
        return None

    def _catch_up(self, gvk: GroupVersionKind, handler: EventHandler) -> None:
        """Tell a new handler what those know who were there before."""
        self._tell_kind(gvk)
        for change in self._streams[gvk].cache.as_added():
            if error := self._call(handler, change):
                raise error

    # -- kinds -------------------------------------------------------------------------------

    def _subscribed(self, gvk: GroupVersionKind | None, handler: EventHandler) -> HttpSubscription:
        subscription = HttpSubscription(self, gvk, handler)
        self._subscriptions.append(subscription)
        return subscription

    def _is_for(self, subscription: HttpSubscription, gvk: GroupVersionKind) -> bool:
        return gvk in self._everything if subscription.gvk is None else subscription.gvk == gvk

    def _is_wanted(self, gvk: GroupVersionKind) -> bool:
        return any(self._is_for(it, gvk) for it in self._subscriptions)

    def _is_named(self, gvk: GroupVersionKind) -> bool:
        """Whether somebody watches this very kind."""
        return any(it.gvk == gvk for it in self._subscriptions)

    def _hears_everything(self) -> bool:
        return any(it.gvk is None for it in self._subscriptions)

    def _follow(self, api: ApiResource) -> None:
        """Begin to watch a kind, if nobody does; what exists counts as arrived."""
        if api.gvk not in self._streams:
            stream = KindStream(
                api,
                self._requests,
                self._decoder,
                page_size=self._page_size,
                patience_s=self._patience_s,
            )
            stream.start()
            self._streams[api.gvk] = stream

    def _look_for_kinds(self) -> None:
        """Follow every kind that the server has, and none that it has no more."""
        self._look_again_at = None
        apis = self._discovery.all_watched()
        before, self._everything = self._everything, dict.fromkeys(api.gvk for api in apis)
        for gvk in [gvk for gvk in before if gvk not in self._everything]:
            self._forget(gvk)
        for api in apis:
            self._follow(api)
        self._expect_kinds()

    def _expect_kinds(self) -> None:
        """Look again if a definition is in force that discovery does not show yet."""
        followed = {stream.api.resource for stream in self._streams.values()}
        if any(
            defined not in followed
            for stream in self.streams_of(DEFINITIONS)
            for record in stream.cache.records.values()
            if (defined := defined_resource(self._decoder.decoded(record)))
        ):
            self._look_again_at = self._requests.clock.now() + DISCOVERY_RETRY

    def _forget(self, gvk: GroupVersionKind) -> None:
        """A kind has gone, and with it what was left of its objects."""
        stream = self._streams[gvk]
        self._everything[gvk] = None
        stream.empty()
        self._tell_kind(gvk)
        del self._everything[gvk]
        if not self._is_wanted(gvk):
            self._drop(gvk)

    def _drop(self, gvk: GroupVersionKind) -> None:
        self._streams.pop(gvk).stop()


def defined_resource(definition: JsonObject) -> GroupResource | None:
    """The resource of a definition that is in force."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    if not any(it["type"] == "Established" and it["status"] == "True" for it in conditions):
        return None
    if definition["metadata"].get("deletionTimestamp"):
        return None
    spec = definition["spec"]
    return GroupResource(spec["group"], spec["names"]["plural"])


@dataclass(frozen=True, slots=True)
class AwaitedWrite:
    """A write, and the watch that will tell of it."""

    record: Record
    stream: KindStream
    is_gone: bool
    """The object was removed. The answer to that names no revision, so its end is waited for."""

    @property
    def is_seen(self) -> bool:
        if self.stream.is_stopped:
            return True
        if not self.is_gone:
            return self.stream.delivered >= self.record.revision
        held = self.stream.cache.records.get(self.record.key)
        return held is None or bool(self.record.uid and held.uid != self.record.uid)


class OwnWrites:
    """Writes in the order they were made, as long as they are awaited."""

    def __init__(self) -> None:
        self._awaited: deque[AwaitedWrite] = deque()

    def note(self, record: Record, streams: Iterable[KindStream], *, is_gone: bool = False) -> None:
        self._forget_seen()
        self._awaited += (AwaitedWrite(record, stream, is_gone) for stream in streams)

    def first_unseen(self, revision: int) -> AwaitedWrite | None:
        """The first write not yet delivered, up to the one that returned ``revision``."""
        self._forget_seen()
        first: AwaitedWrite | None = None
        answer: AwaitedWrite | None = None
        for awaited in self._awaited:
            if first is None and not awaited.is_seen:
                first = awaited
            if awaited.record.revision == revision:
                answer = first
        return answer

    def clear(self) -> None:
        self._awaited.clear()

    def _forget_seen(self) -> None:
        while self._awaited and self._awaited[0].is_seen:
            self._awaited.popleft()
