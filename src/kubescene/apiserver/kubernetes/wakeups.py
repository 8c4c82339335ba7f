"""Waking many streams from another thread with one call into the event loop.

The engine thread marks each stream that has something to send; the first mark since the last
flush schedules a flush on the loop. A burst of a thousand events over fifty watches thus costs a
handful of loop wake-ups, not fifty thousand.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial

from kubescene.apiserver.requests import Receive, Request


class Wakeups:
    """Collects marks of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._marked: deque[Sleeper] = deque()
        self._scheduled = False

    def mark(self, sleeper: "Sleeper") -> None:
        """On any thread: have the sleeper woken soon."""
        self._marked.append(sleeper)
        if not self._scheduled:
            self._scheduled = True
            try:
                self._loop.call_soon_threadsafe(self._flush)
            except RuntimeError:
                # The loop is closed: nobody sleeps there any more.
                self._marked.clear()

    def _flush(self) -> None:
        # Cleared before the marks are read, so a mark that is missed here schedules anew.
        self._scheduled = False
        marked = self._marked
        while marked:
            marked.popleft().wake()


class Sleeper:
    """One coroutine that waits for marks, or for the end.

    A mark that comes while the coroutine is busy elsewhere is kept: the next `sleep` returns at
    once. So nothing is missed between looking for work and going to sleep.
    """

    __slots__ = ("_awake", "_future", "_marked", "_wakeups", "ended", "on_wake")

    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._marked = False
        self._awake = False
        self._future: asyncio.Future[None] | None = None
        self.ended = False
        self.on_wake: Callable[[], None] | None = None

    def mark(self) -> None:
        """On the engine thread: there is something to do."""
        if not self._marked:
            self._marked = True
            self._wakeups.mark(self)

    def wake(self) -> None:
        """On the loop: let the coroutine go on."""
        self._marked = False
        self._awake = True
        if self.on_wake is not None:
            self.on_wake()
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def end(self) -> None:
        """On the loop: let the coroutine go on for the last time."""
        self.ended = True
        self.wake()

    async def sleep(self, timeout_s: float) -> None:
        """Until woken, ended or the time is over; not at all if woken since the last sleep."""
        if self.ended or self._marked or self._awake:
            # A mark that is on its way arrives within one turn of the loop.
            await asyncio.sleep(0)
            self._awake = False
            return
        loop = asyncio.get_running_loop()
        self._future = loop.create_future()
        timer = loop.call_later(max(timeout_s, 0), self.wake)
        try:
            await self._future
        finally:
            timer.cancel()
            self._future = None
            self._awake = False


class OpenStreams:
    """Answers that go on, all on one event loop: each ends with its client, or with the server."""

    def __init__(self) -> None:
        self._wakeups: Wakeups | None = None
        self._sleepers: set[Sleeper] = set()

    def close(self) -> None:
        """On the loop: end every stream, for the server is going away."""
        for sleeper in list(self._sleepers):
            sleeper.end()

    def sleeper(self) -> Sleeper:
        """For a stream of the running loop."""
        if self._wakeups is None:
            self._wakeups = Wakeups(asyncio.get_running_loop())
        return Sleeper(self._wakeups)

    async def run(
        self, request: Request, sleeper: Sleeper, sending: Coroutine[None, None, None]
    ) -> None:
        """Returns when everything was sent, or nobody reads any more."""
        self._sleepers.add(sleeper)
        stream = asyncio.ensure_future(sending)
        sleeper.on_wake = partial(_end, stream, sleeper)
        gone = asyncio.ensure_future(_wait_gone(request.receive, sleeper))
        try:
            await asyncio.wait((stream,))
            if not stream.cancelled():
                stream.result()
        finally:
            self._sleepers.discard(sleeper)
            sleeper.on_wake = None
            gone.cancel()
            stream.cancel()


def _end(stream: "asyncio.Future[None]", sleeper: Sleeper) -> None:
    """Nobody reads any more: a stream that hangs on such a client ends as well."""
    if sleeper.ended:
        stream.cancel()


async def _wait_gone(receive: Receive, sleeper: Sleeper) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sleeper.end()
