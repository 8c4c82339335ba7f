"""Samples from files beside a scenario: columns of CSV files become the values of distributions.

``{empirical: {file: times.csv, column: seconds, unit: s}}`` in ``spec.simulation.workloads`` and in
``arrivals``, the file of ``arrivals``, that of the points of a MetricSeries and that of the
requests of a Traffic are read once, with the scenario, which from then on holds the values
themselves: so it can be sent to a server, and its result can be played again.
"""

import csv
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from kubescene.clock import format_duration, parse_duration
from kubescene.errors import ScenarioError, TrafficError
from kubescene.scenario.documents import with_simulation
from kubescene.scenario.reading.arrival_plans import COLUMNS, PATTERNS, RUN_TIME, went_back
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.types import JsonObject
from kubescene.usage.courses import parse_amount

SERIES, TRAFFIC = "MetricSeries", "Traffic"
RECORDED = {"piecewise": "points", "replay": "arrivals"}
"""Requests that a file may say, and the field that they come to."""
MEMBERS = ("file", "column", "unit")
MAX_SAMPLES = 100_000
MAX_REQUESTS = 1_000_000
"""Rows of a Traffic's file, each a request or a rate."""
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
AMOUNT = re.compile(r"\+?\.?[0-9]")
"""How all of them begin: times, sizes, numbers; none is negative."""


