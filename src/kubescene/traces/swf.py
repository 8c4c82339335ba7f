"""The Standard Workload Format of the Parallel Workloads Archive, version 2.

A line of 18 numbers is a job, -1 is what nobody knows, and lines that begin with ``;`` say more of
the machine. A job of several processors is one pod, or, if no node has so many, several that share
them.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation

from kubescene.durations import SECOND
from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.tables import MOST_ROWS, bounded, lines_of
from kubescene.traces.trace import CPU, MEMORY, NEVER_RAN, TracedNodes, TracedPod, WorkloadTrace

FIELDS = 18
SUBMIT, RUN, PROCESSORS, MEMORY_USED = 1, 3, 4, 6
PROCESSORS_ASKED, MEMORY_ASKED, STATUS, PREDECESSOR = 7, 9, 10, 16
PARTS = (2, 3, 4)
"""States of lines that are parts of a job, which has a line of its own."""
KIBIBYTE = 1024
MOST_PROCESSORS = 1_000_000
LARGEST = 10**12
NODE_MEMORY = 1024**4
HEADER = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*([0-9]{1,9})")
OF_PARTS = "it is a part of a job that has a line of its own"
NO_PROCESSORS = "nothing says how many processors it had"


class SwfReader:
    """A `TraceReader`."""

    name = "swf"
    about = "logs of the Parallel Workloads Archive (.swf)"

    def detects(self, source: SnapshotSource) -> bool:
        for line in source.head.decode("utf-8", "replace").splitlines()[:1000]:
            if line.strip() and not line.startswith(";"):
                return len(line.split()) == FIELDS and all(map(_is_number, line.split()))
        return False

    def read(self, source: SnapshotSource, nodes: SnapshotSource | None) -> WorkloadTrace:
        if nodes is not None:
            raise SnapshotError("nodes of this trace are given by sizes", where=nodes.where)
        lines = lines_of(source)
        machine = {match[1]: int(match[2]) for line in lines if (match := HEADER.match(line))}
        size = machine.get("MaxProcs", 0) // (machine.get("MaxNodes", 0) or 1)
        trace = WorkloadTrace((), list(_nodes(machine, size)))
        trace.pods = sorted(
            bounded(_pods(lines, size, source.where, trace), source.where), key=lambda pod: pod.at
        )
        if not trace.pods:
            raise SnapshotError("there is no job in it that ran", where=source.where)
        if trace.nodes:
            trace.remarks.append(
                "its header does not say how much memory a node has: without --nodes, 1Ti"
            )
        trace.remarks.append("pods of one job may begin apart; queues and partitions are not read")
        return trace


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) is not None


def _nodes(machine: Mapping[str, int], size: int) -> Iterator[TracedNodes]:
    number = machine.get("MaxNodes", 0)
    if number and size:
        yield TracedNodes("node", number, {CPU: size * 1000, MEMORY: NODE_MEMORY})


def _pods(lines: list[str], size: int, where: str, trace: WorkloadTrace) -> Iterator[TracedPod]:
    followers = 0
    if len(lines) > MOST_ROWS:
        raise SnapshotError(f"more than {MOST_ROWS} lines", where=where)
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(";"):
            continue
        job = _numbers(line, f"{where}:{number}")
        why = _why_not(job)
        if why:
            trace.left_out[why] += 1
            continue
        followers += job[PREDECESSOR] > 0
        yield from _pods_of(job, size, f"{where}:{number}")
    if followers:
        trace.remarks.append(
            f"{followers} jobs came when another had ended: they come when they came there"
        )


def _numbers(line: str, place: str) -> list[Decimal]:
    cells = line.split()
    if len(cells) != FIELDS:
        raise SnapshotError(f"{len(cells)} values, not {FIELDS}", where=place)
    try:
        found = [Decimal(cell) for cell in cells]
    except InvalidOperation:
        raise SnapshotError("a value is no number", where=place) from None
    if any(not each.is_finite() or abs(each) > LARGEST for each in found):
        raise SnapshotError("a value is out of all bounds", where=place)
    if found[SUBMIT] < 0:
        raise SnapshotError("it says of no time when the job came", where=place)
    return found


def _why_not(job: list[Decimal]) -> str:
    if job[STATUS] in PARTS:
        return OF_PARTS
    if job[RUN] < 0:
        return NEVER_RAN
    return "" if max(job[PROCESSORS_ASKED], job[PROCESSORS]) > 0 else NO_PROCESSORS


def _pods_of(job: list[Decimal], size: int, place: str) -> Iterator[TracedPod]:
    asked = job[PROCESSORS_ASKED] if job[PROCESSORS_ASKED] > 0 else job[PROCESSORS]
    processors = int(asked)
    if processors > MOST_PROCESSORS:
        raise SnapshotError(f"a job of {processors} processors", where=place)
    memory = max(job[MEMORY_ASKED] if job[MEMORY_ASKED] > 0 else job[MEMORY_USED], Decimal(0))
    largest = size or 1
    while processors > 0:
        share = min(processors, largest)
        processors -= share
        yield TracedPod(
            at=int(job[SUBMIT] * SECOND),
            run_time=int(job[RUN] * SECOND),
            cpu=share * 1000,
            memory=int(memory * KIBIBYTE) * share,
            group="job",
        )
