"""The catalogue: all runs of one directory, of scenarios and of traffic, by ids that last.

::

    DIR/runs/scenario-3/      the files of a scenario's run (`results.output`) and its run.json
    DIR/traffic-runs.db       the traffic runs (`traffic.store`); number 7 there is traffic-7 here

A run is written down when it begins and again when it has ended, so that whoever opens the
directory later, in another process, finds it. One whose process is gone was cut short: it has
failed. Numbers are never given twice, and input that cannot be played takes none. What is in a run
is read like the directory of any other.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kubescene.clock import WallClock, format_time
from kubescene.errors import ConfigurationError, ConflictError, NotFoundError, RunStoreError
from kubescene.supervised import is_alive
from kubescene.version import __version__

if TYPE_CHECKING:
    from kubescene.results.sources import RunSource
    from kubescene.traffic.results import TrafficResult
    from kubescene.traffic.store import RunStore, StoredRun

FOLDER = "runs"
TRAFFIC_FILE = "traffic-runs.db"
ENTRY_FILE = "run.json"
NEWEST_FILE = "newest"
RUNNING, FAILED = "Running", "Failed"
GONE = "the process that played it ended before the run did"
DAMAGED = "what is kept of it is damaged"
_ID = re.compile(r"(scenario|traffic)-([1-9][0-9]{0,17})")


class RunKind(StrEnum):
    SCENARIO = "scenario"
    TRAFFIC = "traffic"


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the catalogue. Times are of the machine's clock, empty if nobody knows."""

    id: str
    kind: RunKind
    name: str
    phase: str
    message: str = ""
    created: str = ""
    finished: str = ""
    version: str = ""
    seed: int = 0

    @property
    def number(self) -> int:
        return int(self.id.rpartition("-")[2])


class _Kept(RunEntry, frozen=True, kw_only=True):
    """The same in its file, with the process that plays it."""

    process: int = 0


def is_id(text: str) -> bool:
    """Whether a text may be the id of a run."""
    return _ID.fullmatch(text) is not None


