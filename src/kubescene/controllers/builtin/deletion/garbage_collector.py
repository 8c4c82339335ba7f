"""The garbage collector: dependents follow their owners, in the way the deleter asked for.

In the background, once an owner has gone: a dependent is deleted when no other owner is left, and
otherwise loses the reference. In the foreground, while the owner waits with the finalizer
``foregroundDeletion``: dependents are deleted, and the owner may go when none is left that blocks
it. With the finalizer ``orphan``, dependents lose the reference and stay.

An owner is looked up by the name, kind and uid that a reference gives, in the dependent's own
namespace. One whose kind nobody serves is not taken for absent: the dependent stays, and is looked
at again in every step.
"""

from collections import OrderedDict
from enum import Enum, auto
from typing import TypeAlias

from kubescene.api.options import DeleteOptions
from kubescene.api.records import may_be_held, same_metadata
from kubescene.api.records.changes import DELETED, MODIFIED, Change
from kubescene.api.records.owner_references import may_have_owners
from kubescene.api.records.traits import COMES_OR_GOES, DELETING, REWRITTEN
from kubescene.api.scheme import GroupResource
from kubescene.client import ObjectRef
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.controllers.builtin.deletion.owner_graph import Dependent, OwnerGraph, is_known
from kubescene.errors import ApiError
from kubescene.types import JsonObject

WORKERS = 20
"""Objects looked at in one turn, as many as kube-controller-manager does at a time."""

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"
EVENTS = GroupResource("", "events")

Keys: TypeAlias = OrderedDict[str, ObjectRef]
"""Objects by uid, first in, first out."""


_CONCERNED = COMES_OR_GOES | REWRITTEN | DELETING


class OwnerState(Enum):
    """What a reference leads to."""

    SOLID = auto()
    DANGLING = auto()
    """Nothing there, or something else of the same name."""
    WAITING = auto()
    """The owner waits for its dependents to be deleted."""
    INVALID = auto()
    """A cluster-scoped object names an owner that lives in a namespace."""


