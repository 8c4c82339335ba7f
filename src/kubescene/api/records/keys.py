"""Parts of encoded objects as keys: equal ones mean the same, and little else is known of them.

Pods of one template share spec and status, so what was found out about one of them holds for all.
Whoever keeps that uses `pod_keys` or `Record.spec_key`, and asks here what a key says.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import orjson

from kubescene.api.records.parts import (
    LONGEST_SHARED,
    PARTS_SHARED,
    PodMembers,
    pod_members,
    pod_status,
)
from kubescene.api.records.parts import split_nomination as without_nomination
from kubescene.api.records.parts import status_of as read_status
from kubescene.api.records.record import Record
from kubescene.types import JsonObject

__all__ = [
    "Unnamed",
    "alike_spec",
    "is_shared",
    "keys_of",
    "mentions_any",
    "pod_keys",
    "pod_status",
    "read_status",
    "spec_text",
    "status_text",
    "without_claim_names",
    "without_nomination",
]

_SPEC = b',"spec":'
_STATUS = b',"status":'
_NAMES = b'"claimName":'
_NAMELESS = b'"claimName":"*"'
_CLAIM_NAME = re.compile(rb'"claimName":"([^"\\]*)"')
"""Within a text quotes are escaped, so it is a member wherever it stands."""
_TARGET = b'"key":"metadata.name","operator":"In","values":["'
_TARGET_NAME = re.compile(rb"(?<!\\)" + re.escape(_TARGET) + rb'[^"\\]*(?="\])')


def pod_keys(record: Record) -> PodMembers | None:
    """Of a pod the keys of spec (but for the node), node and status, and the end of it.

    None if nobody can tell cheaply.
    """
    return pod_members(record.payload)


def keys_of(pod: JsonObject) -> PodMembers:
    """The same for a decoded pod, without the node and the end."""
    spec = {name: value for name, value in (pod.get("spec") or {}).items() if name != "nodeName"}
    return _SPEC + orjson.dumps(spec)[:-1], b"", pod_status(pod.get("status") or {}), b""


def spec_text(key: bytes) -> bytes:
    """The JSON that the key of a spec stands for: all but the node."""
    return key[len(_SPEC) :] + b"}"


def status_text(key: bytes) -> bytes:
    """The JSON that the key of a status stands for."""
    return key[len(_STATUS) :]


def is_shared(key: bytes) -> bool:
    """Whether others may have the same: large parts are each one's own."""
    return len(key) <= LONGEST_SHARED


class Unnamed(NamedTuple):
    """The key of a spec without the names of claims, and these."""

    key: bytes
    names: list[bytes]


def without_claim_names(spec: bytes) -> Unnamed | None:
    """Specs that differ in the names of claims alone have one key then.

    None if there are none, or if they cannot be found without decoding the spec.
    """
    if _NAMES not in spec:
        return None
    names = _CLAIM_NAME.findall(spec)
    if len(names) != spec.count(_NAMES):
        return None
    return Unnamed(_CLAIM_NAME.sub(_NAMELESS, spec), names)


def alike_spec(spec: bytes) -> bytes:
    """The same for specs that are one, or differ in the names of claims or of a node alone.

    The node is one that the pod asks for by name, as those of a DaemonSet do.
    """
    return _alike_spec(spec) if len(spec) <= LONGEST_SHARED else spec


@lru_cache(PARTS_SHARED)
def _alike_spec(spec: bytes) -> bytes:
    alike = _TARGET_NAME.sub(_TARGET, spec) if _TARGET in spec else spec
    return _CLAIM_NAME.sub(_NAMELESS, alike) if _NAMES in spec else alike


@lru_cache(PARTS_SHARED)
def mentions_any(key: bytes, words: tuple[bytes, ...]) -> bool:
    """Whether one of these JSON texts, such as a member's name, occurs in a part."""
    return any(word in key for word in words)
