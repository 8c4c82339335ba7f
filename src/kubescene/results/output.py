"""The ``--out`` directory: what a run leaves behind.

::

    DIR/result.yaml          the Scenario with its status; its timeline only if asked for
    DIR/timeline.jsonl       every fact as it happened, written during the run
    DIR/explanations.jsonl   every explained attempt: nodes, filters, scores; written during the run
    DIR/pods.index           where each pod's lines stand in the two files above
    DIR/ledger.jsonl         what became of pods, nodes and steps, for those who read results
    DIR/summary.json         the short account; written last, so its presence means a complete run

``kubescene report`` adds ``report.html``; one of an earlier run is removed with its summary.
"""

import json
from collections.abc import Iterable, Iterator
from os.path import realpath
from pathlib import Path
from typing import BinaryIO

import orjson

from kubescene.clock import ScenarioStep
from kubescene.errors import ConfigurationError, RecorderError
from kubescene.garbage import uncollected
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_file import write_ledger
from kubescene.results.pod_index import (
    EXPLANATIONS,
    TIMELINE,
    IndexHeader,
    PodIndexWriter,
    indexed,
)
from kubescene.results.summary import Summary
from kubescene.timeline import Fact, Instrument, PodAttempt
from kubescene.timeline.explanations import FIRST_LINE, Line
from kubescene.timeline.files import SCHEMA, Header, TimelineWriter
from kubescene.timeline.kep import KepEvent
from kubescene.types import JsonObject

RESULT_FILE = "result.yaml"
TIMELINE_FILE = "timeline.jsonl"
EXPLANATIONS_FILE = "explanations.jsonl"
SUMMARY_FILE = "summary.json"
INDEX_FILE = "pods.index"
LEDGER_FILE = "ledger.jsonl"
REPORT_FILE = "report.html"
AT_ONCE = 1 << 18
"""So many bytes are written together; at the end of a step, all."""
TOGETHER = 256
"""So many facts, or explanations, become lines together, which takes half as long as one by one:
what makes them is in the processor's cache then."""
OUTDATED = (SUMMARY_FILE, INDEX_FILE, LEDGER_FILE, REPORT_FILE)
"""What tells of a whole run: it goes before another one is written."""
FILES = (RESULT_FILE, TIMELINE_FILE, EXPLANATIONS_FILE, *OUTDATED)


