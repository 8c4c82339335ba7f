"""Facts about objects: created, patched, deleted.

In memory a fact refers to the record that the store made and to the operation that asked for it.
In a line the object stands once, and the instances of a counted create refer to the line that
holds their operation.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

import msgspec
import orjson

from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin
from kubescene.api.patching.patches import diff_merge_patch
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.text.encoding import encode
from kubescene.timeline.facts import FactObject, LineReader, LineWriter
from kubescene.timeline.lines import NOTHING, Line, ReferringFact, Teller

OPERATION = "operation"
OBJECT = "object"


class ObjectState(Protocol):
    """An object at one moment: a `Record`, or what a line says of it."""

    @property
    def unversioned_data(self) -> bytes: ...
    @property
    def node(self) -> str: ...
    @property
    def deleting(self) -> bool: ...
    @property
    def phase(self) -> str: ...


class ObjectLine(Line, frozen=True, kw_only=True):
    """What a line about an object says instead of what its fact refers to."""

    api_version: str
    kind: str
    uid: str = ""
    operation: msgspec.Raw = NOTHING
    operation_of: int | None = None
    index: int | None = None
    body: msgspec.Raw = NOTHING
    object: msgspec.Raw = NOTHING

    @property
    def group_kind(self) -> tuple[str, str]:
        """What kind of object it is, in whatever version."""
        return self.api_version.rpartition("/")[0], self.kind


def _tell_kind(fact: "ObjectFact", writer: LineWriter, members: dict[str, Any]) -> None:
    members["apiVersion"], members["kind"] = fact.gvk.api_version, fact.gvk.kind


def _tell_asked(fact: "ObjectFact", writer: LineWriter, members: dict[str, Any]) -> None:
    """The operation; instances after the first refer to the line that has it."""
    origin = fact.origin
    if origin is None:
        return
    if origin.index is None:
        members["operation"] = msgspec.Raw(origin.operation)
        return
    place = writer.place_of(OPERATION, origin.operation)
    if place is None:
        writer.note(OPERATION, origin.operation)
        members["operation"] = msgspec.Raw(origin.operation)
    else:
        members["operationOf"] = place
    members["index"] = origin.index


def _tell_object(fact: "ObjectStored", writer: LineWriter, members: dict[str, Any]) -> None:
    writer.note(OBJECT, fact.record)
    members["object"] = msgspec.Raw(fact.record.unversioned_data)


def _tell_body(fact: "ObjectCreated", writer: LineWriter, members: dict[str, Any]) -> None:
    if fact.body:
        members["body"] = msgspec.Raw(fact.body)


def _tell_patch(fact: "ObjectPatched", writer: LineWriter, members: dict[str, Any]) -> None:
    if patch := fact.patch:
        members["body"] = msgspec.Raw(patch)


def _tell_nothing(fact: "ObjectPatched", writer: LineWriter, members: dict[str, Any]) -> None:
    """The state before a patch is not told."""


class ObjectFact(ReferringFact, frozen=True):
    """An accepted write.

    ``origin`` is the operation that asked for it, and says what was asked; without one a controller
    did, and ``body`` is what it sent.
    ``gvk`` is the version that the writer used.
    """

    refers: ClassVar[Mapping[str, Teller]] = {"gvk": _tell_kind, "origin": _tell_asked}
    sparse = frozenset({"namespace", "subresource"})
    line = ObjectLine

    gvk: GroupVersionKind
    namespace: str
    name: str
    uid: str
    subresource: str
    origin: OperationOrigin | None

    @property
    def key(self) -> FactObject:
        gvk = self.gvk
        return FactObject(gvk.api_version, gvk.kind, self.namespace, self.name, self.uid)

    @property
    def group_kind(self) -> tuple[str, str]:
        """What kind of object it is, in whatever version."""
        return self.gvk[::2]

    def objects(self) -> Iterable[FactObject]:
        return (self.key,)

    def target(self) -> dict[str, Any]:
        """The typeMeta and objectMeta that KEP-140 uses to name an object."""
        metadata = {"name": self.name}
        if self.namespace:
            metadata["namespace"] = self.namespace
        return {
            "typeMeta": {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind},
            "objectMeta": metadata,
        }

    @classmethod
    def referred(cls, line: ObjectLine, reader: LineReader) -> dict[str, Any]:
        gvk = GroupVersionKind.of(line.api_version, line.kind)
        return {"gvk": gvk, "origin": _origin(line, reader)}


class ObjectStored(ObjectFact, frozen=True):
    """A write that left an object behind; ``record`` is that."""

    refers: ClassVar[Mapping[str, Teller]] = {**ObjectFact.refers, "record": _tell_object}

    record: ObjectState

    @classmethod
    def referred(cls, line: ObjectLine, reader: LineReader) -> dict[str, Any]:
        found = super().referred(line, reader)
        return {**found, "record": state_of(line.object, found["gvk"])}


class ObjectKept(ObjectStored, frozen=True):
    """A node or pod that was there before the scenario, and stays. No event shows it."""


class ObjectCreated(ObjectStored, frozen=True):
    """``body`` is what a controller sent."""

    refers: ClassVar[Mapping[str, Teller]] = {**ObjectStored.refers, "body": _tell_body}

    body: bytes = b""

    @classmethod
    def referred(cls, line: ObjectLine, reader: LineReader) -> dict[str, Any]:
        return {**super().referred(line, reader), "body": bytes(line.body)}


class ObjectPatched(ObjectStored, frozen=True):
    """A patch, an update or a bind; ``record`` is the object after it."""

    refers: ClassVar[Mapping[str, Teller]] = {
        **ObjectStored.refers,
        "body": _tell_patch,
        "previous": _tell_nothing,
    }

    body: bytes = b""
    patch_type: str = ""
    previous: ObjectState | None = None
    """Set for an update, whose patch is worked out when somebody asks for it."""

    @property
    def patch(self) -> bytes:
        """What a controller sent; an update is the merge patch that would have done the same."""
        if self.previous is None:
            return self.body
        states = (self.previous, self.record)
        before, after = (orjson.loads(state.unversioned_data) for state in states)
        return orjson.dumps(diff_merge_patch(before, after))

    @classmethod
    def referred(cls, line: ObjectLine, reader: LineReader) -> dict[str, Any]:
        return {**super().referred(line, reader), "body": bytes(line.body)}


class ObjectDeleted(ObjectFact, frozen=True):
    """A deletion was accepted. ``marked``: grace or finalizers hold the object for now."""

    marked: bool = False


class StateInLine(msgspec.Struct, frozen=True, gc=False):
    """An object as a line holds it."""

    unversioned_data: bytes
    node: str = ""
    deleting: bool = False
    phase: str = ""


class _StoredMetadata(msgspec.Struct, frozen=True):
    deleted: str | None = msgspec.field(default=None, name="deletionTimestamp")


class _StoredSpec(msgspec.Struct, frozen=True):
    node: str = msgspec.field(default="", name="nodeName")


class _StoredStatus(msgspec.Struct, frozen=True):
    phase: str = ""


class _StoredPod(msgspec.Struct, frozen=True):
    metadata: _StoredMetadata = _StoredMetadata()
    spec: _StoredSpec = _StoredSpec()
    status: _StoredStatus = _StoredStatus()


def state_of(data: bytes | msgspec.Raw, gvk: GroupVersionKind) -> ObjectState:
    """The object of a line. Only of pods is more known than their bytes."""
    if gvk != POD:
        return StateInLine(bytes(data))
    pod = msgspec.json.decode(data, type=_StoredPod)
    deleting = pod.metadata.deleted is not None
    return StateInLine(bytes(data), pod.spec.node, deleting, pod.status.phase)


def _origin(line: ObjectLine, reader: LineReader) -> OperationOrigin | None:
    if operation := bytes(line.operation):
        return OperationOrigin(line.id, operation, line.index)
    if line.operation_of is None:
        return None
    first = reader.fact(line.operation_of, ObjectFact)
    if first.origin is None:
        raise msgspec.ValidationError(f"fact {line.operation_of} has no operation")
    return OperationOrigin(line.id, first.origin.operation, line.index)


def sent_body(body: Any) -> bytes:
    """What a writer sent, encoded now: it may change its own copy later."""
    return b"" if body is None else encode(body)
