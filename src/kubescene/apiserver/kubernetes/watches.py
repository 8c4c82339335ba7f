"""Watches over HTTP: one coroutine for each, fed by the engine thread, paced by its client.

A watch is registered on the engine thread, so that what it has seen and what it will see meet at
one revision. From then on the writer only appends to its backlog. A client that does not
read fast enough is cut off when the backlog is full; the writer never notices.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource, GroupVersionKind, ResourceType
from kubescene.apiserver.access import DEFAULT_ACTOR
from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.rendering import Renderer, check_include
from kubescene.apiserver.kubernetes.selection import Selection, select
from kubescene.apiserver.kubernetes.versions import (
    NOT_OLDER_THAN,
    invalid_options,
    parse_version,
    too_large,
)
from kubescene.apiserver.kubernetes.wakeups import Sleeper, Wakeups
from kubescene.apiserver.kubernetes.watch_events import EventEncoder, SharedFrames, error_frame
from kubescene.apiserver.negotiation import ResponseForm, ResponseShape
from kubescene.apiserver.requests import Receive, Request, RequestTarget, Send
from kubescene.apiserver.turnstile import product_of
from kubescene.errors import ExpiredError
from kubescene.outside.feeds import WatchFeed
from kubescene.outside.stage import OutsideStage
from kubescene.registry import Registry
from kubescene.registry.custom_resources import CustomResources
from kubescene.store import Watch, WatchOverflowError

DEFAULT_TIMEOUT_S = 3600.0
BOOKMARK_EVERY_S = 60.0
CHUNK_BYTES = 256 * 1024
FRAMES_IN_A_ROW = 32
"""So many tables or metadata are made before others get a turn; stored bytes are sent as they are.
"""
WATCH_BACKLOG = 50_000
HELD_BACKLOG = 2_000_000
"""For programs in turns: what they have not been given waits here, however long that takes."""

_log = logging.getLogger(__name__)

_HEADERS = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a watch asks for."""

    selection: Selection
    since: int
    with_existing: bool
    bookmarks: bool
    marks_initial_end: bool
    timeout_s: float


@dataclass(slots=True)
class Registered:
    """A watch as the engine thread set it up: what exists at ``revision``, and all that follows."""

    watch: Watch
    existing: list[Record]
    revision: int
    feed: WatchFeed | None = None
    reader: str = ""


