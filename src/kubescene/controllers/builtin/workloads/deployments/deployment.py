"""The Deployment controller: a ReplicaSet for every pod template, and the way from one to the next.

A pass claims ReplicaSets, gives the one with the current template its revision, then resizes:
proportionally if the Deployment was scaled or is paused, else as its strategy says. What the
sets make of it comes back as their status, and the next pass goes on from there. The decisions are
in the modules beside this one; here they become writes.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kubescene.api.kinds import POD, REPLICA_SET
from kubescene.api.options import LASTING, DeleteOptions
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import from_label_selector
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.workloads.deployments import status as statuses
from kubescene.controllers.builtin.workloads.deployments.counting import CountedRollout, waiting_of
from kubescene.controllers.builtin.workloads.deployments.revisions import (
    REVISION_ANNOTATION,
    changed_annotations,
    new_replica_set,
    size_annotations,
    surplus_history,
)
from kubescene.controllers.builtin.workloads.deployments.rolling import (
    new_size,
    old_sizes,
    proportional_sizes,
)
from kubescene.controllers.builtin.workloads.deployments.rollout import (
    Rollout,
    Standing,
    rollout_of,
)
from kubescene.controllers.builtin.workloads.deployments.sets import (
    OwnedSet,
    annotations_of,
    owned_set,
)
from kubescene.controllers.builtin.workloads.deployments.status import (
    Conditions,
    progressing,
    with_condition,
)
from kubescene.controllers.builtin.workloads.orphans import Orphans
from kubescene.controllers.builtin.workloads.pod_tally import TERMINAL_PHASES
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
from kubescene.errors import AlreadyExistsError, ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REPORTER = "deployment-controller"
NO_SIZES: Mapping[str, int] = {}


class StatusPass(msgspec.Struct, frozen=True):
    """What a pass looked at that writes nothing but ``status``.

    What it wrote comes back as a change. A pass at the same instant that finds just that, and no
    set that has changed, has nothing left to do but to wait for the deadline.
    """

    spec: JsonObject
    annotations: JsonObject | None
    status: JsonObject

    def is_all(self, deployment: JsonObject) -> bool:
        """Whether the Deployment is what the pass has left."""
        metadata = deployment["metadata"]
        return (
            deployment["spec"] is self.spec
            and "deletionTimestamp" not in metadata
            and metadata.get("annotations") == self.annotations
            and deployment.get("status") == self.status
        )


class DeploymentReconciler:
    """Keys are Deployments.

    Between passes it remembers their uids, orphaned ReplicaSets, what was told, who is at rest
    since which instant, and rollouts that wait for pods.
    """

    name = "deployment"
    kinds: Sequence[GroupVersionKind] = (DEPLOYMENT, REPLICA_SET)

    def __init__(self) -> None:
        self._keys: dict[str, ObjectKey] = {}
        self._orphans = Orphans()
        self._told: dict[ObjectKey, StatusPass] = {}
        self._at_rest: dict[ObjectKey, int] = {}
        self._standing: dict[ObjectKey, Standing] = {}
        self._waiting: dict[ObjectKey, CountedRollout] = {}
        self._now = 0

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource.resource == "replicasets":
            return self._observe_set(change)
        return self._observe_deployment(change)

    def _observe_deployment(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        told = self._told.pop(key, None)
        if told is not None and told.is_all(change.object):
            self._at_rest[key] = self._now
        else:
            self._at_rest.pop(key, None)
            self._waiting.pop(key, None)
        if change.type is ChangeType.DELETED:
            self._keys.pop(record.uid, None)
            self._orphans.forget(key)
            self._at_rest.pop(key, None)
            self._standing.pop(key, None)
        elif change.type is ChangeType.ADDED:
            self._keys[record.uid] = key
            self._orphans.select(key, from_label_selector(change.object["spec"]["selector"]))
        return (key,)

    def _observe_set(self, change: Change) -> Iterable[ObjectKey]:
        owner, previous = change.record.owner, change.previous
        keys = [self._keys[owner]] if owner in self._keys else []
        if previous is not None and previous.owner != owner and previous.owner in self._keys:
            keys.insert(0, self._keys[previous.owner])
        keys += self._orphans.observe(change)
        for key in keys:
            self._at_rest.pop(key, None)
            self._told.pop(key, None)
            waiting = self._waiting.get(key)
            if waiting is not None and not waiting.sees(change):
                del self._waiting[key]
        return keys

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        self._now = now
        if self._at_rest.pop(key, None) == now:
            return NOTHING
        self._told.pop(key, None)
        self._waiting.pop(key, None)
        deployment = reader.find(ObjectRef(DEPLOYMENT, key.name, key.namespace))
        if deployment is None:
            return NOTHING
        owned = reader.owned(REPLICA_SET, deployment["metadata"]["uid"])
        rollout = self._renewed(key, deployment, owned)
        if rollout is None:
            return self._look(key, deployment, owned, reader)
        return self._roll_out(key, rollout, owned, reader)

    def _renewed(
        self, key: ObjectKey, deployment: JsonObject, owned: Sequence[JsonObject]
    ) -> Rollout | None:
        """The rollout, if nothing but statuses has changed since it was last looked at."""
        standing = self._standing.pop(key, None)
        if standing is None or "deletionTimestamp" in deployment["metadata"]:
            return None
        return None if self._orphans.waits(key) else standing.renewed(deployment, owned)

    def _look(
        self, key: ObjectKey, deployment: JsonObject, owned: Sequence[JsonObject], reader: Reader
    ) -> Plan:
        """A pass over everything."""
        now = self._now
        leaving = bool(deployment["metadata"].get("deletionTimestamp"))
        # Sets that change bring this key back, and the pass goes on from there.
        if not leaving and (claims := self._claims(key, deployment, owned, reader)):
            return Plan(claims)
        rollout = rollout_of(deployment, owned)
        if revising := revision_writes(rollout):
            return Plan(revising)
        if leaving:
            return tell(rollout, statuses.counted_status(rollout, found(rollout, now), now))
        if rollout.is_paused or rollout.is_scaled:
            return scale(rollout, now)
        return self._roll_out(key, rollout, owned, reader)

    def _roll_out(
        self, key: ObjectKey, rollout: Rollout, owned: Sequence[JsonObject], reader: Reader
    ) -> Plan:
        deployment = rollout.deployment
        self._standing[key] = Standing(rollout, owned)
        plan = roll_out(rollout, reader, self._now)
        status = status_told(plan)
        # What is complete is tidied up next, and Recreate looks at pods as well.
        if status and rollout.limits.rolling and not statuses.is_complete(deployment, status):
            annotations = deployment["metadata"].get("annotations")
            self._told[key] = StatusPass(deployment["spec"], annotations, status)
            if (waiting := waiting_of(rollout, status, self._now)) is not None:
                self._waiting[key] = waiting
            return Plan(plan.writes, statuses.until_deadline(deployment, status, self._now))
        return plan

    def recount(self, key: ObjectKey, now: int) -> Recount | None:
        """The counts of a rollout that waits for pods, of which some more are ready."""
        waiting = self._waiting.get(key)
        if waiting is None or waiting.now != now or self._orphans.waits(key):
            return None
        counts = waiting.recount()
        if counts is None:
            return None
        return Recount(DEPLOYMENT, key, counts, {**waiting.status, **counts})

    def recounted(self, recount: Recount) -> None:
        self._waiting[recount.key].told(recount.status)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A name that is taken asks for another hash; other refusals show as Progressing."""
        deployment = reader.find(ObjectRef(DEPLOYMENT, key.name, key.namespace))
        if deployment is None or is_terminating(error):
            return NOTHING
        if isinstance(write, Create):
            return not_created(deployment, write.obj, error, now)
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _claims(
        self, key: ObjectKey, deployment: JsonObject, owned: Iterable[JsonObject], reader: Reader
    ) -> list[Write]:
        """Release owned sets that no longer match, adopt orphans that do."""
        selector = self._orphans.selector(key)
        strays = [it for it in owned if not selector.matches(it["metadata"].get("labels") or {})]
        writes: list[Write] = [release(stray, deployment) for stray in strays]
        for name in self._orphans.adoptable(key):
            orphan = reader.find(ObjectRef(REPLICA_SET, name, key.namespace))
            if orphan is not None and not orphan["metadata"].get("deletionTimestamp"):
                writes.append(adopt(orphan, deployment))
        return writes


