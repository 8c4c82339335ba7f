"""Directories that somebody wants to look at, wherever they are, by ids of their own.

Those of runs are read like those of a catalogue; of a matrix or a search over settings there is the
table that it wrote. None is ever written to.
"""

from collections.abc import Sequence
from pathlib import Path

import orjson

from kubescene.errors import ConfigurationError, NotFoundError
from kubescene.results.opening import open_run
from kubescene.results.output import TIMELINE_FILE
from kubescene.results.sources import RunSource
from kubescene.runs.catalogue import RunEntry, RunKind, is_shown
from kubescene.types import JsonObject

PREFIX = "opened-"
SWEEP = "sweep-"
SWEEP_FILES = {"matrix.json": "matrix", "tune.json": "tune"}
"""What `kubescene matrix --out` and `kubescene tune --out` write, by what they are."""


class OpenedRuns:
    """``opened-1`` is the first folder of a run, ``sweep-1`` the first table of many runs.

    `ConfigurationError` for a folder that is neither.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        runs: list[Path] = []
        tables: list[Path] = []
        for folder in folders:
            found = [file for name in SWEEP_FILES if (file := folder / name).is_file()]
            if (folder / TIMELINE_FILE).is_file():
                runs.append(folder)
            elif found:
                tables += found
            else:
                raise ConfigurationError(
                    f"{folder} is no run directory: it has no {TIMELINE_FILE}, and no "
                    f"{' or '.join(SWEEP_FILES)}; name what --out was given"
                )
        self._folders = {f"{PREFIX}{at}": each for at, each in enumerate(runs, 1)}
        self._tables = {f"{SWEEP}{at}": each for at, each in enumerate(tables, 1)}

    @property
    def page(self) -> str:
        """The address of the page that shows them: the one there is, or two runs together."""
        runs, tables = len(self._folders), len(self._tables)
        if tables and not runs:
            return f"/ui/sweeps/{SWEEP}1"
        if runs == 1:
            return f"/ui/run/{PREFIX}1"
        return f"/ui/compare?a={PREFIX}1&b={PREFIX}2"

    def sweeps(self) -> list[JsonObject]:
        """What there is of many runs: id, kind, and the name of its folder."""
        return [
            {"id": id, "kind": SWEEP_FILES[file.name], "name": file.parent.name}
            for id, file in self._tables.items()
        ]

    def sweep(self, id: str) -> JsonObject:
        """One, with its table as it was written."""
        known = next((each for each in self.sweeps() if each["id"] == id), None)
        if known is None:
            raise NotFoundError(f"there is no sweep {id!r} here", name=id, kind="sweeps")
        file = self._tables[id]
        try:
            return {**known, "table": orjson.loads(file.read_bytes())}
        except (OSError, orjson.JSONDecodeError) as error:
            raise ConfigurationError(f"{file} cannot be read: {error}") from error

    def list(self) -> list[RunEntry]:
        return [self.get(id) for id in self._folders]

    def get(self, id: str) -> RunEntry:
        source = self.open(id)
        return RunEntry(
            id=id,
            kind=RunKind.SCENARIO,
            name=source.scenario,
            phase=source.phase,
            message="; ".join(source.warnings),
            version=source.version,
            seed=source.seed,
        )

    def open(self, id: str) -> RunSource:
        return open_run(self.path(id))

    def path(self, id: str) -> Path:
        folder = self._folders.get(id)
        if folder is None:
            raise NotFoundError(f"there is no run {id!r} here", name=id, kind="runs")
        return folder

    def files(self, id: str) -> dict[str, int]:
        """The names of its files, and how long they are."""
        inside = sorted(self.path(id).iterdir())
        return {each.name: each.stat().st_size for each in inside if is_shown(each)}

    def read(self, id: str, name: str) -> bytes:
        if name not in self.files(id):
            raise NotFoundError(f"run {id} has no file {name!r}", name=name, kind="files")
        return (self.path(id) / name).read_bytes()

    def __contains__(self, id: str) -> bool:
        return id in self._folders
