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

    @property
    def key(self) -> tuple[str, str]:
        return (self.like.namespace, self.name)

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

    def object_at(self, revision: int) -> JsonObject | None:
        """The decoded object of this revision, if it is known."""
        obj = self.obj
        if obj is None:
            return None
        return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


class Rebuilt:
    """A record, how to make the encoding that replaces its own, and its phase then.

    The store may put it off (`Store.defer`). Its owner may set another phase as long as it
    ``waits``, that is until somebody reads the resource, or defers something else.
    """

    __slots__ = ("build", "phase", "record", "waits")

    def __init__(self, record: Record, build: Callable[[int], Payload], phase: str) -> None:
        self.record = record
        self.build = build
        self.phase = phase
        self.waits = False

    @property
    def key(self) -> tuple[str, str]:
        return self.record.key

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

    def object_at(self, revision: int) -> None:
        """Nobody has it decoded."""


Draft: TypeAlias = Parts | Rebuilt


def changed(
    current: Record,
    members: tuple[bytes, ...],
    phase: str,
    *,
    metadata: bytes | None = None,
    obj: JsonObject | None = None,
    node: str | None = None,
    labels: dict[str, str] | None = None,
    deleting: bool | None = None,
) -> Parts:
    """The successor of a record: whatever is not given stays as it is."""
    payload = current.payload
    assert isinstance(payload, Sections)
    return Parts(
        current,
        payload.metadata if metadata is None else metadata,
        members,
        current.name,
        current.uid,
        current.labels if labels is None else labels,
        current.node if node is None else node,
        phase,
        current.deleting if deleting is None else deleting,
        obj,
    )
