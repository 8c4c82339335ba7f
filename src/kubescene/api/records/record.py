"""A stored object: encoded JSON plus the few fields that are asked for all the time.

Bytes first, since a decoded pod costs five times the memory and a garbage collection over dicts
takes half a second at 20,000 pods. List, watch and log share the same bytes. The encoding
puts ``metadata.resourceVersion`` in a place that can be cut out again, because results omit it.

What is stored is in parts (`parts`), joined when somebody reads it. A payload may also be a tuple
of parts that its owner encodes. The Scenario uses it: a phase change rewrites two small parts and
shares the large ones.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
import orjson

from kubescene.api.records import parts
from kubescene.api.records.parts import (
    Composite,
    PodSections,
    Sections,
    generation_part,
    joined,
    metadata_part,
    spec_part,
    whole_size,
)
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.api.text import pieces
from kubescene.api.text.encoding import encode
from kubescene.types import JsonObject

Payload: TypeAlias = parts.Payload

_REVISION_FIELD = b'"resourceVersion":"'
_FINALIZERS = b'"finalizers":['
_NO_LABELS: dict[str, str] = {}


class Record(msgspec.Struct, frozen=True, gc=False):
    """Immutable. ``gc=False`` is sound: a record refers to strings, bytes and a flat dict only."""

    resource: GroupResource
    namespace: str
    name: str
    uid: str
    revision: int
    payload: Payload
    labels: dict[str, str]
    node: str = ""
    phase: str = ""
    owner: str = ""
    deleting: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)

    @property
    def data(self) -> bytes:
        """The whole object as JSON, ``resourceVersion`` included."""
        payload = self.payload
        if not isinstance(payload, Sections):
            return joined(payload)
        # Every watcher asks; most of them find it joined.
        whole = payload.joined
        return payload.data if whole is None else whole

    @property
    def unversioned_data(self) -> bytes:
        """The object as JSON without ``resourceVersion``: what results and exports hold."""
        payload = self.payload
        return payload.unversioned if isinstance(payload, Sections) else cut_revision(self.data)

    @property
    def body_key(self) -> tuple[bytes, ...] | None:
        """The same for objects that are equal but for metadata; None if nobody can tell cheaply."""
        payload = self.payload
        return payload.members if isinstance(payload, Sections) else None

    @property
    def pod_key(self) -> tuple[bytes, bytes, bytes] | None:
        """Of a pod the same for equal specs (but for the node), statuses and generations."""
        payload = self.payload
        if type(payload) is not PodSections:
            return None
        return payload.members[0], payload.members[2], generation_part(payload)

    @property
    def status_key(self) -> bytes | None:
        """Of a pod the same for equal statuses; `status_of_key` reads it."""
        payload = self.payload
        return payload.members[2] if type(payload) is PodSections else None

    @property
    def spec_key(self) -> bytes | None:
        """The same for equal specs, of pods but for the node; None if nobody can tell cheaply."""
        return spec_part(self.payload)

    @property
    def generation(self) -> int | None:
        """That of metadata, 0 if there is none; None if it is not known without decoding."""
        payload = self.payload
        return int(generation_part(payload) or 0) if isinstance(payload, Sections) else None

    @property
    def gvk(self) -> GroupVersionKind | None:
        """The kind, if it is known without decoding the object."""
        payload = self.payload
        return _kind(payload.head) if isinstance(payload, Sections) else None

    @property
    def is_large(self) -> bool:
        """Whether writing the object takes so long that an event loop should not wait for it."""
        payload = self.payload
        if isinstance(payload, Composite):
            return payload.is_large
        return whole_size(payload) > pieces.PIECE

    @property
    def has_essence(self) -> bool:
        """Whether its owner keeps a large part apart."""
        return isinstance(self.payload, Composite)

    @property
    def outline(self) -> bytes | None:
        """The object without its large part; None if it has none."""
        return self.payload.outline if isinstance(self.payload, Composite) else None

    @property
    def essence(self) -> bytes | None:
        """Metadata and status without the large part; None if it has none."""
        return self.payload.essence if isinstance(self.payload, Composite) else None

    def holds(self, part: bytes) -> bool:
        """Whether this very part is one of those that its owner put together."""
        payload = self.payload
        return isinstance(payload, tuple) and any(each is part for each in payload)

    def metadata_mentions(self, text: bytes) -> bool:
        """Whether a JSON text such as a member's name occurs in metadata; cheap, so it may not
        know, and look at all of the object, but never at parts that take long to encode."""
        part = metadata_part(self.payload)
        return text in (part if isinstance(part, bytes) else self.data)

    def members_mention(self, text: bytes) -> bool:
        """The same for what is not metadata; it may include these."""
        payload = self.payload
        return payload.members_mention(text) if isinstance(payload, Sections) else text in self.data

    def decode(self) -> JsonObject:
        """A fresh decoded object."""
        decoded: JsonObject = pieces.loads(self.data)
        return decoded

    def __deepcopy__(self, memo: object) -> "Record":
        return self


def _kind(head: bytes) -> GroupVersionKind:
    opening = orjson.loads(head + b"}}")
    return GroupVersionKind.of(opening["apiVersion"], opening["kind"])


def same_metadata(record: Record, previous: Record | None) -> bool:
    """Whether all metadata but the revision are known to be the same; cheap, so it may not know."""
    if previous is None:
        return False
    payload, before = record.payload, previous.payload
    if isinstance(payload, Sections) and isinstance(before, Sections):
        return payload.metadata is before.metadata
    part = metadata_part(payload)
    return part is not None and part is metadata_part(before)


def may_be_held(record: Record) -> bool:
    """Whether an object has finalizers; cheap, so it may not know."""
    return record.metadata_mentions(_FINALIZERS)


def cut_revision(data: bytes) -> bytes:
    """Drop ``metadata.resourceVersion`` from an encoding made by `encode`."""
    start = data.index(_REVISION_FIELD)
    end = data.index(b'"', start + len(_REVISION_FIELD)) + 1
    if data[end : end + 1] == b",":
        end += 1
    return data[:start] + data[end:]


def versioned(obj: Mapping[str, Any], revision: int) -> JsonObject:
    """A copy that carries its revision, with apiVersion, kind, metadata and revision in front."""
    metadata = {"resourceVersion": str(revision)} | obj["metadata"]
    metadata["resourceVersion"] = str(revision)
    copy: JsonObject = {"apiVersion": "", "kind": "", "metadata": metadata, **obj}
    copy["metadata"] = metadata
    return copy


def make_record(
    resource: GroupResource, obj: JsonObject, revision: int, payload: Payload | None = None
) -> Record:
    """The record of an object that `versioned` returned, encoded unless its payload is given."""
    metadata = obj["metadata"]
    return Record(
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        revision=revision,
        payload=encode(obj) if payload is None else payload,
        labels=metadata.get("labels") or _NO_LABELS,
        node=_text(obj, "spec", "nodeName"),
        phase=_text(obj, "status", "phase"),
        owner=controller_uid(metadata),
        deleting="deletionTimestamp" in metadata,
    )


def successor(previous: Record, obj: JsonObject, revision: int, payload: Payload) -> Record:
    """`make_record` for an object with the metadata of ``previous``, but for the revision."""
    return Record(
        previous.resource,
        previous.namespace,
        previous.name,
        previous.uid,
        revision,
        payload,
        previous.labels,
        _text(obj, "spec", "nodeName"),
        _text(obj, "status", "phase"),
        previous.owner,
        previous.deleting,
    )


def sharing(previous: Record | None, obj: JsonObject, revision: int) -> Record | None:
    """`make_record` for an edit of ``previous`` that has a large part, which is shared.

    None if there is none, or if more was edited than its author may.
    """
    if previous is None or not isinstance(previous.payload, Composite):
        return None
    payload = previous.payload.succeed(obj, revision)
    return None if payload is None else make_record(previous.resource, obj, revision, payload)


def controller_uid(metadata: Mapping[str, Any]) -> str:
    """The uid of the managing owner, or an empty string."""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid", ""))
    return ""


def _text(obj: JsonObject, part: str, field: str) -> str:
    section = obj.get(part)
    value = section.get(field) if isinstance(section, dict) else None
    return value if isinstance(value, str) else ""
