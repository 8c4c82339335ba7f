"""Who owns whom: the owner references of all objects, turned round.

Fed with every object that has owners; an object with neither owners nor dependents costs nothing.
An owner has an entry because somebody names it, whether it exists or not.
"""

from collections.abc import Collection, Sequence

import msgspec

from kubescene.api.records.changes import Change
from kubescene.api.records.owner_references import OwnerReference, References, owner_references
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.types import JsonObject


class Dependent(msgspec.Struct, frozen=True, gc=False):
    """An object that names owners. ``gc=False`` is sound: strings, and structs of strings."""

    gvk: GroupVersionKind
    namespace: str
    name: str
    uid: str
    references: References

    def __deepcopy__(self, memo: object) -> "Dependent":
        return self  # nothing of it ever changes

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.gvk, self.name, self.namespace)

    def blocks(self, owner_uid: str) -> bool:
        # Twice for every pod that comes: a generator would cost three times as much.
        for it in self.references:  # noqa: SIM110
            if it.blocks and it.uid == owner_uid:
                return True
        return False


class Owner:
    """What is known of a uid that others name as their owner.

    ``dependents`` are in order of creation, ``blocking`` counts those that block. ``gone_from`` is
    the namespace in which it was seen to go, empty if it had none, None if it was not. ``trusted``
    is a reference, and the namespace it stands in, that needs no look at the owner: one dependent
    was, or will be, looked at for all that say the same.
    """

    __slots__ = ("blocking", "dependents", "gone_from", "trusted")

    def __init__(self) -> None:
        self.dependents: dict[str, Dependent] = {}
        self.blocking = 0
        self.gone_from: str | None = None
        self.trusted: tuple[str, OwnerReference] | None = None

    def put(self, dependent: Dependent, own_uid: str) -> None:
        """A dependent that is known already keeps its place."""
        known = self.dependents.get(dependent.uid)
        if known is not None and known.blocks(own_uid):
            self.blocking -= 1
        if dependent.blocks(own_uid):
            self.blocking += 1
        self.dependents[dependent.uid] = dependent


class OwnerGraph:
    """Dependents and owners, each by uid."""

    def __init__(self) -> None:
        self.dependents: dict[str, Dependent] = {}
        self.owners: dict[str, Owner] = {}

    def read(self, change: Change) -> Dependent:
        """An object with its owners, of which there may be none; decoded only if need be."""
        record = change.record
        references = owner_references(record)
        gvk = record.gvk
        if references is None or gvk is None:
            return self.decoded(change.object)
        return Dependent(gvk, record.namespace, record.name, record.uid, references)

    def put(self, dependent: Dependent) -> None:
        """Take up an object with owners, or what has become of them."""
        uid = dependent.uid
        if before := self.dependents.get(uid):
            self._detach(before, kept=[it.uid for it in dependent.references])
        self.dependents[uid] = dependent
        for reference in dependent.references:
            owner = self.owners.get(reference.uid)
            if owner is None:
                owner = self.owners[reference.uid] = Owner()
            owner.put(dependent, reference.uid)

    def drop(self, uid: str) -> None:
        """Forget a dependent, if it is known."""
        if dependent := self.dependents.pop(uid, None):
            self._detach(dependent)

    def dependents_of(self, uid: str) -> list[Dependent]:
        owner = self.owners.get(uid)
        return [] if owner is None else [*owner.dependents.values()]

    def _detach(self, dependent: Dependent, kept: Collection[str] = ()) -> None:
        for reference in dependent.references:
            owner = self.owners.get(reference.uid)
            if owner is None or reference.uid in kept:
                continue
            if owner.dependents.pop(dependent.uid, None) and dependent.blocks(reference.uid):
                owner.blocking -= 1
            if not owner.dependents:
                del self.owners[reference.uid]

    def decoded(self, obj: JsonObject) -> Dependent:
        """The same of an object that is decoded anyway."""
        metadata = obj["metadata"]
        return Dependent(
            GroupVersionKind.of(obj["apiVersion"], obj["kind"]),
            metadata.get("namespace", ""),
            metadata["name"],
            metadata["uid"],
            tuple([self._reference(it) for it in metadata.get("ownerReferences") or ()]),
        )

    def _reference(self, reference: JsonObject) -> OwnerReference:
        """The reference, the very same as that of others who say so."""
        made = msgspec.convert(reference, OwnerReference)
        owner = self.owners.get(made.uid)
        trusted = None if owner is None else owner.trusted
        return trusted[1] if trusted is not None and trusted[1] == made else made


def is_known(references: Sequence[JsonObject] | None, dependent: Dependent | None) -> bool:
    """Whether the graph holds what the object says of its owners; asked on every write."""
    if not references or dependent is None:
        return not references and dependent is None
    known = dependent.references
    if len(references) != len(known):
        return False
    for reference, it in zip(references, known, strict=True):
        if reference["uid"] != it.uid or reference["name"] != it.name:
            return False
        if reference.get("blockOwnerDeletion", False) is not it.blocks:
            return False
    return True
