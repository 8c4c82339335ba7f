"""``kubescene run``."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from kubescene.cli.scheduler import scheduler_with
from kubescene.reports.progress import ProgressReporter
from kubescene.reports.terminal import print_summary
from kubescene.running import Run, read, run
from kubescene.scenario.phases import ResultsStrategy

FINE, RUN_FAILED, BAD_INPUT = 0, 1, 2


def run_scenario(
    file: Path,
    *,
    out: Path | None,
    seed: int | None,
    full_status: bool,
    quiet: bool,
    plugins: Sequence[str] = (),
    scheduler_config: Path | None = None,
) -> int:
    """Play one file; returns the exit code."""
    console, errors = Console(quiet=quiet), Console(stderr=True, quiet=quiet)
    results = ResultsStrategy.of_environment(os.environ)
    scenario = read(file)
    with ProgressReporter(errors, steps=count_steps(scenario)) as progress:
        result = run(
            scenario,
            out=out,
            seed=seed,
            instruments=(progress,),
            results=results,
            full_status=full_status,
            scheduler=scheduler_with(plugins, scheduler_config),
        )
    print_summary(result.summary, console)
    if out is not None:
        console.print(f"\nResults are in {out}", highlight=False, markup=False)
    if quiet and result.message:
        sys.stderr.write(f"kubescene: {file}: {result.message}\n")
    return exit_code(result)


def count_steps(scenario: dict[str, object]) -> int:
    """How many major steps there are, as far as an unchecked scenario can tell."""
    spec = scenario.get("spec")
    operations = spec.get("operations") if isinstance(spec, dict) else None
    if not isinstance(operations, list):
        return 0
    return len({o.get("step") for o in operations if isinstance(o, dict)})


def exit_code(result: Run) -> int:
    if result.ok:
        return FINE
    return BAD_INPUT if result.bad_input else RUN_FAILED