class OutputDirectory(Instrument):
    """Opened before the run, closed after it. Attached to the run, it flushes at every step."""

    in_lane = True

    def __init__(self, path: str | Path, header: Header, *, inputs: Iterable[Path] = ()) -> None:
        """``inputs`` are files that must not be overwritten."""
        self.path = Path(path)
        self._fault: OSError | None = None
        refuse_to_overwrite(inputs, self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            for name in OUTDATED:
                (self.path / name).unlink(missing_ok=True)
            self._timeline: BinaryIO = (self.path / TIMELINE_FILE).open("wb", AT_ONCE)
            self._explanations: BinaryIO = self.explanations_path.open("wb", AT_ONCE)
        except OSError as error:
            raise ConfigurationError(
                f"cannot write results to {self.path}: {error.strerror}; choose another --out"
            ) from error
        self._writer = TimelineWriter(self._timeline, header)
        self._explanations.write(FIRST_LINE + b"\n")
        self._facts: list[Fact] = []
        """Those that are no lines yet."""
        self._attempts: list[tuple[str, Line]] = []
        """Explanations, likewise, with the pods that they are about."""
        self._index = PodIndexWriter()
        self._explained = len(FIRST_LINE) + 1
        self._nodes = 0

    @property
    def explanations_path(self) -> Path:
        return self.path / EXPLANATIONS_FILE

    def record(self, fact: Fact) -> None:
        """A follower of the log."""
        self._facts.append(fact)
        if len(self._facts) == TOGETHER:
            self._write_waiting()

    def explain(self, pod: str, explained: Line) -> None:
        """The sink of the explanation recorder."""
        self._attempts.append((pod, explained))
        if len(self._attempts) == TOGETHER:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Make lines of what has come."""
        facts, self._facts = self._facts, []
        attempts, self._attempts = self._attempts, []
        try:
            for fact in facts:
                self.write_line(fact)
            for pod, explained in attempts:
                self._write_explanation(pod, bytes(explained) + b"\n")
        except OSError as error:
            self._fault = error
            raise

    def write_line(self, fact: Fact) -> None:
        if isinstance(fact, PodAttempt):
            pod = f"{fact.namespace}/{fact.name}"
            self._index.note(pod, TIMELINE, self._writer.position)
        self._writer.write(fact)

    def _write_explanation(self, pod: str, line: bytes) -> None:
        if pod:
            self._index.note(pod, EXPLANATIONS, self._explained, self._nodes)
        else:
            self._nodes = self._explained
        self._explanations.write(line)
        self._explained += len(line)

    def step_finished(self, step: ScenarioStep) -> None:
        """Let those who read along see the step."""
        try:
            self._write_waiting()
            self._timeline.flush()
            self._explanations.flush()
        except OSError as error:
            self._fault = error
            raise RecorderError(
                f"the timeline could not be written at step {step}: {error}"
            ) from error

    def finish(
        self,
        header: JsonObject,
        events: Iterable[KepEvent] | None,
        summary: Summary,
        ledger: Ledger | None = None,
    ) -> None:
        """Write the rest and close.

        ``header`` is the Scenario with its status but no timeline; ``events`` go into it if given.
        ``ledger`` has followed the same facts; without it, results are read from the timeline.
        """
        try:
            if self._fault is not None:
                # What could not be written is missing, even if there is room again.
                raise self._fault
            self._write_waiting()
            self._finish_timeline(ledger)
            self._finish(header, events, summary)
        except OSError as error:
            raise RecorderError(
                f"the results could not be written to {self.path}: {error.strerror}"
            ) from error

    def _finish_timeline(self, ledger: Ledger | None) -> None:
        """Close the files that grew, and write what makes reading them quick."""
        self._timeline.close()
        self._explanations.close()
        sizes = [(self.path / name).stat().st_size for name in (TIMELINE_FILE, EXPLANATIONS_FILE)]
        header_of_index = IndexHeader(timeline_bytes=sizes[0], explanations_bytes=sizes[1])
        self._index.write(self.path / INDEX_FILE, header_of_index)
        if ledger is not None:
            write_ledger(self.path / LEDGER_FILE, self.path / TIMELINE_FILE, ledger)

    def _finish(
        self, header: JsonObject, events: Iterable[KepEvent] | None, summary: Summary
    ) -> None:
        with (self.path / RESULT_FILE).open("wb") as file:
            file.writelines(scenario_yaml(header, events))
        (self.path / SUMMARY_FILE).write_bytes(summary_file(summary))

    def close(self) -> None:
        """Close the files. What could not be written was told when it happened."""
        try:
            self._write_waiting()
        except OSError as error:
            self._fault = error
        for file in (self._timeline, self._explanations):
            try:
                file.close()
            except OSError as error:
                self._fault = self._fault or error


def summary_file(summary: Summary) -> bytes:
    """What ``summary.json`` holds."""
    told = summary.to_dict()
    try:
        return orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # Sums of amounts may need more than 64 bits, which few write.
        return (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()


def holds_run(path: Path) -> bool:
    """Whether a run was written there, be it complete or not."""
    try:
        with (path / TIMELINE_FILE).open("rb") as file:
            return SCHEMA.encode() in file.readline(AT_ONCE)
    except OSError:
        return False


def refuse_to_overwrite(inputs: Iterable[Path], out: Path) -> None:
    """Raise `ConfigurationError` if the results would take the place of what is read, or of files
    that no run has left there.
    """
    written = {realpath(out / name) for name in FILES}
    for file in inputs:
        if realpath(file) in written:
            raise ConfigurationError(
                f"the results would overwrite {file}, which is read: choose another --out"
            )
    there = [] if holds_run(out) else [name for name in FILES if (out / name).is_file()]
    if there:
        raise ConfigurationError(
            f"{out} has {', '.join(there)}, and no run left it there: choose another --out, or "
            "remove it"
        )


def write_results(
    path: Path, header: JsonObject, *, timeline: bytes, explanations: bytes, summary: bytes
) -> None:
    """The same files of a scenario that a server has played."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in OUTDATED:
            (path / name).unlink(missing_ok=True)
        (path / TIMELINE_FILE).write_bytes(timeline)
        (path / EXPLANATIONS_FILE).write_bytes(explanations)
        sizes = IndexHeader(timeline_bytes=len(timeline), explanations_bytes=len(explanations))
        indexed(timeline, explanations).write(path / INDEX_FILE, sizes)
        write_ledger(path / LEDGER_FILE, path / TIMELINE_FILE, ledger_of(timeline))
        (path / RESULT_FILE).write_bytes(b"".join(scenario_yaml(header, None)))
        (path / SUMMARY_FILE).write_bytes(summary)
    except OSError as error:
        raise RecorderError(
            f"the results could not be written to {path}: {error.strerror}"
        ) from error


def ledger_of(timeline: bytes) -> Ledger:
    """What a run would have kept while it was played."""
    # Only where a server has played is it needed here.
    from kubescene.results.entries import Entries

    lines = timeline.splitlines(keepends=True)[1:]
    with uncollected():  # entries stay, and none refers to itself
        return Entries().read(lines, TIMELINE_FILE)


def scenario_yaml(header: JsonObject, events: Iterable[KepEvent] | None) -> Iterator[bytes]:
    """Readable YAML whose long lists hold one JSON line per item (JSON is YAML).

    Writing every event in block style would take longer than the run.
    """
    spec, status = header.get("spec") or {}, dict(header["status"])
    result = status.pop("scenarioResult")
    yield from block({k: v for k, v in header.items() if k not in ("spec", "status")})
    operations = spec.get("operations")
    yield b"spec:\n" if spec else b"spec: {}\n"
    yield from block({k: v for k, v in spec.items() if k != "operations" or not v}, indent=2)
    if operations:
        yield b"  operations:\n"
        yield from (b"  - " + line(orjson.dumps(operation)) for operation in operations)
    yield b"status:\n"
    yield from block(status, indent=2)
    yield b"  scenarioResult:\n"
    yield from block({"simulatorVersion": result["simulatorVersion"]}, indent=4)
    if events is not None:
        yield from timeline_yaml(events)


def timeline_yaml(events: Iterable[KepEvent]) -> Iterator[bytes]:
    """``timeline``, keyed by the major step; an empty one is an empty map."""
    major = 0
    for event in events:
        if not major:
            yield b"    timeline:\n"
        if event.step.major != major:
            major = event.step.major
            yield f'      "{major}":\n'.encode()
        yield b"      - " + line(event.data)
    if not major:
        yield b"    timeline: {}\n"


def block(value: JsonObject, indent: int = 0) -> Iterator[bytes]:
    """Block-style YAML of a small object."""
    if not value:
        return
    # YAML is imported only when results are written.
    from kubescene.api.text.yaml_text import dump_yaml

    for row in dump_yaml(value).splitlines():
        yield (" " * indent + row + "\n").encode()


def line(data: bytes) -> bytes:
    """One flow-style line; characters that YAML readers refuse are escaped."""
    if data.isascii() and b"\x7f" not in data:
        return data + b"\n"
    text = "".join(c if c.isprintable() else escaped(c) for c in data.decode())
    return text.encode() + b"\n"


def escaped(character: str) -> str:
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
