"""Which of a client's own writes its watches have not delivered yet."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from kubescene.api.records import Record
from kubescene.client.http.streams import Stream


@dataclass(frozen=True, slots=True)
class Awaited:
    """A write, and the watch that will tell of it."""

    record: Record
    stream: Stream
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
        self._awaited: deque[Awaited] = deque()

    def note(self, record: Record, streams: Iterable[Stream], *, is_gone: bool = False) -> None:
        self._forget_seen()
        self._awaited += (Awaited(record, stream, is_gone) for stream in streams)

    def first_unseen(self, revision: int) -> Awaited | None:
        """The first write not yet delivered, up to the one that returned ``revision``."""
        self._forget_seen()
        first: Awaited | None = None
        answer: Awaited | None = None
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
