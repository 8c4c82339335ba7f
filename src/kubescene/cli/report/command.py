"""What can be said to ``kubescene report``."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options


def report(
    run: options.RunArgument = None,
    server: options.Server = None,
    scenario: options.ScenarioName = "",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write there instead of RUN/report.html; - prints it."),
    ] = None,
) -> None:
    """Make one page of a run that can be passed around: complete in itself, it fetches nothing.

    Example: kubescene report out/first-scenario
    """
    from kubescene.cli.origins import origin_of
    from kubescene.cli.report.page import report_run

    raise typer.Exit(report_run(origin_of(run, server, scenario), out))
