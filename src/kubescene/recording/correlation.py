"""Which notices become Events of the core group: client-go's event correlator.

Three questions, in this order. Are there too many similar ones (same object, type and reason, other
message)? From the tenth in ten minutes on they share one Event. Has the same been said before? Then
its Event is counted up. Does the component say too much about this object? After 25 it may say one
thing every five minutes; what is left out is still counted.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import msgspec

from kubescene.bounded import BoundedDict
from kubescene.clock import SECOND
from kubescene.recording.notices import Notice

MAX_SIMILAR = 10
SIMILAR_FOR = 600 * SECOND
SPAM_BURST = 25
SPAM_REFILL = 300 * SECOND
COMBINED = "(combined from similar events): "
MAX_ENTRIES = 4096
"""As many of each sort are remembered."""

Key: TypeAlias = tuple[str, ...]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class CorrelatedEvent(msgspec.Struct, frozen=True):
    """An Event as it should be now. ``count`` 1 means that it is new."""

    notice: Notice
    name: str
    count: int
    first: int
    combined: bool


class Counted(msgspec.Struct, frozen=True):
    """The Event that stands for a key."""

    name: str
    count: int
    first: int


@dataclass(slots=True)
class Similar:
    """Messages that differ, of one object, type and reason. In order of arrival."""

    last: int = 0
    messages: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Allowance:
    """A token bucket in nanoseconds: one notice costs `SPAM_REFILL`."""

    credit: int
    at: int

    def take(self, now: int) -> bool:
        """Whether one more may be said now."""
        self.credit = min(self.credit + now - self.at, SPAM_BURST * SPAM_REFILL)
        self.at = now
        if self.credit < SPAM_REFILL:
            return False
        self.credit -= SPAM_REFILL
        return True


class Recents(Generic[K, V]):
    """A memory of bounded size: it forgets what was not asked for longest."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._entries: BoundedDict[K, V] = BoundedDict(most)

    def get(self, key: K) -> V | None:
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)


class Correlator:
    """Remembers what one component has said."""

    def __init__(self) -> None:
        self._similar: Recents[Key, Similar] = Recents()
        self._counted: Recents[Key, Counted] = Recents()
        self._allowances: Recents[Key, Allowance] = Recents()

    def observe(self, notice: Notice, name: str, now: int) -> CorrelatedEvent | None:
        """What to write; ``name`` is for a new Event. None: too much has been said."""
        speaker = spam_key(notice)
        key: Key = (*speaker, notice.reason)
        combined = self._is_combined(key, notice.message, now)
        if combined:
            message = COMBINED + notice.message
            notice = msgspec.structs.replace(notice, message=message)
        else:
            key = (*key, notice.about.get("fieldPath", ""), notice.message)
        before = self._counted.get(key) or Counted(name, 0, now)
        counted = Counted(before.name, before.count + 1, before.first)
        self._counted.put(key, counted)
        if not self._may_speak(speaker, now):
            return None
        return CorrelatedEvent(notice, counted.name, counted.count, counted.first, combined)

    def _is_combined(self, key: Key, message: str, now: int) -> bool:
        """Whether so much like it was said, for the same reason, that it is said in one Event."""
        similar = self._similar.get(key)
        if similar is None or now - similar.last > SIMILAR_FOR:
            similar = Similar()
        similar.last = now
        similar.messages.setdefault(message)
        self._similar.put(key, similar)
        if len(similar.messages) < MAX_SIMILAR:
            return False
        # Upstream forgets any of them; here it is the oldest.
        del similar.messages[next(iter(similar.messages))]
        return True

    def _may_speak(self, key: Key, now: int) -> bool:
        allowance = self._allowances.get(key)
        if allowance is None:
            allowance = Allowance(SPAM_BURST * SPAM_REFILL, now)
            self._allowances.put(key, allowance)
        return allowance.take(now)


def spam_key(notice: Notice) -> Key:
    """Who speaks about what."""
    about = notice.about.get
    return (
        notice.reporter,
        notice.host,
        notice.type,
        about("kind", ""),
        about("namespace", ""),
        about("name", ""),
        about("uid", ""),
        about("apiVersion", ""),
    )
