"""Runs that are kept: a SQLite file with all that it takes to repeat any of them.

A run is written down when it begins, and again when it ended, whatever became of it. Several
processes may write into one file. A run of which the process is gone is shown as failed.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import msgspec
import numpy as np

from kubescene.clock import WallClock, format_time
from kubescene.errors import NotFoundError, RunStoreError, TrafficError
from kubescene.flows.records import ROW
from kubescene.supervised import is_alive
from kubescene.traffic.results import Phase, TrafficResult, read_result
from kubescene.traffic.spec.fields import TrafficRun
from kubescene.traffic.spec.loading import run_of, to_object
from kubescene.version import __version__

APPLICATION_ID = 0x6B756273
"""In the header of the file: it is one of ours."""
SCHEMA_VERSION = 2
PATIENCE_S = 30.0
"""How long one writer waits for another."""
MOST_IN_MEMORY = 64 << 20
"""Bytes of runs that have ended; one may be larger."""
ROW_BYTES = 1024
"""What a row takes beside what is large in it."""
RUNNING, FAILED = "Running", "Failed"
GONE = "the process that simulated it ended before the run did"
DAMAGED = "what is kept of it is damaged"

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created TEXT NOT NULL,
    version TEXT NOT NULL,
    process INTEGER NOT NULL,
    name TEXT NOT NULL,
    seed TEXT NOT NULL,
    run BLOB NOT NULL,
    autoscalers BLOB NOT NULL,
    repeats INTEGER,
    phase TEXT NOT NULL,
    message TEXT NOT NULL DEFAULT '',
    header BLOB,
    story BLOB,
    requests BLOB,
    finished TEXT NOT NULL DEFAULT ''
)
"""
UPGRADES = {1: "ALTER TABLE runs ADD COLUMN finished TEXT NOT NULL DEFAULT ''"}
"""What makes a file of the next schema of one of this; of older runs nobody knows the end."""
SHOWN = (
    "id, created, finished, version, process, name, seed, phase, message, repeats, autoscalers, "
    "header"
)


