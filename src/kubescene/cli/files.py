"""Scenario files as the command line takes them, and faults as it tells them.

``-`` is standard input. A fault is one line: ``FILE:LINE:COLUMN: what``.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kubescene.api.kinds import SCENARIO
from kubescene.api.text.positions import Places
from kubescene.errors import ScenarioError
from kubescene.scenario.reading.files import (
    MAX_FILE_BYTES,
    load_yaml,
    parse_scenario,
    read_file,
)
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.samples import with_samples
from kubescene.types import JsonObject

STDIN = "-"


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario with the text that it was read from."""

    name: str
    scenario: JsonObject
    text: bytes
    path: Path | None = None

    @property
    def folder(self) -> ScenarioFolder | None:
        """Where ``objectFrom`` reads; standard input has no folder."""
        return None if self.path is None else ScenarioFolder(self.path.parent)

    @cached_property
    def places(self) -> Places:
        """Where the parts of the scenario stand in its text."""
        return Places(self.text)

    def line(self, error: ScenarioError) -> str:
        """An error with its place in this file."""
        place = self.places.name(self.name, error.path)
        told = str(error)
        return one_line(told if told.startswith(self.name) else f"{place}: {told}")


def read_scenario(file: Path) -> ScenarioFile:
    """Read a file, or standard input; raises `ScenarioError` that names file and line."""
    if str(file) == STDIN:
        text = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            raise ScenarioError(f"more than {MAX_FILE_BYTES} bytes", where="<stdin>")
        return parsed("<stdin>", text)
    return parsed(str(file), read_file(file), file)


def parsed(name: str, text: bytes, path: Path | None = None) -> ScenarioFile:
    try:
        scenario = parse_scenario(text, name)
        if path is not None:
            scenario = with_samples(scenario, ScenarioFolder(path.parent))
        return ScenarioFile(name, scenario, text, path)
    except ScenarioError as error:
        if not error.path:
            advice = _other_command(name, text)
            raise ScenarioError(f"{error.message}{advice}", where=error.where) from error
        place = Places(text).name(name, error.path)
        raise ScenarioError(error.message, where=place, path=error.path) from error


def _other_command(name: str, text: bytes) -> str:
    """For a file of another kind: which command takes it."""
    try:
        documents = load_yaml(text, name)
    except ScenarioError:
        return ""
    kinds = [each.get("kind") for each in documents if isinstance(each, dict)]
    if not kinds or len(kinds) != len(documents) or SCENARIO.kind in kinds or not all(kinds):
        return ""
    if kinds == ["TrafficRun"]:
        return f"; to simulate it: kubescene traffic run {name}"
    return f"; to make a scenario of manifests: kubescene convert {name} > scenario.yaml"


def one_line(text: str) -> str:
    """A text for a terminal: what is not printable is shown as Python writes it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text.replace("\n", " "))


def complain(lines: Iterable[str], prefix: str = "") -> None:
    """Write lines to standard error. What others say in them does not steer a terminal."""
    for line in lines:
        sys.stderr.write(f"{prefix}{line if line.isprintable() else _visible(line)}\n")


def _visible(line: str) -> str:
    from kubescene.markup import visible  # seldom needed

    return visible(line)
