"""The same report of a status in other words: merged, decoded and validated once.

A thousand Jobs of one template tell the same story, each with uids of pods of its own, and at times
of its own. What a patch makes of a status does not depend on which uid it is, nor on which time, as
long as the same ones are the same and the earlier ones are earlier. So both texts are taken apart
into words, uids and times, and what is around them; where all that has been seen before, in the
same pattern, the result is put together with the new words.

What a kind's rules for a status ask of the spec is part of what was seen (`status_looks_at`);
metadata stay as they are. Admission has no say, if all its plugins have declared themselves.
"""

import re
from typing import TypeAlias

import orjson
from msgspec import Struct

from kubescene.api.records import Record, same_metadata
from kubescene.api.records.drafts import Parts, changed
from kubescene.api.records.parts import Sections, ends_with_status, restated_as, status_of
from kubescene.api.validation import status_looks_at
from kubescene.bounded import BoundedDict
from kubescene.registry.admission.chain import AdmissionChain
from kubescene.registry.shortcuts.status_counts import is_plain
from kubescene.registry.shortcuts.status_patches import is_neat
from kubescene.registry.writes import WriteRequest
from kubescene.store import Store

STORIES_KEPT = 1024
LONGEST = 4096
"""Longer texts are not taken apart: lists of thousands of uids are one object's own."""
TIME = 20
"""So long is a time; every other word is a uid."""
WORD = re.compile(
    rb'"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    # Days that every month has, so that whatever looks like a time is one.
    rb"|2\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"
    rb')"'
)
Key: TypeAlias = tuple[object, ...]
Words: TypeAlias = tuple[bytes, ...]


class StatusTexts(Struct, frozen=True, gc=False):
    """A status and a patch of it, taken apart: what they say, and the words they say it with."""

    key: Key
    words: Words


class Retold(Struct, frozen=True, gc=False):
    """An encoded status with places for words, and which word stands in each of them."""

    text: bytes
    places: tuple[int, ...]

    def with_words(self, words: Words) -> bytes:
        return self.text % tuple([words[place] for place in self.places])


class RewordedStatuses:
    """The newest results of one world, by what was said and what had been said before."""

    def __init__(self, store: Store, admission: AdmissionChain) -> None:
        self._store = store
        self._admission = admission
        self._told: BoundedDict[Key, Retold] = BoundedDict(STORIES_KEPT)

    def find(self, request: WriteRequest, current: Record | None) -> Parts | None:
        """The object with the status that the same patch in other words has led to."""
        texts = None if current is None else self._texts(request, current)
        told = None if texts is None else self._told.get(texts.key)
        if current is None or texts is None or told is None or not self._admission.is_quiet:
            return None
        payload = current.payload
        assert isinstance(payload, Sections)
        if not is_neat(payload.metadata):
            return None
        status = told.with_words(texts.words)
        obj = {**self._store.decoded(current), "status": status_of(status)}
        return changed(current, restated_as(payload, status), current.phase, obj=obj)

    def learn(self, request: WriteRequest, before: Record | None, after: Record) -> None:
        """Remember what a patch has led to on the long way."""
        if before is None or after is before or not self._admission.is_quiet:
            return
        old, new = before.payload, after.payload
        if not isinstance(new, Sections) or not isinstance(old, Sections):
            return
        if old.members[:-2] != new.members[:-2] or not same_metadata(after, before):
            return
        if (texts := self._texts(request, before)) is None:
            return
        told = told_with(texts.words, new.members[-2])
        if told is not None:
            self._told[texts.key] = told

    def _texts(self, request: WriteRequest, current: Record) -> StatusTexts | None:
        """A patch and the status before, taken apart; None if they are not for us."""
        looks_at = status_looks_at(request.resource_type)
        if looks_at is None or not is_plain(request):
            return None
        payload = current.payload
        if type(payload) is not Sections or not ends_with_status(payload):
            return None
        try:
            text = b"%b\n%b" % (orjson.dumps(request.body), payload.members[-2])
        except orjson.JSONEncodeError:
            return None
        if len(text) > LONGEST:
            return None
        spec = self._store.decoded(current)["spec"]
        asked = orjson.dumps([spec.get(name) for name in looks_at])
        return taken_apart(text, request.resource_type, asked)


def taken_apart(text: bytes, *about: object) -> StatusTexts:
    """A text as its words, each of them once, and all else: what is around, and their pattern."""
    parts = WORD.split(text)
    said = parts[1::2]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(said))}
    words = tuple(numbers)
    times = [word for word in words if len(word) == TIME]
    order = () if len(times) < 2 else tuple(map(sorted(times).index, times))
    pattern = tuple([numbers[word] for word in said])
    return StatusTexts((*about, tuple(parts[::2]), pattern, order), words)


def told_with(words: Words, status: bytes) -> Retold | None:
    """An encoded status with places for its words; None if some of them were not there before."""
    parts = WORD.split(status)
    said = parts[1::2]
    if not all(word in words for word in said):
        return None
    text = b'"%b"'.join([each.replace(b"%", b"%%") for each in parts[::2]])
    return Retold(text, tuple([words.index(word) for word in said]))