SIZE = f"{ROW_BYTES} + length(run) + " + " + ".join(
    f"ifnull(length({each}), 0)" for each in ("header", "story", "requests")
)


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. ``summary`` is there once the run ended."""

    id: int
    name: str
    created: str
    finished: str = ""
    version: str
    seed: int
    phase: str
    message: str = ""
    repeats: int | None = None
    autoscalers: tuple[str, ...] = ()
    summary: dict[str, Any] | None = None


class RunStore:
    """The runs of a file, or of this process if there is none. May be used by many threads."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = RLock()
        self._sizes: dict[int, int] = {}
        """In memory: how large each run is that ended, however it did."""
        self._held = 0
        self._database = self._opened()

    def begin(
        self, run: TrafficRun, autoscalers: Sequence[str] = (), *, repeats: int | None = None
    ) -> int:
        """Write down that this run begins; returns its id."""
        row = (
            format_time(WallClock().now()),
            __version__,
            os.getpid(),
            run.metadata.name,
            str(run.spec.seed),
            msgspec.json.encode(to_object(run)),
            msgspec.json.encode(list(autoscalers)),
            repeats,
            RUNNING,
        )
        with self._writing() as database:
            made = database.execute(
                "INSERT INTO runs (created, version, process, name, seed, run, autoscalers, "
                "repeats, phase) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        assert made.lastrowid is not None
        return made.lastrowid

    def end(self, id: int, result: TrafficResult) -> None:
        """Write down what became of it: all of it, also if it failed or was stopped."""
        story = result.story()
        requests = result.requests.rows().tobytes()
        with self._writing() as database:
            database.execute(
                "UPDATE runs SET header = ?, story = ?, requests = ? WHERE id = ?",
                (result.header(), story, requests, id),
            )
            self._finish(database, id, result.phase.value, result.message)

    def fail(self, id: int, message: str) -> None:
        """Write down that it could not be simulated at all."""
        with self._writing() as database:
            self._finish(database, id, FAILED, message)

    def stop(self, id: int, message: str) -> None:
        """Write down that it was stopped, and nothing of what was simulated until then."""
        with self._writing() as database:
            self._finish(database, id, Phase.CANCELLED.value, message)

    def _finish(self, database: sqlite3.Connection, id: int, phase: str, message: str) -> None:
        database.execute(
            "UPDATE runs SET phase = ?, message = ?, finished = ? WHERE id = ?",
            (phase, message, format_time(WallClock().now()), id),
        )
        if self.path is None:
            (size,) = database.execute(f"SELECT {SIZE} FROM runs WHERE id = ?", (id,)).fetchone()
            self._held += size - self._sizes.get(id, 0)
            self._sizes[id] = size
            self._forget_oldest(database)

    def delete(self, id: int) -> None:
        """Take it away; its number is not given again. Raises `NotFoundError`."""
        with self._writing() as database:
            gone = database.execute("DELETE FROM runs WHERE id = ?", (id,)).rowcount
            self._held -= self._sizes.pop(id, 0)
        if not gone:
            raise self._missing(id)

    def runs(self, limit: int = 100, before: int | None = None) -> list[StoredRun]:
        """The newest runs, those with ids below ``before``."""
        with self._reading() as database:
            rows = database.execute(
                f"SELECT {SHOWN} FROM runs WHERE id < ? ORDER BY id DESC LIMIT ?",
                ((1 << 62) if before is None else before, limit),
            ).fetchall()
            return [_shown(row) for row in rows]

    def get(self, id: int) -> StoredRun:
        """One of them; raises `NotFoundError`."""
        with self._reading():
            return _shown(self._row(id, SHOWN))

    def configuration(self, id: int) -> TrafficRun:
        """What was asked for, complete."""
        (kept,) = self._row(id, "run")
        try:
            return run_of(msgspec.json.decode(kept, type=dict[str, Any]))
        except (TrafficError, ValueError, TypeError) as error:
            raise self._damaged(id, error) from error

    def result(self, id: int) -> TrafficResult:
        """All that was simulated; raises `TrafficError` for a run that has not ended."""
        run = self.configuration(id)
        header, story, requests = self._row(id, "header, story, requests")
        if header is None:
            raise TrafficError(f"run {id} has no result: {self.get(id).phase}", source=self._name)
        try:
            return read_result(run, header, story, np.frombuffer(requests, dtype=ROW))
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(id, error) from error

    def close(self) -> None:
        with self._lock:
            self._database.close()

    @property
    def _name(self) -> str:
        return "the runs in memory" if self.path is None else str(self.path)

    def _row(self, id: int, columns: str) -> tuple[Any, ...]:
        with self._reading() as database:
            found: tuple[Any, ...] | None = database.execute(
                f"SELECT {columns} FROM runs WHERE id = ?", (id,)
            ).fetchone()
        if found is None:
            raise self._missing(id)
        return found

    def _missing(self, id: int) -> NotFoundError:
        return NotFoundError(f"there is no run {id} in {self._name}", name=str(id), kind="runs")

    def _forget_oldest(self, database: sqlite3.Connection) -> None:
        """In memory, old runs make room for new ones; the newest stays in any case."""
        while len(self._sizes) > 1 and self._held > MOST_IN_MEMORY:
            oldest = min(self._sizes)
            self._held -= self._sizes.pop(oldest)
            database.execute("DELETE FROM runs WHERE id = ?", (oldest,))

    # -- the file ------------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        try:
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=PATIENCE_S,
                isolation_level=None,
                check_same_thread=False,
            )
        except (OSError, sqlite3.Error) as error:
            raise self._fault(error) from error
        self._database = database
        try:
            with self._writing():
                self._check_schema(database)
        except BaseException:
            database.close()
            raise
        return database

    def _check_schema(self, database: sqlite3.Connection) -> None:
        owner = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not (owner or version or tables):
            database.execute(SCHEMA)
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        elif owner != APPLICATION_ID:
            raise RunStoreError(
                "this is a database of something else, no store of traffic runs: name another file",
                source=self._name,
            )
        elif version in UPGRADES:
            database.execute(UPGRADES[version])
            database.execute(f"PRAGMA user_version = {version + 1}")
        elif version != SCHEMA_VERSION:
            raise RunStoreError(
                f"it was written by a newer Kubescene (schema {version}, this one knows "
                f"{SCHEMA_VERSION}): use that one, or name another file",
                source=self._name,
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; other writers wait meanwhile."""
        with self._reading() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                # A full disk ends the transaction by itself.
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._database
            except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
                raise self._fault(error) from error

    def _damaged(self, id: int, error: Exception) -> RunStoreError:
        return RunStoreError(f"what is kept of run {id} is damaged: {error}", source=self._name)

    def _fault(self, error: Exception) -> RunStoreError:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            what = f"others have been writing for more than {PATIENCE_S:.0f} s: try again"
        elif isinstance(error, sqlite3.DatabaseError | ValueError | KeyError | TypeError):
            what = f"the store of runs cannot be used: {error}"
        else:
            why = error.strerror if isinstance(error, OSError) else error
            what = f"the store of runs cannot be opened: {why}"
        return RunStoreError(what, source=self._name)


def _shown(row: Sequence[Any]) -> StoredRun:
    (
        id,
        created,
        finished,
        version,
        process,
        name,
        seed,
        phase,
        message,
        repeats,
        autoscalers,
        header,
    ) = row
    if phase == RUNNING and not is_alive(process):
        phase, message = FAILED, GONE
    try:
        summary = None if header is None else msgspec.json.decode(header)["summary"]
    except (ValueError, KeyError, TypeError):
        # The others can be shown all the same.
        phase, message, summary = FAILED, DAMAGED, None
    return StoredRun(
        id=id,
        name=name,
        created=created,
        finished=finished,
        version=version,
        seed=int(seed),
        phase=phase,
        message=message,
        repeats=repeats,
        autoscalers=tuple(msgspec.json.decode(autoscalers)),
        summary=summary,
    )
