"""The Job controller: pods until enough of them have succeeded, or too many failed.

A pass follows kube-controller-manager's: pods that have ended are noted in the status as not yet
counted, lose their finalizer, and are counted; a Job that is over first says so, and has ended when
none of its pods is left. Unlike there, changes of pods are not gathered for a second.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct

from kubescene.api.kinds import JOB, POD
from kubescene.api.options import LASTING, DeleteOptions, WriteOptions
from kubescene.api.records.changes import ADDED, DELETED, Change
from kubescene.api.records.templates import OwnedBodies
from kubescene.api.records.traits import OWNED
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors import from_label_selector
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.jobs.indexes import (
    Indexes,
    first_free,
    parse_indexes,
)
from kubescene.controllers.builtin.workloads.jobs.pods import (
    FAILURES,
    IGNORED_FAILURES,
    INDEX,
    NO_INDEX,
    TRACKING,
    JobPod,
    JobPods,
    PodNumbers,
    job_pod,
    removal_order,
)
from kubescene.controllers.builtin.workloads.jobs.rules import (
    BACKOFF_LIMIT_EXCEEDED,
    COMPLETE,
    COMPLETIONS_REACHED,
    DEADLINE_EXCEEDED,
    FAIL_INDEX,
    FAIL_JOB,
    FAILED_INDEXES,
    FAILURE_TARGET,
    TERMINAL,
    TOO_MANY_FAILED_INDEXES,
    JobBackOff,
    PolicyVerdict,
    condition,
    exceeds_restarts,
    is_failed,
    is_finished,
    match_failure_policy,
    match_success_policy,
    remaining_for_index,
    replaces_failed_only,
    verdict_of,
)
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Write,
)
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

REPORTER = "job-controller"
OURS = "kubernetes.io/job-controller"
"""Whoever else a Job names in ``managedBy`` looks after it."""
MOST_AT_ONCE = 500
"""So many pods are created or deleted in one pass."""
LONGEST_PREFIX = 58
"""Of a name that is made up; the rest is chance."""


class JobAtRest(Struct, frozen=True):
    """What a pass leaves behind if all that it writes is accepted: the next one has nothing to do.

    ``standing`` is how the pods stand then. At ``until`` it has to be looked at all the same.
    """

    spec: JsonObject
    status: JsonObject
    standing: PodNumbers
    until: int | None

    def is_reached(self, job: JsonObject, pods: JobPods, now: int) -> bool:
        """Whether things are as the pass has left them."""
        is_early = self.until is None or now < self.until
        is_told = job["spec"] is self.spec and job.get("status") == self.status
        going = "deletionTimestamp" in job["metadata"]
        return is_early and is_told and not going and pods.standing == self.standing


class JobReconciler:
    """Keeps, per Job, what it knows of its pods and of failures in a row."""

    name = "job"
    kinds: Sequence[GroupVersionKind] = (JOB,)

    def __init__(self) -> None:
        self._jobs: dict[str, ObjectKey] = {}
        self._pods: dict[str, JobPods] = {}
        self._back_offs: dict[str, JobBackOff] = {}
        self._loose: dict[ObjectKey, dict[ObjectKey, None]] = {}
        """Pods that a Job has left behind, or let go, and that still have its finalizer."""
        self._alike = OwnedBodies()
        self._rests: dict[str, JobAtRest] = {}

    @property
    def needs_pods(self) -> bool:
        """Nobody pays for pods in a world without Jobs."""
        return bool(self._jobs)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "jobs":
            return self._observe_job(change)
        owner, previous = record.owner, change.previous
        before = previous.owner if previous is not None else ""
        if owner not in self._jobs and before not in self._jobs:
            return ()
        return self._observe_pod(change, owner, before)

    def _observe_job(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if change.type is ADDED:
            self._jobs[record.uid] = key
            self._pods[record.uid] = JobPods()
        elif change.type is DELETED:
            self._jobs.pop(record.uid, None)
            self._back_offs.pop(record.uid, None)
            self._rests.pop(record.uid, None)
            left = self._pods.pop(record.uid, None)
            if left is not None:
                self._loose.setdefault(key, {}).update({pod.key: None for pod in left.tracked})
        return (key,)

    def _observe_pod(self, change: Change, owner: str, before: str) -> Iterable[ObjectKey]:
        record = change.record
        pod_key = ObjectKey(record.namespace, record.name)
        concerned: dict[ObjectKey, None] = {}
        if before in self._jobs and (change.type is DELETED or before != owner):
            self._pods[before].remove(pod_key)
            concerned[self._jobs[before]] = None
            if change.type is not DELETED:
                self._loose.setdefault(self._jobs[before], {})[pod_key] = None
        if owner in self._jobs and change.type is not DELETED:
            self._pods[owner].put(job_pod(change.object))
            concerned[self._jobs[owner]] = None
        return concerned

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        loose = [
            untracked(each, pod["metadata"]["finalizers"])
            for each in self._loose.pop(key, ())
            if (pod := reader.find(ObjectRef(POD, each.name, each.namespace))) is not None
            and TRACKING in (pod["metadata"].get("finalizers") or ())
        ]
        job = reader.find(ObjectRef(JOB, key.name, key.namespace))
        if job is None or is_finished(job.get("status") or {}) or not is_ours(job):
            return Plan(loose)
        uid = job["metadata"]["uid"]
        rest = self._rests.get(uid)
        if rest is not None and rest.is_reached(job, self._pods[uid], now):
            return Plan(loose)
        self._rests.pop(uid, None)
        if job["spec"].get("manualSelector") and (adopted := adoptions(job, reader)):
            return Plan((*loose, *adopted))
        job_pass = JobPass(
            job, self._pods[uid], self._back_offs.get(uid, JobBackOff()), reader, now, self._alike
        )
        plan = job_pass.plan()
        self._back_offs[uid] = job_pass.back_off
        if (rest := job_pass.rest()) is not None:
            self._rests[uid] = rest
        return Plan((*loose, *plan.writes), plan.requeue_after, plan.notices)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """What is gone need not be deleted; a pod that may not be made is told of."""
        del now
        job = reader.find(ObjectRef(JOB, key.name, key.namespace))
        if job is not None:
            self._rests.pop(job["metadata"]["uid"], None)
        if job is None or (isinstance(error, NotFoundError) and not isinstance(write, Create)):
            return NOTHING
        if error.has_cause("NamespaceTerminating"):
            return NOTHING
        what = (
            ("FailedCreate", "creating")
            if isinstance(write, Create)
            else ("FailedDelete", "deleting")
        )
        message = f"Error {what[1]}: {error.message}"
        return Plan(notices=(notice(job, WARNING, what[0], message),))


class JobPass(Struct):
    """One look at one Job."""

    job: JsonObject
    pods: JobPods
    back_off: JobBackOff
    reader: Reader
    now: int
    alike: OwnedBodies
    writes: list[Write] = []
    requeue: int | None = None

    # What it works out on the way; see `_count`.
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded_indexes: Indexes = Indexes()
    failed_indexes: Indexes = Indexes()
    delayed: dict[int, JobPod] = {}
    """By index: the failed pod that is kept until its replacement has its count of failures."""
    removed: dict[ObjectKey, None] = {}
    """Pods that are deleted in this pass and not to be counted."""
    news: Notice | None = None
    """What is told with the new status."""
    last: JsonObject = {}
    """The status that there is in the end."""
    ended: int = 0
    """How many pods lose their finalizer."""
    deletes: bool = False

    @property
    def spec(self) -> JsonObject:
        spec: JsonObject = self.job["spec"]
        return spec

    @property
    def status(self) -> JsonObject:
        return self.job.get("status") or {}

    @property
    def is_indexed(self) -> bool:
        return self.spec.get("completionMode") == "Indexed"

    @property
    def completions(self) -> int | None:
        given = self.spec.get("completions")
        return None if given is None else int(given)

    @property
    def limits_indexes(self) -> bool:
        return self.is_indexed and self.spec.get("backoffLimitPerIndex") is not None

    @property
    def suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    @property
    def deleting(self) -> bool:
        return "deletionTimestamp" in self.job["metadata"]

    def plan(self) -> Plan:
        status = dict(self.status)
        if "startTime" not in status and not self.suspended:
            status["startTime"] = format_time(self.now)
        new_succeeded, new_failed = self._count()
        self.back_off = self.back_off.after(new_succeeded, new_failed)
        verdict = self._verdict(status)
        if verdict is not None:
            self._delete_active()
        else:
            if not self.deleting:
                self._manage()
            verdict = self._reached()
            if verdict is None and not self.deleting:
                self._note_suspension(status)
        self._track(status, verdict)
        return Plan(self.writes, self.requeue)

    def rest(self) -> JobAtRest | None:
        """What there is after the plan; None if pods go, or wait to be counted.

        Nor where a pass looks at more than numbers: at indexes, at pods that are nobody's.
        """
        if self.is_indexed or self.spec.get("manualSelector"):
            return None
        if self.deleting or self.deletes or self.ended < len(self.pods.to_count):
            return None
        standing = PodNumbers(self.active, self.ready, self.terminating, self.pods.restarts, 0)
        until = None if self.requeue is None else self.now + self.requeue
        return JobAtRest(self.spec, self.last, standing, until)

    # -- what there is ---------------------------------------------------------------------

    def _count(self) -> tuple[list[JobPod], list[JobPod]]:
        """Counts with pods that have ended since; those that have succeeded and failed."""
        pods, status, spec = self.pods, self.status, self.spec
        noted = status.get("uncountedTerminatedPods") or {}
        known = {*noted.get("succeeded", ()), *noted.get("failed", ())}
        ended = [pod for pod in pods.to_count if pod.uid not in known and self._has_place(pod)]
        succeeded = [pod for pod in ended if pod.phase == "Succeeded"]
        failed = [pod for pod in ended if is_failed(pod, spec)]
        self.succeeded = (
            int(status.get("succeeded", 0)) + len(succeeded) + len(noted.get("succeeded", ()))
        )
        self.failed = int(status.get("failed", 0)) + len(noted.get("failed", ()))
        self.failed += sum(match_failure_policy(spec, pod).counts for pod in failed)
        self.active, self.ready = pods.count_active, pods.ready
        self.terminating = pods.terminating
        if self.is_indexed:
            self._count_indexes(succeeded, failed)
        return succeeded, failed

    def _has_place(self, pod: JobPod) -> bool:
        """Whether a pod of an indexed Job has one of its indexes."""
        return not self.is_indexed or NO_INDEX < pod.index < (self.completions or 0)

    def _count_indexes(self, succeeded: list[JobPod], failed: list[JobPod]) -> None:
        status, completions = self.status, self.completions or 0
        before = parse_indexes(status.get("completedIndexes", ""), completions)
        self.succeeded_indexes = before.added(pod.index for pod in succeeded)
        self.succeeded = len(self.succeeded_indexes)
        if not self.limits_indexes:
            return
        before = parse_indexes(status.get("failedIndexes", ""), completions)
        self.failed_indexes = before.added(pod.index for pod in failed if self._fails_index(pod))
        over = self.succeeded_indexes | self.failed_indexes
        self.delayed = {}
        for pod in failed:
            if pod.index in over or pod.index in self.pods.active_at:
                continue
            other = self.delayed.get(pod.index)
            if other is None or all_failures(other) <= all_failures(pod):
                self.delayed[pod.index] = pod

    def _fails_index(self, pod: JobPod) -> bool:
        match = match_failure_policy(self.spec, pod)
        if match.action == FAIL_INDEX:
            return True
        return match.counts and pod.failures >= int(self.spec["backoffLimitPerIndex"])

    # -- whether it is over ----------------------------------------------------------------

    def _verdict(self, status: JsonObject) -> PolicyVerdict | None:
        """Why the Job is over, if it is; else when to look whether its time is up."""
        return verdict_of(status) or self._failure(status) or self._indexes_over()

    def _failure(self, status: JsonObject) -> PolicyVerdict | None:
        spec = self.spec
        for pod in self.pods.to_count if spec.get("podFailurePolicy") else ():
            if is_failed(pod, spec):
                match = match_failure_policy(spec, pod)
                if match.action == FAIL_JOB:
                    return PolicyVerdict(FAILURE_TARGET, "PodFailurePolicy", match.message)
        limit = spec.get("backoffLimit", 6)
        if self.failed > limit or exceeds_restarts(spec, self.pods.restarts):
            return BACKOFF_LIMIT_EXCEEDED
        deadline = spec.get("activeDeadlineSeconds")
        if deadline is None or self.suspended or "startTime" not in status:
            return None
        left = parse_time(status["startTime"]) + int(deadline) * SECOND - self.now
        if left <= 0:
            return DEADLINE_EXCEEDED
        self._look_again(left)
        return None

    def _indexes_over(self) -> PolicyVerdict | None:
        if not self.is_indexed:
            return None
        failed = len(self.failed_indexes)
        most = self.spec.get("maxFailedIndexes")
        if most is not None and failed > int(most):
            return TOO_MANY_FAILED_INDEXES
        if failed and failed + len(self.succeeded_indexes) >= (self.completions or 0):
            return FAILED_INDEXES
        return match_success_policy(self.spec, self.succeeded_indexes)

    def _reached(self) -> PolicyVerdict | None:
        """Enough pods have succeeded, and none is active any more."""
        if self.active:
            return None
        if self.completions is None:
            return COMPLETIONS_REACHED if self.succeeded else None
        return COMPLETIONS_REACHED if self.succeeded >= self.completions else None

    # -- pods ------------------------------------------------------------------------------

    def _delete_active(self) -> None:
        """Pods of a Job that is over go; whether they count as failed is its verdict's."""
        self.deletes = self.active > 0
        for pod in self.pods.active:
            self.writes.append(deletion(pod, self.job))
            self.active -= 1
            self.ready -= pod.ready_since is not None
            self.terminating += 1

    def _manage(self) -> None:
        """Make what is missing or delete what is too much; never both in one pass."""
        parallelism = int(self.spec.get("parallelism", 1))
        if self.suspended:
            self._remove(self._surplus(self.active))
            return
        if self.completions is None:
            wanted = self.active if self.succeeded else parallelism
        else:
            wanted = max(min(self.completions - self.succeeded, parallelism), 0)
        surplus = self._surplus(max(self.active - wanted, 0))[:MOST_AT_ONCE]
        if surplus:
            self._remove(surplus)
            return
        waiting = self.terminating if replaces_failed_only(self.spec) else 0
        missing = wanted - waiting - self.active
        if missing > 0:
            self._create(min(missing, MOST_AT_ONCE))

    def _surplus(self, count: int) -> list[JobPod]:
        """At least so many active pods: first those whose index is taken or none any more."""
        if not count and (not self.is_indexed or self.pods.has_places(self.completions or 0)):
            return []
        left, surplus = self.pods.active, list[JobPod]()
        if self.is_indexed:
            left, surplus = self._by_index(left)
        if len(surplus) < count:
            surplus += removal_order(left)[: count - len(surplus)]
        return surplus

    def _by_index(self, pods: list[JobPod]) -> tuple[list[JobPod], list[JobPod]]:
        kept: dict[int, JobPod] = {}
        surplus = []
        for pod in removal_order(pods):
            if not self._has_place(pod):
                surplus.append(pod)
            elif (other := kept.get(pod.index)) is not None:
                surplus.append(other)
                kept[pod.index] = pod
            else:
                kept[pod.index] = pod
        return sorted(kept.values(), key=lambda pod: pod.index), surplus

    def _remove(self, pods: list[JobPod]) -> None:
        """Delete pods that are not to be counted."""
        self.deletes = True
        for pod in pods:
            self.writes += [self._untracked(pod), deletion(pod, self.job)]
            self.active -= 1
            self.ready -= pod.ready_since is not None
            self.terminating += 1
            self.removed[pod.key] = None

    def _create(self, count: int) -> None:
        if not self.limits_indexes and (wait := self.back_off.remaining(self.now)):
            self._look_again(wait)
            return
        if not self.is_indexed:
            pod = self._pod()
            options = WriteOptions(blueprint=self.alike.blueprint_of(pod))
            create = Create(pod, created(self.job), options)
            self.writes += [create] * count
            self.active += count
            return
        taken = self.succeeded_indexes | self.failed_indexes
        busy: Collection[int] = self.pods.active_at
        if replaces_failed_only(self.spec):
            busy = {*busy, *self.pods.terminating_at}
        indexes = first_free(taken, busy, count, self.completions or 0)
        if self.limits_indexes:
            waits = {
                index: remaining_for_index(self.delayed.get(index), self.now) for index in indexes
            }
            indexes = [index for index in indexes if not waits[index]]
            if not indexes and waits:
                self._look_again(min(waits.values()))
        self.writes += [Create(self._indexed_pod(index), created(self.job)) for index in indexes]
        self.active += len(indexes)

    def _pod(self) -> JsonObject:
        template = self.spec["template"]
        given = template.get("metadata") or {}
        metadata: dict[str, Any] = {
            "generateName": f"{self.job['metadata']['name']}-",
            "namespace": self.job["metadata"]["namespace"],
        }
        for field in ("labels", "annotations"):
            if given.get(field):
                metadata[field] = given[field]
        metadata["finalizers"] = [*(given.get("finalizers") or ()), TRACKING]
        metadata["ownerReferences"] = [controller_of(self.job)]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}

    def _indexed_pod(self, index: int) -> JsonObject:
        pod, name = self._pod(), self.job["metadata"]["name"]
        metadata, spec = pod["metadata"], dict(pod["spec"])
        ending = f"-{index}-"
        metadata["generateName"] = f"{name[: LONGEST_PREFIX - len(ending)]}{ending}"
        metadata["labels"] = {**metadata.get("labels", {}), INDEX: str(index)}
        metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: str(index)}
        if self.limits_indexes:
            metadata["annotations"] |= self._failures_so_far(index)
        spec["hostname"] = f"{name}-{index}"
        for kind in ("containers", "initContainers"):
            if spec.get(kind):
                spec[kind] = [with_index(each) for each in spec[kind]]
        return {**pod, "spec": spec}

    def _failures_so_far(self, index: int) -> dict[str, str]:
        pod = self.delayed.get(index)
        if pod is None:
            return {FAILURES: "0"}
        counts = match_failure_policy(self.spec, pod).counts
        told = {FAILURES: str(pod.failures + counts)}
        ignored = pod.ignored_failures + (not counts)
        return {**told, IGNORED_FAILURES: str(ignored)} if ignored else told

    # -- the status ------------------------------------------------------------------------

    def _note_suspension(self, status: JsonObject) -> None:
        conditions = [*(status.get("conditions") or ())]
        at = next((n for n, it in enumerate(conditions) if it.get("type", "") == "Suspended"), None)
        now = format_time(self.now)
        word = "suspended" if self.suspended else "resumed"
        told = {
            "type": "Suspended",
            "status": str(self.suspended),
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": f"Job{word.capitalize()}",
            "message": f"Job {word}",
        }
        if at is None and not self.suspended:
            return
        if at is None:
            conditions.append(told)
        elif conditions[at]["status"] != told["status"]:
            conditions[at] = told
        else:
            return
        status["conditions"] = conditions
        if self.suspended:
            status.pop("startTime", None)
        else:
            status["startTime"] = now
        self.news = notice(self.job, NORMAL, word.capitalize(), f"Job {word}")

    def _track(self, status: JsonObject, verdict: PolicyVerdict | None) -> None:
        """Count pods that have ended, and say how the Job is.

        They are noted in a first status, lose their finalizer, and are counted in a second one:
        whatever is refused in between, none is counted twice.
        """
        noted = {name: [*uids] for name, uids in self._noted(status).items()}
        ended = self._ended(noted, verdict)
        status |= {"ready": self.ready, "terminating": self.terminating}
        status = with_counts(status, active=self.active)
        if self.is_indexed:
            status = with_counts(status, succeeded=len(self.succeeded_indexes))
            status |= {"completedIndexes": str(self.succeeded_indexes)}
            if not status["completedIndexes"]:
                del status["completedIndexes"]
            if self.limits_indexes:
                status["failedIndexes"] = str(self.failed_indexes)
        now = format_time(self.now)
        if verdict is not None and verdict_of(status) is None:
            status["conditions"] = [*(status.get("conditions") or ()), condition(verdict, now)]
        if noted:
            self._write({**status, "uncountedTerminatedPods": noted}, self.status)
        self.writes += [self._untracked(pod) for pod in ended]
        self.ended = len(ended)
        counted = with_counts(
            {**status, "uncountedTerminatedPods": {}},
            failed=int(status.get("failed", 0)) + len(noted.get("failed", ())),
            succeeded=int(status.get("succeeded", 0)) + len(noted.get("succeeded", ())),
        )
        if verdict is not None and not self.terminating:
            counted["conditions"] = [*counted["conditions"], condition(verdict, now, final=True)]
            if verdict.is_success:
                counted["completionTime"] = now
            self.news = ending(self.job, verdict)
        before = {**status, "uncountedTerminatedPods": noted} if noted else self.status
        self._write(counted, before)
        self.last = counted

    def _noted(self, status: JsonObject) -> dict[str, list[str]]:
        noted: dict[str, list[str]] = status.get("uncountedTerminatedPods") or {}
        return noted

    def _ended(self, noted: dict[str, list[str]], verdict: PolicyVerdict | None) -> list[JobPod]:
        """The pods that lose their finalizer; those that are to be counted by uid are noted."""
        is_over = verdict is not None or self.deleting
        is_failure = verdict is not None and not verdict.is_success
        ended = []
        for pod in self.pods.tracked if is_over else self.pods.to_count:
            failed = is_failed(pod, self.spec)
            if pod.key in self.removed or not (is_over or self._may_go(pod, failed=failed)):
                continue
            ended.append(pod)
            if pod.phase == "Succeeded":
                if not self.is_indexed:
                    note(noted, "succeeded", pod)
            elif (failed or is_failure) and self._counts(pod):
                note(noted, "failed", pod)
        return ended

    def _counts(self, pod: JobPod) -> bool:
        return self._has_place(pod) and match_failure_policy(self.spec, pod).counts

    def _may_go(self, pod: JobPod, *, failed: bool) -> bool:
        if pod.phase == "Succeeded":
            return True
        return failed and self.delayed.get(pod.index) is not pod

    def _write(self, status: JsonObject, before: JsonObject) -> None:
        """The new status, if it is new."""
        if status == before:
            return
        removed = {name: None for name in before if name not in status}
        uncounted = {**dict.fromkeys(self._noted(before)), **self._noted(status)}
        patch = {"status": {**removed, **status, "uncountedTerminatedPods": uncounted}}
        ref = ObjectRef.to(self.job)
        self.writes.append(
            Patch(ref, patch, subresource="status", notice=self.news, options=LASTING)
        )
        self.news = None

    def _untracked(self, pod: JobPod) -> Write:
        obj = self.reader.get(ObjectRef(POD, pod.key.name, pod.key.namespace))
        return untracked(pod.key, obj["metadata"].get("finalizers") or ())

    def _look_again(self, after: int) -> None:
        self.requeue = after if self.requeue is None else min(self.requeue, after)


