"""The places where pending pods wait, and what is remembered of each of them.

`Heap` holds those that are taken in order (the active ones, and those that back off),
`Unschedulable` those that wait for an event, grouped so that a hint is asked once for pods that are
alike, `InFlight` what happens while a pod is being attempted. Who moves from one to another is
`SchedulingQueue`'s business.
"""

from collections import deque
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, TypeAlias

from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.scheduler.framework.interfaces import ClusterEvent
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo


class Place(Enum):
    """Where a pod waits."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


ACTIVE, BACKOFF, ERROR_BACKOFF, UNSCHEDULABLE, IN_FLIGHT = Place
"""Names of their own: looking one up in its class takes ten times as long."""


class Strategy(Enum):
    """What an event means for a pod, the stronger the higher."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class QueuedPod:
    """A pending pod and its history of attempts."""

    attempts = 0
    unschedulable_count = 0
    consecutive_errors = 0
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    gated_by = ""
    entered = 0
    """When it first became active, as a number in ascending order; 0 if it never did."""
    flushed_at = 0
    place = ACTIVE
    ticket = 0
    set_aside = 0
    aged = 0
    told = ("", "")
    """Message and reason of the last failure, as they stand in the record ``told_in``."""
    told_in: Record | None = None
    noted = (0, 0)
    notes = 0
    """How many notes on it were told, at the instant and in the step that ``noted`` says."""
    group: "WaitingGroup | None" = None

    def __init__(self, pod: PodInfo, timestamp: int) -> None:
        self.pod = pod
        self.timestamp = timestamp

    @property
    def rejected(self) -> bool:
        """Whether plugins turned it away; otherwise its last attempt ended in an error."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def waiting_since(self) -> int:
        return max(self.timestamp, self.flushed_at)


class Tickets:
    """Numbers in ascending order."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = 0

    def draw(self) -> int:
        self._last += 1
        return self._last


_Item: TypeAlias = tuple[Any, int, "QueuedPod"]


class Heap:
    """A heap from which entries can be taken out of the middle: they are left behind as husks.

    Most pods arrive in the order in which they leave: these stand in a line, not in the heap.
    Husks are swept out once they outnumber the entries, so a heap is never larger than its use.
    """

    FEW = 64

    __slots__ = ("_entries", "_line", "_tickets", "place", "size")

    def __init__(self, place: Place, tickets: Tickets) -> None:
        self.place = place
        self.size = 0
        self._tickets = tickets
        self._line: deque[_Item] = deque()
        self._entries: list[_Item] = []

    def clear(self) -> None:
        self.size = 0
        self._line.clear()
        self._entries.clear()

    def push(self, entry: QueuedPod, key: Any) -> None:
        ticket, line = self._tickets.draw(), self._line
        entry.place, entry.ticket = self.place, ticket
        if line and key < line[-1][0]:
            heappush(self._entries, (key, ticket, entry))
        else:
            line.append((key, ticket, entry))
        self.size += 1
        if len(line) + len(self._entries) > 2 * self.size + self.FEW:
            self._sweep()

    def peek(self) -> QueuedPod | None:
        first = self._first()
        return None if first is None else first[2]

    def pop(self) -> QueuedPod | None:
        if not self.size:
            return None
        first = self._first()
        assert first is not None
        if self._line and self._line[0] is first:
            self._line.popleft()
        else:
            heappop(self._entries)
        self.size -= 1
        first[2].ticket = 0
        return first[2]

    def discard(self, entry: QueuedPod) -> None:
        entry.ticket = 0
        self.size -= 1

    def _first(self) -> _Item | None:
        line, entries = self._line, self._entries
        while line and line[0][2].ticket != line[0][1]:
            line.popleft()
        while entries and entries[0][2].ticket != entries[0][1]:
            heappop(entries)
        if entries and (not line or entries[0] < line[0]):
            return entries[0]
        return line[0] if line else None

    def _sweep(self) -> None:
        self._line = deque(each for each in self._line if each[2].ticket == each[1])
        self._entries = [each for each in self._entries if each[2].ticket == each[1]]
        heapify(self._entries)


class Rejection(NamedTuple):
    """Who turned pods away, and with that which events may help them."""

    scheduler_name: str
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]


