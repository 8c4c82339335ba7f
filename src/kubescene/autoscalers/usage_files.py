"""Recorded usage in CSV files: a column ``time``, and one for each thing that was measured.

Times are seconds, durations such as ``1h30m``, or RFC 3339. Amounts are quantities or plain
numbers: cores, bytes, units. An empty cell was not measured. What is wrong is told with file, line
and column.
"""

import csv
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

from msgspec import Struct

from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND, parse_duration
from kubescene.errors import ConfigurationError
from kubescene.types import Nanoseconds

TIME = "time"


class UsageRow(Struct, frozen=True):
    """One line: what was measured at ``time``, as texts. ``where`` is ``FILE:LINE``."""

    where: str
    time: Nanoseconds
    amounts: Mapping[str, str]


def read_usage(path: Path) -> list[UsageRow]:
    """All rows of a file, in its order; raises `ConfigurationError`."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(_rows(csv.reader(file, strict=True), str(path)))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path}: is no CSV file: {error}") from error


def _rows(lines: Iterator[list[str]], path: str) -> Iterator[UsageRow]:
    columns = [each.strip() for each in next(lines, [])]
    if TIME not in columns:
        raise ConfigurationError(f'{path}:1: there is no column "{TIME}"')
    if twice := next((each for each in columns if columns.count(each) > 1), None):
        raise ConfigurationError(f'{path}:1: there are several columns "{twice}"')
    for number, line in enumerate(lines, 2):
        if any(cell.strip() for cell in line):
            yield _row(columns, line, f"{path}:{number}")


def _row(columns: list[str], line: list[str], where: str) -> UsageRow:
    if len(line) != len(columns):
        raise ConfigurationError(f"{where}: {len(line)} cells in {len(columns)} columns")
    cells = {name: cell.strip() for name, cell in zip(columns, line, strict=True)}
    time = _instant(cells.pop(TIME), f"{where}: {TIME}")
    return UsageRow(where, time, {name: cell for name, cell in cells.items() if cell})


def _instant(text: str, where: str) -> Nanoseconds:
    try:
        if "T" in text.upper():
            return parse_time(text)
        if text[-1:].isalpha():
            return parse_duration(text)
        return int(Decimal(text) * SECOND)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise ConfigurationError(
            f"{where}: {text!r} is neither seconds, nor a duration, nor an RFC 3339 time"
        ) from error
