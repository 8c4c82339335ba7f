"""What readers of traces share: lines, rows of CSV files, numbers and times in them."""

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo

from kubescene.durations import SECOND
from kubescene.errors import SnapshotError
from kubescene.snapshots.sources import SnapshotSource
from kubescene.traces.trace import TracedPod

MOST_ROWS = 1_000_000
MOST_PODS = 1_000_000
NUMBER = re.compile(r"([0-9]{1,15})(?:\.0+)?")
TIME = "%Y-%m-%d %H:%M:%S"


def bounded(pods: Iterable[TracedPod], where: str) -> Iterator[TracedPod]:
    """The same pods; raises `SnapshotError` if there are too many to be made a scenario of."""
    for number, pod in enumerate(pods):
        if number == MOST_PODS:
            raise SnapshotError(f"more than {MOST_PODS:,} pods: take a part of it", where=where)
        yield pod


def rows_of(
    source: SnapshotSource, columns: tuple[str, ...], without: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows of a CSV file by the names of their columns, each with its place in the file.

    ``without`` is what else is said where one of the columns is missing.
    """
    reader = csv.reader(lines_of(source), strict=True)
    header: list[str] | None = None
    try:
        for cells in reader:
            place = f"{source.where}:{reader.line_num}"
            if header is None:
                header = cells
                check_header(header, columns, source.where, without)
            elif cells:
                if len(cells) != len(header):
                    raise SnapshotError(
                        f"{len(cells)} values for {len(header)} columns", where=place
                    )
                yield place, dict(zip(header, cells, strict=True))
            if reader.line_num > MOST_ROWS:
                raise SnapshotError(f"more than {MOST_ROWS} lines", where=source.where)
    except csv.Error as error:
        raise SnapshotError(str(error), where=f"{source.where}:{reader.line_num}") from error
    if header is None:
        raise SnapshotError("it is empty", where=source.where)


def lines_of(source: SnapshotSource) -> list[str]:
    try:
        return source.text.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise SnapshotError(f"it is no UTF-8 at byte {error.start}", where=source.where) from error


def check_header(header: list[str], columns: tuple[str, ...], where: str, without: str) -> None:
    for name in columns:
        if header.count(name) != 1:
            raise SnapshotError(f"it needs one column {name}{without}", where=where)


def number_in(row: dict[str, str], name: str, place: str) -> int:
    found = NUMBER.fullmatch(row[name])
    if found is None:
        raise SnapshotError(f"{name} is {row[name][:60]!r}, not a whole number", where=place)
    return int(found[1])


def time_in(text: str, name: str, place: str, zone: tzinfo) -> int:
    """An instant that is written as local time, in nanoseconds."""
    try:
        found = datetime.strptime(text, TIME).replace(tzinfo=zone)
    except ValueError:
        told = f"{name} is {text[:60]!r}, not a time such as 2020-06-09 18:41:01"
        raise SnapshotError(told, where=place) from None
    return int(found.timestamp()) * SECOND
