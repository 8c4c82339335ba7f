"""What ``kubescene matrix`` does."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rich.console import Console

from kubescene.cli.batch_progress import ConsoleTelling
from kubescene.cli.components import (
    autoscalers_named,
    controllers_named,
    look_here,
    scheduler_with,
)
from kubescene.cli.files import STDIN, complain, one_line
from kubescene.cli.run.playing import output_path
from kubescene.cli.terminals import terminal_width
from kubescene.errors import ConfigurationError
from kubescene.experiments.combinations import OWN, Seeds, check_unique
from kubescene.experiments.display import text_lines
from kubescene.experiments.executors import ExecutorName
from kubescene.experiments.playing import matrix
from kubescene.experiments.results import MatrixResult
from kubescene.experiments.settings import parse_settings
from kubescene.reports.progress import MatrixProgress
from kubescene.reports.words import counted
from kubescene.scheduler import SchedulerOptions

FINE, RUN_FAILED, UNMET = 0, 1, 3
INTERRUPTED = 128 + signal.SIGINT
ERRORS_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixArguments:
    """What the command line says."""

    files: Sequence[Path]
    configurations: Sequence[Path] = ()
    seeds: int | None = None
    seed: Sequence[int] = ()
    settings: Sequence[str] = ()
    out: str | None = None
    jobs: int | None = None
    executor: ExecutorName | None = None
    format: Literal["table", "csv", "json", "parquet"] = "table"
    measures: Sequence[str] = ()
    prices: Path | None = None
    plugins: Sequence[str] = ()
    controllers: Sequence[str] = ()
    autoscalers: Sequence[str] = ()
    autoscaler_processes: Sequence[str] = ()
    feature_gates: str = ""
    strict: bool = False
    quiet: bool = False

    def seeds_asked(self) -> Seeds:
        if self.seeds is not None and self.seed:
            raise ConfigurationError("give either --seeds N, which plays 1 to N, or --seed S")
        return self.seeds if self.seeds is not None else (self.seed or None)

    def schedulers(self) -> dict[str, SchedulerOptions]:
        """Options by the path of their configuration, with the plugins that are asked for."""
        if self.configurations:
            check_unique([*map(str, self.configurations)], self.configurations, "configuration")
        named: dict[str, Path | None] = {str(each): each for each in self.configurations}
        return {
            name: scheduler_with(self.plugins, config, self.feature_gates)
            for name, config in (named or {OWN: None}).items()
        }


def play_matrix(arguments: MatrixArguments) -> int:
    """Play everything; returns the exit code."""
    out = output_path(arguments.out)
    check(arguments, out)
    with MatrixProgress(Console(stderr=True, quiet=arguments.quiet)) as progress:
        try:
            result = played(arguments, out, ConsoleTelling(progress, "played"))
        except KeyboardInterrupt:
            complain([interrupted(progress, out)], "kubescene: ")
            return INTERRUPTED
    if out is not None:
        save(result, out, parquet=arguments.format == "parquet")
    show(result, arguments)
    tell(result, arguments, out)
    return RUN_FAILED if result.failed else UNMET if result.unmet else FINE


def check(arguments: MatrixArguments, out: Path | None) -> None:
    if arguments.format == "parquet":
        from kubescene.results.tables import polars_module

        polars_module()  # Before hours of work, not after them.
        if out is None:
            raise ConfigurationError("Parquet is not for terminals: name a directory by --out")
    if any(str(each) == STDIN for each in arguments.files):
        raise ConfigurationError("a matrix reads files: standard input cannot be one of them")


def played(arguments: MatrixArguments, out: Path | None, watcher: ConsoleTelling) -> MatrixResult:
    look_here(arguments.measures)
    return matrix(
        list(arguments.files),
        arguments.schedulers(),
        arguments.seeds_asked(),
        settings=parse_settings(arguments.settings),
        measures=list(arguments.measures),
        jobs=arguments.jobs,
        executor=arguments.executor,
        out=out,
        prices=arguments.prices,
        reconcilers=controllers_named(arguments.controllers),
        autoscalers=autoscalers_named(arguments.autoscalers),
        autoscaler_processes=arguments.autoscaler_processes,
        strict=arguments.strict,
        watcher=watcher,
    )


def save(result: MatrixResult, out: Path, *, parquet: bool) -> None:
    """The tables beside the markers."""
    try:
        (out / "matrix.csv").write_text(result.csv(), encoding="utf-8")
        (out / "matrix.json").write_bytes(result.json())
        (out / "runs.csv").write_text(result.run_csv(), encoding="utf-8")
        if parquet:
            result.parquet(out / "matrix.parquet")
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to {out}: {error.strerror}; choose another --out"
        ) from error


def show(result: MatrixResult, arguments: MatrixArguments) -> None:
    if arguments.format == "csv":
        sys.stdout.write(result.csv())
    elif arguments.format == "json":
        sys.stdout.write(result.json().decode())
    elif arguments.format == "table":
        names = result.measures if arguments.measures else ()
        sys.stdout.writelines(text_lines(result, names, terminal_width()))


def tell(result: MatrixResult, arguments: MatrixArguments, out: Path | None) -> None:
    """What failed, one line each, and where everything is."""
    for run in result.failed[:ERRORS_SHOWN]:
        complain([one_line(f"{run}: {run.error}")], "kubescene: ")
    if (left := len(result.failed) - ERRORS_SHOWN) > 0:
        where = f"{out / 'runs.csv'} has all of them" if out else "--out keeps all of them"
        complain([f"and {left} more failed; {where}"], "kubescene: ")
    for run in result.unmet[:ERRORS_SHOWN]:
        unmet = ", ".join(map(repr, run.unmet))
        complain([one_line(f"{run}: does not hold: {unmet}")], "kubescene: ")
    if out is not None and not arguments.quiet:
        Console(stderr=True).print(f"Tables and runs are in {out}", highlight=False, markup=False)


def interrupted(progress: MatrixProgress, out: Path | None) -> str:
    if out is None:
        return f"interrupted at {progress.reached}; with --out they would have been kept"
    kept = counted(progress.finished, "run")
    return f"interrupted; {out} keeps {kept}: the same command goes on from there"
