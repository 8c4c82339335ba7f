"""The StatefulSet controller: pods with fixed names, made, replaced and removed in order."""

from collections.abc import Collection, Iterable, Sequence

from kubescene.api.feature_gates import MAX_UNAVAILABLE_STATEFUL_SET
from kubescene.api.kinds import POD
from kubescene.api.records.changes import DELETED, Change
from kubescene.api.records.traits import COMES_OR_GOES, OWNED, RELABELED
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.controller_revisions import (
    CONTROLLER_REVISION,
    in_order,
    labels_of,
)
from kubescene.controllers.builtin.workloads.orphans import PodOwners
from kubescene.controllers.builtin.workloads.stateful_sets.claims import (
    CLAIM,
)
from kubescene.controllers.builtin.workloads.stateful_sets.members import (
    Members,
    numbered,
)
from kubescene.controllers.builtin.workloads.stateful_sets.passes import Sync, failed
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Write,
)
from kubescene.errors import AlreadyExistsError, ApiError, NotFoundError
from kubescene.recording import Notice
from kubescene.types import JsonObject

STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")


def note(members: Members, change: Change) -> bool:
    """Note a pod of a set; each means something to it."""
    members.put(change.record)
    return True


class StatefulSetReconciler:
    """Keys are StatefulSets.

    Between passes it remembers their pods, pods and revisions that nobody manages, and which sets
    wait for a claim to be gone.
    """

    name = "statefulset"
    kinds: Sequence[GroupVersionKind] = (STATEFUL_SET, CONTROLLER_REVISION, CLAIM)

    def __init__(self, *, max_unavailable: bool = False) -> None:
        self._max_unavailable = max_unavailable
        self._members = PodOwners(Members)
        self._awaited: dict[ObjectKey, ObjectKey] = {}

    # -- watching --------------------------------------------------------------------------

    @property
    def needs_pods(self) -> bool:
        """Pods matter as soon as there is a set."""
        return bool(self._members.by_uid)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        match change.record.resource.resource:
            case "pods":
                return self._members.observe_pod(change, note)
            case "statefulsets":
                return (self._members.observe(change),)
            case "controllerrevisions":
                # Orphans are adopted when something else causes a pass, as upstream.
                self._members.revisions.observe(change)
                return ()
        if change.type is DELETED and self._awaited:
            key = ObjectKey(change.record.namespace, change.record.name)
            waiting = self._awaited.pop(key, None)
            return () if waiting is None else (waiting,)
        return ()

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        stateful_set = reader.find(ObjectRef(STATEFUL_SET, key.name, key.namespace))
        members = self._members.of(stateful_set)
        if stateful_set is None or members is None:
            return NOTHING
        leaving = "deletionTimestamp" in stateful_set["metadata"]
        # Pods that change bring this key back, and the pass goes on from there.
        if not leaving and (claimed := self._claims(stateful_set, members, reader)):
            return Plan(claimed)
        sync = self._sync(stateful_set, members, reader, now)
        plan = sync.plan()
        for claim in sync.awaited:
            self._awaited[ObjectKey(key.namespace, claim)] = key
        return plan

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A refused write is told as an event; the counts are written all the same."""
        stateful_set = reader.find(ObjectRef(STATEFUL_SET, key.name, key.namespace))
        members = self._members.of(stateful_set)
        if stateful_set is None or members is None or error.has_cause("NamespaceTerminating"):
            return NOTHING
        if isinstance(error, NotFoundError) and not isinstance(write, Create):
            return NOTHING
        told = () if isinstance(error, AlreadyExistsError) else failures(stateful_set, write, error)
        sync = self._sync(stateful_set, members, reader, now)
        return Plan(sync.status_writes(), notices=tuple(told))

    def _sync(self, stateful_set: JsonObject, members: Members, reader: Reader, now: int) -> "Sync":
        owned = reader.owned(CONTROLLER_REVISION, stateful_set["metadata"]["uid"])
        matching = (each for each in owned if members.selector.matches(labels_of(each)))
        revisions = in_order(matching)
        return Sync(stateful_set, members, revisions, reader, now, several=self._max_unavailable)

    def _claims(self, stateful_set: JsonObject, members: Members, reader: Reader) -> list[Write]:
        name = stateful_set["metadata"]["name"]
        return self._members.claims(
            stateful_set, members.strays, reader, lambda pod: numbered(pod)[0] == name
        )


def failures(stateful_set: JsonObject, write: Write, error: ApiError) -> list[Notice]:
    """What is said of a refused write of a pod or a claim."""
    if isinstance(write, Create):
        verb, kind, name = "Create", write.obj["kind"], write.obj["metadata"]["name"]
    elif isinstance(write, Delete | Patch):
        verb = "Delete" if isinstance(write, Delete) else "Update"
        kind, name = write.ref.gvk.kind, write.ref.name
    else:
        return []
    if kind == POD.kind:
        return [failed(stateful_set, verb, f"Pod {name}", error.message)]
    if kind != CLAIM.kind or verb != "Create":
        return []
    ordinal = numbered(name)[1]
    pod = f"{stateful_set['metadata']['name']}-{ordinal}"
    why = f"failed to create PVC {name}: {error.message}"
    return [
        failed(stateful_set, verb, f"Claim {name} for Pod {pod}", error.message),
        failed(stateful_set, verb, f"Pod {pod}", why),
    ]


def statefulset(context: ControllerContext, *, gates: Collection[str] = ()) -> LatePodsController:
    """The factory of the controller; ``gates`` are the feature gates that are on."""
    reconciler = StatefulSetReconciler(max_unavailable=MAX_UNAVAILABLE_STATEFUL_SET in gates)
    return LatePodsController(reconciler, context, COMES_OR_GOES | OWNED | RELABELED)
