"""Jobs that are deleted a while after they have ended, with all that they own."""

from collections.abc import Iterable, Sequence

from kubescene.api.kinds import JOB
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import DELETED, Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, parse_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.workloads.jobs.rules import COMPLETE, FAILED
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Plan, Write
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError, NotFoundError
from kubescene.types import JsonObject

WANTED = b'"ttlSecondsAfterFinished"'
"""How a Job that wants to go is told from others without reading it."""


class TtlAfterFinishedReconciler:
    """Deletes Jobs that have ended and say for how long they want to be kept."""

    name = "ttl-after-finished"
    kinds: Sequence[GroupVersionKind] = (JOB,)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if change.type is DELETED or not record.members_mention(WANTED):
            return ()
        return (ObjectKey(record.namespace, record.name),)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        job = reader.find(ObjectRef(JOB, key.name, key.namespace))
        if job is None or "deletionTimestamp" in job["metadata"]:
            return NOTHING
        kept, ended = job["spec"].get("ttlSecondsAfterFinished"), ended_at(job)
        if kept is None or ended is None:
            return NOTHING
        left = ended + int(kept) * SECOND - now
        if left > 0:
            return Plan(requeue_after=left)
        options = DeleteOptions(uid=job["metadata"]["uid"], propagation_policy="Foreground")
        return Plan((Delete(ObjectRef.to(job), options),))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error


def ended_at(job: JsonObject) -> int | None:
    """When a Job ended; None if it has not."""
    for each in (job.get("status") or {}).get("conditions") or ():
        if each.get("type", "") in (COMPLETE, FAILED) and each.get("status", "") == "True":
            return parse_time(each["lastTransitionTime"])
    return None


def ttl_after_finished(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(TtlAfterFinishedReconciler(), context)
