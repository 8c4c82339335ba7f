"""Records from what a server sends: the bytes are kept, and only what is needed is decoded.

Items of a list name neither apiVersion nor kind when a real API server sends them; a record always
does.
"""

from typing import Any, NamedTuple, TypeAlias

import msgspec
import orjson

from kubescene.api import records
from kubescene.api.records import Record
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.text.encoding import encode
from kubescene.bounded import KEPT, BoundedDict
from kubescene.client.http.wire import MalformedResponseError
from kubescene.types import JsonObject

_NO_LABELS: dict[str, str] = {}


class ReplyForm(NamedTuple):
    """What the objects of a reply are."""

    resource: GroupResource
    gvk: GroupVersionKind


class Listed(NamedTuple):
    """An object and when it was created."""

    created: str
    record: Record

    @property
    def order(self) -> tuple[str, int]:
        """By creation, as far as can be told.

        Of objects of the same second, those that never changed come in the order of creation.
        """
        return self.created, self.record.revision


Items: TypeAlias = list[Listed]


class RecordPage(NamedTuple):
    """A list, or a part of one: ``next`` is the token of the next part."""

    items: Items
    revision: int
    next: str


class _RecordOwner(msgspec.Struct, gc=False):
    uid: str = ""
    controller: bool | None = None


class _RecordMetadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    revision: str = msgspec.field(default="", name="resourceVersion")
    created: str | None = msgspec.field(default=None, name="creationTimestamp")
    deleted: str | None = msgspec.field(default=None, name="deletionTimestamp")
    labels: dict[str, str] | None = None
    owners: list[_RecordOwner] | None = msgspec.field(default=None, name="ownerReferences")

    @property
    def controller(self) -> str:
        return next((owner.uid for owner in self.owners or () if owner.controller), "")


class _RecordSpec(msgspec.Struct, gc=False):
    node: str | None = msgspec.field(default=None, name="nodeName")


class _RecordStatus(msgspec.Struct, gc=False):
    phase: str | None = None


class _RecordObject(msgspec.Struct):
    """As much of an object as a record repeats."""

    metadata: _RecordMetadata
    api_version: str = msgspec.field(default="", name="apiVersion")
    kind: str = ""
    spec: _RecordSpec | None = None
    status: _RecordStatus | None = None


class _ListMeta(msgspec.Struct):
    revision: str = msgspec.field(default="", name="resourceVersion")
    next: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _ListMeta


_OBJECT = msgspec.json.Decoder(_RecordObject)
_LIST = msgspec.json.Decoder(_List)
_EVENT = msgspec.json.Decoder(WatchEvent)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)


def parse_event(line: bytes) -> WatchEvent:
    try:
        return _EVENT.decode(line)
    except msgspec.DecodeError as error:
        raise MalformedResponseError(f"a line of the watch is no event: {error}") from None


def parse_bookmark(data: msgspec.Raw) -> int:
    """How far a watch has come."""
    try:
        return parse_revision(_BOOKMARK.decode(data).metadata.revision)
    except msgspec.DecodeError as error:
        raise MalformedResponseError(f"a bookmark cannot be read: {error}") from None


def parse_list(form: ReplyForm, data: bytes) -> RecordPage:
    try:
        found = _LIST.decode(data)
    except msgspec.DecodeError as error:
        raise MalformedResponseError(f"it is not a list: {error}") from None
    items = [parse_object(form, bytes(item)) for item in found.items or ()]
    return RecordPage(items, parse_revision(found.metadata.revision), found.metadata.next)


def parse_revision(text: str) -> int:
    """A ``resourceVersion`` as the number that it is since Kubernetes 1.35; none is 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()):
        raise MalformedResponseError(f"the resourceVersion {text[:60]!r} is not a number")
    return int(text)


def parse_object(form: ReplyForm, data: bytes) -> Listed:
    """The record of an object as it was received."""
    try:
        found = _OBJECT.decode(data)
    except msgspec.ValidationError:
        return _parse_unusual(form, data)
    except msgspec.DecodeError as error:
        raise MalformedResponseError(f"an object cannot be read: {error}") from None
    metadata = found.metadata
    if not metadata.name:
        raise MalformedResponseError(f"a {form.gvk.kind} has no name")
    record = Record(
        resource=form.resource,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        revision=parse_revision(metadata.revision),
        payload=data if found.api_version and found.kind else _named(form.gvk, data),
        labels=metadata.labels or _NO_LABELS,
        node=(found.spec and found.spec.node) or "",
        phase=(found.status and found.status.phase) or "",
        owner=metadata.controller,
        deleting=metadata.deleted is not None,
    )
    return Listed(metadata.created or "", record)


def _named(gvk: GroupVersionKind, data: bytes) -> bytes:
    """The object with its apiVersion and kind in front."""
    return encode({**_head(gvk), **orjson.loads(data), **_head(gvk)})


def _head(gvk: GroupVersionKind) -> dict[str, str]:
    return {"apiVersion": gvk.api_version, "kind": gvk.kind}


def _parse_unusual(form: ReplyForm, data: bytes) -> Listed:
    """Custom objects may hold anything where a pod has its node or phase."""
    obj = orjson.loads(data)
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise MalformedResponseError(f"a {form.gvk.kind} has no name")
    revision = parse_revision(str(metadata.get("resourceVersion") or ""))
    record = records.make_record(form.resource, {**_head(form.gvk), **obj}, revision)
    return Listed(str(metadata.get("creationTimestamp") or ""), record)


class DecodedObjects:
    """Decodes records and remembers the newest: handlers of one change share its object."""

    def __init__(self, kept: int = KEPT) -> None:
        self._objects: BoundedDict[tuple[Any, ...], JsonObject] = BoundedDict(kept)

    def decoded(self, record: Record) -> JsonObject:
        """The decoded object, shared and therefore read-only."""
        key = (record.resource, record.namespace, record.name, record.revision)
        found = self._objects.get(key)
        if found is None:
            found = self._objects[key] = record.decode()
        return found
