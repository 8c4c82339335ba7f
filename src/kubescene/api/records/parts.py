"""Encoded objects in parts, so that a write encodes what it changes and shares the rest.

`Sections` is the encoding of an ordinary object: head, revision, the rest of metadata, then one
part for each other member, in order. The spec of a pod is followed by its node as a part of its
own, since that is what a binding adds. Joined, they are what encoding the whole object gives.

Encoding is cheap, keeping is not: equal parts are kept once. A binding or a status leaves the
other parts of a pod as they were, and a thousand pods of one template have one spec and report one
status.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec
import orjson

from kubescene.api.text import pieces
from kubescene.types import JsonObject, JsonValue

PARTS_SHARED = 4096
LONGEST_SHARED = 4096
_IN_HEAD = 3
_END = b"}"
_NODE = "nodeName"
_SPEC = b',"spec":{'
_STATUS = b',"status":{'
_POD_MEMBERS = 4
_NOMINATION = b'"nominatedNodeName"'
_LAST_NOMINATION = b',"nominatedNodeName":"'
_GENERATION = re.compile(rb'"generation":(\d+)')
"""Nothing else in metadata is called so and is a number."""
_OPENINGS = {"spec": b',"spec":', "status": b',"status":'}


class Encoded(Protocol):
    """A part that is turned into bytes when somebody reads it, such as a log that grows."""

    def __bytes__(self) -> bytes: ...


Part: TypeAlias = bytes | Encoded | tuple[bytes, ...]


@runtime_checkable
class Growing(Encoded, Protocol):
    """A part that is the text of an object of lists, to whose ends elements are added."""

    def added(self, earlier: Part | None) -> tuple[bool, Iterable[tuple[bytes, bytes]]]:
        """What it has more than an earlier version, as keys and elements; whether it extends it.

        If it does not, all that it has.
        """
        ...


class Composite(tuple[Part, ...]):
    """Parts that their owner put together, one of them large: it need not be read every time.

    The owner subclasses this. Records that somebody else makes of such an object (an edit, its
    removal) share the large part by `succeed`.
    """

    @property
    def is_large(self) -> bool:
        """Whether joining it takes so long that nobody should wait for it."""
        raise NotImplementedError

    @property
    def left_size(self) -> int:
        """About how many bytes the large part takes when nobody makes it grow any more."""
        raise NotImplementedError

    @property
    def outline(self) -> bytes:
        """The object without the large part."""
        raise NotImplementedError

    @property
    def essence(self) -> bytes:
        """Metadata and status without the large part: what tables and onlookers need."""
        raise NotImplementedError

    def succeed(self, obj: JsonObject, revision: int) -> "Composite | None":
        """The payload of an edited object; None if more was edited than its author may."""
        raise NotImplementedError


class Sections(msgspec.Struct, gc=False, eq=False):
    """The encoding of one object. ``gc=False`` is sound: it refers to bytes only."""

    head: bytes
    revision: int
    metadata: bytes
    members: tuple[bytes, ...]
    joined: bytes | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sections) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]  # equal by content, which is large

    @property
    def data(self) -> bytes:
        """The whole object, joined once however many read it."""
        joined = self.joined
        if joined is None:
            revision = b'"resourceVersion":"%d"' % self.revision
            comma = b"" if self.metadata == _END else b","
            parts = (self.head, revision, comma, self.metadata, *self.members)
            joined = self.joined = b"".join(parts)
        return joined

    @property
    def unversioned(self) -> bytes:
        """The object without its revision; made anew each time."""
        return b"".join((self.head, self.metadata, *self.members))

    def members_mention(self, text: bytes) -> bool:
        """Whether a text that begins and ends inside a member occurs beside metadata."""
        for part in self.members:
            if part_mentions(part, text) if len(part) <= LONGEST_SHARED else text in part:
                return True
        return False


class PodSections(Sections, gc=False, eq=False):
    """The encoding of a pod that has a spec and a status, and nothing else.

    Its members are the spec up to the node, the rest of the spec, the status and the end.
    """


Payload: TypeAlias = bytes | Sections | tuple[Part, ...]
"""A tuple is for owners who encode themselves: head, revision, rest of metadata, then anything."""
PodMembers: TypeAlias = tuple[bytes, bytes, bytes, bytes]
UNPLACED = _END
"""What a spec ends with whose pod has no node."""


def joined(payload: Payload) -> bytes:
    """The JSON text."""
    if isinstance(payload, Sections):
        return payload.data
    return payload if isinstance(payload, bytes) else pieces.joined(map(joined_part, payload))


def joined_part(part: Part) -> bytes:
    return b"".join(part) if isinstance(part, tuple) else bytes(part)


@lru_cache(PARTS_SHARED)
def part_mentions(part: bytes, text: bytes) -> bool:
    """Shared parts are asked the same question for each object that has them."""
    return text in part


def metadata_part(payload: Payload) -> Part | None:
    """The part that holds all metadata but the revision; None if there is no such part."""
    if isinstance(payload, Sections):
        return payload.metadata
    return payload[2] if isinstance(payload, tuple) and len(payload) > 2 else None


def spec_part(payload: Payload) -> bytes | None:
    """The part that holds the spec, of a pod up to its node."""
    if isinstance(payload, Sections):
        for part in payload.members:
            if part.startswith(_SPEC):
                return part
    return None


def pod_members(payload: Payload) -> PodMembers | None:
    """Spec up to the node, the rest of the spec, status and the end, of a pod with just these."""
    if type(payload) is not PodSections:
        return None
    return payload.members  # type: ignore[return-value]  # it has these four


def ends_with_status(sections: Sections) -> bool:
    """Whether the last member of an object is its status."""
    members = sections.members
    return len(members) > 1 and members[-2].startswith(_STATUS)


def restated(sections: Sections, status: JsonObject) -> tuple[bytes, ...]:
    """The members of an object that ends with its status, with another one."""
    return restated_as(sections, pod_status(status))


def restated_as(sections: Sections, status: bytes) -> tuple[bytes, ...]:
    """The same with a status that is encoded already."""
    return (*sections.members[:-2], status, _END)


def _is_pod(members: list[bytes]) -> bool:
    """Whether these are the members of a pod that was encoded with its node apart."""
    is_all = len(members) == _POD_MEMBERS
    return is_all and members[0].startswith(_SPEC) and members[2].startswith(_STATUS)


def generation_part(sections: Sections) -> bytes:
    """The generation that metadata tell, as it is written there; empty if they tell none."""
    found = _GENERATION.search(sections.metadata)
    return b"" if found is None else found[1]


def pod_node(name: str) -> bytes:
    """The rest of a spec that ends with this node."""
    return b',"nodeName":%b}' % orjson.dumps(name)


assigned_node = lru_cache(PARTS_SHARED)(pod_node)
"""The same, made once for each node that pods are bound to."""


def pod_status(status: JsonObject) -> bytes:
    """The part that holds a status."""
    return _OPENINGS["status"] + orjson.dumps(status)


def status_of(part: bytes) -> JsonObject:
    """What such a part holds."""
    status: JsonObject = orjson.loads(part[len(_OPENINGS["status"]) :])
    return status


def nominating(status: bytes, node: str) -> bytes:
    """The part that holds a status, with a nomination as its last member."""
    return b'%b,"nominatedNodeName":%b}' % (status[:-1], orjson.dumps(node))


def split_nomination(status: bytes) -> tuple[bytes, str] | None:
    """The part without the nomination, and that node; None if it is not the last member, or empty.

    Quotes inside of texts are escaped: what looks like the member is it.
    """
    if _NOMINATION not in status:
        return status, ""
    at = status.rfind(_LAST_NOMINATION)
    node = status[at + len(_LAST_NOMINATION) : -2]
    plain = at >= 0 and status.endswith(b'"}') and b'"' not in node and b"\\" not in node
    if not (plain and node):
        return None
    return status[:at] + _END, node.decode()


def pod_spec(part: bytes) -> JsonObject:
    """What the part of a spec up to the node holds."""
    spec: JsonObject = orjson.loads(part[len(_OPENINGS["spec"]) :] + _END)
    return spec


def metadata_of(part: bytes) -> JsonObject:
    """All metadata but the revision."""
    metadata: JsonObject = orjson.loads(b"{" + part)
    return metadata


def unshared_size(payload: Payload, other: Payload) -> int:
    """How many bytes of ``payload`` are not at the same place in ``other``.

    Parts that grow count as nothing: they belong to whoever makes them grow.
    """
    if isinstance(payload, Sections) and isinstance(other, Sections):
        size = 0 if payload.metadata is other.metadata else len(payload.metadata)
        members, known = payload.members, other.members
        for part, its in zip(members, known, strict=False):
            if part is not its:
                size += len(part)
        return size + sum(map(len, members[len(known) :])) if len(members) > len(known) else size
    parts, others = parts_of(payload), parts_of(other)
    unlike = [part for part, its in zip(parts, others, strict=False) if part is not its]
    return sum(map(part_size, unlike)) + sum(map(part_size, parts[len(others) :]))


def whole_size(payload: Payload) -> int:
    """The same where there is nothing to share parts with."""
    if isinstance(payload, Sections):
        return len(payload.metadata) + sum(map(len, payload.members))
    return sum(map(part_size, parts_of(payload)))


def left_size(payload: Payload) -> int:
    """About how many bytes a large part takes that grew, once its object is gone."""
    return payload.left_size if isinstance(payload, Composite) else 0


def parts_of(payload: Payload) -> tuple[Part, ...]:
    if isinstance(payload, Sections):
        return (payload.metadata, *payload.members)
    return payload if isinstance(payload, tuple) else (payload,)


def part_size(part: Part) -> int:
    if isinstance(part, tuple):
        return sum(map(len, part))
    return len(part) if isinstance(part, bytes) else 0


class Predecessor(NamedTuple):
    """The version that an object replaces: encoded, and decoded if somebody has it so.

    Decoded objects are read-only, so a part that is still the very same has the same encoding.
    ``same_metadata``: the new object's are those of ``obj``, but for the revision.
    """

    sections: Sections
    obj: JsonObject = {}  # noqa: RUF012 - read-only like all decoded objects
    same_metadata: bool = False

    def metadata(self, new: JsonObject) -> bytes:
        """The encoded metadata of the new version; the same bytes if they say the same."""
        before = self.sections.metadata
        if self.same_metadata:
            return before
        metadata = encode_metadata(new["metadata"])
        return before if metadata == before else metadata

    def is_like(self, new: JsonObject) -> bool:
        """Whether the new version has the same members in the same order."""
        return [*self.obj] == [*new]


class PartEncoder:
    """Encodes objects in parts, and hands out the same part again for the same text."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], bytes] = {}
        self._known: dict[bytes, bytes] = {}

    def sections(
        self, obj: JsonObject, revision: int, before: Predecessor | None, *, node_apart: bool
    ) -> Sections:
        """Encode what `versioned` returned; ``before`` is the version that it replaces.

        With ``node_apart`` the spec's node is a part of its own.
        """
        if before is not None and before.is_like(obj):
            return self._changed(obj, revision, before, node_apart=node_apart)
        members: list[bytes] = []
        for name, value in islice(obj.items(), _IN_HEAD, None):
            members += self._member(name, value, node_apart=node_apart)
        members.append(_END)
        metadata = encode_metadata(obj["metadata"]) if before is None else before.metadata(obj)
        kind = PodSections if node_apart and _is_pod(members) else Sections
        return kind(self._head(obj["apiVersion"], obj["kind"]), revision, metadata, tuple(members))

    def _changed(
        self, obj: JsonObject, revision: int, before: Predecessor, *, node_apart: bool
    ) -> Sections:
        """Encode what is not the very same as before, and take over the rest."""
        sections, old, at = before.sections, before.obj, 0
        members: list[bytes] = []
        for name, value in islice(obj.items(), _IN_HEAD, None):
            known = old[name]
            end = at + (2 if node_apart and name == "spec" and isinstance(known, dict) else 1)
            if value is known:
                members += sections.members[at:end]
            else:
                members += self._member(name, value, node_apart=node_apart)
            at = end
        members.append(_END)
        head = self._head(obj["apiVersion"], obj["kind"])
        kind = PodSections if node_apart and _is_pod(members) else Sections
        return kind(head, revision, before.metadata(obj), tuple(members))

    def _member(self, name: str, value: JsonValue, *, node_apart: bool) -> tuple[bytes, ...]:
        """The parts of one member: a spec with ``node_apart`` has two."""
        part = self._opening(name) + orjson.dumps(value)
        if node_apart and name == "spec" and part.endswith(_END):
            return self._spec(part, value)
        return (self.shared(part),)

    def _spec(self, part: bytes, spec: JsonObject) -> tuple[bytes, bytes]:
        """A spec up to its node, which comes last if it was bound, and the rest."""
        if len(spec) < 2 or next(reversed(spec)) != _NODE:
            return self.shared(part[:-1]), _END
        ending = pod_node(spec[_NODE])
        return self.shared(part[: -len(ending)]), self.shared(ending)

    def shared(self, part: bytes) -> bytes:
        """The part, or the one that is kept already for the same text."""
        known = self._known
        if len(known) > PARTS_SHARED:
            known.clear()
        return known.setdefault(part, part) if len(part) <= LONGEST_SHARED else part

    def _head(self, api_version: str, kind: str) -> bytes:
        head = self._heads.get((api_version, kind))
        if head is None:
            opening = orjson.dumps({"apiVersion": api_version, "kind": kind})
            head = self._heads[api_version, kind] = opening[:-1] + b',"metadata":{'
        return head

    def _opening(self, name: str) -> bytes:
        """What stands before the value of a member."""
        return _OPENINGS.get(name) or b",%b:" % orjson.dumps(name)


def encode_metadata(metadata: JsonObject) -> bytes:
    """All but the revision, which comes first, and the opening brace."""
    text = orjson.dumps(metadata)
    start = len(b'{"resourceVersion":""') + len(metadata["resourceVersion"])
    return text[start + 1 :] if len(metadata) > 1 else _END
