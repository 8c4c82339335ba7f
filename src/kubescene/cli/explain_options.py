"""What can be said to ``kubescene explain`` alone."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Attempt: TypeAlias = Annotated[
    int | None, typer.Option(help="Show one attempt: 1 is the first, -1 the last.")
]
Controllers: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="With --remedy: a controller that the run was given.")
]
FeatureGates: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME=true,...", help="With --remedy: those of the run.")
]
Folder: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="With --remedy: where objectFrom reads.")
]
Node: TypeAlias = Annotated[str, typer.Option(help="Show what was said about this node only.")]
Plugins: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="With --remedy: a plugin that the run was given.")
]
Remedy: TypeAlias = Annotated[
    bool,
    typer.Option("--remedy", help="Show what it would take to place it; plays --run again."),
]
Run: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The --out directory of a run.")
]
SchedulerConfig: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --remedy: that of the run.")
]
Words: TypeAlias = Annotated[
    list[str], typer.Argument(help="pod NAME; NAME is NAMESPACE/NAME, or a name in default.")
]
