"""The CronJob controller: a Job whenever the schedule says so.

As in kube-controller-manager, a CronJob that was not looked at for a while makes only the newest of
the runs that it missed, and one whose schedule alone has changed waits for the next one.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from kubescene.api.cron import CronSchedule, is_known_zone, parse_schedule, zone_named
from kubescene.api.kinds import CRON_JOB, JOB
from kubescene.api.options import LASTING, DeleteOptions
from kubescene.api.records.changes import ADDED, DELETED, Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, format_time, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.workloads.jobs.rules import COMPLETE, FAILED
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import AlreadyExistsError, ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

REPORTER = "cronjob-controller"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MINUTE = 60 * SECOND
MANY_MISSED = 100


class CronJobReconciler:
    """Keeps the Jobs of each CronJob, and which of them had nothing but their schedule changed."""

    name = "cronjob"
    kinds: Sequence[GroupVersionKind] = (CRON_JOB, JOB)

    def __init__(self) -> None:
        self._keys: dict[str, ObjectKey] = {}
        self._jobs: dict[str, dict[str, ChildJob]] = {}
        """By the uid of the CronJob, then by name."""
        self._made: dict[str, dict[str, int]] = {}
        """Jobs that were made and are not in the status yet, with the time that they are of."""
        self._rescheduled: dict[ObjectKey, None] = {}

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource.resource == "cronjobs":
            return self._observe_cron_job(change)
        record, previous = change.record, change.previous
        before = previous.owner if previous is not None else ""
        concerned: dict[ObjectKey, None] = {}
        for owner in dict.fromkeys((before, record.owner)):
            if (key := self._keys.get(owner)) is None:
                continue
            jobs, concerned[key] = self._jobs[owner], None
            if change.type is DELETED or owner != record.owner:
                jobs.pop(record.name, None)
            else:
                jobs[record.name] = child_job(change.object)
        return concerned

    def _observe_cron_job(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if change.type is DELETED:
            self._keys.pop(record.uid, None)
            self._jobs.pop(record.uid, None)
            self._made.pop(record.uid, None)
            self._rescheduled.pop(key, None)
            return ()
        if change.type is ADDED:
            self._keys[record.uid] = key
            self._jobs[record.uid] = {}
            self._made[record.uid] = {}
        elif (before := change.previous_object) is not None:
            spec, old = change.object["spec"], before["spec"]
            if any(spec.get(name) != old.get(name) for name in ("schedule", "timeZone")):
                self._rescheduled[key] = None
            elif spec != old or change.object["metadata"] != before["metadata"]:
                self._rescheduled.pop(key, None)
        return (key,)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        cron_job = reader.find(ObjectRef(CRON_JOB, key.name, key.namespace))
        if cron_job is None:
            return NOTHING
        if key in self._rescheduled:
            del self._rescheduled[key]
            schedule = schedule_of(cron_job)
            after = None if schedule is None else next_look(cron_job, schedule, now)
            return Plan(requeue_after=after)
        uid = cron_job["metadata"]["uid"]
        jobs = [*self._jobs[uid].values()]
        return CronJobPass(cron_job, jobs, self._made[uid], now).plan()

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A Job that is there already, or not any more, needs nothing; others are told of.

        What else was to be said of the Jobs is written all the same.
        """
        cron_job = reader.find(ObjectRef(CRON_JOB, key.name, key.namespace))
        if cron_job is not None and isinstance(write, Create):
            self._made[cron_job["metadata"]["uid"]].pop(write.obj["metadata"]["name"], None)
        if cron_job is not None and isinstance(error, AlreadyExistsError):
            uid = cron_job["metadata"]["uid"]
            jobs = [*self._jobs[uid].values()]
            look = CronJobPass(cron_job, jobs, self._made[uid], now, makes=False)
            return Plan(look.plan().writes)
        if cron_job is None or isinstance(error, NotFoundError):
            return NOTHING
        if error.has_cause("NamespaceTerminating"):
            return NOTHING
        what = "creating" if isinstance(write, Create) else "deleting"
        reason = "FailedCreate" if isinstance(write, Create) else "FailedDelete"
        message = f"Error {what} job: {error.message}"
        return Plan(notices=(notice(cron_job, WARNING, reason, message),))


class ChildJob(Struct, frozen=True):
    """What a CronJob has to know of one of its Jobs."""

    name: str
    uid: str
    ended_as: str
    """``Complete``, ``Failed`` or nothing yet."""
    completed_at: str
    started_at: str
    reference: JsonObject


