"""Pods of one template that are created one after the other: what is asked once is asked once.

A create of which only the name differs from the one before finds the same template, the same
admission and the same gate. `Bunch` is what is left: a name that nobody has, a uid, a record. Those
who follow pods are not told, since the lane (`kubescene.lane`) tells them.
"""

from kubescene.api.records import Record
from kubescene.api.records.changes import ADDED, Change
from kubescene.api.records.parts import PodSections
from kubescene.clock import Identities
from kubescene.registry.shortcuts.templates import Mold
from kubescene.store import Store


class Bunch:
    """Creates pods like the one that a template was made of, at one instant."""

    def __init__(self, mold: Mold, store: Store, identities: Identities, now: str) -> None:
        assert mold.cast is not None
        self._mold = mold
        self._cast = mold.cast
        self._store = store
        self._identities = identities
        self._now = now

    def create(self, name: str) -> Change | None:
        """Create one of this name; None if it takes a closer look, and nothing has happened."""
        like, store = self._cast.record, self._store
        place, payload = like.namespace, like.payload
        assert isinstance(payload, PodSections)
        if not self._mold.is_good_name(name) or store.get(like.resource, place, name) is not None:
            return None
        uid = self._identities.uid(self._mold.resource_type.kind, place, name)
        revision, metadata = store.revision + 1, self._cast.metadata(name, uid, self._now)
        record = Record(
            like.resource,
            place,
            name,
            uid,
            revision,
            PodSections(payload.head, revision, metadata, payload.members),
            like.labels,
            like.node,
            like.phase,
            like.owner,
        )
        change = Change(ADDED, record, None, store)
        store.commit_unheard(change)
        return change
