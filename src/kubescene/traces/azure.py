"""Azure's packing trace of 2020: virtual machines, as a SQLite database.

``vm(vmId, tenantId, vmTypeId, priority, starttime, endtime)`` has times in days, and ``vmType(id,
vmTypeId, machineId, core, memory, hdd, ssd, nic)`` what a type takes of each kind of machine, as a
part of it. One kind is chosen: that on which most types can be, the first of them. The database is
read from memory: nothing of it is run but two SELECTs of tables, within a limit of work.
"""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from kubescene.durations import SECOND
from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.tables import bounded
from kubescene.traces.trace import TracedPod, WorkloadTrace

MAGIC = b"SQLite format 3\0"
DAY = 86400 * SECOND
MACHINE_CPU, MACHINE_MEMORY = 64_000, 512 * 1024**3
"""What a whole machine is taken for: the trace has parts only."""
MOST_DAYS = 100_000
STEPS, MOST_CALLS = 1_000_000, 5_000
"""Of SQLite's virtual machine, until it is asked whether it goes on; and how often it may be."""
NO_TYPE = "its type cannot be on the machine that was chosen"
OVER = "it ended before the trace begins"
COLUMNS = {
    "vm": ("vmId", "vmTypeId", "starttime", "endtime"),
    "vmType": ("vmTypeId", "machineId", "core", "memory"),
}


class AzureReader:
    """A `TraceReader`."""

    name = "azure"
    about = "AzurePublicDataset: packing_trace_zone_a_v1.sqlite"

    def detects(self, source: SnapshotSource) -> bool:
        return source.head.startswith(MAGIC)

    def read(self, source: SnapshotSource, nodes: SnapshotSource | None) -> WorkloadTrace:
        if nodes is not None:
            raise SnapshotError("nodes of this trace are given by sizes", where=nodes.where)
        try:
            with closing(_opened(source.text)) as database:
                return _trace(database, source.where)
        except (sqlite3.Error, OverflowError) as error:
            told = f"it cannot be read as a packing trace: {error}"
            raise SnapshotError(told, where=source.where) from None


def _opened(data: bytes) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.deserialize(data)
    database.execute("PRAGMA trusted_schema = OFF")
    calls = iter(range(MOST_CALLS))
    database.set_progress_handler(lambda: next(calls, None) is None, STEPS)
    return database


def _trace(database: sqlite3.Connection, where: str) -> WorkloadTrace:
    for table, columns in COLUMNS.items():
        there = database.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
        ).fetchone()
        if there is None:
            raise SnapshotError(f"it has no table {table}", where=where)
        known = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        if missing := [each for each in columns if each not in known]:
            raise SnapshotError(f"table {table} has no column {missing[0]}", where=where)
    machine, sizes = _sizes(database, where)
    trace = WorkloadTrace(())
    trace.pods = sorted(
        bounded(_pods(database, sizes, where, trace), where), key=lambda pod: pod.at
    )
    if not trace.pods:
        raise SnapshotError("there is no machine in it that ran", where=where)
    trace.remarks += [
        f"sizes are parts of machine {machine}, which is taken as 64 CPUs and 512Gi: give nodes of "
        "such sizes",
        "the priority is not read; who never ends runs to the end of the trace",
    ]
    return trace


def _sizes(database: sqlite3.Connection, where: str) -> tuple[int, dict[int, tuple[int, int]]]:
    """The machine that is chosen, and what each type takes of it."""
    by_machine: dict[int, dict[int, tuple[int, int]]] = {}
    for kind, machine, core, memory in database.execute(
        "SELECT vmTypeId, machineId, core, memory FROM vmType ORDER BY machineId, vmTypeId"
    ):
        parts = (_part(core, MACHINE_CPU, where), _part(memory, MACHINE_MEMORY, where))
        by_machine.setdefault(int(machine), {})[int(kind)] = parts
    if not by_machine:
        raise SnapshotError("table vmType is empty", where=where)
    return min(by_machine.items(), key=lambda each: (-len(each[1]), each[0]))


def _part(value: object, whole: int, where: str) -> int:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise SnapshotError(f"vmType takes {value!r} of a machine, no part of it", where=where)
    return math.ceil(value * whole)


def _pods(
    database: sqlite3.Connection,
    sizes: dict[int, tuple[int, int]],
    where: str,
    trace: WorkloadTrace,
) -> Iterator[TracedPod]:
    rows = database.execute(
        "SELECT vmId, vmTypeId, starttime, endtime FROM vm ORDER BY starttime, vmId"
    ).fetchall()
    times = [each for row in rows for each in row[2:] if each is not None]
    if any(not isinstance(each, int | float) or abs(each) > MOST_DAYS for each in times):
        raise SnapshotError("a time in table vm is no number of days", where=where)
    last = max(times, default=0)
    for _, kind, start, end in rows:
        if kind not in sizes:
            trace.left_out[NO_TYPE] += 1
            continue
        began, ended = (round(each * DAY) for each in (start, last if end is None else end))
        if start is None or ended < 0 or ended < began:
            trace.left_out[OVER] += 1
            continue
        cpu, memory = sizes[kind]
        at = max(began, 0)
        yield TracedPod(at=at, run_time=ended - at, cpu=cpu, memory=memory, group="vm")
