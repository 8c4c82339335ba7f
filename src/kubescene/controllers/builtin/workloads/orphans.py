"""Objects that nobody manages, and who might adopt them.

Kept up to date from watches, so that a pass never has to look through a namespace to find out that
there is nothing to adopt.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from kubescene.api.kinds import POD
from kubescene.api.records.changes import ADDED, DELETED, Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, from_label_selector
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.builtin.workloads.controller_revisions import (
    CONTROLLER_REVISION,
    adopted,
)
from kubescene.controllers.reconcile import ObjectKey, Patch, Write
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


class PodOwner(Protocol):
    """What a controller remembers of an object that has pods."""

    @property
    def key(self) -> ObjectKey:
        """The object."""
        ...

    def remove(self, name: str, /) -> None:
        """A pod is no longer its own."""
        ...


OwnerT = TypeVar("OwnerT", bound=PodOwner)


class PodOwners(Generic[OwnerT]):
    """Objects that have pods and revisions, by uid, and who of them could adopt which."""

    def __init__(self, remember: Callable[[ObjectKey, LabelSelector], OwnerT]) -> None:
        self._remember = remember
        self.by_uid: dict[str, OwnerT] = {}
        self.pods = Orphans()
        self.revisions = Orphans()

    def of(self, obj: JsonObject | None) -> OwnerT | None:
        """What is remembered of an object, if it is there."""
        return None if obj is None else self.by_uid.get(obj["metadata"]["uid"])

    def observe(self, change: Change) -> ObjectKey:
        """Note that one comes or goes."""
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if change.type is DELETED:
            self.by_uid.pop(record.uid, None)
            self.pods.forget(key)
            self.revisions.forget(key)
        elif change.type is ADDED:
            selector = from_label_selector(change.object["spec"]["selector"])
            self.by_uid[record.uid] = self._remember(key, selector)
            self.pods.select(key, selector)
            self.revisions.select(key, selector)
        return key

    def observe_pod(
        self, change: Change, put: Callable[[OwnerT, Change], bool]
    ) -> Iterable[ObjectKey]:
        """Note a change of a pod; whom does it concern?

        ``put`` notes a pod at its owner, and says whether that means something to the owner.
        """
        record, previous = change.record, change.previous
        owner = self.by_uid.get(record.owner) if record.owner else None
        before = self.by_uid.get(previous.owner) if previous and previous.owner else None
        if owner is not None and owner is before and change.type is not DELETED:
            return (owner.key,) if put(owner, change) else ()
        concerned = dict.fromkeys(self.pods.observe(change))
        if before is not None:
            before.remove(record.name)
            concerned.setdefault(before.key)
        if owner is not None:
            if change.type is not DELETED:
                put(owner, change)
            concerned.setdefault(owner.key)
        return concerned

    def claims(
        self,
        owner: JsonObject,
        strays: Collection[str],
        reader: Reader,
        may_adopt: Callable[[str], bool] = lambda _: True,
    ) -> list[Write]:
        """Release pods that no longer match, adopt pods and revisions that do.

        ``may_adopt`` says of a pod's name whether it could be the owner's.
        """
        metadata = owner["metadata"]
        key = ObjectKey(metadata["namespace"], metadata["name"])
        pods = filter(may_adopt, self.pods.adoptable(key))
        revisions = self.revisions.adoptable(key)
        return [
            *(released(each, metadata["uid"]) for each in _staying(POD, strays, key, reader)),
            *(
                adopted(each, owner)
                for each in _staying(CONTROLLER_REVISION, revisions, key, reader)
            ),
            *(adopted(each, owner) for each in _staying(POD, pods, key, reader)),
        ]


def _staying(
    kind: GroupVersionKind, names: Iterable[str], key: ObjectKey, reader: Reader
) -> Iterator[JsonObject]:
    """Those objects in the namespace of ``key`` that are there, and not about to go."""
    for name in names:
        found = reader.find(ObjectRef(kind, name, key.namespace))
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            yield found


def released(pod: JsonObject, uid: str) -> Patch:
    """Give up a pod: drop the reference to its owner, keep the pod."""
    references = pod["metadata"].get("ownerReferences") or ()
    kept = [each for each in references if each["uid"] != uid]
    return Patch(ObjectRef.to(pod), {"metadata": {"ownerReferences": kept or None}})
