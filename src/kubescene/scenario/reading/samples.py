"""Samples from files beside a scenario: columns of CSV files become the values of distributions.

``{empirical: {file: times.csv, column: seconds, unit: s}}`` in ``spec.simulation.workloads`` is
read once, with the scenario, which from then on holds the values themselves: so it can be sent to a
server, and its result can be played again.
"""

import csv
from collections.abc import Mapping
from typing import Any

from kubescene.errors import ScenarioError
from kubescene.scenario.documents import with_simulation
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.types import JsonObject

MEMBERS = ("file", "column", "unit")
MAX_SAMPLES = 100_000


def with_samples(scenario: JsonObject, folder: ScenarioFolder) -> JsonObject:
    """The Scenario with the values of the files that its workloads name; or `ScenarioError`."""
    spec = scenario.get("spec")
    simulation = spec.get("simulation") if isinstance(spec, Mapping) else None
    workloads = simulation.get("workloads") if isinstance(simulation, Mapping) else None
    if not isinstance(workloads, list):
        return scenario
    found = _filled(workloads, folder, ("spec", "simulation", "workloads"))
    return scenario if found is workloads else with_simulation(scenario, workloads=found)


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
    rows = list(csv.reader(folder.text(name).splitlines()))
    if len(rows) < 2:
        raise ScenarioError(f"{name} has no values below its first line, the names of columns")
    header = [each.strip() for each in rows[0]]
    column = named.get("column")
    if column is None and len(header) > 1:
        raise ScenarioError(f"{name} has several columns ({', '.join(header)}): say which")
    if column is not None and str(column) not in header:
        raise ScenarioError(f"{name} has no column {column}; it has {', '.join(header)}")
    place = 0 if column is None else header.index(str(column))
    if len(rows) > MAX_SAMPLES:
        raise ScenarioError(f"{name} has more than {MAX_SAMPLES} lines")
    listed = enumerate(rows[1:], 2)
    return [_value(row, place, unit, f"{name}:{line}") for line, row in listed if row]


def _value(row: list[str], place: int, unit: str, where: str) -> str | int:
    text = row[place].strip() if place < len(row) else ""
    if not text:
        raise ScenarioError(f"{where}: there is no value in this line")
    return int(text) if text.isascii() and text.isdecimal() and not unit else f"{text}{unit}"
