"""Recorded usage in files. What is wrong is told with the file and the place in it.

CSV has a column ``time``, and one for each thing that was measured. Times are seconds, durations
such as ``1h30m``, or RFC 3339. Amounts are quantities or plain numbers: cores, bytes, units. An
empty cell was not measured.

JSON is what Prometheus answers to ``query_range``: one query a file, and so one thing that was
measured, whose name is given with the file: ``cpu=cpu.json``. NaN was not measured.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND, parse_duration
from kubescene.errors import ConfigurationError
from kubescene.types import Nanoseconds

TIME = "time"
POD, CONTAINER = "pod", "container"
"""Columns, and labels of Prometheus, that say whose usage it is."""
_FINEST = Decimal("1e-9")
_MOST = Decimal("1e18")


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


class RangeSeries(Struct, frozen=True):
    """One series of an answer to ``query_range``; ``where`` is its place in the file."""

    where: str
    labels: Mapping[str, str]
    values: Mapping[Nanoseconds, Decimal]


class _Answer(Struct, rename="camel"):
    class Data(Struct, rename="camel"):
        class Series(Struct):
            metric: dict[str, str]
            values: list[tuple[float, str]] = []

        result_type: str
        result: list[Series]

    status: str
    data: Data | None = None
    error: str = ""


def read_range(path: Path) -> list[RangeSeries]:
    """The series of a file; raises `ConfigurationError`."""
    try:
        return range_of(path.read_bytes(), str(path))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error


def range_of(text: bytes, path: str) -> list[RangeSeries]:
    """The series of an answer, which came from there; raises `ConfigurationError`."""
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: is no answer of Prometheus to query_range: {error}"
        ) from error
    if answer.data is None or answer.status != "success":
        raise ConfigurationError(f"{path}: the query had failed: {answer.error or answer.status}")
    if answer.data.result_type != "matrix":
        raise ConfigurationError(
            f"{path}: data.resultType: {answer.data.result_type!r}; query_range answers a matrix"
        )
    found = [
        _series(each, f"{path}: data.result[{number}]")
        for number, each in enumerate(answer.data.result)
    ]
    names = sorted({each.labels["__name__"] for each in found if "__name__" in each.labels})
    if len(names) > 1:
        raise ConfigurationError(f"{path}: several metrics ({', '.join(names)}): one query a file")
    return found


def _series(given: Any, where: str) -> RangeSeries:
    values = {}
    for number, (instant, text) in enumerate(given.values):
        amount = _amount(text, f"{where}.values[{number}]")
        if amount is not None:
            values[int(Decimal(repr(instant)) * SECOND)] = amount
    return RangeSeries(where, given.metric, values)


def _amount(text: str, where: str) -> Decimal | None:
    """None: it was not measured."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ConfigurationError(f"{where}: {text!r} is no number") from None
    if amount.is_nan():
        return None
    if not 0 <= amount < _MOST:
        raise ConfigurationError(f"{where}: {text} is negative, or too much")
    return amount


def summed(files: Mapping[str, list[RangeSeries]]) -> list[UsageRow]:
    """By time, what all series of a file come to, under the name of the file.

    Of a pod's containers and of their sum, a series without a container, only the former count.
    """
    rows: dict[Nanoseconds, dict[str, Decimal]] = {}
    places: dict[Nanoseconds, str] = {}
    for name, series in files.items():
        for each in _of_containers(series):
            for time, amount in each.values.items():
                amounts = rows.setdefault(time, {})
                amounts[name] = amounts.get(name, Decimal()) + amount
                places.setdefault(time, each.where)
    return [
        UsageRow(f"{places[time]} at {time // SECOND}", time, _texts(amounts))
        for time, amounts in sorted(rows.items())
    ]


def by_container(files: Mapping[str, list[RangeSeries]]) -> list[UsageRow]:
    """By time, what each container of each pod used."""
    rows: dict[tuple[Nanoseconds, str, str], dict[str, Decimal]] = {}
    places: dict[tuple[Nanoseconds, str, str], str] = {}
    for name, series in files.items():
        for each in _of_containers(series):
            pod, container = (each.labels.get(label) or label for label in (POD, CONTAINER))
            for time, amount in each.values.items():
                key = time, pod, container
                if name in rows.setdefault(key, {}):
                    raise ConfigurationError(
                        f"{each.where}: {container} of {pod} is there twice: sum by them"
                    )
                rows[key][name] = amount
                places.setdefault(key, each.where)
    return [
        UsageRow(
            f"{places[key]} at {key[0] // SECOND}",
            key[0],
            {**_texts(amounts), POD: key[1], CONTAINER: key[2]},
        )
        for key, amounts in sorted(rows.items())
    ]


def _of_containers(series: list[RangeSeries]) -> Iterable[RangeSeries]:
    named = {each.labels.get(POD) for each in series if each.labels.get(CONTAINER)}
    return [
        each for each in series if each.labels.get(CONTAINER) or each.labels.get(POD) not in named
    ]


def _texts(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {name: format(amount.quantize(_FINEST), "f") for name, amount in amounts.items()}