class Runs:
    """The runs of a directory. May be used by many threads and processes.

    ``traffic`` is the store of the traffic runs, if somebody has it open already.
    """

    def __init__(self, folder: str | Path, *, traffic: "RunStore | None" = None) -> None:
        self.folder = Path(folder)
        self._runs = self.folder / FOLDER
        self._traffic = traffic

    # -- reading -------------------------------------------------------------------------------

    def list(self, kind: RunKind | None = None) -> list[RunEntry]:
        """All of them, the newest first."""
        found: list[RunEntry] = []
        if kind is not RunKind.TRAFFIC:
            found += self._scenarios()
        if kind is not RunKind.SCENARIO:
            with self._store() as store:
                found += [] if store is None else map(entry_of, store.runs(limit=1 << 62))
        return sorted(found, key=lambda each: (each.created, each.kind, each.number), reverse=True)

    def get(self, id: str) -> RunEntry:
        """One of them; raises `NotFoundError`."""
        kind, number = self._parsed(id)
        if kind is RunKind.SCENARIO:
            return self._entry(self.path(id))
        with self._kept_traffic(id) as store:
            return entry_of(store.get(number))

    def open(self, id: str) -> "RunSource | TrafficResult":
        """What happened in it: tables and measures of a scenario, the result of traffic."""
        kind, number = self._parsed(id)
        if kind is RunKind.SCENARIO:
            from kubescene.results.opening import open_run

            return open_run(self.path(id))
        with self._kept_traffic(id) as store:
            return store.result(number)

    def path(self, id: str) -> Path:
        """The directory of a scenario's run; raises `NotFoundError`."""
        kind, _ = self._parsed(id)
        path = self._runs / id
        if kind is not RunKind.SCENARIO or not path.is_dir():
            raise self._missing(id)
        return path

    def files(self, id: str) -> dict[str, int]:
        """The names of its files, and how long they are."""
        kind, _ = self._parsed(id)
        if kind is RunKind.TRAFFIC:
            return {name: len(data) for name, data in self._traffic_files(id).items()}
        inside = sorted(self.path(id).iterdir())
        return {each.name: each.stat().st_size for each in inside if is_shown(each)}

    def read(self, id: str, name: str) -> bytes:
        """One of its files; raises `NotFoundError`."""
        kind, _ = self._parsed(id)
        if kind is RunKind.TRAFFIC:
            found = self._traffic_files(id).get(name)
            if found is not None:
                return found
        elif name in self.files(id):
            return (self.path(id) / name).read_bytes()
        raise NotFoundError(f"run {id} has no file {name!r}", name=name, kind="files")

    # -- writing -------------------------------------------------------------------------------

    def begin(self, name: str, seed: int = 0) -> str:
        """Write down that a scenario is played; returns the id, whose `path` is made."""
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            number = self._newest() + 1
            while not _made(self._runs / f"{RunKind.SCENARIO}-{number}"):
                number += 1
            id = f"{RunKind.SCENARIO}-{number}"
            self._write(
                _Kept(
                    id=id,
                    kind=RunKind.SCENARIO,
                    name=name,
                    phase=RUNNING,
                    created=format_time(WallClock().now()),
                    version=__version__,
                    seed=seed,
                    process=os.getpid(),
                )
            )
        except OSError as error:
            raise self._fault(error) from error
        return id

    def end(self, id: str, phase: str, message: str = "", seed: int | None = None) -> None:
        """Write down what became of it; its files are there by now."""
        before = self._kept(self.path(id))
        after = msgspec.structs.replace(
            before,
            phase=phase,
            message=message,
            finished=format_time(WallClock().now()),
            seed=before.seed if seed is None else seed,
        )
        try:
            self._write(after)
        except OSError as error:
            raise self._fault(error) from error

    def discard(self, id: str) -> None:
        """Nothing was played after all: there never was a run of that number."""
        try:
            shutil.rmtree(self.path(id))
        except OSError as error:
            raise self._fault(error) from error

    def delete(self, id: str) -> None:
        """Take a run away; `ConflictError` if it is under way."""
        if self.get(id).phase == RUNNING:
            raise ConflictError(f"run {id} is under way: stop it, or wait until it ends")
        kind, number = self._parsed(id)
        if kind is RunKind.SCENARIO:
            self._remove(self.path(id))
            return
        with self._kept_traffic(id) as store:
            store.delete(number)

    # -- inside --------------------------------------------------------------------------------

    def _scenarios(self) -> Iterator[RunEntry]:
        for path in self._runs.iterdir() if self._runs.is_dir() else ():
            if is_id(path.name) and path.is_dir():
                yield self._entry(path)

    def _entry(self, path: Path) -> RunEntry:
        """What is known of it; a damaged entry does not hide the others."""
        try:
            kept = self._kept(path)
        except NotFoundError:
            name = path.name
            return RunEntry(id=name, kind=RunKind.SCENARIO, name="", phase=FAILED, message=DAMAGED)
        shown = {name: getattr(kept, name) for name in RunEntry.__struct_fields__}
        if kept.phase == RUNNING and not is_alive(kept.process):
            shown |= {"phase": FAILED, "message": GONE}
        return RunEntry(**shown)

    def _kept(self, path: Path) -> _Kept:
        try:
            return msgspec.json.decode((path / ENTRY_FILE).read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            raise self._missing(path.name) from None

    def _write(self, entry: _Kept) -> None:
        """In one move: whoever reads meanwhile sees all of it."""
        path = self._runs / entry.id / ENTRY_FILE
        beginning = path.with_suffix(".new")
        text = msgspec.json.format(msgspec.json.encode(entry), indent=2)
        beginning.write_bytes(text + b"\n")
        beginning.replace(path)

    def _newest(self) -> int:
        """The highest number that was ever given."""
        names = (each.name for each in self._runs.iterdir())
        numbers = [self._parsed(name)[1] for name in names if is_id(name)]
        with suppress(OSError, ValueError):  # If none was deleted yet, there is no such file.
            numbers.append(int((self._runs / NEWEST_FILE).read_text()))
        return max(numbers, default=0)

    def _remove(self, path: Path) -> None:
        try:
            (self._runs / NEWEST_FILE).write_text(f"{self._newest()}\n")
            shutil.rmtree(path)
        except OSError as error:
            raise self._fault(error) from error

    def _traffic_files(self, id: str) -> dict[str, bytes]:
        """None of a run that has no result yet, or never will."""
        _, number = self._parsed(id)
        with self._kept_traffic(id) as store:
            return {} if store.get(number).summary is None else store.result(number).files()

    @contextmanager
    def _store(self) -> "Iterator[RunStore | None]":
        """The traffic runs, if there are any."""
        if self._traffic is not None:
            yield self._traffic
            return
        if not (self.folder / TRAFFIC_FILE).is_file():
            yield None
            return
        from kubescene.traffic.store import RunStore

        store = RunStore(self.folder / TRAFFIC_FILE)
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def _kept_traffic(self, id: str) -> "Iterator[RunStore]":
        with self._store() as store:
            if store is None:
                raise self._missing(id)
            yield store

    def _parsed(self, id: str) -> tuple[RunKind, int]:
        found = _ID.fullmatch(id)
        if found is None:
            raise self._missing(id)
        return RunKind(found[1]), int(found[2])

    def _missing(self, id: str) -> NotFoundError:
        return NotFoundError(f"there is no run {id!r} in {self.folder}", name=id, kind="runs")

    def _fault(self, error: OSError) -> RunStoreError:
        return RunStoreError(
            f"runs cannot be kept here: {error.strerror or error}", source=str(self.folder)
        )


def runs_in(folder: Path) -> Runs:
    """The catalogue of a directory that must exist."""
    if not folder.is_dir():
        raise ConfigurationError(f"there is no directory {folder}: name what --data-dir was given")
    return Runs(folder)


def entry_of(run: "StoredRun") -> RunEntry:
    return RunEntry(
        id=f"{RunKind.TRAFFIC}-{run.id}",
        kind=RunKind.TRAFFIC,
        name=run.name,
        phase=run.phase,
        message=run.message,
        created=run.created,
        finished=run.finished,
        version=run.version,
        seed=run.seed,
    )


def is_shown(path: Path) -> bool:
    return path.is_file() and path.stem != Path(ENTRY_FILE).stem


def _made(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True
