"""What containers write: lines that their behaviour names, at times since a run began.

Nothing is kept: which runs there are and when they began and ended is said by the pod's status, so
that a log is read from the pod whenever somebody asks, as far as that is known. A kubelet, too, has
the logs of the present run and of the one before.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import count, takewhile
from typing import Any, NamedTuple

from msgspec import Struct

from kubescene.clock import SECOND, parse_duration, parse_time
from kubescene.types import JsonObject

MOST_ENTRIES = 100
MOST_LINES = 10_000
LONGEST = 16 * 1024
"""Characters of a line: where the log of a real container runtime cuts it in two."""
ENTRY_FIELDS = ("after", "every", "text")
STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class LogEntry(Struct, frozen=True):
    """A line, and when it is written: so long after the start of a run, and then ever again."""

    text: str
    after: int = 0
    every: int = 0

    def times(self, began: int, since: int) -> Iterator[int]:
        """When it is written in a run, from an instant on."""
        first = began + self.after
        if not self.every:
            return iter((first,) if first >= since else ())
        passed = max(since - first, 0)
        return count(first + -(-passed // self.every) * self.every, self.every)


class LogLine(NamedTuple):
    at: int
    text: str


class LoggedRun(NamedTuple):
    """A run of a container: from when, and until when if it is over."""

    began: int
    ended: int | None

    def written(self, entries: Sequence[LogEntry], since: int, until: int) -> Iterator[LogLine]:
        """The lines between two instants, both included, in order.

        About `MOST_LINES` at most: the newest of them.
        """
        if self.ended is not None:  # a status tells whole seconds
            until = min(until, self.ended + SECOND - 1)
        if rate := sum(1 / each.every for each in entries if each.every):
            since = max(since, until - int(MOST_LINES / rate))
        of_each = (self._of(each, since, until) for each in entries)
        return merge(*of_each, key=lambda line: line.at)

    def _of(self, entry: LogEntry, since: int, until: int) -> Iterator[LogLine]:
        for at in takewhile(lambda at: at <= until, entry.times(self.began, since)):
            yield LogLine(at, entry.text)


def container_status(pod: JsonObject, container: str) -> JsonObject | None:
    """What the status of a pod says of one of its containers."""
    status = pod.get("status") or {}
    for part in STATUSES:
        for each in status.get(part) or ():
            if each.get("name") == container:
                return dict(each)
    return None


def run_of(status: JsonObject, *, previous: bool = False) -> LoggedRun | None:
    """The run that a container is in, or the last one that it was in; the one before that."""
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if previous:
        return _run(last)
    return _run(state) or (None if "running" in state else _run(last))


def _run(state: JsonObject) -> LoggedRun | None:
    for kind in ("running", "terminated"):
        told = state.get(kind)
        if isinstance(told, Mapping) and told.get("startedAt"):
            ended = told.get("finishedAt")
            return LoggedRun(parse_time(told["startedAt"]), parse_time(ended) if ended else None)
    return None


def read_logs(value: Any, _: object = None) -> tuple[LogEntry, ...]:
    """``logs`` of a behaviour; ValueError begins with the entry at fault."""
    if not isinstance(value, list | tuple) or len(value) > MOST_ENTRIES:
        raise ValueError(f"must be a list of at most {MOST_ENTRIES} entries")
    found = []
    for place, each in enumerate(value):
        try:
            found.append(_entry(each))
        except ValueError as error:
            raise ValueError(f"entry {place}: {error}") from error
    return tuple(found)


def _entry(value: Any) -> LogEntry:
    if not isinstance(value, Mapping):
        raise ValueError("must be an object with a text")
    for name in value:
        if name not in ENTRY_FIELDS:
            raise ValueError(f"unknown field {name}; known are: {', '.join(ENTRY_FIELDS)}")
    text = value.get("text")
    if not isinstance(text, str) or len(text) > LONGEST or "\n" in text:
        raise ValueError(f"text: must be one line of at most {LONGEST} characters")
    after, every = (_duration(value, name) for name in ("after", "every"))
    if "every" in value and not every:
        raise ValueError("every: must be longer than nothing")
    return LogEntry(text, after, every)


def _duration(value: Mapping[str, Any], name: str) -> int:
    given = value.get(name, "0s")
    try:
        found = parse_duration(given if isinstance(given, str) else repr(given))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if found < 0:
        raise ValueError(f"{name}: must not be negative")
    return found
