"""The encoding of pods that are made one like the other: text with places for what is each one's.

Name, uid and time stand in the metadata, the names of claims among the volumes in the spec. All
other text is encoded once, and most of it kept once.
"""

from collections.abc import Sequence

import orjson

from kubescene.api.records import Record
from kubescene.api.records.parts import Sections, pod_members
from kubescene.api.records.templates import Blueprint, ClaimingBlueprint
from kubescene.api.scheme import GroupResource
from kubescene.types import JsonObject, JsonValue

PODS = GroupResource("", "pods")
_OWN = frozenset({"name", "uid", "creationTimestamp"})
_CLAIM = "persistentVolumeClaim"
_PLACE = "\0"
"""Stands for the name of a claim while its place is looked for."""


class Cast:
    """Alike pods: all is one but name, uid and time."""

    __slots__ = ("_members", "_metadata", "record")

    def __init__(self, record: Record, metadata: JsonObject) -> None:
        assert isinstance(record.payload, Sections)
        self.record = record
        self._members = record.payload.members
        parts = [_blank(*each) for each in metadata.items() if each[0] != "resourceVersion"]
        self._metadata = b",".join(parts) + b"}"

    def metadata(self, name: str, uid: str, now: str) -> bytes:
        """The encoded metadata of one of them, for a name of plain characters."""
        own = {b"name": name.encode(), b"uid": uid.encode(), b"creationTimestamp": now.encode()}
        return self._metadata % own

    def members(self, body: JsonObject) -> tuple[bytes, ...]:
        """What becomes of the rest of a body, encoded."""
        del body
        return self._members


class ClaimingCast(Cast):
    """Pods that name claims of their own as well; ``spec`` has a place for each."""

    __slots__ = ("_spec",)

    def __init__(self, record: Record, metadata: JsonObject, spec: bytes) -> None:
        super().__init__(record, metadata)
        self._spec = spec

    def members(self, body: JsonObject) -> tuple[bytes, ...]:
        return (self._spec % claim_names(body["spec"]["volumes"]), *self._members[1:])


def cast_of(record: Record, obj: JsonObject, body: JsonObject, blueprint: Blueprint) -> Cast | None:
    """The cast of the pod that a body became.

    None if others of the blueprint differ in more than their names and those of claims.
    """
    metadata, members = obj["metadata"], pod_members(record.payload)
    is_pod = members is not None and record.resource == PODS and metadata.keys() >= _OWN
    if members is None or not is_pod or "managedFields" in metadata:
        return None
    if type(blueprint) is Blueprint:
        return Cast(record, metadata)
    spec = b""
    if type(blueprint) is ClaimingBlueprint:
        spec = claiming_spec(obj["spec"], members[0], body["spec"]["volumes"])
    return ClaimingCast(record, metadata, spec) if spec else None


def claiming_spec(spec: JsonObject, encoded: bytes, given: Sequence[JsonObject]) -> bytes:
    """An encoded spec with a place for the name of each claim that was given.

    Empty if the names do not stand where they should: then each pod is encoded by itself.
    """
    volumes = [*map(_placed, spec["volumes"], given), *spec["volumes"][len(given) :]]
    text = b',"spec":' + orjson.dumps({**spec, "volumes": volumes})
    text = text[:-1].replace(b"%", b"%%").replace(orjson.dumps(_PLACE), b"%b")
    names = claim_names(given)
    as_expected = text.count(b"%b") == len(names) and text % names == encoded
    return text if as_expected else b""


def claim_names(volumes: Sequence[JsonObject]) -> tuple[bytes, ...]:
    """The names of claims in order, encoded."""
    claims = [claim for each in volumes if (claim := each.get(_CLAIM)) is not None]
    return tuple([orjson.dumps(claim["claimName"]) for claim in claims])


def _placed(volume: JsonObject, given: JsonObject) -> JsonObject:
    if given.get(_CLAIM) is None:
        return volume
    return {**volume, _CLAIM: {**volume[_CLAIM], "claimName": _PLACE}}


def _blank(member: str, value: JsonValue) -> bytes:
    """A member as it stands in the text, or a place where each object's own will stand."""
    if member in _OWN:
        return b'"%b":"%%(%b)b"' % (member.encode(), member.encode())
    return b"%b:%b" % (orjson.dumps(member), orjson.dumps(value).replace(b"%", b"%%"))
