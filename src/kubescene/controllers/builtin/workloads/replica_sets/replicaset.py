"""The ReplicaSet controller: as many active pods as asked for, and a status that says so.

ReplicationControllers are the older form of the same: another kind with a plain selector.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubescene.api.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER
from kubescene.api.options import LASTING, DeleteOptions, WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.changes import ADDED, DELETED, MODIFIED, Change
from kubescene.api.records.templates import Blueprint
from kubescene.api.records.traits import COMES_OR_GOES, OWNED, RELABELED
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import LabelSelector, from_label_selector, from_labels
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, format_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.orphans import Orphans
from kubescene.controllers.builtin.workloads.pod_tally import (
    UNKNOWN_TIME,
    OwnedPod,
    PodTally,
    counts_alike,
    owned_pod,
    owned_record,
)
from kubescene.controllers.builtin.workloads.replica_sets.pod_ranking import DeletionOrder
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Recount,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

REPORTERS = {
    "ReplicaSet": "replicaset-controller",
    "ReplicationController": "replication-controller",
}
BURST_REPLICAS = 500
"""At most this many pods are created or deleted in one pass."""


class SettledSet(msgspec.Struct, frozen=True):
    """A set with nothing left to do: it has its pods, and the status that a pass has found.

    That stays so while neither the set nor the counts of its pods change.
    """

    tally: PodTally
    changes: int
    spec: JsonObject
    status: JsonObject

    @property
    def lasts(self) -> bool:
        return self.tally.changes == self.changes

    def is_of(self, replica_set: JsonObject) -> bool:
        """Whether a set is as the pass has left it."""
        return (
            replica_set["spec"] is self.spec
            and "deletionTimestamp" not in replica_set["metadata"]
            and replica_set.get("status") == self.status
        )


class ReplicaSetReconciler:
    """Keeps every ReplicaSet at ``spec.replicas``.

    Between passes it remembers, per set: the tally of owned pods, orphans that match its selector,
    the last refused write (the condition ReplicaFailure), and whether it is at rest, or will be
    once its status is written.
    """

    name = "replicaset"
    gvk = REPLICA_SET
    resource = "replicasets"
    kinds: Sequence[GroupVersionKind] = (REPLICA_SET, POD)
    pod_traits = COMES_OR_GOES | OWNED | RELABELED

    def __init__(self) -> None:
        self._tallies: defaultdict[str, PodTally] = defaultdict(PodTally)
        self._orphans = Orphans()
        self._failures: dict[ObjectKey, JsonObject] = {}
        self._strangers: set[str] = set()
        """Owners of pods that are something else than a set."""
        self._made: dict[str, Create] = {}
        """The newest pod of each set, by the set's uid."""
        self._told: dict[ObjectKey, SettledSet] = {}
        self._at_rest: dict[ObjectKey, SettledSet] = {}
        self._orders: dict[str, DeletionOrder] = {}
        """By the uid of each set that had too many pods, and of those related to it."""
        self._families: dict[str, DeletionOrder] = {}
        """The same by the uid of the controller that has the sets."""

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource.resource == self.resource:
            return self._observe_set(change)
        return self._observe_pod(change)

    def _observe_set(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        told = self._told.pop(key, None)
        if told is not None and told.is_of(change.object):
            self._at_rest[key] = told
        else:
            self._at_rest.pop(key, None)
        self._observe_family(change)
        if change.type is DELETED:
            self._orphans.forget(key)
            self._failures.pop(key, None)
            self._at_rest.pop(key, None)
            self._tallies.pop(record.uid, None)
            self._made.pop(record.uid, None)
        elif change.type is ADDED:
            self._orphans.select(key, selector_of(change.object))
        return () if self._rests(key) else (key,)

    def _observe_family(self, change: Change) -> None:
        """A new set is related to others of its controller; any other news make a new family."""
        record, previous = change.record, change.previous
        before = record.owner if previous is None else previous.owner
        if change.type is ADDED and record.uid not in self._tallies:
            if (family := self._families.get(record.owner)) is not None:
                self._orders[record.uid] = family
        elif change.type is not MODIFIED or before != record.owner:
            for order in (self._orders.get(record.uid), self._families.get(record.owner)):
                self._forget(order)

    def _forget(self, order: DeletionOrder | None) -> None:
        """Who goes first of some sets is found out anew once somebody has to know."""
        if order is not None:
            for kept in (self._orders, self._families):
                for uid in [uid for uid, each in kept.items() if each is order]:
                    del kept[uid]

    def _observe_pod(self, change: Change) -> Iterable[ObjectKey]:
        record, previous = change.record, change.previous
        if previous is None and not record.owner:
            return self._orphans.observe(change)
        if record.owner in self._strangers and (previous is None or previous.owner == record.owner):
            return ()
        key = ObjectKey(record.namespace, record.name)
        if (
            previous is not None
            and previous.owner == record.owner != ""
            and change.type is MODIFIED
        ):
            return self._observe_owned(key, change, previous)
        concerned = dict.fromkeys(self._orphans.observe(change))
        if previous is not None and previous.owner:
            gone = change.type is DELETED
            if gone or previous.owner != record.owner:
                self._tallies[previous.owner].remove(key)
                if (order := self._orders.get(previous.owner)) is not None:
                    order.remove(key)
                note(concerned, owner_key(change.previous_object, self.gvk.kind))
        if record.owner and change.type is not DELETED:
            tally = self._tallies[record.owner]
            tally.put(key, owned_record(record))
            if (order := self._orders.get(record.owner)) is not None:
                order.put(record.owner, key, change.object)
            note(concerned, owner := self._owner_of(change, tally))
            if owner is None:
                self._strangers.add(record.owner)
                del self._tallies[record.owner]
        return concerned

    def _observe_owned(
        self, key: ObjectKey, change: Change, previous: Record
    ) -> Iterable[ObjectKey]:
        """A pod that had an owner, and keeps it: nobody can adopt it, then or now."""
        record = change.record
        tally = self._tallies[record.owner]
        known = tally.pods.get(key)
        same_labels = known is not None and record.labels == previous.labels
        labels = known.labels if known is not None and same_labels else None
        pod, changes = owned_record(record, labels), tally.changes
        tally.put(key, pod)
        if (order := self._orders.get(record.owner)) is not None:
            order.put(record.owner, key, change.object)
        owner = self._owner_of(change, tally)
        if owner is not None and known is not None and not same_labels:
            self._relabeled(owner, known, pod, changes)
        return () if owner is None or self._rests(owner) else (owner,)

    def _relabeled(self, owner: ObjectKey, old: OwnedPod, new: OwnedPod, changes: int) -> None:
        """A set at rest stays at rest if a pod gets more labels, as it does from its node.

        ``changes`` are those of its tally before.
        """
        rest = self._at_rest.get(owner)
        if (
            rest is None
            or rest.changes != changes
            or not counts_alike(replace(old, labels=new.labels), new)
        ):
            return
        all_labeled = rest.status.get("fullyLabeledReplicas", 0) == rest.tally.active
        if not all_labeled or not {*old.labels} <= {*new.labels}:
            return
        if self._orphans.selector(owner).matches(dict(new.labels)):
            self._at_rest[owner] = replace(rest, changes=rest.tally.changes)

    def _owner_of(self, change: Change, tally: PodTally) -> ObjectKey | None:
        """The ReplicaSet that manages a pod: the same for all of one tally."""
        if tally.owner is None:
            tally.owner = owner_key(change.object, self.gvk.kind)
        return tally.owner

    def _rests(self, key: ObjectKey) -> bool:
        """Whether a pass would find nothing to do; it would again until something changes."""
        rest = self._at_rest.get(key)
        return rest is not None and rest.lasts and not self._orphans.waits(key)

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        if self._rests(key):
            return NOTHING
        replica_set = reader.find(ObjectRef(self.gvk, key.name, key.namespace))
        if replica_set is None:
            return NOTHING
        tally = self._tallies[replica_set["metadata"]["uid"]]
        if not replica_set["metadata"].get("deletionTimestamp"):
            # Pods that change bring this key back, and the status is counted then.
            if claims := self._claims(key, replica_set, tally, reader):
                return Plan(claims)
            if scaling := self._scaling(replica_set, tally, reader, now):
                return Plan(scaling)
            self._failures.pop(key, None)
        return self._status_plan(key, replica_set, tally, now)

    def recount(self, key: ObjectKey, now: int) -> Recount | None:
        """The counts of a set at rest of which one more pod has become ready."""
        rest = self._at_rest.get(key)
        if rest is None or self._orphans.waits(key):
            return None
        tally, status, ready = rest.tally, rest.status, rest.tally.ready
        is_one = tally.changes == rest.changes + 1 and tally.active == status["replicas"]
        if not is_one or status.get("readyReplicas") != ready - 1:
            return None
        counts = {"readyReplicas": ready, "availableReplicas": ready}
        return Recount(self.gvk, key, counts, {**status, **counts})

    def recounted(self, recount: Recount) -> None:
        rest = self._at_rest[recount.key]
        changes = rest.tally.changes
        self._at_rest[recount.key] = SettledSet(rest.tally, changes, rest.spec, recount.status)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A refused create or delete shows up as the condition ReplicaFailure."""
        if isinstance(error, NotFoundError) and not isinstance(write, Create):
            return NOTHING
        replica_set = reader.find(ObjectRef(self.gvk, key.name, key.namespace))
        if replica_set is None:
            return NOTHING
        tally = self._tallies[replica_set["metadata"]["uid"]]
        if error.has_cause("NamespaceTerminating"):  # No pod will ever be created: no failure.
            return self._status_plan(key, replica_set, tally, now)
        condition = {
            "type": "ReplicaFailure",
            "status": "True",
            "reason": "FailedCreate" if isinstance(write, Create) else "FailedDelete",
            "message": error.message,
            "lastTransitionTime": format_time(now),
        }
        # As in kube-controller-manager, the condition stays as it was first set.
        self._failures.setdefault(key, condition)
        plan = self._status_plan(key, replica_set, tally, now)
        what = "creating" if isinstance(write, Create) else "deleting"
        message = f"Error {what}: {error.message}"
        return replace(plan, notices=(notice(replica_set, WARNING, condition["reason"], message),))

    def _claims(
        self, key: ObjectKey, replica_set: JsonObject, tally: PodTally, reader: Reader
    ) -> list[Write]:
        """Release owned pods that no longer match, adopt orphans that do."""
        selector = self._orphans.selector(key)
        writes: list[Write] = []
        if not all(selector.matches(dict(labels)) for labels in tally.active_labels):
            writes += [
                release(key, replica_set, reader)
                for key, pod in tally.pods.items()
                if pod.active and not selector.matches(dict(pod.labels))
            ]
        for name in self._orphans.adoptable(key):
            pod = reader.find(ObjectRef(POD, name, key.namespace))
            if pod is not None and is_adoptable(pod, selector):
                writes.append(adopt(pod, replica_set))
        return writes

    def _scaling(
        self, replica_set: JsonObject, tally: PodTally, reader: Reader, now: int
    ) -> list[Write]:
        """Create what is missing or delete what is too much, a burst at a time."""
        difference = int(replica_set["spec"].get("replicas", 1)) - tally.active
        if difference > 0:
            return [self._create(replica_set)] * min(difference, BURST_REPLICAS)
        if difference == 0:
            return []
        uid, count = replica_set["metadata"]["uid"], min(-difference, BURST_REPLICAS)
        doomed = self._order(replica_set, reader).first(uid, count, now)
        pods = [reader.find(ObjectRef(POD, each.name, each.namespace)) for each in doomed]
        return [deletion(pod, replica_set) for pod in pods if pod is not None]

    def _create(self, replica_set: JsonObject) -> Create:
        """Another pod; if it is like the one before, this is said (`Blueprint`)."""
        uid, pod = replica_set["metadata"]["uid"], pod_of(replica_set)
        news = notice(replica_set, NORMAL, "SuccessfulCreate", "Created pod: {name}")
        before = self._made.get(uid)
        if before is not None and before.obj == pod:
            return replace(before, notice=news)
        made = self._made[uid] = Create(pod, news, WriteOptions(blueprint=Blueprint(pod)))
        return made

    def _order(self, replica_set: JsonObject, reader: Reader) -> DeletionOrder:
        """Who of a set goes first; from the first question on it is kept up."""
        uid = replica_set["metadata"]["uid"]
        if (known := self._orders.get(uid)) is not None:
            return known
        above = above_of(replica_set) if self.gvk == REPLICA_SET else None
        order, sets = DeletionOrder(relieves_nodes=above is not None), {uid: None}
        if above is not None:
            sets |= {each["metadata"]["uid"]: None for each in reader.owned(REPLICA_SET, above)}
            self._families[above] = order
        for each in sets:
            self._orders[each] = order
            for pod in reader.owned(POD, each):
                metadata = pod["metadata"]
                order.put(each, ObjectKey(metadata["namespace"], metadata["name"]), pod)
        return order

    def _status_plan(
        self, key: ObjectKey, replica_set: JsonObject, tally: PodTally, now: int
    ) -> Plan:
        failure = self._failures.get(key)
        status, recheck = desired_status(replica_set, tally, now, failure)
        rest = self._rest(key, replica_set, tally, status)
        old = replica_set.get("status") or {}
        if status == old:
            put(self._at_rest, key, rest)
            return Plan(requeue_after=recheck)
        put(self._told, key, rest)
        removed = {name: None for name in old if name not in status}
        patch = {"status": {**removed, **status}}
        write = Patch(ObjectRef.to(replica_set), patch, subresource="status", options=LASTING)
        return Plan((write,), requeue_after=recheck)

    def _rest(
        self, key: ObjectKey, replica_set: JsonObject, tally: PodTally, status: JsonObject
    ) -> SettledSet | None:
        """A set that has its pods and this status needs nothing until one of them changes."""
        spec, metadata = replica_set["spec"], replica_set["metadata"]
        plain = not spec.get("minReadySeconds") and "deletionTimestamp" not in metadata
        return (
            SettledSet(tally, tally.changes, spec, status)
            if plain and key not in self._failures
            else None
        )


class ReplicationControllerReconciler(ReplicaSetReconciler):
    """The same for ReplicationControllers; nobody pays for pods in a world without them."""

    name = "replicationcontroller"
    gvk = REPLICATION_CONTROLLER
    resource = "replicationcontrollers"
    kinds: Sequence[GroupVersionKind] = (REPLICATION_CONTROLLER,)
    needs_pods = False

    def _observe_set(self, change: Change) -> Iterable[ObjectKey]:
        self.needs_pods = True
        return super()._observe_set(change)


def deletion(pod: JsonObject, replica_set: JsonObject) -> Delete:
    metadata = pod["metadata"]
    news = notice(replica_set, NORMAL, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")
    return Delete(ObjectRef.to(pod), DeleteOptions(uid=metadata["uid"]), news)


def notice(replica_set: JsonObject, kind: str, reason: str, message: str) -> Notice:
    return Notice(regarding(replica_set), kind, reason, message, REPORTERS[replica_set["kind"]])


def put(rests: dict[ObjectKey, SettledSet], key: ObjectKey, rest: SettledSet | None) -> None:
    """Note a rest, or that there is none."""
    if rest is None:
        rests.pop(key, None)
    else:
        rests[key] = rest


def note(concerned: dict[ObjectKey, None], key: ObjectKey | None) -> None:
    if key is not None:
        concerned.setdefault(key)


def above_of(replica_set: JsonObject) -> str | None:
    """The uid of the set's own controller, if it has one."""
    owners = replica_set["metadata"].get("ownerReferences") or ()
    return next((each["uid"] for each in owners if each.get("controller")), None)


def selector_of(replica_set: JsonObject) -> LabelSelector:
    """The selector of a ReplicaSet; that of a ReplicationController is a set of labels."""
    selector = replica_set["spec"]["selector"]
    is_plain = replica_set["kind"] == REPLICATION_CONTROLLER.kind
    return from_labels(selector) if is_plain else from_label_selector(selector)


def owner_key(pod: JsonObject | None, kind: str) -> ObjectKey | None:
    """The set of this kind that manages the pod, if one does."""
    metadata = pod["metadata"] if pod else {}
    for reference in metadata.get("ownerReferences", ()):
        if reference.get("controller") and reference["kind"] == kind:
            return ObjectKey(metadata["namespace"], reference["name"])
    return None


def pod_of(replica_set: JsonObject) -> JsonObject:
    """A new pod from the template, owned by the set."""
    template = replica_set["spec"]["template"]
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "generateName": f"{replica_set['metadata']['name']}-",
        "namespace": replica_set["metadata"]["namespace"],
    }
    for field in ("labels", "annotations", "finalizers"):
        if given.get(field):
            metadata[field] = given[field]
    metadata["ownerReferences"] = [controller_of(replica_set)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def is_adoptable(pod: JsonObject, selector: LabelSelector) -> bool:
    summary = owned_pod(pod)
    owners = pod["metadata"].get("ownerReferences", ())
    orphaned = not any(reference.get("controller") for reference in owners)
    return orphaned and summary.active and selector.matches(dict(summary.labels))


def adopt(pod: JsonObject, replica_set: JsonObject) -> Patch:
    references = pod["metadata"].get("ownerReferences", [])
    patch = {
        "metadata": {
            "ownerReferences": [*references, controller_of(replica_set)],
            "uid": pod["metadata"]["uid"],
        }
    }
    return Patch(ObjectRef.to(pod), patch)


def release(key: ObjectKey, replica_set: JsonObject, reader: Reader) -> Patch:
    """Give up a pod: drop the owner reference, keep the pod."""
    ref = ObjectRef(POD, key.name, key.namespace)
    references = reader.get(ref)["metadata"].get("ownerReferences", [])
    kept = [r for r in references if r["uid"] != replica_set["metadata"]["uid"]]
    return Patch(ref, {"metadata": {"ownerReferences": kept or None}})


def desired_status(
    replica_set: JsonObject, tally: PodTally, now: int, failure: JsonObject | None
) -> tuple[JsonObject, int | None]:
    """The status that fits the pods, and the time until a ready pod becomes available."""
    spec = replica_set["spec"]
    waiting = not_yet_available(tally, int(spec.get("minReadySeconds", 0)) * SECOND, now)
    wanted = (spec["template"].get("metadata") or {}).get("labels") or {}
    counts = {
        "fullyLabeledReplicas": tally.matching(wanted),
        "readyReplicas": tally.ready,
        "availableReplicas": tally.ready - len(waiting),
    }
    status: dict[str, Any] = {"replicas": tally.active}
    status |= {name: count for name, count in counts.items() if count}
    # The one optional count that kube-controller-manager also writes when it is zero.
    if replica_set["kind"] == REPLICA_SET.kind:
        status["terminatingReplicas"] = tally.terminating
    status["observedGeneration"] = replica_set["metadata"].get("generation", 1)
    if failure is not None:
        status["conditions"] = [failure]
    known = (each for each in waiting if each < UNKNOWN_TIME // 2)
    return status, min(known, default=None)


def not_yet_available(tally: PodTally, delay: int, now: int) -> list[int]:
    """For each ready pod that must stay ready a while longer: how much longer."""
    if not delay:
        return []
    ready = (p.ready_since for p in tally.pods.values() if p.active and p.ready_since is not None)
    return [since + delay - now for since in ready if since + delay > now]


def replicaset(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(ReplicaSetReconciler(), context)


def replicationcontroller(context: ControllerContext) -> LatePodsController:
    """The factory of the controller of ReplicationControllers."""
    traits = ReplicationControllerReconciler.pod_traits
    return LatePodsController(ReplicationControllerReconciler(), context, traits)