# -- passes ------------------------------------------------------------------------------------


def revision_writes(rollout: Rollout) -> list[Write]:
    """Bring the new set's annotations and minReadySeconds up to date."""
    new = rollout.new
    if new is None:
        return []
    changes: JsonObject = {}
    if annotations := changed_annotations(rollout, new.annotations):
        changes["metadata"] = {"annotations": annotations}
    delay = rollout.deployment["spec"].get("minReadySeconds", 0)
    if new.obj["spec"].get("minReadySeconds", 0) != delay:
        changes["spec"] = {"minReadySeconds": delay}
    return [Patch(ObjectRef.to(new.obj), changes)] if changes else []


def scale(rollout: Rollout, now: int) -> Plan:
    """The Deployment was scaled, or it is paused: nothing is rolled out."""
    writes = scaling_writes(rollout)
    if rollout.is_paused:
        writes += history_writes(rollout)
    conditions = found(rollout, now, paused_or_resumed(rollout, now))
    return tell(rollout, statuses.counted_status(rollout, conditions, now), writes)


def roll_out(rollout: Rollout, reader: Reader, now: int) -> Plan:
    """The next step of the strategy."""
    conditions = found(rollout, now, paused_or_resumed(rollout, now))
    writes = rolling_writes(rollout) if rollout.limits.rolling else recreating(rollout, reader)
    for write in writes:
        if isinstance(write, Create):
            rollout = replace(rollout, new=owned_set(write.obj))
            message = f'Created new replica set "{write.obj["metadata"]["name"]}"'
            news = progressing("True", statuses.CREATED, message, now)
            conditions = with_watched(rollout, conditions, news)
    if not writes and statuses.is_complete(rollout.deployment, rollout.status):
        writes = history_writes(rollout)
    status = statuses.rollout_status(rollout, conditions, now)
    plan = tell(rollout, status, writes)
    if plan.writes:
        return plan
    return Plan(requeue_after=statuses.until_deadline(rollout.deployment, status, now))


