"""What can be said to ``kubescene validate``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options


def validate(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files to check; - is standard input.")
    ],
    controller: options.Controllers = None,
    strict: options.Strict = False,
    waiter: options.Waiters = None,
    measure: options.OwnMeasures = None,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
) -> None:
    """Check scenario files without playing them: all faults, with line and column.

    Example: kubescene validate examples/*/scenario.yaml
    """
    from kubescene.cli.validate.faults import validate_files

    given = partial(
        validate_files,
        controllers=controller or (),
        waiters=waiter or (),
        autoscalers=autoscaler or (),
        autoscaler_processes=autoscaler_process or (),
    )
    raise typer.Exit(given(files, measures=measure or (), strict=strict))
