"""Runs that were written down: a run directory, or a timeline file.

They can be read while the run goes on, and after one that was cut short: up to the last complete
line, with a warning.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path

import orjson

from kubescene.api.text.reading import Bounds, ReadingError
from kubescene.errors import ConfigurationError
from kubescene.garbage import uncollected
from kubescene.results.entries import Entries, attempts_in, custom_facts, damaged
from kubescene.results.explaining import ExplainedAttempt, read_attempts
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_file import read_ledger
from kubescene.results.output import (
    EXPLANATIONS_FILE,
    INDEX_FILE,
    LEDGER_FILE,
    RESULT_FILE,
    SUMMARY_FILE,
    TIMELINE_FILE,
)
from kubescene.results.sources import RunSource
from kubescene.timeline import CustomFact, Fact, PodAttempt
from kubescene.timeline.facts import DAMAGED as DAMAGED_LINE
from kubescene.timeline.files import StreamReader, read_header
from kubescene.types import JsonObject

AT_ONCE = 1 << 20
"""So many bytes are read from a file at once."""
OPERATIONS = b"\n  operations:\n"
ITEM = b"  - "
DAMAGED = "the file is damaged; play the scenario again"
NAME_IT = "name what --out was given"
SHOWN = 3
"""Runs in a directory that is none itself."""
BESIDE = (EXPLANATIONS_FILE, INDEX_FILE, LEDGER_FILE, SUMMARY_FILE)
SCENARIO_FILES = (".yaml", ".yml", ".json")


class TimelineSource(RunSource):
    """A ``timeline.jsonl``."""

    def __init__(self, path: Path) -> None:
        self.timeline = path
        self.place = str(path)
        try:
            with path.open("rb") as file:
                first = file.readline()
            header = read_header(first if first.endswith(b"\n") else b"", path)
        except OSError as error:
            raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
        self.scenario, self.seed, self.version = header.scenario, header.seed, header.kubescene

    @property
    def phase(self) -> str:
        return self.ledger.phase

    @property
    def complete(self) -> bool:
        return bool(self.phase)

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.complete:
            return ()
        return (
            f"{self.place}: the run was cut short or still goes on; it is read up to step "
            f"{self.ledger.step}",
        )

    @property
    def spec(self) -> JsonObject | None:
        return None

    def lines(self) -> Iterator[bytes]:
        """The complete lines after the header."""
        return chain.from_iterable(self._batches())

    def _batches(self) -> Iterator[list[bytes]]:
        with self.timeline.open("rb", buffering=AT_ONCE) as file:
            file.readline()
            while batch := file.readlines(AT_ONCE):
                if not batch[-1].endswith(b"\n"):
                    batch.pop()
                yield batch

    def facts(self) -> Iterator[Fact]:
        reader = StreamReader()
        for number, line in enumerate(self.lines(), 2):
            try:
                yield reader.read(line)
            except DAMAGED_LINE as error:
                raise damaged(str(self.timeline), number, error) from error

    def custom_facts(self) -> Iterator[CustomFact]:
        return custom_facts(self.lines(), str(self.timeline))

    def attempts(self) -> Iterator[PodAttempt]:
        return attempts_in(self.lines(), str(self.timeline))

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        raise ConfigurationError(
            f"{self.place} is a timeline alone: name the run directory to have attempts explained"
        )

    def _read(self) -> Ledger:
        with uncollected():  # entries stay, and none refers to itself
            return Entries().read(self.lines(), str(self.timeline))


class DirectorySource(TimelineSource):
    """What ``kubescene run --out DIR`` leaves behind."""

    def __init__(self, path: Path) -> None:
        super().__init__(path / TIMELINE_FILE)
        self.path = path
        self.place = str(path)

    @property
    def complete(self) -> bool:
        return (self.path / SUMMARY_FILE).exists() and bool(self.phase)

    @property
    def spec(self) -> JsonObject | None:
        return self._spec

    @cached_property
    def _spec(self) -> JsonObject | None:
        result = self.path / RESULT_FILE
        return read_spec(result) if result.exists() else None

    def explain(self, pod: str) -> list[ExplainedAttempt]:
        return read_attempts(self.path, pod)

    def _read(self) -> Ledger:
        with uncollected():
            kept = read_ledger(self.path / LEDGER_FILE, self.timeline)
        return super()._read() if kept is None else kept


def read_spec(path: Path) -> JsonObject:
    """``spec`` of a ``result.yaml``. Its operations, a line of JSON each, are not read as YAML."""
    # Not by way of scenarios, which know schedulers: much to load for those who want numbers.
    from kubescene.api.text.yaml_text import read_yaml

    text = path.read_bytes()
    head, _, tail = text.partition(OPERATIONS)
    try:
        operations = [orjson.loads(line[len(ITEM) :]) for line in _items(tail)]
    except orjson.JSONDecodeError:
        head, operations = text, []
    try:
        document = next(iter(read_yaml(head, Bounds())), None)
    except ReadingError as error:
        raise ConfigurationError(f"{path}: {error}: {DAMAGED}") from error
    read = None if document is None else document.value
    found = (read.get("spec") or {}) if isinstance(read, dict) else None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{path} is no Scenario: {DAMAGED}")
    spec: JsonObject = found
    return spec | {"operations": operations} if operations else spec


def _items(text: bytes) -> Iterator[bytes]:
    for line in text.split(b"\n"):
        if not line.startswith(ITEM):
            return
        yield line


def read_scenario(path: Path) -> RunSource:
    """A Scenario in a file, such as a ``result.yaml`` with its whole status."""
    from kubescene.results.event_sources import ScenarioResultSource
    from kubescene.scenario.reading.files import load_scenario

    source = ScenarioResultSource(load_scenario(path))
    source.place = str(path)
    return source


def open_path(where: str | Path) -> RunSource:
    """The run at a path: its directory, the timeline in it, or a Scenario with its timeline."""
    if str(where).startswith(("http://", "https://")):
        raise ConfigurationError(
            f"{where} is a server: kubescene results --server {where} reads it; in Python, get the "
            "Scenario or its pages and read those"
        )
    path = Path(where)
    if path.name in BESIDE and (path.parent / TIMELINE_FILE).is_file():
        raise ConfigurationError(f"{path} is only a part of the run in {path.parent}: name that")
    if path.is_file():
        return read_scenario(path) if path.suffix in SCENARIO_FILES else TimelineSource(path)
    if not path.is_dir():
        raise ConfigurationError(f"there is no run at {path}: name what --out was given")
    if not (path / TIMELINE_FILE).is_file():
        if (path / "traffic.yaml").is_file():
            raise ConfigurationError(
                f"{path} is a run of traffic: kubescene traffic report and kubescene traffic "
                "compare take it"
            )
        inside = sorted(each.parent for each in path.glob(f"*/{TIMELINE_FILE}"))[:SHOWN]
        hint = f"there are runs in it: {', '.join(map(str, inside))}" if inside else NAME_IT
        raise ConfigurationError(f"{path} is no run directory: it has no {TIMELINE_FILE}; {hint}")
    return DirectorySource(path)
