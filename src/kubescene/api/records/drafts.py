"""Objects on their way into the store that are encoded already: all they lack is a revision.

Most writes hand the store an object. Whoever knows the encoding hands it a draft instead: `Parts`
if everything is encoded, `Rebuilt` if the owner of the object encodes it when it is asked to.
"""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from kubescene.api.records.parts import Payload, Sections
from kubescene.api.records.record import Record
from kubescene.types import JsonObject


class Parts(Struct, frozen=True):
    """An encoded object that is ``like`` another one, its predecessor or its sibling.

    Kind, namespace and owner are those of the other; the fields of a record are what the encoding
    says of them. ``obj`` is the decoded object but for its revision, if somebody has it.
    """

    like: Record
    metadata: bytes
    members: tuple[bytes, ...]
    name: str
    uid: str
    labels: dict[str, str]
    node: str
    phase: str
    deleting: bool = False
    obj: JsonObject | None = None

    def at(self, revision: int) -> Record:
        """The record of this revision."""
        like = self.like
        payload = like.payload
        assert isinstance(payload, Sections)
        return Record(
            like.resource,
            like.namespace,
            self.name,
            self.uid,
            revision,
            type(payload)(payload.head, revision, self.metadata, self.members),
            self.labels,
            self.node,
            self.phase,
            like.owner,
            self.deleting,
        )


class Rebuilt:
    """A record, how to make the encoding that replaces its own, and its phase then.

    The store may put it off (`Store.defer`). Its owner may set another phase as long as it
    ``waits``, that is until somebody reads the resource, or defers something else.
    """

    __slots__ = ("build", "phase", "record", "waits")
    obj = None

    def __init__(self, record: Record, build: Callable[[int], Payload], phase: str) -> None:
        self.record = record
        self.build = build
        self.phase = phase
        self.waits = False

    def at(self, revision: int) -> Record:
        """The record of this revision."""
        record = self.record
        return Record(
            record.resource,
            record.namespace,
            record.name,
            record.uid,
            revision,
            self.build(revision),
            record.labels,
            record.node,
            self.phase,
            record.owner,
            record.deleting,
        )


Draft: TypeAlias = Parts | Rebuilt


def changed(
    current: Record,
    members: tuple[bytes, ...],
    phase: str,
    *,
    metadata: bytes = b"",
    deleting: bool = False,
    obj: JsonObject | None = None,
) -> Parts:
    """The successor of a record on the same node, with the same labels."""
    payload = current.payload
    assert isinstance(payload, Sections)
    return Parts(
        current,
        metadata or payload.metadata,
        members,
        current.name,
        current.uid,
        current.labels,
        current.node,
        phase,
        deleting or current.deleting,
        obj,
    )
