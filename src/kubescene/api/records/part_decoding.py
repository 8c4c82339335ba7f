"""Decoded objects from encoded parts: what objects share is decoded once, and shared.

The pods of one template have one spec in the store, as bytes, and so they have one decoded spec. It
is the object that decoding the whole text gives, apart from who else holds it: read-only.
"""

import orjson

from kubescene.api.records.parts import LONGEST_SHARED, PodSections, Sections
from kubescene.bounded import BoundedDict
from kubescene.types import JsonObject, JsonValue

DECODED_PARTS_KEPT = 1024
_SPEC = b',"spec":{'


class PartDecoder:
    """Remembers the newest decoded parts."""

    def __init__(self) -> None:
        self._heads: dict[bytes, JsonObject] = {}
        self._known: BoundedDict[bytes, JsonObject] = BoundedDict(DECODED_PARTS_KEPT)

    def decode(self, sections: Sections, *, node_apart: bool) -> JsonObject:
        """The object; with ``node_apart`` its spec is in two parts, the second from the node on."""
        revision = {"resourceVersion": str(sections.revision)}
        obj: JsonObject = {**self._head(sections.head), "metadata": None}
        obj["metadata"] = revision | orjson.loads(b"{" + sections.metadata)
        parts = iter(sections.members[:-1])
        for part in parts:
            if node_apart and part.startswith(_SPEC):
                obj["spec"] = self._spec(part, next(parts))
            else:
                obj.update(self._member(part, b"}"))
        return obj

    def pod(self, sections: PodSections) -> JsonObject:
        """A pod, whose parts are known."""
        spec, ending, status, _ = sections.members
        return {
            **self._head(sections.head),
            "metadata": {"resourceVersion": str(sections.revision)}
            | orjson.loads(b"{" + sections.metadata),
            "spec": self._spec(spec, ending),
            "status": self._member(status, b"}")["status"],
        }

    def _head(self, head: bytes) -> JsonObject:
        decoded = self._heads.get(head)
        if decoded is None:
            decoded = orjson.loads(head + b"}}")
            del decoded["metadata"]
            self._heads[head] = decoded
        return decoded

    def _spec(self, part: bytes, ending: bytes) -> JsonValue:
        spec = self._member(part, b"}}")["spec"]
        return spec if ending == b"}" else {**spec, **orjson.loads(b"{" + ending[1:])}

    def _member(self, part: bytes, closing: bytes) -> JsonObject:
        """An object with the one member that a part encodes."""
        member = self._known.get(part)
        if member is None:
            member = orjson.loads(b"{" + part[1:] + closing)
            if len(part) <= LONGEST_SHARED:
                self._known[part] = member
        return member
