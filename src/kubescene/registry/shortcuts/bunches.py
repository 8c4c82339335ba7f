"""Pods of one template that are created one after the other: what is asked once is asked once.

A create of which only the name differs from the one before finds the same template, the same
admission and the same gate. `Bunch` is what is left: a name that nobody has, a uid, a record. Those
who follow pods are not told, since the lane (`kubescene.lane`) tells them.
"""

from kubescene.api.records import Record
from kubescene.api.records.changes import ADDED, Change
from kubescene.api.records.parts import PodSections
from kubescene.clock import Identities
from kubescene.registry.shortcuts.templates import Template, is_good_name
from kubescene.store import Store


class Bunch:
    """Creates pods like the one that a template was made of, at one instant."""

    def __init__(self, template: Template, store: Store, identities: Identities, now: str) -> None:
        assert template.encoded is not None
        self._kind = template.request.resource_type
        self._pods = template.encoded
        self._store = store
        self._identities = identities
        self._now = now

    def create(self, name: str) -> Change | None:
        """Create one of this name; None if it takes a closer look, and nothing has happened."""
        like, store = self._pods.record, self._store
        place, payload = like.namespace, like.payload
        assert isinstance(payload, PodSections)
        if not is_good_name(name, self._kind) or store.get(like.resource, place, name) is not None:
            return None
        uid = self._identities.uid(self._kind.kind, place, name)
        revision, metadata = store.revision + 1, self._pods.metadata(name, uid, self._now)
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
