"""What ``POST /run`` answers: Skenario's series as JSON, in pieces.

A run of a million requests has a reply of hundreds of megabytes. Rows are written many at a time
from columns, and whoever sends them needs no more than one piece in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import msgspec
import numpy as np

from kubescene.clock.batches import Integers
from kubescene.traffic.records import FAILED, Outcome
from kubescene.traffic.results import TrafficResult
from kubescene.traffic.run_requests import UNIFORM
from kubescene.traffic.series import (
    TallyLine,
    count_tallies,
    cpu_utilizations,
    levels,
    requests_per_second,
    response_columns,
    tally_lines,
)
from kubescene.traffic.spec import Mode, Pattern

ROWS_AT_ONCE = 20_000
RESPONSE = '{"arrived_at":%d,"completed_at":%d,"response_time":%d}'
TALLY = '{"occurs_at":%d,%s"tally":%d}'
SECONDS = '{"second":%d,"requests":%d}'


def reply(result: TrafficResult) -> Iterator[bytes]:
    """The whole reply. ``ran_for`` is as far as it came."""
    pattern = result.spec.traffic.pattern
    name = UNIFORM if pattern is Pattern.UNIFORM else pattern.value
    yield b'{"ran_for":%d,"traffic_pattern":%s' % (result.end, msgspec.json.encode(name))
    yield from _series("tally_lines", tally_pieces(result))
    responses = np.stack(response_columns(result), axis=1)
    yield from _series("response_times", _integers(RESPONSE, responses))
    seconds = np.array(requests_per_second(result), dtype=np.int64).reshape(-1, 2)
    yield from _series("requests_per_second", _integers(SECONDS, seconds))
    cpu = [each._asdict() for each in cpu_utilizations(result)]
    yield b',"cpu_utilizations":' + msgspec.json.encode(cpu) + b"}\n"


def tally_pieces(result: TrafficResult) -> Iterator[str]:
    if result.spec.mode is Mode.FAITHFUL:
        return _rows(TALLY, (_tally(line) for line in tally_lines(result)))
    return _tallies_of_columns(result)


def _tallies_of_columns(result: TrafficResult) -> Iterator[str]:
    """The same as `tally_lines`, from columns alone."""
    columns = result.requests
    inside = columns.outcome != Outcome.REFUSED
    left = inside & (columns.outcome != Outcome.OPEN)
    failed = np.isin(columns.outcome, FAILED)
    parts: list[tuple[str, Integers, Integers]] = []
    replicas = list(count_tallies(result.counts, result.end))
    for name in ("ReplicasActive", "ReplicasDesired"):
        own = [each for each in replicas if each.stock_name == name]
        instants = np.array([each.occurs_at for each in own], dtype=np.int64)
        counts = np.array([each.tally for each in own], dtype=np.int64)
        parts.append((_named(name, "Replica"), instants, counts))
    none = columns.completed[:0]
    parts.append((_named("RequestsFailed", "Request"), *levels(columns.completed[failed], none)))
    inner = levels(columns.arrived[inside], columns.completed[left])
    parts.append((_named("RequestsProcessing", "Request"), *inner))
    ranks = np.concatenate([np.full(len(part[1]), rank) for rank, part in enumerate(parts)])
    times = np.concatenate([part[1] for part in parts])
    tallies = np.concatenate([part[2] for part in parts])
    order = np.lexsort((ranks, times))
    table = np.stack((times[order], tallies[order]), axis=1)
    rows = np.array([_row(part[0]) for part in parts], dtype=object)[ranks[order]]
    for first in range(0, len(table), ROWS_AT_ONCE):
        here = slice(first, first + ROWS_AT_ONCE)
        yield ",".join(rows[here].tolist()) % tuple(table[here].ravel().tolist())


def _row(named: str) -> str:
    """How a row with this name is written."""
    return '{"occurs_at":%d,' + named + '"tally":%d}'


def _tally(line: TallyLine) -> tuple[int, str, int]:
    return line.occurs_at, _named(line.stock_name, line.kind_stocked), line.tally


def _named(name: str, kind: str) -> str:
    return f'"stock_name":"{name}","kind_stocked":"{kind}",'


def _series(name: str, pieces: Iterable[str]) -> Iterator[bytes]:
    comma = f',"{name}":['
    for piece in pieces:
        yield (comma + piece).encode()
        comma = ","
    yield b"]" if comma == "," else (comma + "]").encode()


def _integers(row: str, table: Integers) -> Iterator[str]:
    for first in range(0, len(table), ROWS_AT_ONCE):
        part = table[first : first + ROWS_AT_ONCE]
        yield ",".join([row] * len(part)) % tuple(part.ravel().tolist())


def _rows(row: str, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    iterator = iter(rows)
    while part := list(islice(iterator, ROWS_AT_ONCE)):
        yield ",".join([row] * len(part)) % tuple(chain.from_iterable(part))