def parse_options(target: RequestTarget, request: Request, custom: CustomResources) -> WatchOptions:
    """The options of a watch request; 422 where they contradict each other."""
    query = request.query
    version = query.get("resourceVersion", "")
    match = query.get("resourceVersionMatch", "")
    send_initial = request.flag("sendInitialEvents") if "sendInitialEvents" in query else None
    if send_initial is None and match:
        raise invalid_options(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    if send_initial is not None and match != NOT_OLDER_THAN:
        raise invalid_options(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
    since = parse_version(version)
    bookmarks = request.flag("allowWatchBookmarks")
    existing = send_initial if send_initial is not None else since == 0
    return WatchOptions(
        selection=select(target, query, custom),
        since=since,
        with_existing=existing,
        bookmarks=bookmarks,
        marks_initial_end=bool(send_initial) and bookmarks,
        timeout_s=float(request.number("timeoutSeconds") or DEFAULT_TIMEOUT_S),
    )


class WatchStreams:
    """All open watches of one event loop."""

    def __init__(
        self, registry: Registry, engine: EngineThread, renderer: Renderer, stage: OutsideStage
    ) -> None:
        self._stage = stage
        self._store = registry.store
        self._custom = registry.custom
        self._engine = engine
        self._renderer = renderer
        self._wakeups: Wakeups | None = None
        self._sleepers: set[Sleeper] = set()
        self._frames: dict[GroupVersionKind, SharedFrames] = {}
        self._is_closed = False
        self.backlog = WATCH_BACKLOG

    def close(self) -> None:
        """On the loop: end every watch, for the server is going away."""
        self._is_closed = True
        for sleeper in list(self._sleepers):
            sleeper.end()

    async def serve(self, target: RequestTarget, request: Request, form: ResponseForm) -> None:
        """Answer a watch request until the client, the time or the server ends it."""
        options, send = parse_options(target, request, self._custom), request.send
        if options.with_existing and options.since > self._store.revision:
            raise too_large(options.since, self._store.revision)
        if self._wakeups is None:
            self._wakeups = Wakeups(asyncio.get_running_loop())
        sleeper = Sleeper(self._wakeups)
        include = request.query.get("includeObject", "")
        if form.shape is ResponseShape.TABLE:
            check_include(include)
        shared = self._shared_by(target.resource_type, form)
        encoder = EventEncoder(
            self._renderer, target.resource_type, options.selection, form, include, shared
        )
        opened: list[Registered] = []
        try:
            registered = await self._engine.submit(
                lambda: self._register(target, request, options, sleeper, opened)
            )
        except ExpiredError as error:
            await _start(send)
            await _chunk(send, error_frame(error.to_status()))
            await _finish(send)
            return
        except asyncio.CancelledError:
            # Commands run in order: by then the watch is there, and nobody else would close it.
            self._engine.post(partial(self._close, opened))
            raise
        finally:
            request.finish()
        stream = WatchStream(self, options, registered, encoder, sleeper, send)
        self._sleepers.add(sleeper)
        shared.readers += 1
        gone = asyncio.ensure_future(_wait_gone(request.receive, sleeper))
        try:
            if self._is_closed:
                sleeper.end()
            await _unless_cut_off(stream.run(), registered.watch, sleeper)
        finally:
            self._sleepers.discard(sleeper)
            shared.leave()
            self._engine.post(partial(self._close, opened))
            gone.cancel()

    def _shared_by(self, resource_type: ResourceType, form: ResponseForm) -> SharedFrames:
        """The frames of all who watch this kind in its plain form; others have none in common.

        How a custom object is shown may change with its definition.
        """
        if resource_type.custom or not form.is_plain:
            return SharedFrames()
        return self._frames.setdefault(resource_type.gvk, SharedFrames())

    def _close(self, opened: list[Registered]) -> None:
        for registered in opened:
            registered.watch.close()
            if registered.feed is not None:
                self._stage.close_feed(registered.reader, registered.feed)

    def _register(
        self,
        target: RequestTarget,
        request: Request,
        options: WatchOptions,
        sleeper: Sleeper,
        opened: list[Registered],
    ) -> Registered:
        """On the engine thread: nothing is written between the look and the subscription."""
        store, resource = self._store, target.resource_type.group_resource
        existing: list[Record] = []
        since = min(options.since, store.revision)
        if options.with_existing:
            existing = [r for r in store.list(resource) if options.selection.matches(r)]
            since = store.revision
        elif options.since == 0:
            since = store.revision
        if request.actor.name == DEFAULT_ACTOR.name:
            watch = Watch(store, (resource,), since=since, backlog=self.backlog, wake=sleeper.mark)
            registered = Registered(watch, existing, since)
        else:
            registered = self._feed(request, resource, sleeper, existing, since)
        opened.append(registered)
        return registered

    def _feed(
        self,
        request: Request,
        resource: GroupResource,
        sleeper: Sleeper,
        existing: list[Record],
        since: int,
    ) -> Registered:
        """The watch of a program that a scenario may call: it sees what it is given."""
        reader = request.actor.name
        feed = self._stage.open_feed(reader, resource, sleeper.mark, product_of(request))
        watch = Watch(self._store, (resource,), since=since, backlog=HELD_BACKLOG, wake=feed.wake)
        feed.follow(watch)
        return Registered(watch, existing, since, feed, reader)

    async def settled_revision(self) -> int:
        """A revision all of whose changes are in the backlogs."""
        return await self._engine.submit(lambda: self._store.revision)


class WatchStream:
    """One open watch."""

    def __init__(
        self,
        streams: WatchStreams,
        options: WatchOptions,
        registered: Registered,
        encoder: EventEncoder,
        sleeper: Sleeper,
        send: Send,
    ) -> None:
        self._streams = streams
        self._options = options
        self._registered = registered
        self._encoder = encoder
        self._sleeper = sleeper
        self._send = send
        loop = asyncio.get_running_loop()
        self._now = loop.time
        self._deadline = loop.time() + options.timeout_s
        self._next_bookmark = loop.time() + BOOKMARK_EVERY_S
        self._seen = registered.revision

    async def run(self) -> None:
        await _start(self._send)
        await self._send_existing()
        while not self._sleeper.ended and self._now() < self._deadline:
            if not await self._send_changes():
                break
            if self._options.bookmarks and self._now() >= self._next_bookmark:
                await self._send_bookmark()
            if not self._sleeper.ended:
                await self._sleeper.sleep(min(self._deadline, self._wake_at()) - self._now())
        if self._options.bookmarks and self._now() >= self._deadline:
            await self._send_bookmark()
        await _finish(self._send)

    async def _send_existing(self) -> None:
        existing, self._registered.existing = self._registered.existing, []
        large = any(each.is_large for each in existing)
        await self._send_frames(self._encoder.added(existing), large=large)
        # One that is being ended may not have sent all: it must not say that it has.
        if self._options.marks_initial_end and not self._sleeper.ended:
            mark = self._encoder.bookmark(self._registered.revision, ends_initial=True)
            await _chunk(self._send, mark)
        if self._registered.feed is not None:
            self._registered.feed.has_begun = True

    async def _send_changes(self) -> bool:
        """Whether the watch can go on."""
        feed = self._registered.feed
        try:
            changes = self._registered.watch.drain() if feed is None else feed.take()
        except WatchOverflowError:
            return False
        if changes:
            self._seen = changes[-1].revision
            may_be = self._encoder.is_of_custom_kind
            large = may_be and any(change.record.is_large for change in changes)
            await self._send_frames(self._encoder.frames(changes), large=large)
        if feed is not None:
            feed.note_sent(len(changes))
        return True

    async def _send_bookmark(self) -> None:
        self._next_bookmark = self._now() + BOOKMARK_EVERY_S
        feed = self._registered.feed
        if feed is not None and not feed.is_open:
            # There is more than it may know: a bookmark would say that it knows.
            return
        revision = await self._streams.settled_revision()
        if await self._send_changes() and not self._sleeper.ended:
            # What came after the question was sent before the answer: never go back behind it.
            await _chunk(self._send, self._encoder.bookmark(max(revision, self._seen)))

    async def _send_frames(self, frames: Iterator[bytes], *, large: bool = False) -> None:
        """Encode and send piece by piece: what a slow client has not read is not encoded yet.

        A ``large`` object is encoded on another thread: the other clients need not wait for it.
        """
        pieces = _pieces(frames, CHUNK_BYTES if self._encoder.is_plain else FRAMES_IN_A_ROW)
        while True:
            piece = await asyncio.to_thread(next, pieces, None) if large else next(pieces, None)
            if piece is None:
                return
            await _chunk(self._send, piece)
            # A client that reads fast never lets `send` wait: give the others a turn.
            await asyncio.sleep(0)
            if self._sleeper.ended:
                return

    def _wake_at(self) -> float:
        return self._next_bookmark if self._options.bookmarks else self._deadline


async def _unless_cut_off(run: Coroutine[Any, Any, None], watch: Watch, sleeper: Sleeper) -> None:
    """Run the stream until its backlog is full, even if it hangs on a client that never reads."""
    task = asyncio.ensure_future(run)

    def check() -> None:
        if watch.is_cut_off:
            task.cancel()

    sleeper.on_wake = check
    try:
        await task
    except asyncio.CancelledError:
        if not watch.is_cut_off:
            raise
        _log.warning("a watch was cut off: its client did not read %s changes", watch.limit)
    except Exception:
        # The head of the reply is out, no other can follow: the client sees the stream break off.
        _log.exception("a watch failed and was ended")
    finally:
        sleeper.on_wake = None


def _pieces(frames: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Frames put together until they are large or many; never an empty piece."""
    piece: list[bytes] = []
    size = 0
    for number, frame in enumerate(frames, 1):
        piece.append(frame)
        size += len(frame)
        if size >= CHUNK_BYTES or (size and not number % most):
            yield b"".join(piece)
            piece, size = [], 0
    if size:
        yield b"".join(piece)


async def _start(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    # An empty chunk makes the head go out at once: clients wait for it before they write.
    await _chunk(send, b"")


async def _chunk(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _finish(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_gone(receive: Receive, sleeper: Sleeper) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sleeper.end()
