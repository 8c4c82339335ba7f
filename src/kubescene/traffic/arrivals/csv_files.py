"""The CSV files that a TrafficRun names: times, and what was measured then.

Times are seconds, also since 1970, durations such as ``90s``, or RFC 3339.
"""

import csv
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from kubescene.errors import TrafficError
from kubescene.traffic.spec.units import instant_of

MOST_ROWS = 50_000_000


class Timed(NamedTuple):
    """One row: its place in the file, its time as it is written there, and the other cells."""

    where: str
    instant: int
    calendar: bool
    cells: list[str]


def timed_rows(file: str, folder: Path | None, path: str) -> Iterator[Timed]:
    """The rows of a file in the folder of the run; ``path`` is the field that names it."""
    found = False
    for where, row in _rows(file, folder, path):
        found = True
        try:
            instant = instant_of(row[0])
        except ValueError as error:
            raise TrafficError(f"time {error}", source=where) from error
        yield Timed(where, instant, "T" in row[0].upper(), row[1:])
    if not found:
        raise TrafficError(f"{file} has no rows", path=path)


def timed_values(
    file: str, folder: Path | None, path: str, name: str, most: int
) -> Iterator[tuple[Timed, float]]:
    """Rows of two columns, in order of time."""
    before = -1
    for row in timed_rows(file, folder, path):
        if len(row.cells) != 1:
            raise TrafficError(f"a row needs two columns, time and {name}", source=row.where)
        if row.instant <= before:
            raise TrafficError("its time must come after that of the row before", source=row.where)
        before = row.instant
        yield row, float(_number(row.cells[0], row.where, most))


def _rows(file: str, folder: Path | None, path: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of a CSV file with their places, without the heading, if there is one."""
    found = _inside(file, folder, path)
    try:
        with found.open(encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.reader(stream), start=1):
                if number > MOST_ROWS:
                    raise TrafficError(f"{file} has more than {MOST_ROWS} rows", path=path)
                where = f"{found}:{number}"
                if row and not (number == 1 and _is_heading(row, where)):
                    yield where, row
    except FileNotFoundError:
        raise TrafficError(f"there is no file {found}", path=path) from None
    except (OSError, UnicodeError, csv.Error) as error:
        raise TrafficError(f"{found} cannot be read: {error}", path=path) from error


def _inside(file: str, folder: Path | None, path: str) -> Path:
    """A file in the folder of the TrafficRun; nowhere else."""
    if folder is None:
        raise TrafficError("a file can be named only in a TrafficRun that is one itself", path=path)
    found = (folder / file).resolve()
    if not found.is_relative_to(folder.resolve()):
        raise TrafficError(f"{file} is outside the folder of the TrafficRun", path=path)
    return found


def _is_heading(row: list[str], where: str) -> bool:
    """Whether these are names: no number among them, and no time in another notation."""
    names = [cell.strip().lower() for cell in row]
    if names[0][:1].isdecimal() or any(map(_is_number, names)):
        return False
    if "time" in names[1:]:
        raise TrafficError("the column time has to be the first", source=where)
    return True


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True


def _number(text: str, where: str, most: int) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise TrafficError(f"{text!r} is not a number", source=where) from None
    if not number.is_finite() or not 0 <= number <= most:
        raise TrafficError(f"{text!r} is not a number from 0 to {most}", source=where)
    return number