def child_job(job: JsonObject) -> ChildJob:
    status, metadata = job.get("status") or {}, job["metadata"]
    ended = [
        each.get("type", "")
        for each in status.get("conditions") or ()
        if each.get("type", "") in (COMPLETE, FAILED) and each.get("status", "") == "True"
    ]
    return ChildJob(
        name=metadata["name"],
        uid=metadata["uid"],
        ended_as=ended[0] if ended else "",
        completed_at=status.get("completionTime", ""),
        started_at=status.get("startTime", ""),
        # Without its revision, which is another one in a server.
        reference={
            name: each for name, each in regarding(job).items() if name != "resourceVersion"
        },
    )


class CronJobPass(Struct):
    """One look at one CronJob."""

    cron_job: JsonObject
    jobs: list[ChildJob]
    made: dict[str, int]
    now: int
    makes: bool = True
    """Whether it may make a Job."""
    notices: list[Notice] = []
    writes: list[Write] = []
    active: list[JsonObject] = []
    changes: dict[str, Any] = {}
    """New members of the status beside the active Jobs."""

    @property
    def spec(self) -> JsonObject:
        spec: JsonObject = self.cron_job["spec"]
        return spec

    @property
    def status(self) -> JsonObject:
        return self.cron_job.get("status") or {}

    def plan(self) -> Plan:
        self.active = [*(self.status.get("active") or ())]
        # First: of a Job that goes at once nobody says that it has ended.
        self._clean_up()
        self._look_at_jobs()
        requeue = None
        if self.makes and "deletionTimestamp" not in self.cron_job["metadata"]:
            requeue = self._run_if_due()
        self._write_status()
        return Plan(self.writes, requeue, self.notices)

    def _look_at_jobs(self) -> None:
        """Jobs that have ended or gone are no longer active; the newest success is noted."""
        newest = self.status.get("lastSuccessfulTime", "")
        for job in sorted(self.jobs, key=lambda each: each.name):
            is_active = any(each.get("uid", "") == job.uid for each in self.active)
            if job.name in self.made:
                self.changes["lastScheduleTime"] = format_time(self.made.pop(job.name))
                self.active.append(job.reference)
            elif not is_active and not job.ended_as:
                self._tell(
                    WARNING,
                    "UnexpectedJob",
                    f"Saw a job that the controller did not create or forgot: {job.name}",
                )
            elif is_active and job.ended_as:
                message = f"Saw completed job: {job.name}, condition: {job.ended_as}"
                self._tell(NORMAL, "SawCompletedJob", message)
                self._forget(job.uid)
            if job.ended_as == COMPLETE and job.completed_at > newest:
                newest = self.changes["lastSuccessfulTime"] = job.completed_at
        known = {job.uid for job in self.jobs}
        for each in [*self.active]:
            if each.get("uid", "") not in known:
                self._tell(NORMAL, "MissingJob", f"Active job went missing: {each.get('name', '')}")
                self._forget(each.get("uid", ""))

    def _run_if_due(self) -> int | None:
        """Make a Job if it is time; after how long to look again."""
        zone = self.spec.get("timeZone")
        if zone is not None and not is_known_zone(zone):
            told = f'invalid timeZone: "{zone}": unknown time zone {zone}'
            self._tell(WARNING, "UnknownTimeZone", told)
            return None
        if self.spec.get("suspend"):
            return None
        schedule = schedule_of(self.cron_job)
        if schedule is None:
            self._tell(
                WARNING, "UnparseableSchedule", f"unparseable schedule: {self.spec['schedule']}"
            )
            return None
        if schedule.next(self.now) is None:
            why = "time difference between two schedules is less than 1 second"
            told = f"invalid schedule: {self.spec['schedule']} : {why}"
            self._tell(WARNING, "InvalidSchedule", told)
            return None
        due, is_many = self._due(schedule)
        if is_many:
            self._tell(
                WARNING,
                "TooManyMissedTimes",
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                "check clock skew",
            )
        if due is not None:
            self._run(due)
        return next_look(self.cron_job, schedule, self.now, self.changes.get("lastScheduleTime"))

    def _due(self, schedule: CronSchedule) -> tuple[int | None, bool]:
        begin = begins_at(self.cron_job)
        deadline = self.spec.get("startingDeadlineSeconds")
        if deadline is not None:
            begin = max(begin, self.now - int(deadline) * SECOND)
        return newest_due(schedule, begin, self.now)

    def _run(self, due: int) -> None:
        deadline = self.spec.get("startingDeadlineSeconds")
        if deadline is not None and due + int(deadline) * SECOND < self.now:
            instant = datetime.fromtimestamp(due // SECOND, UTC)
            shown = instant.strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._tell(WARNING, "MissSchedule", f"Missed scheduled time to start a job: {shown}")
            return
        job = job_of(self.cron_job, due)
        last = self.changes.get("lastScheduleTime", self.status.get("lastScheduleTime"))
        name = job["metadata"]["name"]
        is_made = name in self.made or any(each.get("name", "") == name for each in self.active)
        if is_made or (last is not None and parse_time(last) == due):
            return
        policy = self.spec.get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and self.active:
            self._tell(
                NORMAL,
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is "
                "Forbid",
            )
            return
        if policy == "Replace":
            for each in [*self.active]:
                self._delete(each.get("name", ""), each.get("uid", ""))
        news = notice(self.cron_job, NORMAL, "SuccessfulCreate", "Created job {name}")
        self.writes.append(Create(job, news))
        self.made[name] = due

    def _delete(self, name: str, uid: str) -> None:
        ref = ObjectRef(JOB, name, self.cron_job["metadata"]["namespace"])
        options = DeleteOptions(propagation_policy="Background")
        news = notice(self.cron_job, NORMAL, "SuccessfulDelete", f"Deleted job {name}")
        self.writes.append(Delete(ref, options, news))
        self._forget(uid)

    def _clean_up(self) -> None:
        """Keep only so many Jobs that have ended well, and so many that failed."""
        for kind, limit in (
            (FAILED, self.spec.get("failedJobsHistoryLimit")),
            (COMPLETE, self.spec.get("successfulJobsHistoryLimit")),
        ):
            ended = [job for job in self.jobs if job.ended_as == kind]
            if limit is None or len(ended) <= int(limit):
                continue
            ended.sort(key=lambda job: (job.started_at, job.name))
            for job in ended[: len(ended) - int(limit)]:
                self._delete(job.name, job.uid)

    def _write_status(self) -> None:
        new = {**self.status, **self.changes}
        if self.active:
            new["active"] = self.active
        else:
            new.pop("active", None)
        if new == self.status:
            return
        removed = {name: None for name in self.status if name not in new}
        patch = {"status": {**removed, **new}}
        self.writes.append(
            Patch(ObjectRef.to(self.cron_job), patch, subresource="status", options=LASTING)
        )

    def _forget(self, uid: str) -> None:
        self.active = [each for each in self.active if each.get("uid", "") != uid]

    def _tell(self, kind: str, reason: str, message: str) -> None:
        self.notices.append(notice(self.cron_job, kind, reason, message))


def schedule_of(cron_job: JsonObject) -> CronSchedule | None:
    spec = cron_job["spec"]
    zone = spec.get("timeZone")
    text = spec["schedule"] if zone is None else f"TZ={zone} {spec['schedule']}"
    try:
        return parse_schedule(text)
    except ValueError:
        return None


def begins_at(cron_job: JsonObject) -> int:
    """From when on runs are due: the last one, or the creation."""
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    return parse_time(last or cron_job["metadata"]["creationTimestamp"])


def newest_due(schedule: CronSchedule, begin: int, now: int) -> tuple[int | None, bool]:
    """The newest time since ``begin`` that is due, and whether very many were missed."""
    first = schedule.next(begin)
    if first is None or now < first:
        return None, False
    second = schedule.next(first)
    if second is None or now < second:
        return first, False
    between = max((second - first) // SECOND, 1) * SECOND
    missed = (now - first) // between + 1
    newest, at = first, schedule.next(first + max(missed - 2, 0) * between - SECOND)
    while at is not None and at <= now:
        newest, at = at, schedule.next(at)
    return newest, missed > MANY_MISSED


def next_look(
    cron_job: JsonObject, schedule: CronSchedule, now: int, last_run: str | None = None
) -> int | None:
    """After how long the next time is due. The clock is exact, so no moment is added to it."""
    begin = begins_at(cron_job) if last_run is None else parse_time(last_run)
    newest, _ = newest_due(schedule, begin, now)
    due = schedule.next(begin if newest is None else newest)
    return None if due is None else max(due - now, 0)


def job_of(cron_job: JsonObject, due: int) -> JsonObject:
    """The Job of one run."""
    template, metadata = cron_job["spec"]["jobTemplate"], cron_job["metadata"]
    given = template.get("metadata") or {}
    name = f"{metadata['name']}-{due // MINUTE}"
    told: dict[str, Any] = {"name": name, "namespace": metadata["namespace"]}
    if given.get("labels"):
        told["labels"] = given["labels"]
    told["annotations"] = {**(given.get("annotations") or {}), SCHEDULED_AT: local(cron_job, due)}
    told["ownerReferences"] = [controller_of(cron_job)]
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": told,
        "spec": template["spec"],
    }


def local(cron_job: JsonObject, due: int) -> str:
    """An instant in the time zone of a CronJob."""
    zone = cron_job["spec"].get("timeZone")
    if zone is None:
        return format_time(due)
    shown = datetime.fromtimestamp(due // SECOND, zone_named(zone)).isoformat()
    return shown.replace("+00:00", "Z")


def notice(cron_job: JsonObject, kind: str, reason: str, message: str) -> Notice:
    return Notice(regarding(cron_job), kind, reason, message, REPORTER)


def cronjob(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(CronJobReconciler(), context)
