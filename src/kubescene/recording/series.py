"""Which notices become Events of events.k8s.io: the series of client-go's newer recorder.

The first of its kind is written, the second turns it into a series, those that follow are only
counted. A series is written once more when nothing was added for six minutes, and every half hour
while it goes on. Notices are of a kind when all but their messages agree.
"""

from typing import TypeAlias

import msgspec

from kubescene.clock import MINUTE
from kubescene.recording.notices import Notice

FINISH_AFTER = 6 * MINUTE
REFRESH_EVERY = 5
"""In ticks of `FINISH_AFTER`: half an hour."""

Key: TypeAlias = tuple[object, ...]


class EventSeries(msgspec.Struct):
    """An Event and how often it has been observed. ``count`` 1 means that it is no series."""

    notice: Notice
    name: str
    first: int
    last: int
    count: int = 1


class SeriesBook:
    """The Events of one component that may still be added to."""

    def __init__(self) -> None:
        self._open: dict[Key, EventSeries] = {}
        self._ticks = 0

    def observe(self, notice: Notice, name: str, now: int) -> EventSeries | None:
        """What to write now; ``name`` is for a new Event. None: it has been counted."""
        key = kind_of(notice)
        known = self._open.get(key)
        if known is None:
            known = self._open[key] = EventSeries(notice, name, now, now)
            return known
        known.count += 1
        known.last = now
        return known if known.count == 2 else None

    def tick(self, now: int) -> list[EventSeries]:
        """Close what has ended; returns the series to write once more."""
        self._ticks += 1
        due = []
        for key, series in list(self._open.items()):
            ended = series.last < now - FINISH_AFTER
            if ended:
                del self._open[key]
            if series.count > 1 and (ended or self._ticks % REFRESH_EVERY == 0):
                due.append(series)
        return due

    def __len__(self) -> int:
        return len(self._open)


def kind_of(notice: Notice) -> Key:
    parts = (notice.type, notice.action, notice.reason, notice.reporter, notice.host)
    related = notice.related or {}
    return (*parts, *sorted(notice.about.items()), "", *sorted(related.items()))
