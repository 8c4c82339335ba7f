"""``kubescene run`` with two scheduler configurations: one scenario, played with each and compared.

``DIR/a`` and ``DIR/b`` are the directories of the runs, ``DIR/comparison.md`` and ``.json`` the
comparison.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from kubescene.cli.compare.comparison import (
    DIFFERENT,
    EQUAL,
    ComparisonFormat,
    rendered,
    show_comparison,
    write_text,
)
from kubescene.cli.files import ScenarioFile, complain, read_scenario
from kubescene.cli.run.playing import (
    BAD_INPUT,
    INTERRUPTED,
    RUN_FAILED,
    RunArguments,
    amounts_of,
    complain_of_unmet,
    interrupted,
    output_path,
    played,
    with_annotations,
)
from kubescene.errors import ConfigurationError, ScenarioError
from kubescene.reports.progress import ProgressReporter
from kubescene.results.comparison import Comparison, compare
from kubescene.runs.local import RunResult
from kubescene.scenario.phases import ResultsStrategy

FOLDERS = ("a", "b")
FILES = {"comparison.md": ComparisonFormat.MARKDOWN, "comparison.json": ComparisonFormat.JSON}


def run_both(path: Path, arguments: RunArguments) -> int:
    """Play a file with two configurations; returns the exit code of the comparison."""
    configs = arguments.scheduler_configs
    check(arguments, configs)
    out = output_path(arguments.out)
    folders = [None if out is None else out / name for name in FOLDERS]
    file = with_annotations(read_scenario(path), wanted=arguments.annotate)
    results = []
    for config, folder in zip(configs, folders, strict=True):
        result = play(file, replace(arguments, scheduler_configs=(config,)), folder)
        if isinstance(result, int):
            return result
        results.append(result)
    names = (str(configs[0]), str(configs[1]))
    runs = results if out is None else [out / name for name in FOLDERS]
    return show(compare(*runs, names=names), out, quiet=arguments.quiet)


def check(arguments: RunArguments, configs: Sequence[Path]) -> None:
    """What makes no sense with two configurations."""
    if len(configs) > len(FOLDERS):
        raise ConfigurationError(
            f"--scheduler-config is given {len(configs)} times: two can be compared, one played"
        )
    alone = {
        "--interactive": arguments.interactive,
        "--remedies": arguments.remedies,
        "--junit": arguments.junit,
        "--report": arguments.report,
    }
    for name, given in alone.items():
        if given:
            raise ConfigurationError(f"{name} goes with one --scheduler-config, not with two")


def play(file: ScenarioFile, arguments: RunArguments, out: Path | None) -> RunResult | int:
    """One of the runs, or the exit code if it failed, which was told."""
    errors = Console(stderr=True, quiet=arguments.quiet)
    errors.print(f"with {arguments.scheduler_configs[0]}", style="dim", highlight=False)
    results = ResultsStrategy.of_environment(os.environ)
    progress = ProgressReporter(errors, amounts_of(file.scenario))
    try:
        with progress:
            result = played(file, arguments, out, results, progress)
    except ScenarioError as error:
        return failed(file, arguments, error, BAD_INPUT)
    except KeyboardInterrupt:
        complain([interrupted(progress, out)], "kubescene: ")
        return INTERRUPTED
    if result.summary.unmet:
        complain(
            [f"with {arguments.scheduler_configs[0]} expectations do not hold:"], "kubescene: "
        )
        complain_of_unmet(file, result.summary)
    if result.ok:
        return result.result
    code = BAD_INPUT if result.bad_input else RUN_FAILED
    return failed(file, arguments, ScenarioError(result.message, path=result.failed_at), code)


def failed(file: ScenarioFile, arguments: RunArguments, error: ScenarioError, code: int) -> int:
    complain([f"with {arguments.scheduler_configs[0]}: {file.line(error)}"], "kubescene: ")
    return code


def show(found: Comparison, out: Path | None, *, quiet: bool) -> int:
    """The comparison on standard output and, beside the runs, as files."""
    if out is not None:
        for name, form in FILES.items():
            write_text(out / name, rendered(found, form))
    if quiet:
        return EQUAL if found.equal else DIFFERENT
    code = show_comparison(found, None, None, replayable=out is not None)
    if out is not None:
        a, b = (out / name for name in FOLDERS)
        where = f"\nThe runs are in {a} and {b}, the comparison is in {out / 'comparison.md'}"
        Console().print(where, highlight=False, markup=False)
    return code
