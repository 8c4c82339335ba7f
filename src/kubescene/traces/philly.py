"""Philly: jobs of a GPU cluster of Microsoft in 2017, as one JSON list (``cluster_job_log``).

Every attempt at a job is pods of its own, one for each machine that it was on: the first attempt
comes when the job was submitted, those after it when they began. Times are those of the Pacific
coast, and nobody knows what CPU and memory a job asked for.
"""

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

import orjson

from kubescene.api.cron import zone_named
from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.tables import bounded, time_in
from kubescene.traces.trace import GPU, NEVER_RAN, TracedPod, WorkloadTrace

ZONE = "America/Los_Angeles"
UNKNOWN = (None, "", "None")
NO_END = "an attempt of which nobody knows when it ended"
BACKWARDS = "an attempt that ended before it began: the clock was put back meanwhile"


class PhillyReader:
    """A `TraceReader`."""

    name = "philly"
    about = "philly-traces: cluster_job_log"

    def detects(self, source: SnapshotSource) -> bool:
        head = source.head
        names = (b'"attempts"', b'"submitted_time"', b'"jobid"')
        return head.lstrip().startswith(b"[") and all(name in head for name in names)

    def read(self, source: SnapshotSource, nodes: SnapshotSource | None) -> WorkloadTrace:
        if nodes is not None:
            raise SnapshotError("nodes of this trace are given by sizes", where=nodes.where)
        try:
            jobs = orjson.loads(source.text)
        except orjson.JSONDecodeError as error:
            raise SnapshotError(f"it is no JSON: {error}", where=source.where) from None
        trace = WorkloadTrace(())
        pods = list(bounded(_pods(jobs, source.where, trace), source.where))
        if not pods:
            raise SnapshotError("there is no job in it that ran", where=source.where)
        begin = min(pod.at for pod in pods)
        moved = (
            TracedPod(each.at - begin, each.run_time, 0, 0, each.group, each.others)
            for each in pods
        )
        trace.pods = sorted(moved, key=lambda pod: pod.at)
        trace.remarks += [
            "pods of one attempt may begin apart; virtual clusters (vc) are not kept apart",
            "nothing in it says how much CPU and memory a job asked for",
        ]
        return trace


def _pods(jobs: Any, where: str, trace: WorkloadTrace) -> Iterator[TracedPod]:
    zone = zone_named(ZONE)
    for number, job in enumerate(jobs):
        place = f"{where}: job {number}"
        if not isinstance(job, dict) or not isinstance(job.get("attempts"), list):
            raise SnapshotError("it has no list of attempts", where=place)
        if not job["attempts"]:
            trace.left_out[NEVER_RAN] += 1
        for attempt in job["attempts"]:
            is_first = attempt is job["attempts"][0]
            yield from _attempt(job, attempt, place, zone, trace, is_first=is_first)


def _attempt(
    job: dict[str, Any],
    attempt: Any,
    place: str,
    zone: tzinfo,
    trace: WorkloadTrace,
    *,
    is_first: bool,
) -> Iterator[TracedPod]:
    if not isinstance(attempt, dict) or not isinstance(attempt.get("detail"), list):
        raise SnapshotError("an attempt has no list of machines (detail)", where=place)
    told = attempt.get("start_time"), attempt.get("end_time")
    if any(each in UNKNOWN for each in told):
        trace.left_out[NO_END] += 1
        return
    began, ended = (time_in(str(each), "a time of an attempt", place, zone) for each in told)
    came = time_in(str(job.get("submitted_time")), "submitted_time", place, zone)
    if ended < began:
        trace.left_out[BACKWARDS] += 1
        return
    for machine in attempt["detail"]:
        gpus = machine.get("gpus") if isinstance(machine, dict) else None
        if not isinstance(gpus, list):
            raise SnapshotError("a machine of an attempt has no list of gpus", where=place)
        number = len(gpus)
        yield TracedPod(
            at=came if is_first else began,
            run_time=ended - began,
            cpu=0,
            memory=0,
            group=f"gpu-{number}" if number else "cpu",
            others=((GPU, number),) if number else (),
        )
