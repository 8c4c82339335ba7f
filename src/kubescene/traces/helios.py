"""Helios: jobs of four GPU clusters of SenseTime in 2020, one CSV file a cluster.

Columns are ``job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,
duration,queue`` in any order; times are local ones, and their clock never changes. A job of
several nodes is as many pods, which share what it asks for.
"""

from collections.abc import Iterator
from datetime import UTC

from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.tables import bounded, number_in, rows_of, time_in
from kubescene.traces.trace import GPU, NEVER_RAN, TracedPod, WorkloadTrace

COLUMNS = ("job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "start_time", "end_time")
NOT_STARTED = ("", "None", "nan", "NaT")
MOST_NODES = 10_000
ENDED_BEFORE = "it ended before it began"


class HeliosReader:
    """A `TraceReader`."""

    name = "helios"
    about = "HeliosData: cluster_log.csv of Venus, Earth, Saturn or Uranus"

    def detects(self, source: SnapshotSource) -> bool:
        header = source.head.partition(b"\n")[0].decode("ascii", "replace").strip().split(",")
        return {*COLUMNS, "vc"} <= set(header)

    def read(self, source: SnapshotSource, nodes: SnapshotSource | None) -> WorkloadTrace:
        if nodes is not None:
            raise SnapshotError("nodes of this trace are given by sizes", where=nodes.where)
        trace = WorkloadTrace(())
        pods = sorted(bounded(_pods(source, trace), source.where), key=lambda pod: pod.at)
        if not pods:
            raise SnapshotError("there is no job in it that began", where=source.where)
        trace.pods = pods
        trace.remarks += [
            "pods of one job may begin apart; virtual clusters (vc) are not kept apart",
            "nothing in it says how much memory a job asked for",
        ]
        return trace


def _pods(source: SnapshotSource, trace: WorkloadTrace) -> Iterator[TracedPod]:
    begin: int | None = None
    for place, row in rows_of(source, COLUMNS):
        came = time_in(row["submit_time"], "submit_time", place, UTC)
        begin = came if begin is None else begin
        if came < begin:
            raise SnapshotError("it came before the first job of the file", where=place)
        if row["start_time"] in NOT_STARTED or row["end_time"] in NOT_STARTED:
            trace.left_out[NEVER_RAN] += 1
            continue
        began, ended = (time_in(row[name], name, place, UTC) for name in ("start_time", "end_time"))
        if ended < began:
            trace.left_out[ENDED_BEFORE] += 1
            continue
        number = max(number_in(row, "node_num", place), 1)
        if number > MOST_NODES:
            raise SnapshotError(f"a job of {number} nodes", where=place)
        gpus, cpus = (number_in(row, name, place) for name in ("gpu_num", "cpu_num"))
        for rank in range(number):
            share = _share(gpus, number, rank)
            yield TracedPod(
                at=came - begin,
                run_time=ended - began,
                cpu=_share(cpus * 1000, number, rank),
                memory=0,
                group=f"gpu-{share}" if share else "cpu",
                others=((GPU, share),) if share else (),
            )


def _share(whole: int, number: int, rank: int) -> int:
    """Of a whole that is dealt out as evenly as can be, the first ones get more."""
    return whole // number + (rank < whole % number)
