"""One accepted write, as everybody sees it who follows the world."""

from enum import StrEnum
from typing import Protocol

from kubescene.api.records import Record
from kubescene.types import JsonObject


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Decoder(Protocol):
    """Decodes records, and perhaps remembers the newest of them."""

    def decoded(self, record: Record) -> JsonObject:
        """The decoded object, shared and therefore read-only."""
        ...


class Change:
    """What subscribers and watches are told. Decoded objects are read-only."""

    __slots__ = ("_decoder", "previous", "record", "type")

    def __init__(
        self, change_type: ChangeType, record: Record, previous: Record | None, decoder: Decoder
    ) -> None:
        self.type = change_type
        self.record = record
        self.previous = previous
        self._decoder = decoder

    @property
    def revision(self) -> int:
        return self.record.revision

    @property
    def size(self) -> int:
        """Bytes of its own; fragments are shared with other records and count as nothing."""
        payload = self.record.payload
        return len(payload) if isinstance(payload, bytes) else 0

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
