"""Changes as they stand in a file, and records made of them again.

An entry holds the parts of a record (`kubescene.api.records.parts`), so that neither side decodes
an object. What need not be written again is not: a part that is still that of the version before,
and one that this file has told of another object. `EntryWriter` and `EntryReader` of one file keep
the same table of known parts by the same rule.

A Scenario's timeline only grows: an entry has what was added to it (`Growing`), so that the log of
a scenario is as long as its timeline, not as its square.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kubescene.api.records import Record
from kubescene.api.records.changes import ADDED, DELETED, MODIFIED, Change, ChangeType
from kubescene.api.records.parts import (
    Encoded,
    Growing,
    Part,
    Payload,
    PodSections,
    Sections,
    joined_part,
)
from kubescene.api.scheme import GroupResource

WHOLE, SECTIONS, POD, TUPLE = range(4)
"""The forms of a payload."""
SHORTEST_KNOWN, LONGEST_KNOWN = 48, 8192
MOST_KNOWN = 4096
"""Parts of such a length are told once in a file; after so many of them the table begins anew."""

TYPES = (ADDED, MODIFIED, DELETED)
NOTE = len(TYPES)


class ListGrowth(Struct, array_like=True, gc=False):
    """Elements of lists, each with the key of its list; ``extends``: added to what was there."""

    extends: bool
    elements: list[tuple[bytes, bytes]]


Told: TypeAlias = bytes | int | ListGrowth | None
"""A part: itself, its number in the table, what was added to it, or that it is as before."""


class Entry(Struct, array_like=True, gc=False):
    """One change, or a note (`NOTE`): then ``name`` is its name and its only part its text."""

    type: int
    revision: int
    group: str
    resource: str
    namespace: str
    name: str
    uid: str
    labels: dict[str, str] | None
    node: str
    phase: str
    owner: str
    deleting: bool
    form: int
    parts: list[Told]


class KnownParts:
    """What a file has told so far, by the rule that both sides follow."""

    def __init__(self) -> None:
        self.numbers: dict[bytes, int] = {}
        self.parts: list[bytes] = []

    def learn(self, part: bytes) -> None:
        """A part was told in full."""
        if SHORTEST_KNOWN <= len(part) <= LONGEST_KNOWN:
            if len(self.parts) >= MOST_KNOWN:
                self.numbers.clear()
                self.parts.clear()
            self.numbers[part] = len(self.parts)
            self.parts.append(part)


class EntryWriter:
    """Makes the entries of one file."""

    def __init__(self) -> None:
        self._known = KnownParts()
        self._resources: dict[GroupResource, tuple[str, str]] = {}

    def change(self, change: Change) -> Entry:
        return self._entry(TYPES.index(change.type), change.record, change.previous)

    def record(self, record: Record) -> Entry:
        """A record of a snapshot: all of it."""
        return self._entry(0, record, None)

    def note(self, name: str, text: bytes, revision: int) -> Entry:
        return Entry(NOTE, revision, "", "", "", name, "", None, "", "", "", False, WHOLE, [text])

    def _entry(self, type: int, record: Record, previous: Record | None) -> Entry:
        form, parts = taken_apart(record.payload)
        before: Sequence[Part] = ()
        labels: dict[str, str] | None = record.labels
        if previous is not None:
            old_form, old = taken_apart(previous.payload)
            before = old if old_form == form else ()
            labels = None if previous.labels is record.labels else labels
        told = [
            self._told(part, before[at] if at < len(before) else None)
            for at, part in enumerate(parts)
        ]
        return Entry(
            type,
            record.revision,
            record.resource.group,
            record.resource.resource,
            record.namespace,
            record.name,
            record.uid,
            labels,
            record.node,
            record.phase,
            record.owner,
            record.deleting,
            form,
            told,
        )

    def _told(self, part: Part, before: Part | None) -> Told:
        if part is before:
            return None
        if type(part) is bytes:
            text = part
        elif isinstance(part, Growing):
            extends, elements = part.added(before)
            return ListGrowth(extends, [*elements])
        else:
            text = joined_part(part)
        number = self._known.numbers.get(text)
        if number is not None:
            return number
        self._known.learn(text)
        return text


class EntryReader:
    """Makes records of the entries of one file, which must be read from its beginning."""

    def __init__(self) -> None:
        self._known = KnownParts()
        self._resources: dict[tuple[str, str], GroupResource] = {}

    def resource(self, entry: Entry) -> GroupResource:
        named = entry.group, entry.resource
        known = self._resources.get(named)
        if known is None:
            known = self._resources[named] = GroupResource(*named)
        return known

    def type(self, entry: Entry) -> ChangeType:
        return TYPES[entry.type]

    def record(self, entry: Entry, previous: Record | None) -> Record:
        """The record that an entry tells of; ``previous`` is the version before, if one was."""
        before: Sequence[Part] = ()
        if previous is not None:
            before = taken_apart(previous.payload)[1]
        parts = [self._part(told, at, before) for at, told in enumerate(entry.parts)]
        labels = entry.labels
        if labels is None:
            labels = {} if previous is None else previous.labels
        return Record(
            self.resource(entry),
            entry.namespace,
            entry.name,
            entry.uid,
            entry.revision,
            put_together(entry.form, parts, entry.revision),
            labels,
            entry.node,
            entry.phase,
            entry.owner,
            entry.deleting,
        )

    def _part(self, told: Told, at: int, before: Sequence[Part]) -> Part:
        if told is None:
            return before[at]
        if isinstance(told, int):
            return self._known.parts[told]
        if isinstance(told, bytes):
            self._known.learn(told)
            return told
        old = before[at] if told.extends else None
        return (old if isinstance(old, KeptLists) else KeptLists()).extended(told.elements)


class KeptLists(Encoded):
    """An object of lists that has grown, as far as one version has it."""

    __slots__ = ("_elements", "_stop")

    def __init__(self, elements: list[tuple[bytes, bytes]] | None = None, stop: int = 0) -> None:
        self._elements = [] if elements is None else elements
        self._stop = stop

    def extended(self, elements: Iterable[tuple[bytes, bytes]]) -> "KeptLists":
        """The next version. Only the newest is extended, so versions share one list."""
        assert self._stop == len(self._elements)
        self._elements.extend(elements)
        return KeptLists(self._elements, len(self._elements))

    def added(self, earlier: Part | None) -> tuple[bool, Iterable[tuple[bytes, bytes]]]:
        extends = isinstance(earlier, KeptLists) and earlier._elements is self._elements
        start = earlier._stop if extends and isinstance(earlier, KeptLists) else 0
        return extends, self._elements[start : self._stop]

    def __bytes__(self) -> bytes:
        lists: dict[bytes, list[bytes]] = {}
        for key, element in self._elements[: self._stop]:
            lists.setdefault(key, []).append(element)
        told = (b'"%b":[%b]' % (key, b",".join(lists[key])) for key in lists)
        return b"{%b}" % b",".join(told)

    def __len__(self) -> int:
        return self._stop


def taken_apart(payload: Payload) -> tuple[int, Sequence[Part]]:
    """The form of a payload, and its parts."""
    if isinstance(payload, Sections):
        form = POD if type(payload) is PodSections else SECTIONS
        return form, (payload.head, payload.metadata, *payload.members)
    if isinstance(payload, bytes):
        return WHOLE, (payload,)
    return TUPLE, payload


def put_together(form: int, parts: list[Part], revision: int) -> Payload:
    """The payload that `taken_apart` would take apart so."""
    if form == TUPLE:
        return tuple(parts)
    texts = [part for part in parts if isinstance(part, bytes)]
    if form == WHOLE:
        return texts[0]
    kind = PodSections if form == POD else Sections
    return kind(texts[0], revision, texts[1], tuple(texts[2:]))


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(list[Entry]).decode