class GarbageCollector:
    """A `Controller`. Keys are uids, since all kinds are watched.

    Between turns it remembers the graph of ownership, and which objects are being deleted in the
    foreground.
    """

    name = "garbage-collector"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._scheme = context.scheme
        self._graph = OwnerGraph()
        self._foreground: dict[str, ObjectRef] = {}
        self._queue: Keys = OrderedDict()
        self._refused: Keys = OrderedDict()
        self._wrote = False
        self._wake = context.wake
        self._client.watch_all(self.observe, quiet=True, patient=True, traits=_CONCERNED)

    def run_once(self) -> Progress:
        if not self._queue:
            return IDLE
        self._wrote = False
        for _ in range(min(WORKERS, len(self._queue))):
            uid, ref = self._queue.popitem(last=False)
            try:
                self._look_at(uid, ref)
            except ApiError:
                self._refused[uid] = ref
            except Exception:
                self._enqueue(uid, ref)
                raise
        return Progress(wrote=self._wrote, more=bool(self._queue))

    def begin_step(self) -> None:
        """What was refused or could not be decided is tried once more in every step."""
        self.retry_refused()

    def retry_refused(self) -> None:
        """The reason may have gone."""
        while self._refused:
            self._enqueue(*self._refused.popitem(last=False))

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> None:
        """Called for every write of the world: what has just been written is decoded already."""
        record = change.record
        if change.type is MODIFIED:
            if not same_metadata(record, change.previous):
                self._observe_metadata(change)
        elif change.type is DELETED:
            self._forget(record.uid, record.namespace)
            return
        else:
            if record.owner or may_have_owners(record):
                self._relate(change, None)
            if owner := self._graph.owners.get(record.uid):
                owner.gone_from = None  # brought back by an import
        if record.deleting:
            self._note_deletion(change)

    def _observe_metadata(self, change: Change) -> None:
        dependent = self._graph.dependents.get(change.record.uid)
        if dependent is None and not may_have_owners(change.record):
            return
        references = change.object["metadata"].get("ownerReferences")
        if (references or dependent) and not is_known(references, dependent):
            self._relate(change, dependent)

    def _relate(self, change: Change, before: Dependent | None) -> None:
        """The owners of an object are new, or have changed."""
        if change.record.resource == EVENTS:
            return
        dependent = self._graph.read(change)
        if dependent.references:
            self._graph.put(dependent)
            self._examine(dependent)
        else:
            self._graph.drop(change.record.uid)
        if before is not None:
            self._tell_owners(before)

    def _examine(self, dependent: Dependent) -> None:
        """Look at a dependent unless all its owners are known to be there."""
        for reference in dependent.references:
            owner = self._graph.owners[reference.uid]
            trusted = owner.trusted
            if (
                trusted is not None
                and trusted[1] is reference
                and trusted[0] == dependent.namespace
            ):
                continue
            if owner.gone_from is None and reference.uid not in self._foreground:
                owner.trusted = (dependent.namespace, reference)
            self._enqueue(dependent.uid, dependent.ref)

    def _note_deletion(self, change: Change) -> None:
        uid = change.record.uid
        if not may_be_held(change.record):
            self._foreground.pop(uid, None)
            return
        obj = change.object
        finalizers = obj["metadata"].get("finalizers") or ()
        if ORPHAN_FINALIZER in finalizers:
            self._enqueue(uid, ObjectRef.to(obj))
        elif FOREGROUND_FINALIZER not in finalizers:
            self._foreground.pop(uid, None)
        elif uid not in self._foreground:
            ref = self._foreground[uid] = ObjectRef.to(obj)
            self._look_at_dependents(uid)
            self._enqueue(uid, ref)

    def _forget(self, uid: str, namespace: str) -> None:
        """An object has gone: its dependents are to follow, and its owners wait no longer."""
        for kept in (self._queue, self._refused, self._foreground):
            kept.pop(uid, None)
        if owner := self._graph.owners.get(uid):
            owner.gone_from = namespace
            self._look_at_dependents(uid)
        if dependent := self._graph.dependents.get(uid):
            self._graph.drop(uid)
            self._tell_owners(dependent)

    def _tell_owners(self, dependent: Dependent) -> None:
        for reference in dependent.references:
            if ref := self._foreground.get(reference.uid):
                self._enqueue(reference.uid, ref)

    def _look_at_dependents(self, uid: str) -> None:
        """All of them, and those that come later: the owner has gone, or is going."""
        if owner := self._graph.owners.get(uid):
            owner.trusted = None
            for dependent in owner.dependents.values():
                self._enqueue(dependent.uid, dependent.ref)

    def _enqueue(self, uid: str, ref: ObjectRef) -> None:
        self._queue.setdefault(uid, ref)
        self._wake()

    # -- deciding --------------------------------------------------------------------------

    def _look_at(self, uid: str, ref: ObjectRef) -> None:
        obj = self._find(uid, ref)
        if obj is None:
            return
        if obj["metadata"].get("deletionTimestamp"):
            self._let_go(obj)
        elif references := obj["metadata"].get("ownerReferences"):
            self._judge(obj, references)

    def _judge(self, obj: JsonObject, references: list[JsonObject]) -> None:
        """Delete an object, take references from it, or leave it as it is."""
        namespace = obj["metadata"].get("namespace", "")
        states = [self._state(reference, namespace) for reference in references]
        if OwnerState.INVALID in states:
            return
        if OwnerState.SOLID in states:
            solid = [it for it, state in zip(references, states, strict=True) if is_solid(state)]
            if len(solid) < len(references):
                self._patch_references(obj, solid)
        elif OwnerState.WAITING in states and obj["metadata"]["uid"] in self._graph.owners:
            self._break_circle(obj, references)
            self._delete(obj, "Foreground")
        else:
            self._delete(obj, own_policy(obj))

    def _state(self, reference: JsonObject, namespace: str) -> OwnerState:
        """What is at the owner's place; raises `BadRequestError` if nobody serves its kind."""
        uid = reference["uid"]
        known = self._graph.owners.get(uid)
        if known is not None and known.gone_from in ("", namespace):
            return OwnerState.DANGLING
        owner_type = self._scheme.of_kind(reference["apiVersion"], reference["kind"])
        if owner_type.namespaced and not namespace:
            return OwnerState.INVALID
        place = namespace if owner_type.namespaced else ""
        owner = self._find(uid, ObjectRef(owner_type.gvk, reference["name"], place))
        if owner is None:
            if known is not None and known.trusted is not None:
                self._look_at_dependents(uid)
            return OwnerState.DANGLING
        metadata = owner["metadata"]
        waits = FOREGROUND_FINALIZER in (metadata.get("finalizers") or ())
        waits = waits and bool(metadata.get("deletionTimestamp"))
        return OwnerState.WAITING if waits else OwnerState.SOLID

    def _let_go(self, obj: JsonObject) -> None:
        """An object is being deleted and waits, perhaps for us."""
        uid = obj["metadata"]["uid"]
        finalizers = obj["metadata"].get("finalizers") or ()
        if ORPHAN_FINALIZER in finalizers:
            self._orphan_dependents(uid)
            self._remove_finalizer(obj, ORPHAN_FINALIZER)
        elif FOREGROUND_FINALIZER in finalizers:
            owner = self._graph.owners.get(uid)
            if owner is None or not owner.blocking:
                self._remove_finalizer(obj, FOREGROUND_FINALIZER)

    def _orphan_dependents(self, owner_uid: str) -> None:
        """Take the owner's references from all dependents; raises after all were tried."""
        refused: ApiError | None = None
        for dependent in self._graph.dependents_of(owner_uid):
            try:
                if obj := self._find(dependent.uid, dependent.ref):
                    references = obj["metadata"].get("ownerReferences") or ()
                    self._patch_references(obj, [it for it in references if it["uid"] != owner_uid])
            except ApiError as error:
                refused = error
        if refused is not None:
            raise refused

    def _break_circle(self, obj: JsonObject, references: list[JsonObject]) -> None:
        """Owners and dependents of the object all wait for one another: it blocks no longer."""
        dependents = self._graph.dependents_of(obj["metadata"]["uid"])
        if any(it.uid in self._foreground for it in dependents):
            open_ones = [{**it, "blockOwnerDeletion": False} for it in references]
            self._patch_references(obj, open_ones)

    def _find(self, uid: str, ref: ObjectRef) -> JsonObject | None:
        """The very object, not another one of its name."""
        obj = self._client.find(ref)
        return obj if obj is not None and obj["metadata"].get("uid") == uid else None

    # -- writing ---------------------------------------------------------------------------

    def _delete(self, obj: JsonObject, policy: str) -> None:
        options = DeleteOptions(uid=obj["metadata"]["uid"], propagation_policy=policy)
        self._client.delete(ObjectRef.to(obj), options=options)
        self._wrote = True

    def _patch_references(self, obj: JsonObject, references: list[JsonObject]) -> None:
        self._patch_metadata(obj, "ownerReferences", references)

    def _remove_finalizer(self, obj: JsonObject, finalizer: str) -> None:
        kept = [it for it in obj["metadata"]["finalizers"] if it != finalizer]
        self._patch_metadata(obj, "finalizers", kept)

    def _patch_metadata(self, obj: JsonObject, field: str, value: list[JsonObject]) -> None:
        patch = {"metadata": {field: value or None, "uid": obj["metadata"]["uid"]}}
        self._client.patch(ObjectRef.to(obj), patch)
        self._wrote = True


def is_solid(state: OwnerState) -> bool:
    return state is OwnerState.SOLID


def own_policy(obj: JsonObject) -> str:
    """How an object without owners is deleted: as its own finalizers say."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if ORPHAN_FINALIZER in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in finalizers else "Background"


def garbage_collector(context: ControllerContext) -> GarbageCollector:
    """The factory of the controller."""
    return GarbageCollector(context)
