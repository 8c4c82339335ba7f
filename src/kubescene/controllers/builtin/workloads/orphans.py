"""Objects that nobody manages, and who might adopt them.

Kept up to date from watches, so that a pass never has to look through a namespace to find out that
there is nothing to adopt.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kubescene.api.records.changes import DELETED, Change
from kubescene.api.selectors import LabelSelector
from kubescene.client import ObjectRef
from kubescene.controllers.reconcile import ObjectKey, Patch
from kubescene.types import JsonObject


class Orphans:
    """Orphans of one kind, and the selectors of the controller objects of another."""

    def __init__(self) -> None:
        self._selectors: defaultdict[str, dict[ObjectKey, LabelSelector]] = defaultdict(dict)
        self._orphans: defaultdict[str, dict[str, Mapping[str, str]]] = defaultdict(dict)
        self._adoptable: dict[ObjectKey, dict[str, None]] = {}

    def select(self, owner: ObjectKey, selector: LabelSelector) -> None:
        """A possible owner adopts what this selector matches."""
        self._selectors[owner.namespace][owner] = selector
        orphans = self._orphans[owner.namespace].items()
        found = [name for name, labels in orphans if selector.matches(labels)]
        self._adoptable[owner] = dict.fromkeys(found)

    def selector(self, owner: ObjectKey) -> LabelSelector:
        return self._selectors[owner.namespace][owner]

    def forget(self, owner: ObjectKey) -> None:
        self._selectors[owner.namespace].pop(owner, None)
        self._adoptable.pop(owner, None)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        """Note a change of an object; who could adopt it now and could not before?"""
        record = change.record
        orphans = self._orphans[record.namespace]
        if record.owner or change.type is DELETED:
            if orphans.pop(record.name, None) is not None:
                for owner in self._selectors[record.namespace]:
                    self._adoptable[owner].pop(record.name, None)
            return ()
        if orphans.get(record.name) == record.labels:
            return ()
        orphans[record.name] = record.labels
        return self._match(record.namespace, record.name, record.labels)

    def waits(self, owner: ObjectKey) -> bool:
        """Whether there is anything to adopt."""
        return bool(self._adoptable[owner])

    def adoptable(self, owner: ObjectKey) -> list[str]:
        """Names of the orphans that the owner's selector matches."""
        return list(self._adoptable[owner])

    def _match(self, namespace: str, name: str, labels: Mapping[str, str]) -> list[ObjectKey]:
        matching = []
        for owner, selector in self._selectors[namespace].items():
            if selector.matches(labels):
                self._adoptable[owner].setdefault(name)
                matching.append(owner)
            else:
                self._adoptable[owner].pop(name, None)
        return matching


def released(pod: JsonObject, uid: str) -> Patch:
    """Give up a pod: drop the reference to its owner, keep the pod."""
    references = pod["metadata"].get("ownerReferences") or ()
    kept = [each for each in references if each["uid"] != uid]
    return Patch(ObjectRef.to(pod), {"metadata": {"ownerReferences": kept or None}})
