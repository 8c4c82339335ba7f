"""What ``kubescene traffic sweep`` does."""

import csv
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from kubescene.cli.batch_progress import ConsoleTelling
from kubescene.cli.components import look_here
from kubescene.cli.files import complain, one_line
from kubescene.cli.terminals import aligned
from kubescene.errors import ConfigurationError
from kubescene.experiments.combinations import Seeds
from kubescene.experiments.estimates import CONFIDENCE, Estimate
from kubescene.experiments.executors import ExecutorName
from kubescene.experiments.sweeps import SweepOutcome, SweepResult, SweepRow, cases, sweep, told
from kubescene.reports.progress import MatrixProgress
from kubescene.reports.words import counted
from kubescene.traffic.measures import TrafficSummary
from kubescene.traffic.spec.loading import load_run

FORMATS = ("table", "csv", "json")
FINE, SOME_FAILED = 0, 1
INTERRUPTED = 128 + signal.SIGINT
COLUMNS = {
    "requests": "REQUESTS",
    "failed": "FAILED",
    "allResponseP50S": "P50",
    "allResponseP95S": "P95",
    "allResponseP99S": "P99",
    "responseP95S": "SERVED P95",
    "sloMinutes": "SLO MIN",
    "replicasMost": "MOST",
    "replicaHours": "REPLICA H",
    "cpuUsedHours": "CPU H",
    "reversals": "REVERSALS",
}
"""The measures that a table shows; csv and json have all."""
WHOSE = "P50 to P99 are of all requests, failures at their time-outs; SERVED P95 of those served"
NOTE = f"± is the {CONFIDENCE:.0%} confidence interval of the mean over seeds (Student's t)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepArguments:
    """What the command line says."""

    file: Path
    settings: Sequence[str] = ()
    autoscalers: Sequence[str] = ()
    processes: Sequence[str] = ()
    seeds: int | None = None
    seed: Sequence[int] = ()
    out: Path | None = None
    jobs: int | None = None
    executor: ExecutorName | None = None
    format: str = "table"
    quiet: bool = False

    def seeds_asked(self) -> Seeds:
        if self.seeds is not None and self.seed:
            raise ConfigurationError("give either --seeds N, which plays 1 to N, or --seed S")
        return self.seeds if self.seeds is not None else (self.seed or None)


def sweep_traffic(arguments: SweepArguments) -> int:
    """Simulate all combinations and print them; returns the exit code."""
    if arguments.format not in FORMATS:
        given = arguments.format
        raise ConfigurationError(f"--format is {given!r}: it may be {', '.join(FORMATS)}")
    load_run(arguments.file)  # what is wrong without any setting is said once
    look_here(arguments.autoscalers)
    asked = cases(
        arguments.file,
        arguments.settings,
        arguments.autoscalers,
        arguments.processes,
        arguments.seeds_asked(),
    )
    with MatrixProgress(Console(stderr=True, quiet=arguments.quiet)) as progress:
        try:
            found = sweep(
                asked,
                arguments.jobs,
                executor=arguments.executor,
                out=arguments.out,
                watcher=ConsoleTelling(progress, "simulated"),
            )
        except KeyboardInterrupt:
            complain([interrupted(progress, arguments.out)], "kubescene: ")
            return INTERRUPTED
    if arguments.out is not None:
        save(found, arguments.out)
    show = {"table": table_of, "csv": csv_of, "json": json_of}[arguments.format]
    sys.stdout.write(show(found))
    complain([one_line(f"{case}: {each.message}") for case, each in found.failed], "kubescene: ")
    return SOME_FAILED if found.failed else FINE


def interrupted(progress: MatrixProgress, out: Path | None) -> str:
    if out is None:
        return f"interrupted at {progress.reached}; with --out they would have been kept"
    kept = counted(progress.finished, "run")
    return f"interrupted; {out} keeps {kept}: the same command goes on from there"


def save(found: SweepResult, out: Path) -> None:
    """The tables beside the markers."""
    try:
        (out / "sweep.csv").write_text(csv_of(found), encoding="utf-8")
        (out / "sweep.json").write_text(json_of(found), encoding="utf-8")
        (out / "runs.csv").write_text(runs_csv(found), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to {out}: {error.strerror}; choose another --out"
        ) from error


def json_of(found: SweepResult) -> str:
    """The outcomes; with several seeds, what they come down to."""
    listed: Sequence[Any] = found.rows if found.has_seeds else found.outcomes
    return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"


def csv_of(found: SweepResult) -> str:
    if not found.has_seeds:
        return runs_csv(found)
    parts = ("", "_low", "_high", "_n")
    header = [*found.cases[0].named, "runs", "failed_runs"]
    header += [f"{name}{part}" for name in measure_names() for part in parts]
    return written(header, (estimated_cells(row) for row in found.rows))


def estimated_cells(row: SweepRow) -> list[Any]:
    cells: list[Any] = [*row.settings.values(), row.runs, row.failed]
    for name in measure_names():
        each = row.measures.get(name)
        cells += ["", "", "", 0] if each is None else [each.mean, each.low, each.high, each.n]
    return cells


def runs_csv(found: SweepResult) -> str:
    """One line for each run; the column of seeds only where they were asked for."""
    names, seeds = measure_names(), ["seed"] if found.has_seeds else []
    header = [*found.cases[0].named, *seeds, "phase", "message", *names]
    return written(header, run_cells(found, names))


def run_cells(found: SweepResult, names: Sequence[str]) -> Iterator[list[Any]]:
    for case, each in zip(found.cases, found.outcomes, strict=True):
        seed = [case.seed] if found.has_seeds else []
        measures = told(each.measures)
        values = [measures.get(name, "") for name in names]
        yield [*each.settings.values(), *seed, each.phase, each.message, *values]


def measure_names() -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(TrafficSummary)]


def written(header: Sequence[str], rows: Iterator[list[Any]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def table_of(found: SweepResult) -> str:
    names = [path.rpartition(".")[2] for path in found.cases[0].named]
    if not found.has_seeds:
        rows = [[*names, "PHASE", *COLUMNS.values()], *map(outcome_cells, found.outcomes)]
        return aligned(rows, left=[len(names)]) + f"\n{WHOSE}\n"
    rows = [[*names, "RUNS", *COLUMNS.values()], *map(row_cells, found.rows)]
    several = any(row.runs > 1 for row in found.rows)
    return aligned(rows, left=[len(names)]) + f"\n{WHOSE}\n" + (f"{NOTE}\n" if several else "")


def outcome_cells(outcome: SweepOutcome) -> list[str]:
    measures = told(outcome.measures)
    shown = ("" if (value := measures.get(name)) is None else number(value) for name in COLUMNS)
    return [*outcome.settings.values(), outcome.phase, *shown]


def row_cells(row: SweepRow) -> list[str]:
    runs = f"{row.runs} of {row.runs + row.failed}" if row.failed else str(row.runs)
    shown = (with_interval(row.measures.get(name), row.runs) for name in COLUMNS)
    return [*row.settings.values(), runs, *shown]


def with_interval(value: Estimate | None, runs: int) -> str:
    """The mean, with half the width of its interval if there is one."""
    if value is None:
        return ""
    text = f"{value.mean:.6g}"
    if value.half_width is not None:
        text += f" ± {value.half_width:.2g}"
    return text if value.n == runs else f"{text} ({value.n} of {runs})"


def number(value: int | float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
