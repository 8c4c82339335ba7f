"""Samples from files beside a scenario: columns of CSV files become the values of distributions.

``{empirical: {file: times.csv, column: seconds, unit: s}}`` in ``spec.simulation.workloads`` and in
``arrivals``, and the file of ``arrivals``, are read once, with the scenario, which from then on
holds the values themselves: so it can be sent to a server, and its result can be played again.
"""

import csv
import re
from collections.abc import Mapping
from typing import Any

from kubescene.clock import parse_duration
from kubescene.errors import ScenarioError
from kubescene.scenario.documents import with_simulation
from kubescene.scenario.reading.arrival_plans import COLUMNS, PATTERNS, RUN_TIME, went_back
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import operations_of
from kubescene.types import JsonObject
from kubescene.usage.courses import parse_amount

MEMBERS = ("file", "column", "unit")
MAX_SAMPLES = 100_000
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


def with_samples(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    """The Scenario with the values of the files that it names; or `ScenarioError`."""
    return _with_arrivals(_with_workloads(scenario, folder), folder)


def _with_workloads(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    spec = scenario.get("spec")
    simulation = spec.get("simulation") if isinstance(spec, Mapping) else None
    workloads = simulation.get("workloads") if isinstance(simulation, Mapping) else None
    if not isinstance(workloads, list):
        return scenario
    found = _filled(workloads, folder, ("spec", "simulation", "workloads"))
    return scenario if found is workloads else with_simulation(scenario, workloads=found)


def _with_arrivals(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    field, items = operations_of(scenario)
    found = [_arriving(item, folder, ("spec", field, place)) for place, item in enumerate(items)]
    if all(a is b for a, b in zip(found, items, strict=True)):
        return scenario
    return {**scenario, "spec": {**scenario["spec"], field: found}}


def _arriving(item: Any, folder: ScenarioFolder, path: tuple[str | int, ...]) -> Any:
    """An operation with what the files list that its arrivals name; itself, if there are none."""
    create = item.get("createOperation") if isinstance(item, Mapping) else None
    arrivals = create.get("arrivals") if isinstance(create, Mapping) else None
    if not isinstance(arrivals, Mapping) or create is None:
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
    return int(text) if text.isascii() and text.isdecimal() and not unit else f"{text}{unit}"
