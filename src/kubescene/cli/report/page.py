"""``kubescene report``: a run as one page."""

import sys
from pathlib import Path

from kubescene.cli.origins import RunOrigin, opened
from kubescene.cli.outputs import PAGE, check_file
from kubescene.errors import ConfigurationError
from kubescene.reports.html import report_html, write_report
from kubescene.results.output import REPORT_FILE
from kubescene.runs.local import RunResult

FINE = 0
PRINTED = Path("-")


def report_run(origin: RunOrigin, out: Path | None) -> int:
    """Write the page of a run, and say where; returns the exit code."""
    file = out or beside(origin)
    with opened(origin) as source:
        if file == PRINTED:
            sys.stdout.write(report_html(source))
        else:
            check_file(file, (PAGE,))
            print(write_report(source, file))
    return FINE


def beside(origin: RunOrigin) -> Path:
    """Among the results of a run, if they are in a directory."""
    if origin.run is None or origin.run.is_file():
        what = "at a server" if origin.run is None else "a timeline alone"
        raise ConfigurationError(f"{origin} is {what}: say with --out where the page goes")
    return origin.run / REPORT_FILE


def write_beside(result: RunResult, out: Path) -> None:
    """The page of a run that has just ended, among its results."""
    write_report(result, out / REPORT_FILE)
