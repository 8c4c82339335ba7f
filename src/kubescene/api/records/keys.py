"""Parts of encoded objects as keys: equal ones mean the same, and little else is known of them.

Pods of one template share spec and status, so what was found out about one of them holds for all.
Whoever keeps that uses `pod_keys` or `Record.spec_key`, and asks here what a key says.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from kubescene.api.records.parts import LONGEST_SHARED, PARTS_SHARED, pod_members
from kubescene.api.records.parts import split_nomination as without_nomination
from kubescene.api.records.parts import status_of as read_status
from kubescene.api.records.record import Record

__all__ = [
    "Unnamed",
    "is_shared",
    "mentions_any",
    "pod_keys",
    "read_status",
    "without_claim_names",
    "without_nomination",
]

_NAMES = b'"claimName":'
_NAMELESS = b'"claimName":"*"'
_CLAIM_NAME = re.compile(rb'"claimName":"([^"\\]*)"')
"""Within a text quotes are escaped, so it is a member wherever it stands."""


def pod_keys(record: Record) -> tuple[bytes, bytes, bytes, bytes] | None:
    """Of a pod the keys of spec (but for the node), node and status, and the end of it.

    None if nobody can tell cheaply.
    """
    return pod_members(record.payload)


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


@lru_cache(PARTS_SHARED)
def mentions_any(key: bytes, words: tuple[bytes, ...]) -> bool:
    """Whether one of these JSON texts, such as a member's name, occurs in a part."""
    return any(word in key for word in words)
