"""Where a command finds a run: in a directory, or at a server that has played a scenario.

A server's run is ``--server URL [--scenario NAME]``, or ``URL`` or ``URL#NAME`` in the place of a
directory, as for the two runs of a comparison. It is fetched and read like one of our own. A run of
a data directory (`runs.catalogue`) is named by its id: ``DIR#scenario-3``.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kubescene.errors import ConfigurationError
from kubescene.results.opening import open_run
from kubescene.results.sources import RunSource

if TYPE_CHECKING:
    from kubescene.runs.catalogue import Runs

SCHEMES = ("http://", "https://")
DATA_DIR = "KUBESCENE_DATA_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """One run: exactly one of ``run`` and ``server`` is given."""

    run: Path | None = None
    server: str = ""
    scenario: str = ""

    def __str__(self) -> str:
        if self.run is not None:
            return str(self.run)
        return f"{self.server}#{self.scenario}" if self.scenario else self.server


def origin_of(run: str | None, server: str | None = None, scenario: str = "") -> RunOrigin:
    """What a command line names; `ConfigurationError` unless it is one run."""
    if run is not None and run.startswith(SCHEMES):
        if server is not None:
            raise ConfigurationError(f"{run} is a server already: leave --server out")
        server, _, named = run.partition("#")
        run, scenario = None, scenario or named
    if (run is None) == (server is None):
        raise ConfigurationError("name either a run directory or --server URL")
    if run is not None and scenario:
        raise ConfigurationError("--scenario goes with --server: a run directory holds one run")
    path = None if run is None else directory_named(run)
    return RunOrigin(run=path, server=server or "", scenario=scenario)


def directory_named(run: str) -> Path:
    """A directory, or that of an id: ``DIR#ID``, or ``ID`` in the data directory of this shell."""
    found = None if Path(run).exists() else catalogued(run)
    if found is None:
        return Path(run)
    runs, id = found
    if runs.get(id).kind == "traffic":
        raise ConfigurationError(f"{id} is a traffic run: kubescene traffic report {run}")
    return runs.path(id)


def catalogued(run: str) -> "tuple[Runs, str] | None":
    """The catalogue that a text names, and the id; None if it is a path."""
    # Those who name a directory need no catalogue.
    from kubescene.runs.catalogue import is_id, runs_in

    folder, mark, id = run.rpartition("#")
    data = folder if mark else os.environ.get(DATA_DIR, "")
    return (runs_in(Path(data)), id) if data and is_id(id) else None


@contextmanager
def opened(origin: RunOrigin) -> Iterator[RunSource]:
    """The run; what is wrong with it is said on standard error."""
    if origin.run is not None:
        source = open_run(origin.run)
        warn(source)
        yield source
        return
    # Those who read a directory need no HTTP.
    from kubescene.cli.served_runs import served_run

    with served_run(origin.server, origin.scenario) as source:
        warn(source)
        yield source


@contextmanager
def directory_of(origin: RunOrigin) -> Iterator[Path]:
    """The run as a directory, which is there as long as it is needed."""
    if origin.run is not None:
        yield origin.run
        return
    from kubescene.cli.served_runs import fetched_run

    with fetched_run(origin.server, origin.scenario) as (folder, _):
        yield folder


def warn(source: RunSource) -> None:
    for warning in source.warnings:
        sys.stderr.write(f"kubescene: warning: {warning}\n")