class WaitingGroup:
    """Pods that are alike and wait for the same events, by uid."""

    __slots__ = ("entries", "rejection", "signature")

    def __init__(self, rejection: Rejection, signature: PodSignature) -> None:
        self.rejection = rejection
        self.signature = signature
        self.entries: dict[str, QueuedPod] = {}


class Unschedulable:
    """The pods that wait for an event: all, in groups, and by how long they have waited."""

    def __init__(self) -> None:
        self.entries: dict[str, QueuedPod] = {}
        self._groups: dict[Rejection, dict[PodSignature, WaitingGroup]] = {}
        self._tickets = Tickets()
        self._ages: list[tuple[int, int, QueuedPod]] = []

    def rejections(self) -> list[Rejection]:
        """Few, however many pods wait."""
        return [*self._groups]

    def groups_of(self, rejection: Rejection) -> list[WaitingGroup]:
        return [*self._groups[rejection].values()]

    def add(self, entry: QueuedPod) -> None:
        """Take a pod in, or take note that it has changed."""
        stays, uid = entry.group is not None, entry.pod.uid
        self._ungroup(entry)
        entry.group = self._group(entry)
        entry.group.entries[uid] = self.entries[uid] = entry
        if not stays:
            entry.set_aside = self._tickets.draw()
        if not stays or entry.aged != entry.waiting_since:
            entry.aged = entry.waiting_since
            heappush(self._ages, (entry.aged, entry.set_aside, entry))

    def remove(self, entry: QueuedPod) -> None:
        """Let a pod go; one that is not here is none of our business."""
        if entry.group is None:
            return
        self._ungroup(entry)
        del self.entries[entry.pod.uid]
        if len(self._ages) > 2 * len(self.entries) + 64:
            self._ages = [age for age in self._ages if _is_current(age)]
            heapify(self._ages)

    def oldest(self) -> int | None:
        """Since when the pod has waited that has waited longest."""
        ages = self._ages
        while ages and not _is_current(ages[0]):
            heappop(ages)
        return ages[0][0] if ages else None

    def in_order(self) -> list[QueuedPod]:
        """All pods, in order of arrival here."""
        return sorted(self.entries.values(), key=_arrival)

    def _group(self, entry: QueuedPod) -> WaitingGroup:
        name, signature = entry.pod.scheduler_name, entry.pod.signature
        rejection = Rejection(name, entry.unschedulable_plugins, entry.pending_plugins)
        groups = self._groups.get(rejection)
        if groups is None:
            groups = self._groups[rejection] = {}
        found = groups.get(signature)
        if found is None:
            found = groups[signature] = WaitingGroup(rejection, signature)
        return found

    def _ungroup(self, entry: QueuedPod) -> None:
        group, entry.group = entry.group, None
        if group is None:
            return
        del group.entries[entry.pod.uid]
        if group.entries:
            return
        groups = self._groups[group.rejection]
        del groups[group.signature]
        if not groups:
            del self._groups[group.rejection]


def _is_current(age: tuple[int, int, QueuedPod]) -> bool:
    since, ticket, entry = age
    return entry.group is not None and entry.set_aside == ticket and entry.aged == since


def _arrival(entry: QueuedPod) -> int:
    return entry.set_aside


class InFlight:
    """Pods whose fate is not yet known, and what has happened since they were popped."""

    def __init__(self) -> None:
        self.positions: dict[str, int] = {}
        self._events: list[tuple[ClusterEvent, Change]] = []
        self._first = 0

    def begin(self, uid: str) -> None:
        self.positions[uid] = self._first + len(self._events)

    def record(self, event: ClusterEvent, change: Change) -> None:
        if self.positions:
            self._events.append((event, change))

    def end(self, uid: str) -> list[tuple[ClusterEvent, Change]]:
        """What happened since `begin`."""
        position, events = self.positions.pop(uid, None), self._events
        if position is None or not events:
            return []
        if not self.positions and position == self._first:
            self._first += len(events)
            self._events = []
            return events
        arrived = events[position - self._first :]
        # The first that is left is the one that was popped first: nobody needs what is older.
        oldest = next(iter(self.positions.values()), self._first + len(self._events))
        del self._events[: oldest - self._first]
        self._first = oldest
        return arrived
