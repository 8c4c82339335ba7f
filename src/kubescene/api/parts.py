"""Encoded objects in parts, so that a write encodes what it changes and shares the rest.

`Sections` is the encoding of an ordinary object: head, revision, the rest of metadata, then one
part for each other member, in order. The spec of a pod is followed by its node as a part of its
own, since that is what a binding adds. Joined, they are what encoding the whole object gives.

A member is taken over from the version before if it is *the same value*: whoever changes an object
copies what changes and keeps the rest, decoded objects being read-only, so identity is proof.
"""

from collections.abc import Mapping
from itertools import islice
from operator import eq, is_
from typing import Any, Protocol, TypeAlias

import msgspec
import orjson

from kubescene.types import JsonObject, JsonValue

PARTS_SHARED = 4096
_IN_HEAD = 3
_END = b"}"
_NODE = "nodeName"


class Encoded(Protocol):
    """A part that is turned into bytes when somebody reads it, such as a log that grows."""

    def __bytes__(self) -> bytes: ...


Part: TypeAlias = bytes | Encoded | tuple[bytes, ...]


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

    @property
    def parts(self) -> tuple[bytes, ...]:
        return (self.metadata, *self.members)


Payload: TypeAlias = bytes | Sections | tuple[Part, ...]
"""A tuple is for owners who encode themselves: head, revision, rest of metadata, then anything."""


def joined(payload: Payload) -> bytes:
    """The JSON text."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, Sections):
        return payload.data
    return b"".join(map(joined_part, payload))


def joined_part(part: Part) -> bytes:
    return b"".join(part) if isinstance(part, tuple) else bytes(part)


def metadata_part(payload: Payload) -> Part | None:
    """The part that holds all metadata but the revision; None if there is no such part."""
    if isinstance(payload, Sections):
        return payload.metadata
    return payload[2] if isinstance(payload, tuple) and len(payload) > 2 else None


def unshared_size(payload: Payload, other: Payload | None) -> int:
    """How many bytes of ``payload`` are not in ``other``, too; parts that grow count as nothing."""
    shared = set(map(id, parts_of(other))) if other is not None else ()
    return sum(part_size(part) for part in parts_of(payload) if id(part) not in shared)


def parts_of(payload: Payload) -> tuple[Part, ...]:
    if isinstance(payload, bytes):
        return (payload,)
    return payload.parts if isinstance(payload, Sections) else payload


def part_size(part: Part) -> int:
    if isinstance(part, tuple):
        return sum(map(len, part))
    return len(part) if isinstance(part, bytes) else 0


class PartEncoder:
    """Encodes objects in parts. Equal parts are one: a thousand pods report the same status."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, str], bytes] = {}
        self._known: dict[bytes, bytes] = {}

    def sections(
        self,
        obj: JsonObject,
        revision: int,
        *,
        node_apart: bool,
        before: Sections | None = None,
        old: JsonObject | None = None,
    ) -> Sections:
        """Encode what `versioned` returned.

        ``old`` is the decoded form of ``before``: what ``obj`` has in common with it is shared.
        With ``node_apart`` the spec's node is a part of its own.
        """
        head = self._head(obj["apiVersion"], obj["kind"])
        metadata = obj["metadata"]
        if before is None or old is None:
            members = self._members(obj, node_apart, {})
            return Sections(head, revision, encode_metadata(metadata), members)
        same = same_after_first(metadata, old["metadata"])
        known = places(old, before.members, node_apart)
        members = self._members(obj, node_apart, known)
        rest = before.metadata if same else encode_metadata(metadata)
        return Sections(head, revision, rest, members)

    def _head(self, api_version: str, kind: str) -> bytes:
        head = self._heads.get((api_version, kind))
        if head is None:
            opening = orjson.dumps({"apiVersion": api_version, "kind": kind})
            head = self._heads[api_version, kind] = opening[:-1] + b',"metadata":{'
        return head

    def _members(
        self, obj: JsonObject, node_apart: bool, known: Mapping[str, "Place"]
    ) -> tuple[bytes, ...]:
        members: list[bytes] = []
        for name, value in islice(obj.items(), _IN_HEAD, None):
            place = known.get(name)
            if place is not None and place[0] is value:
                members += place[1]
            elif node_apart and name == "spec" and isinstance(value, dict):
                members += self._spec(value, place)
            else:
                members.append(self._shared(encode_member(name, value)))
        members.append(_END)
        return tuple(members)

    def _spec(self, spec: JsonObject, place: "Place | None") -> tuple[bytes, bytes]:
        """The spec up to its node, which comes last if it came later, and the rest."""
        if not spec or next(reversed(spec)) != _NODE or len(spec) == 1:
            return self._shared(encode_member("spec", spec)[:-1]), _END
        ending = b',"nodeName":%s}' % orjson.dumps(spec[_NODE])
        if place is not None and begins_with(spec, place[0]):
            return place[1][0], ending
        others = dict(islice(spec.items(), len(spec) - 1))
        return self._shared(encode_member("spec", others)[:-1]), ending

    def _shared(self, part: bytes) -> bytes:
        known = self._known
        if len(known) > PARTS_SHARED:
            known.clear()
        return known.setdefault(part, part)


Place: TypeAlias = tuple[JsonValue, tuple[bytes, ...]]
"""A member of an object and the parts that encode it."""


def places(obj: JsonObject, members: tuple[bytes, ...], node_apart: bool) -> dict[str, Place]:
    """Where the members of an object are in its sections."""
    found: dict[str, Place] = {}
    position = 0
    for name, value in islice(obj.items(), _IN_HEAD, None):
        end = position + (2 if node_apart and name == "spec" and isinstance(value, dict) else 1)
        found[name] = (value, members[position:end])
        position = end
    return found


def encode_member(name: str, value: JsonValue) -> bytes:
    return b"".join((b",", orjson.dumps(name), b":", orjson.dumps(value)))


def encode_metadata(metadata: Mapping[str, Any]) -> bytes:
    """All but the revision, which comes first."""
    return orjson.dumps(dict(islice(metadata.items(), 1, None)))[1:]


def same_after_first(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether two objects have the same members in the same order, the first one's value aside."""
    if len(new) != len(old) or not all(map(eq, new, old)):
        return False
    return all(map(is_, islice(new.values(), 1, None), islice(old.values(), 1, None)))


def begins_with(new: Mapping[str, Any], old: JsonValue) -> bool:
    """Whether ``new`` is ``old`` with one more member at the end."""
    if not isinstance(old, dict) or len(new) != len(old) + 1:
        return False
    return all(map(eq, new, old)) and all(map(is_, new.values(), old.values()))