def rolling_writes(rollout: Rollout) -> list[Write]:
    if rollout.new is None:
        return [creation(rollout, new_size(0, rollout.total, rollout.limits))]
    grown = new_size(rollout.new.size, rollout.total, rollout.limits)
    if grown != rollout.new.size:
        return [resize(rollout.new, grown, rollout)]
    if not rollout.olds:
        return []
    healthy, sizes = old_sizes(rollout.new, rollout.olds, rollout.limits)
    # As in kube-controller-manager, unhealthy pods go in a write of their own.
    return [*resizes(rollout, healthy), *resizes(rollout, sizes, healthy)]


def recreating(rollout: Rollout, reader: Reader) -> list[Write]:
    """All old pods go; only when the last has stopped the new ones come."""
    if active := rollout.active_olds:
        return [resize(old, 0, rollout) for old in active]
    if any(still_runs(old, reader) for old in rollout.olds):
        return []
    if rollout.new is None:
        return [creation(rollout, rollout.limits.replicas)]
    return resizes(rollout, {rollout.new.name: rollout.limits.replicas})


def still_runs(old: OwnedSet, reader: Reader) -> bool:
    """Whether a set has pods that have not ended; its status changes when the last one does."""
    if old.counted("replicas") or old.counted("terminatingReplicas"):
        return True
    pods = reader.owned(POD, old.obj["metadata"]["uid"])
    return any((pod.get("status") or {}).get("phase") not in TERMINAL_PHASES for pod in pods)


