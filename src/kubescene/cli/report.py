"""``kubescene report``: a run as one page."""

import sys
from pathlib import Path

from kubescene.errors import ConfigurationError
from kubescene.reports.html import report_html, write_report
from kubescene.results.output import REPORT_FILE
from kubescene.results.sources import open_run
from kubescene.running import RunResult

FINE = 0
PRINTED = Path("-")


def report_run(run: Path, out: Path | None) -> int:
    """Write the page of a run's directory, and say where; returns the exit code."""
    source = open_run(run)
    if out == PRINTED:
        sys.stdout.write(report_html(source))
        return FINE
    if out is None and not run.is_dir():
        raise ConfigurationError(f"{run} is a timeline alone: say with --out where the page goes")
    file = write_report(source, run / REPORT_FILE if out is None else out)
    for warning in source.warnings:
        sys.stderr.write(f"kubescene: warning: {warning}\n")
    print(file)
    return FINE


def write_beside(result: RunResult, out: Path) -> None:
    """The page of a run that has just ended, among its results."""
    write_report(result, out / REPORT_FILE)
