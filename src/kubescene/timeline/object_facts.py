"""Facts about objects: created, patched, deleted.

In memory a fact refers to the record that the store made and to the operation that asked for it.
In a line the object stands once, and the instances of a counted create refer to the line that
holds their operation.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any, Protocol, Self

import msgspec
import orjson

from kubescene.actors import Role
from kubescene.api.kinds import POD
from kubescene.api.options import OperationOrigin
from kubescene.api.patching.patches import diff_merge_patch
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.text.encoding import encode
from kubescene.clock import ScenarioStep
from kubescene.timeline.facts import Fact, ObjectKey
from kubescene.timeline.lines import LineReader, LineWriter

OPERATION = "operation"
OBJECT = "object"
OBJECT_BEGINS = b',"object":'


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


class ObjectFact(Fact, frozen=True):
    """An accepted write.

    ``origin`` is the operation that asked for it, and says what was asked; without one a controller
    did, and ``body`` is what it sent.
    ``gvk`` is the version that the writer used.
    """

    gvk: GroupVersionKind
    namespace: str
    name: str
    uid: str
    subresource: str
    origin: OperationOrigin | None

    @property
    def key(self) -> ObjectKey:
        gvk = self.gvk
        return ObjectKey(gvk.api_version, gvk.kind, self.namespace, self.name, self.uid)

    def objects(self) -> Iterable[ObjectKey]:
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

    def to_line(self, writer: LineWriter) -> bytes:
        line = writer.begin(self)
        name, uid = orjson.dumps(self.name), orjson.dumps(self.uid)
        line += (_named(self.gvk, self.namespace), name, b',"uid":', uid)
        if self.subresource:
            line += (b',"subresource":', orjson.dumps(self.subresource))
        if self.origin is not None:
            line += _asked(self.origin, writer)
        line += self._told(writer)
        return b"".join(line)

    def _told(self, writer: LineWriter) -> tuple[bytes, ...]:
        """What the kind adds to its line, in parts, and its end."""
        raise NotImplementedError

    @classmethod
    def from_line(cls, line: bytes, reader: LineReader) -> Self:
        seen = msgspec.json.decode(line, type=ObjectLine)
        gvk = GroupVersionKind.of(seen.api_version, seen.kind)
        return cls(
            id=seen.id,
            step=seen.step,
            time=seen.time,
            actor=seen.actor,
            role=seen.role,
            gvk=gvk,
            namespace=seen.namespace,
            name=seen.name,
            uid=seen.uid,
            subresource=seen.subresource,
            origin=_origin(seen, reader),
            **cls._seen(seen, gvk),
        )

    @classmethod
    def _seen(cls, line: "ObjectLine", gvk: GroupVersionKind) -> dict[str, Any]:
        """The inverse of `_told`."""
        del line, gvk
        return {}


class ObjectCreated(ObjectFact, frozen=True):
    """``record`` is what was stored."""

    record: ObjectState
    body: bytes = b""

    def _told(self, writer: LineWriter) -> tuple[bytes, ...]:
        writer.note(OBJECT, self.record)
        return (*_sent(self.body), OBJECT_BEGINS, self.record.unversioned_data, b"}")

    @classmethod
    def _seen(cls, line: "ObjectLine", gvk: GroupVersionKind) -> dict[str, Any]:
        return {"body": bytes(line.body), "record": state_of(line.object, gvk)}


class ObjectKept(ObjectFact, frozen=True):
    """A node or pod that was there before the scenario, and stays. No event shows it."""

    record: ObjectState

    def _told(self, writer: LineWriter) -> tuple[bytes, ...]:
        del writer
        return (OBJECT_BEGINS, self.record.unversioned_data, b"}")

    @classmethod
    def _seen(cls, line: "ObjectLine", gvk: GroupVersionKind) -> dict[str, Any]:
        return {"record": state_of(line.object, gvk)}


class ObjectPatched(ObjectFact, frozen=True):
    """A patch, an update or a bind; ``record`` is the object after it."""

    record: ObjectState
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

    def _told(self, writer: LineWriter) -> tuple[bytes, ...]:
        writer.note(OBJECT, self.record)
        begins = _typed(self.patch_type) if self.patch_type else OBJECT_BEGINS
        return (*_sent(self.patch), begins, self.record.unversioned_data, b"}")

    @classmethod
    def _seen(cls, line: "ObjectLine", gvk: GroupVersionKind) -> dict[str, Any]:
        return {
            "body": bytes(line.body),
            "patch_type": line.patch_type,
            "record": state_of(line.object, gvk),
        }


class ObjectDeleted(ObjectFact, frozen=True):
    """A deletion was accepted. ``marked``: grace or finalizers hold the object for now."""

    marked: bool = False

    def _told(self, writer: LineWriter) -> tuple[bytes, ...]:
        del writer
        return (b',"marked":true}' if self.marked else b"}",)

    @classmethod
    def _seen(cls, line: "ObjectLine", gvk: GroupVersionKind) -> dict[str, Any]:
        del gvk
        return {"marked": line.marked}


class ObjectLine(msgspec.Struct, frozen=True, rename="camel"):
    """A line about an object, as it is read."""

    id: str
    step: ScenarioStep
    time: int
    actor: str
    role: Role
    api_version: str
    kind: str
    name: str
    uid: str = ""
    namespace: str = ""
    subresource: str = ""
    operation: msgspec.Raw = msgspec.Raw()
    operation_of: int | None = None
    index: int | None = None
    body: msgspec.Raw = msgspec.Raw()
    patch_type: str = ""
    marked: bool = False
    object: msgspec.Raw = msgspec.Raw()


class ToldState(msgspec.Struct, frozen=True, gc=False):
    """An object as a line holds it."""

    unversioned_data: bytes
    node: str = ""
    deleting: bool = False
    phase: str = ""


class _Metadata(msgspec.Struct, frozen=True):
    deleted: str | None = msgspec.field(default=None, name="deletionTimestamp")


class _Spec(msgspec.Struct, frozen=True):
    node: str = msgspec.field(default="", name="nodeName")


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def state_of(data: bytes | msgspec.Raw, gvk: GroupVersionKind) -> ObjectState:
    """The object of a line. Only of pods is more known than their bytes."""
    if gvk != POD:
        return ToldState(bytes(data))
    pod = msgspec.json.decode(data, type=_Pod)
    deleting = pod.metadata.deleted is not None
    return ToldState(bytes(data), pod.spec.node, deleting, pod.status.phase)


@lru_cache(1024)
def _named(gvk: GroupVersionKind, namespace: str) -> bytes:
    """What stands before the name: the same for many objects."""
    told = {"apiVersion": gvk.api_version, "kind": gvk.kind}
    if namespace:
        told["namespace"] = namespace
    return b',%b,"name":' % orjson.dumps(told)[1:-1]


@cache
def _typed(patch_type: str) -> bytes:
    """What stands between a patch and the object; there are few types."""
    return b',"patchType":%b%b' % (orjson.dumps(patch_type), OBJECT_BEGINS)


def _asked(origin: OperationOrigin, writer: LineWriter) -> tuple[bytes, ...]:
    """The operation; instances after the first refer to the line that has it."""
    if origin.index is None:
        return (b',"operation":', origin.operation)
    index = b',"index":%d' % origin.index
    place = writer.place_of(OPERATION, origin.operation)
    if place is not None:
        return (b',"operationOf":%d' % place, index)
    writer.note(OPERATION, origin.operation)
    return (b',"operation":', origin.operation, index)


def _origin(line: ObjectLine, reader: LineReader) -> OperationOrigin | None:
    if operation := bytes(line.operation):
        return OperationOrigin(line.id, operation, line.index)
    if line.operation_of is None:
        return None
    first = reader.fact(line.operation_of, ObjectFact)
    if first.origin is None:
        raise msgspec.ValidationError(f"fact {line.operation_of} has no operation")
    return OperationOrigin(line.id, first.origin.operation, line.index)


def _sent(data: bytes) -> tuple[bytes, ...]:
    return (b',"body":', data) if data else ()


def sent_body(body: Any) -> bytes:
    """What a writer sent, encoded now: it may change its own copy later."""
    return b"" if body is None else encode(body)
