"""One accepted write, as everybody sees it who follows the world."""

from copy import deepcopy
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct

from kubescene.api.records.parts import left_size, unshared_size, whole_size
from kubescene.api.records.record import Record
from kubescene.types import JsonObject


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


ADDED, MODIFIED, DELETED = ChangeType
"""Names of their own: looking one up in its class takes ten times as long."""


class RecordDecoder(Protocol):
    """Decodes records, and perhaps remembers the newest of them."""

    def decoded(self, record: Record) -> JsonObject:
        """The decoded object, shared and therefore read-only."""
        ...


class Change(Struct, frozen=True, eq=False):
    """What subscribers and watches are told. Decoded objects are read-only."""

    type: ChangeType
    record: Record
    previous: Record | None
    _decoder: RecordDecoder

    @property
    def revision(self) -> int:
        return self.record.revision

    def kept_alive(self) -> int:
        """How many bytes there would be less if this change were forgotten.

        The newest state is the store's; a change keeps the state before, as far as the one after
        does not share it, and what is left of an object that is gone.
        """
        previous = self.previous
        if previous is None:
            return 0
        if self.type is DELETED:
            return self.size_before
        return unshared_size(previous.payload, self.record.payload)

    @property
    def size_before(self) -> int:
        """The bytes of the state before, whoever shares them."""
        previous = self.previous
        if previous is None:
            return 0
        size = whole_size(previous.payload)
        return size + left_size(previous.payload) if self.type is DELETED else size

    def read_by(self, decoder: RecordDecoder) -> "Change":
        """The same change for somebody with a decoder of their own."""
        return Change(self.type, self.record, self.previous, decoder)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Change":
        return self.read_by(deepcopy(self._decoder, memo))

    @property
    def object(self) -> JsonObject:
        """The object after the write; for a deletion, its last state."""
        return self._decoder.decoded(self.record)

    @property
    def previous_object(self) -> JsonObject | None:
        return None if self.previous is None else self._decoder.decoded(self.previous)

    def __repr__(self) -> str:
        record = self.record
        return (
            f"<{self.type} {record.resource} {record.namespace}/{record.name} @{record.revision}>"
        )
