"""``timeline?since=N`` of a scenario: its facts by position, also as they come.

One fact a line, from position N on (the first is 0), as in ``timeline.jsonl``; what a line refers
to stands in the same answer. With ``follow=true`` the answer goes on until the run is over. A
reader takes from the log what he has not read yet, piece by piece: nothing is kept for him, and
nobody waits for one who is slow or gone.
"""

import asyncio
from functools import partial

from kubescene.apiserver.engine_thread import EngineThread
from kubescene.apiserver.kubernetes.wakeups import OpenStreams, Sleeper
from kubescene.apiserver.requests import Request, Send
from kubescene.errors import BadRequestError
from kubescene.timeline import Fact, TimelineLog
from kubescene.timeline.facts import LineWriter

PIECE = 100
"""So many facts are encoded before others have a turn."""
QUIET_S = 3600.0
_HEADERS = [(b"content-type", b"application/jsonl"), (b"cache-control", b"no-cache, private")]


class TimelineStreams:
    """Those who read timelines over HTTP."""

    def __init__(self, engine: EngineThread) -> None:
        self._engine = engine
        self._streams = OpenStreams()
        self.close = self._streams.close

    async def serve(self, request: Request, log: TimelineLog) -> None:
        """Send what is asked for, until it is all there or the client has left."""
        since, follows = request.number("since") or 0, request.flag("follow")
        if since < 0:
            raise BadRequestError(f"since={since}: positions begin at 0")
        sleeper = self._streams.sleeper()
        follower = partial(_came, sleeper)
        if follows:
            await self._engine.submit(partial(log.follow, follower, sleeper.mark))
        try:
            sending = _send_lines(request.send, log, since, follows, sleeper)
            await self._streams.run(request, sleeper, sending)
        finally:
            if follows:
                self._engine.post(partial(log.unfollow, follower))


def _came(sleeper: Sleeper, fact: Fact) -> None:
    del fact
    sleeper.mark()


async def _send_lines(
    send: Send, log: TimelineLog, since: int, follows: bool, sleeper: Sleeper
) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    writer, end = LineWriter(since), None if follows else len(log)
    while True:
        is_closed = log.is_closed  # asked first: whatever came before is read below
        until = writer.position + PIECE if end is None else min(writer.position + PIECE, end)
        lines = [writer.line(fact) + b"\n" for fact in log.read(writer.position, until)]
        if lines:
            await _chunk(send, b"".join(lines))
            await asyncio.sleep(0)
        elif end is not None or is_closed:
            break
        else:
            await _chunk(send, b"")
            await sleeper.sleep(QUIET_S)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _chunk(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