def scaling_writes(rollout: Rollout) -> list[Write]:
    """One set follows the Deployment; several share, unless the new one has all it needs."""
    active = [it for it in rollout.sets if it.is_active]
    if len(active) <= 1:
        only = (active or rollout.sets)[-1:]
        return resizes(rollout, {it.name: rollout.limits.replicas for it in only})
    if is_saturated(rollout):
        return resizes(rollout, {old.name: 0 for old in rollout.active_olds})
    if not rollout.limits.rolling:
        return []
    running = int(rollout.status.get("replicas", 0))
    sizes = proportional_sizes(active, rollout.limits, running)
    wanted = size_annotations(rollout).items()
    by_name = {it.name: it for it in active}
    return [
        resize(it, sizes[it.name], rollout)
        for it in map(by_name.__getitem__, sizes)
        if sizes[it.name] != it.size or not wanted <= it.annotations.items()
    ]


def is_saturated(rollout: Rollout) -> bool:
    """Whether the new set has all pods that the Deployment asks for, available."""
    new, replicas = rollout.new, rollout.limits.replicas
    return new is not None and (new.size, new.desired, new.available) == (replicas,) * 3


def history_writes(rollout: Rollout) -> list[Write]:
    surplus = surplus_history(rollout)
    return [
        Delete(ObjectRef.to(it.obj), DeleteOptions(uid=it.obj["metadata"]["uid"])) for it in surplus
    ]


def resizes(
    rollout: Rollout, sizes: Mapping[str, int], before: Mapping[str, int] = NO_SIZES
) -> list[Write]:
    """Writes for those sets whose size differs from what it is, or was made ``before``."""
    writes: list[Write] = []
    for it in rollout.sets:
        size = before.get(it.name, it.size)
        if sizes.get(it.name, size) != size:
            writes.append(resize(it, sizes[it.name], rollout, size))
    return writes


def creation(rollout: Rollout, size: int) -> Create:
    replica_set = new_replica_set(rollout, size)
    return Create(replica_set, scaled(rollout, replica_set["metadata"]["name"], 0, size))


def resize(it: OwnedSet, size: int, rollout: Rollout, before: int | None = None) -> Patch:
    before = it.size if before is None else before
    annotations = size_annotations(rollout)
    patch = {"metadata": {"annotations": annotations}, "spec": {"replicas": size}}
    return Patch(ObjectRef.to(it.obj), patch, notice=scaled(rollout, it.name, before, size))


def scaled(rollout: Rollout, name: str, before: int, size: int) -> Notice | None:
    """What is said of a set that gets another size."""
    if size == before:
        return None
    direction = "up" if size > before else "down"
    message = f"Scaled {direction} replica set {name} from {before} to {size}"
    return Notice(regarding(rollout.deployment), NORMAL, "ScalingReplicaSet", message, REPORTER)


# -- claiming ----------------------------------------------------------------------------------


def adopt(replica_set: JsonObject, deployment: JsonObject) -> Patch:
    metadata = replica_set["metadata"]
    references = [*(metadata.get("ownerReferences") or ()), controller_of(deployment)]
    patch = {"metadata": {"ownerReferences": references, "uid": metadata["uid"]}}
    return Patch(ObjectRef.to(replica_set), patch)


def release(replica_set: JsonObject, deployment: JsonObject) -> Patch:
    """Give up a set: drop the owner reference, keep the set."""
    references = replica_set["metadata"].get("ownerReferences") or ()
    kept = [it for it in references if it["uid"] != deployment["metadata"]["uid"]]
    return Patch(ObjectRef.to(replica_set), {"metadata": {"ownerReferences": kept or None}})


