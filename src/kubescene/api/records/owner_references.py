"""Owner references read out of encoded metadata, without the rest of the object.

The pods of one owner say the same of it, in the same bytes: what they say is decoded once.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from kubescene.api.records.parts import Sections
from kubescene.api.records.record import Record
from kubescene.bounded import KEPT

_OPENING = b'"ownerReferences":['


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A reference; what may be left out is empty or false."""

    uid: str = ""
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def blocks(self) -> bool:
        """Whether the owner waits for this dependent to go first."""
        return bool(self.block_owner_deletion)

    def __deepcopy__(self, memo: object) -> "OwnerReference":
        return self


References = tuple[OwnerReference, ...]
_DECODER = msgspec.json.Decoder(References)


def owner_references(record: Record) -> References | None:
    """The references of an object; None if they are not to be had without decoding it."""
    payload = record.payload
    if not isinstance(payload, Sections):
        return None
    text = payload.metadata
    # Quotes inside of texts are escaped, and nothing else in metadata is called so and is a list.
    start = text.find(_OPENING)
    if start < 0:
        return ()
    start += len(_OPENING) - 1
    return _references(text[start : text.find(b"]", start) + 1])


def may_have_owners(record: Record) -> bool:
    """Whether an object names owners; cheap, so it may not know."""
    return record.metadata_mentions(_OPENING)


@lru_cache(KEPT)
def _references(text: bytes) -> References | None:
    """What a list says. There are no lists in it: cut short inside a text, it is not JSON."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError:
        return None


def controller_name(references: Sequence[OwnerReference]) -> str:
    """``Kind/name`` of the managing owner; empty if there is none."""
    for each in references:
        if each.controller:
            return f"{each.kind}/{each.name}"
    return ""
