"""What a watch has told so far, so that it can be told what a change replaced.

The cache decides what a change is: an object that it does not hold is ADDED, whatever the server
calls it. After a gap the state is listed anew, and the difference is told as changes.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from kubescene.api.records import Record, make_record, versioned
from kubescene.api.records.changes import Change, ChangeType, Decoder
from kubescene.client.http.records import Items
from kubescene.client.interfaces import Objects

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class Arrival(NamedTuple):
    """Something that the server said: that an object is, or is no more, or how far it has come.

    ``revision`` is how far the watch has come with it; 0 where that is not known.
    """

    record: Record | None
    is_gone: bool
    revision: int


class Cache:
    """The objects of one kind, in the order in which they were first heard of."""

    def __init__(self, decoder: Decoder) -> None:
        self.records: dict[Key, Record] = {}
        self._decoder = decoder

    def apply(self, arrival: Arrival) -> Change | None:
        """Take over what was said; None if nobody needs to hear of it."""
        record = arrival.record
        if record is None:
            return None
        previous = self.records.get(record.key)
        if arrival.is_gone:
            return None if previous is None else self._removed(record, previous)
        self.records[record.key] = record
        kind = ChangeType.ADDED if previous is None else ChangeType.MODIFIED
        return Change(kind, record, previous, self._decoder)

    def difference(self, items: Items, revision: int) -> Iterator[Arrival]:
        """What must have happened if these are all objects at ``revision``."""
        now = {listed.record.key: listed for listed in items}
        for key, known in self.records.items():
            found = now.get(key)
            if found is None or found.record.uid != known.uid:
                yield Arrival(at_revision(known, revision), is_gone=True, revision=0)
        for listed in sorted(now.values(), key=lambda listed: listed.order):
            record = listed.record
            held = self.records.get(record.key)
            if held is None or held.uid != record.uid or held.revision != record.revision:
                yield Arrival(record, is_gone=False, revision=0)
        yield Arrival(None, is_gone=False, revision=revision)

    def as_added(self) -> Iterable[Change]:
        """All that exists, for somebody who joins late."""
        return [Change(ChangeType.ADDED, it, None, self._decoder) for it in self.records.values()]

    def owned(self, owner_uid: str) -> Objects:
        """Objects whose managing controller has this uid, in order of creation."""
        held = self.records.values()
        return [self._decoder.decoded(record) for record in held if record.owner == owner_uid]

    def _removed(self, record: Record, previous: Record) -> Change:
        del self.records[record.key]
        return Change(ChangeType.DELETED, record, previous, self._decoder)


def at_revision(record: Record, revision: int) -> Record:
    """The last state of an object, at the revision at which it was found to be gone."""
    return make_record(record.resource, versioned(record.decode(), revision), revision)