# -- telling -----------------------------------------------------------------------------------


def tell(rollout: Rollout, status: JsonObject, writes: Sequence[Write] = ()) -> Plan:
    """The writes, then the status if it has changed."""
    deployment = rollout.deployment
    patch: JsonObject = {}
    if status != rollout.status:
        patch["status"] = {**dict.fromkeys(rollout.status), **status}
    annotations = rollout.new.annotations if rollout.new else {}
    revision = annotations.get(REVISION_ANNOTATION)
    if revision and annotations_of(deployment).get(REVISION_ANNOTATION) != revision:
        patch["metadata"] = {"annotations": {REVISION_ANNOTATION: revision}}
    if patch:
        ref = ObjectRef.to(deployment)
        writes = [*writes, Patch(ref, patch, subresource="status", options=LASTING)]
    return Plan(writes) if writes else NOTHING


def status_told(plan: Plan) -> JsonObject:
    """The status that a plan writes, if that is all it does; otherwise nothing."""
    if len(plan.writes) != 1 or not isinstance(write := plan.writes[0], Patch):
        return {}
    if write.subresource != "status" or [*write.patch] != ["status"]:
        return {}
    return {name: value for name, value in write.patch["status"].items() if value is not None}


def with_watched(rollout: Rollout, conditions: Conditions, news: JsonObject) -> Conditions:
    """Tell news of progress, if anybody watches it."""
    watched = statuses.progress_deadline(rollout.deployment) is not None
    return with_condition(conditions, news) if watched else conditions


def found(rollout: Rollout, now: int, conditions: Conditions | None = None) -> Conditions:
    """The conditions as they are; of a set that was there before, that it was found."""
    told = conditions or rollout.status.get("conditions") or ()
    if rollout.new is None or statuses.find(told, statuses.PROGRESSING) is not None:
        return told
    message = f'Found new replica set "{rollout.new.name}"'
    return with_watched(rollout, told, progressing("True", statuses.FOUND, message, now))


def paused_or_resumed(rollout: Rollout, now: int) -> Conditions:
    """The time that a Deployment is paused must not count as lack of progress."""
    told: Conditions = rollout.status.get("conditions") or ()
    reason = (statuses.find(told, statuses.PROGRESSING) or {}).get("reason")
    was_paused = reason == statuses.PAUSED
    if reason == statuses.TIMED_OUT or was_paused == rollout.is_paused:
        return told
    news = (
        progressing("Unknown", statuses.PAUSED, "Deployment is paused", now)
        if rollout.is_paused
        else progressing("Unknown", statuses.RESUMED, "Deployment is resumed", now)
    )
    return with_watched(rollout, told, news)


def not_created(deployment: JsonObject, replica_set: JsonObject, error: ApiError, now: int) -> Plan:
    status = deployment.get("status") or {}
    if isinstance(error, AlreadyExistsError):
        changes = {"collisionCount": status.get("collisionCount", 0) + 1}
        return Plan((status_patch(deployment, changes),))
    name = replica_set["metadata"]["name"]
    message = f'Failed to create new replica set "{name}": {error.message}'
    news = progressing("False", statuses.NOT_CREATED, message, now)
    told = status.get("conditions") or ()
    conditions = with_watched(rollout_of(deployment, ()), told, news)
    writes = [status_patch(deployment, {"conditions": conditions})] if conditions != told else []
    failed = Notice(regarding(deployment), WARNING, statuses.NOT_CREATED, message, REPORTER)
    return Plan(writes, notices=(failed,))


def status_patch(deployment: JsonObject, changes: JsonObject) -> Patch:
    return Patch(ObjectRef.to(deployment), {"status": changes}, subresource="status")


def is_terminating(error: ApiError) -> bool:
    """Whether the namespace is going away: nothing can be created any more, and need not be."""
    return error.has_cause("NamespaceTerminating")


def deployment(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(DeploymentReconciler(), context)