def is_ours(job: JsonObject) -> bool:
    return job["spec"].get("managedBy") in (None, OURS)


def all_failures(pod: JobPod) -> int:
    return pod.failures + pod.ignored_failures


def note(noted: dict[str, list[str]], kind: str, pod: JobPod) -> None:
    """Note a pod that is to be counted, once."""
    if not any(pod.uid in uids for uids in noted.values()):
        noted.setdefault(kind, []).append(pod.uid)


def with_counts(status: JsonObject, **counts: int) -> JsonObject:
    """A status with these counts; a count of zero is left out."""
    kept = {name: each for name, each in status.items() if name not in counts}
    return kept | {name: count for name, count in counts.items() if count}


def with_index(container: JsonObject) -> JsonObject:
    """A container that is told the completion index of its pod."""
    name = "JOB_COMPLETION_INDEX"
    env = container.get("env") or []
    if any(each["name"] == name for each in env):
        return container
    path = f"metadata.labels['{INDEX}']"
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
    return {**container, "env": [*env, {"name": name, "valueFrom": source}]}


def adoptions(job: JsonObject, reader: Reader) -> list[Write]:
    """Pods that a Job with a selector of its own takes over."""
    selector = from_label_selector(job["spec"]["selector"])
    adopted: list[Write] = []
    for pod in reader.list(POD, namespace=job["metadata"]["namespace"]):
        metadata = pod["metadata"]
        owners = metadata.get("ownerReferences") or []
        is_free = not any(each.get("controller") for each in owners)
        is_left = "deletionTimestamp" in metadata or (pod.get("status") or {}).get("phase") in (
            "Succeeded",
            "Failed",
        )
        if is_free and not is_left and selector.matches(metadata.get("labels") or {}):
            finalizers = [*(metadata.get("finalizers") or ())]
            if TRACKING not in finalizers:
                finalizers.append(TRACKING)
            patch = {"ownerReferences": [*owners, controller_of(job)], "finalizers": finalizers}
            adopted.append(Patch(ObjectRef.to(pod), {"metadata": patch}))
    return adopted


def untracked(pod: ObjectKey, finalizers: Iterable[str]) -> Patch:
    """Take the finalizer off a pod."""
    left = [each for each in finalizers if each != TRACKING]
    ref = ObjectRef(POD, pod.name, pod.namespace)
    return Patch(ref, {"metadata": {"finalizers": left or None}})


def deletion(pod: JobPod, job: JsonObject) -> Delete:
    news = notice(job, NORMAL, "SuccessfulDelete", f"Deleted pod: {pod.key.name}")
    ref = ObjectRef(POD, pod.key.name, pod.key.namespace)
    return Delete(ref, DeleteOptions(uid=pod.uid), news)


def created(job: JsonObject) -> Notice:
    return notice(job, NORMAL, "SuccessfulCreate", "Created pod: {name}")


def ending(job: JsonObject, verdict: PolicyVerdict) -> Notice:
    if TERMINAL[verdict.type] == COMPLETE:
        return notice(job, NORMAL, "Completed", "Job completed")
    return notice(job, WARNING, verdict.reason, verdict.message)


def notice(job: JsonObject, kind: str, reason: str, message: str) -> Notice:
    return Notice(regarding(job), kind, reason, message, REPORTER)


def job(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(JobReconciler(), context, OWNED)
