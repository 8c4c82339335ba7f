"""Reading a log as KEP-140's events: as a sequence, and as the value of a status field."""

import zlib
from collections.abc import Iterable, Iterator
from copy import deepcopy
from io import BytesIO
from typing import Any, overload
from weakref import ref

from kubescene.api.text.encoding import enclosed
from kubescene.clock import ScenarioStep
from kubescene.timeline.facts import Fact
from kubescene.timeline.kep import KepEvent, event_of, is_shown
from kubescene.timeline.log import TimelineLog

CACHED_BYTES = 16 * 1024 * 1024
"""So much of what a `KepView` has put into words is kept for the next reader."""
PACKED_FACT = 64
"""Bytes that a fact takes in a packed timeline, in the mean: scenarios of 500 to 50,000 pods."""


class Timeline:
    """The events of a log. Iterating and indexing give decoded events, ``lines`` encoded ones.

    Events are made when they are read and not kept.
    """

    def __init__(self, log: TimelineLog) -> None:
        self._log = log
        self._shown: list[int] = []
        self._seen = 0

    @property
    def events(self) -> Iterator[KepEvent]:
        return (event_of(fact) for fact in self._log.read() if is_shown(fact))

    @property
    def lines(self) -> Iterator[bytes]:
        return (event.data for event in self.events)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (event.to_dict() for event in self.events)

    def __len__(self) -> int:
        return len(self._positions())

    @overload
    def __getitem__(self, number: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, number: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, number: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        positions = self._positions()[number]
        if isinstance(positions, int):
            return event_of(self._log[positions]).to_dict()
        return [event_of(self._log[position]).to_dict() for position in positions]

    def _positions(self) -> list[int]:
        """Where the facts stand that have an event."""
        for position in range(self._seen, len(self._log)):
            if is_shown(self._log[position]):
                self._shown.append(position)
            self._seen = position + 1
        return self._shown

    def __repr__(self) -> str:
        return f"<Timeline of {len(self)} events>"

    def _repr_html_(self) -> str:
        from kubescene.markup import excerpt

        shown = (self._log[position] for position in self._positions())
        rows = (
            (number, str(fact.step), type(fact).__name__, _about(fact), fact.actor)
            for number, fact in enumerate(shown)
        )
        rest = f"of {len(self)} events: timeline[10] is one of them"
        return excerpt(("", "step", "event", "object", "actor"), rows, rest=rest)


def _about(fact: Fact) -> str:
    """The objects that a fact is about, and where a pod went."""
    names = [
        f"{each.kind} {'/'.join(filter(None, (each.namespace, each.name)))}"
        for each in fact.objects()
    ]
    node = getattr(fact, "node", "")
    return ", ".join(names) + (f" on {node}" if node else "")


class KepView:
    """The events of a log from ``start`` on, for a status that is read again and again.

    What was put into words is kept up to `CACHED_BYTES`, until it is `put_away`. Any thread may
    read.
    """

    def __init__(self, log: TimelineLog, start: int = 0) -> None:
        self._source: TimelineLog | PackedEvents = log
        self._start = start
        self._cache: dict[int, KepEvent] = {}
        self._cached = 0
        self._keeps = True
        self._newest: ref[KepTimeline] | None = None
        """Not held: it holds this view, and both go with the status that shows it."""
        self._text: tuple[int, bytes] = (-1, b"")

    def until(self, stop: int) -> "KepTimeline":
        """The timeline as it is when the log has ``stop`` facts; the same one if asked again."""
        newest = None if self._newest is None else self._newest()
        if newest is None or newest.stop != stop:
            newest = KepTimeline(self, stop)
            self._newest = ref(newest)
        return newest

    def text(self, stop: int) -> bytes:
        """The JSON object of the first ``stop`` facts, major steps as keys.

        Many phases of a step show the same one, so the last is kept, up to `CACHED_BYTES`.
        """
        known, text = self._text
        if known == stop:
            return text
        majors: dict[int, list[bytes]] = {}
        for event in self.events(stop):
            majors.setdefault(event.step.major, []).append(event.data)
        parts = (enclosed(b'"%d":[' % major, majors[major], b"]") for major in sorted(majors))
        text = enclosed(b"{", parts, b"}")
        if self._keeps and len(text) <= CACHED_BYTES:
            self._text = (stop, text)
        return text

    def events(self, stop: int, start: int = 0) -> Iterator[KepEvent]:
        """Those of the facts from ``start`` on."""
        source = self._source
        if isinstance(source, PackedEvents):
            yield from source.between(start, stop)
            return
        start = max(start, self._start)
        for position, fact in enumerate(source.read(start, stop), start):
            if is_shown(fact):
                yield self._cache.get(position) or self._event(position, fact)

    def put_away(self) -> None:
        """Keep no words any more: the log has ended, and is read now and then.

        A server has the logs of its newest scenarios; their words would take more than they do.
        """
        self._keeps = False
        self._cache, self._cached = {}, 0
        self._text = (-1, b"")

    def pack(self) -> None:
        """Let go of the log and keep its events packed, a twentieth of it or less.

        For a log that no longer grows and that hardly anybody reads. Takes its time: any thread may
        do it.
        """
        log = self._source
        if isinstance(log, TimelineLog):
            shown = enumerate(log.read(self._start), self._start)
            self._source = PackedEvents(
                (at, event_of(fact)) for at, fact in shown if is_shown(fact)
            )
            self.put_away()

    def _event(self, position: int, fact: Fact) -> KepEvent:
        event = event_of(fact)
        if self._keeps and self._cached < CACHED_BYTES:
            self._cached += len(event.data)
            self._cache[position] = event
        return event

    def __getstate__(self) -> dict[str, Any]:
        """For another process: a reference that holds nothing cannot be sent, and is made anew."""
        return {**self.__dict__, "_newest": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "KepView":
        copy = memo[id(self)] = KepView(TimelineLog(), self._start)
        copy._source = deepcopy(self._source, memo)
        copy._cache, copy._cached = dict(self._cache), self._cached
        copy._keeps = self._keeps
        return copy


class PackedEvents:
    """Events that can be read again, in order, and take little room meanwhile."""

    __slots__ = ("_packed",)

    def __init__(self, events: Iterable[tuple[int, KepEvent]]) -> None:
        packer = zlib.compressobj(1)
        packed = [packer.compress(_line(at, event)) for at, event in events]
        self._packed = b"".join((*packed, packer.flush()))

    def between(self, start: int, stop: int) -> Iterator[KepEvent]:
        """Those of the facts at these positions of the log."""
        for line in BytesIO(zlib.decompress(self._packed)):
            at, major, minor, operation, data = line.split(b" ", 4)
            if int(at) >= stop:
                return
            if int(at) < start:
                continue
            yield KepEvent(ScenarioStep(int(major), int(minor)), operation.decode(), data[:-1])

    def __len__(self) -> int:
        """In bytes."""
        return len(self._packed)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PackedEvents":
        return self


def _line(at: int, event: KepEvent) -> bytes:
    return b"%d %d %d %b %b\n" % (at, *event.step, event.operation.encode(), event.data)


class KepTimeline:
    """``status.scenarioResult.timeline``: two references until somebody reads it.

    ``bytes(...)`` is the JSON object, major steps as keys.
    """

    __slots__ = ("__weakref__", "_view", "stop")

    def __init__(self, view: KepView, stop: int) -> None:
        self._view = view
        self.stop = stop

    def __bytes__(self) -> bytes:
        return self._view.text(self.stop)

    def __len__(self) -> int:
        """How many facts it is made of."""
        return self.stop

    @property
    def packed_size(self) -> int:
        """About how many bytes it takes once it is packed, whether it is or not."""
        return self.stop * PACKED_FACT

    def added(self, earlier: object) -> tuple[bool, Iterator[tuple[bytes, bytes]]]:
        """The events since an earlier one of this scenario, with their major steps."""
        extends = isinstance(earlier, KepTimeline) and earlier._view is self._view
        start = earlier.stop if isinstance(earlier, KepTimeline) and extends else 0
        events = self._view.events(self.stop, start)
        return extends, ((b"%d" % event.step.major, event.data) for event in events)

    def put_away(self) -> None:
        """See `KepView.put_away`."""
        self._view.put_away()

    def pack(self) -> None:
        """See `KepView.pack`: the same timeline, from fewer bytes."""
        self._view.pack()

    def __repr__(self) -> str:
        return f"<KepTimeline of the first {self.stop} facts>"
