"""The newest changes, so that a watch can start in the past and a list can look back.

Every resource has a log of its own, bounded by count and by bytes: a burst of Events, or of a large
object that changes often, does not make pods forgotten. What is older than the window is gone;
asking for it is answered with 410 Expired, as a real API server does after compaction.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import TypeAlias

from kubescene.api.records.changes import Change, RecordDecoder
from kubescene.api.scheme import GroupResource
from kubescene.errors import ExpiredError

DEFAULT_WINDOW = 10_000
DEFAULT_BYTES = 64 * 1024 * 1024
"""Beyond this the oldest changes go, however few there are: large objects change often too."""

_REVISION = attrgetter("revision")

Changes: TypeAlias = list[Change]


class Log:
    """The changes of one resource in order of revision.

    How many bytes each keeps alive is measured only when there might be too many of them: until
    then a change counts as if it shared nothing with the one after it.
    """

    __slots__ = ("at_most", "bytes", "changes", "compacted", "newest", "sizes")

    def __init__(self, compacted: int) -> None:
        self.newest = compacted
        self.changes: deque[Change] = deque()
        self.sizes: deque[int] = deque()
        """Of the oldest changes, as far as they were measured."""
        self.compacted = compacted
        self.bytes = 0
        """The sum of these sizes."""
        self.at_most = 0
        """The bytes of all changes, or more."""

    def measure(self) -> None:
        """Find out how many bytes there are."""
        for change in islice(self.changes, len(self.sizes), None):
            size = change.kept_alive()
            self.sizes.append(size)
            self.bytes += size
        self.at_most = self.bytes

    def forget(self) -> None:
        self.compacted = self.changes.popleft().revision
        if self.sizes:
            size = self.sizes.popleft()
            self.bytes -= size
            self.at_most -= size

    def since(self, revision: int) -> Iterable[Change]:
        return islice(self.changes, bisect_right(self.changes, revision, key=_REVISION), None)


class History:
    """What has happened, by resource."""

    def __init__(self, window: int = DEFAULT_WINDOW, most_bytes: int = DEFAULT_BYTES) -> None:
        self.window = window
        self._most_bytes = most_bytes
        self._floor = 0
        self._logs: dict[GroupResource, Log] = {}
        self._lost: list[tuple[int, int]] = []

    @property
    def compacted(self) -> int:
        """The newest revision that is forgotten; who asks for all may start at it or later."""
        return max((log.compacted for log in self._logs.values()), default=self._floor)

    def compacted_of(self, resource: GroupResource) -> int:
        """The newest change of a resource that is forgotten."""
        log = self._logs.get(resource)
        return self._floor if log is None else log.compacted

    def newest_of(self, resource: GroupResource) -> int:
        """The newest change of a resource, forgotten or not."""
        log = self._logs.get(resource)
        return self._floor if log is None else log.newest

    def newest_among(self, resources: Iterable[GroupResource]) -> int:
        """The newest change of any of these resources."""
        newest = self._floor
        for resource in resources:
            log = self._logs.get(resource)
            if log is not None and log.newest > newest:
                newest = log.newest
        return newest

    def resources(self) -> tuple[GroupResource, ...]:
        """Those that something is known of, in order of their first change."""
        return tuple(self._logs)

    def append(self, change: Change) -> None:
        record = change.record
        log = self._logs.get(record.resource)
        if log is None:
            log = self._logs[record.resource] = Log(self._floor)
        log.changes.append(change)
        log.newest = record.revision
        log.at_most += change.size_before
        if len(log.changes) > self.window or log.at_most > self._most_bytes:
            self._shorten(log)

    def _shorten(self, log: Log) -> None:
        """Forget the oldest changes while there are too many of them, or of their bytes."""
        if log.at_most > self._most_bytes:
            log.measure()
        while len(log.changes) > self.window or log.at_most > self._most_bytes:
            log.forget()

    def begin_at(self, revision: int) -> None:
        """Start where an earlier history ended: nothing before ``revision`` is known."""
        self._floor = revision
        self._logs.clear()
        self._lost.clear()

    def lose(self, first: int, end: int) -> None:
        """Revisions from ``first`` on, before ``end``, may have been seen and are no more.

        Whoever knows one of them knows something that never was: they have to look again.
        """
        self._lost.append((first, end))

    def since(self, revision: int, resources: Iterable[GroupResource] | None = None) -> Changes:
        """Changes (of ``resources``) after ``revision``, oldest first."""
        wanted = self._logs if resources is None else dict.fromkeys(resources)
        compacted = max(map(self.compacted_of, wanted), default=self._floor)
        if revision < compacted or self._is_lost(revision):
            raise ExpiredError(f"too old resource version: {revision} ({compacted + 1})")
        logs = [self._logs[resource] for resource in wanted if resource in self._logs]
        return list(merge(*(log.since(revision) for log in logs), key=_REVISION))

    def _is_lost(self, revision: int) -> bool:
        return any(first <= revision < end for first, end in self._lost)

    def copied(self, decoder: RecordDecoder) -> "History":
        """The same history for another store, which decodes what it holds."""
        copy = History(self.window, self._most_bytes)
        copy._floor = self._floor
        copy._lost = [*self._lost]
        for resource, log in self._logs.items():
            twin = copy._logs[resource] = Log(log.compacted)
            twin.newest = log.newest
            twin.changes.extend([change.read_by(decoder) for change in log.changes])
            twin.sizes.extend(log.sizes)
            twin.bytes = log.bytes
            twin.at_most = log.at_most
        return copy