def with_samples(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    """The Scenario with the values of the files that it names; or `ScenarioError`."""
    return _with_operations(_with_workloads(scenario, folder), folder)


def _with_workloads(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    spec = scenario.get("spec")
    simulation = spec.get("simulation") if isinstance(spec, Mapping) else None
    workloads = simulation.get("workloads") if isinstance(simulation, Mapping) else None
    if not isinstance(workloads, list):
        return scenario
    found = _filled(workloads, folder, ("spec", "simulation", "workloads"))
    return scenario if found is workloads else with_simulation(scenario, workloads=found)


def _with_operations(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    field, items = operations_of(scenario)
    found = [_creating(item, folder, ("spec", field, place)) for place, item in enumerate(items)]
    if all(a is b for a, b in zip(found, items, strict=True)):
        return scenario
    return {**scenario, "spec": {**scenario["spec"], field: found}}


def _creating(item: Any, folder: ScenarioFolder, path: tuple[str | int, ...]) -> Any:
    """An operation with what the files hold that it names; itself, if there are none."""
    create = item.get("createOperation") if isinstance(item, Mapping) else None
    if not isinstance(create, Mapping):
        return item
    obj = create.get("object")
    if isinstance(obj, Mapping) and obj.get("kind") == SERIES:
        return _measuring(item, obj, folder, path)
    if isinstance(obj, Mapping) and obj.get("kind") == TRAFFIC:
        return _asking(item, obj, folder, path)
    arrivals = create.get("arrivals")
    if not isinstance(arrivals, Mapping):
        return item
    path = (*path, "createOperation", "arrivals")
    filled = _filled(arrivals, folder, path)
    if [name for name in PATTERNS if arrivals.get(name) is not None] == ["file"]:
        try:
            listed = _listed(str(arrivals["file"]), folder)
        except ScenarioError as error:
            raise ScenarioError(
                error.message, where=".".join(map(str, path)), path=(*path, "file")
            ) from error
        kept = {name: part for name, part in filled.items() if name != "file"}
        filled = {**kept, "listed": listed}
    return (
        item if filled is arrivals else {**item, "createOperation": {**create, "arrivals": filled}}
    )


def _measuring(
    item: Any, obj: Mapping[str, Any], folder: ScenarioFolder, path: tuple[str | int, ...]
) -> Any:
    """An operation that creates a MetricSeries with the points of its file."""
    spec = obj.get("spec")
    points = spec.get("points") if isinstance(spec, Mapping) else None
    if spec is None or not isinstance(points, Mapping) or points.keys() != {"file"}:
        return item
    path = (*path, "createOperation", "object", "spec", "points")
    try:
        read = _points(str(points["file"]), folder)
    except ScenarioError as error:
        where, inside = ".".join(map(str, path)), (*path, "file")
        raise ScenarioError(error.message, where=where, path=inside) from error
    create = {**item["createOperation"], "object": {**obj, "spec": {**spec, "points": read}}}
    return {**item, "createOperation": create}


def _asking(
    item: Any, obj: Mapping[str, Any], folder: ScenarioFolder, path: tuple[str | int, ...]
) -> Any:
    """An operation that creates a Traffic with the requests of its file."""
    spec = obj.get("spec")
    arrivals = spec.get("arrivals") if isinstance(spec, Mapping) else None
    if spec is None or not isinstance(arrivals, Mapping):
        return item
    path = (*path, "createOperation", "object", "spec", "arrivals")
    found = dict(arrivals)
    for name, field in RECORDED.items():
        part = arrivals.get(name)
        if isinstance(part, Mapping) and "file" in part and field not in part:
            try:
                found[name] = _recorded(part, field, folder)
            except (ScenarioError, TrafficError, ValueError) as error:
                where, inside = ".".join(map(str, path)), (*path, name, "file")
                raise ScenarioError(str(error), where=where, path=inside) from error
    if found == arrivals:
        return item
    create = {**item["createOperation"], "object": {**obj, "spec": {**spec, "arrivals": found}}}
    return {**item, "createOperation": create}


def _recorded(part: Mapping[str, Any], field: str, folder: ScenarioFolder) -> JsonObject:
    """The same with what its file says, in times of the Traffic."""
    from kubescene.flows.checks import MOST_RPS
    from kubescene.flows.sources import origin_of, timed, timed_values
    from kubescene.flows.units import instant_of

    name = str(part["file"])
    rows = list(islice(timed(folder.text(name).splitlines(), name, "file"), MAX_REQUESTS + 1))
    if len(rows) > MAX_REQUESTS:
        raise ScenarioError(f"{name} has more than {MAX_REQUESTS} rows")
    if field == "arrivals":
        rows.sort(key=lambda row: row.instant)
    given = part.get("origin")
    origin = origin_of(
        None if given is None else instant_of(given),
        rows[0].instant,
        calendar=any(row.calendar for row in rows),
    )
    if rows[0].instant < origin:
        raise ScenarioError(f"{rows[0].where}: this is before origin")
    kept = {key: value for key, value in part.items() if key not in ("file", "origin")}
    if field == "arrivals":
        return {**kept, field: [format_duration(row.instant - origin) for row in rows]}
    values = timed_values(rows, "rps", MOST_RPS)
    points = [{"at": format_duration(row.instant - origin), "rps": rps} for row, rps in values]
    return {**kept, field: points}


def _points(name: str, folder: ScenarioFolder) -> list[JsonObject]:
    """What a CSV file of a series says: times from its creation on, each after the one before."""
    header, rows = _table(name, folder)
    if sorted(header) != ["at", "value"]:
        raise ScenarioError(f"{name} needs the columns at and value, and no others")
    points: list[JsonObject] = []
    before = -1
    for line, row in rows:
        where = f"{name}:{line}"
        at = str(_value(row, header.index("at"), "", where))
        at = f"{at}s" if NUMBER.fullmatch(at) else at
        try:
            offset = parse_duration(at)
        except ValueError as error:
            raise ScenarioError(f"{where}: {error}") from error
        if offset <= before:
            raise ScenarioError(f"{where}: {at} does not come after {points[-1]['at']} before it")
        before = offset
        value = str(_value(row, header.index("value"), "", where))
        points.append({"at": at, "value": value})
    return points


def _listed(name: str, folder: ScenarioFolder) -> list[JsonObject]:
    """The entries of a CSV file of arrivals."""
    header, rows = _table(name, folder)
    if unknown := [each for each in header if each not in COLUMNS]:
        known = ", ".join(COLUMNS)
        raise ScenarioError(f"{name} has a column {unknown[0]!r}; known are: {known}")
    if "at" not in header or len({*header}) < len(header):
        raise ScenarioError(f"{name} needs one column at, and no column twice")
    listed: list[JsonObject] = []
    before = 0
    for line, row in rows:
        try:
            entry = _entry(header, row)
            offset = parse_duration(entry["at"])
            if offset < before:
                raise ValueError(went_back(entry["at"], listed[-1]["at"]))
        except ValueError as error:
            raise ScenarioError(f"{name}:{line}: {error}") from error
        listed.append(entry)
        before = offset
    return listed


def _entry(header: list[str], row: list[str]) -> JsonObject:
    if len(row) != len(header):
        raise ValueError(f"{len(row)} values for {len(header)} columns")
    cells = [each.strip() for each in row]
    entry: JsonObject = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
    for name, cell in entry.items():
        if name in ("at", RUN_TIME):
            entry[name] = f"{cell}s" if NUMBER.fullmatch(cell) else cell
            parse_duration(entry[name])
        else:
            parse_amount(cell)
    if "at" not in entry:
        raise ValueError("it does not say at which time")
    return entry


def _filled(value: Any, folder: ScenarioFolder, path: tuple[str | int, ...]) -> Any:
    """A part of a document with values for files; itself, if it names none."""
    if isinstance(value, list):
        items = [_filled(each, folder, (*path, place)) for place, each in enumerate(value)]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if not isinstance(value, Mapping):
        return value
    named = value.get("empirical")
    if isinstance(named, Mapping) and "file" in named:
        try:
            values = _column(named, folder)
        except ScenarioError as error:
            inside = (*path, "empirical", "file")
            raise ScenarioError(
                error.message, where=".".join(map(str, path)), path=inside
            ) from error
        return {**value, "empirical": {"values": values}}
    parts = {name: _filled(each, folder, (*path, name)) for name, each in value.items()}
    return value if all(parts[name] is value[name] for name in parts) else parts


def _column(named: Mapping[str, Any], folder: ScenarioFolder) -> list[str | int]:
    if unknown := [str(name) for name in named if name not in MEMBERS]:
        raise ScenarioError(f"a file has no {unknown[0]}; it has {', '.join(MEMBERS)}")
    name, unit = str(named["file"]), str(named.get("unit") or "")
    header, rows = _table(name, folder)
    column = named.get("column")
    if column is None and len(header) > 1:
        raise ScenarioError(f"{name} has several columns ({', '.join(header)}): say which")
    if column is not None and str(column) not in header:
        raise ScenarioError(f"{name} has no column {column}; it has {', '.join(header)}")
    place = 0 if column is None else header.index(str(column))
    return [_value(row, place, unit, f"{name}:{line}") for line, row in rows]


def _table(name: str, folder: ScenarioFolder) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The names of the columns of a CSV file, and its rows with their lines."""
    rows = list(csv.reader(folder.text(name).splitlines()))
    if len(rows) < 2:
        raise ScenarioError(f"{name} has no values below its first line, the names of columns")
    if len(rows) > MAX_SAMPLES:
        raise ScenarioError(f"{name} has more than {MAX_SAMPLES} lines")
    header = [each.strip() for each in rows[0]]
    return header, [(line, row) for line, row in enumerate(rows[1:], 2) if row]


def _value(row: list[str], place: int, unit: str, where: str) -> str | int:
    text = row[place].strip() if place < len(row) else ""
    if not text:
        raise ScenarioError(f"{where}: there is no value in this line")
    if unit and not NUMBER.fullmatch(text):
        raise ScenarioError(f"{where}: {text!r} is not a number, which the unit {unit} follows")
    if not AMOUNT.match(text):
        raise ScenarioError(f"{where}: {text!r} is not an amount such as 12, 90s or 1Gi")
    return int(text) if text.isascii() and text.isdecimal() and not unit else f"{text}{unit}"
