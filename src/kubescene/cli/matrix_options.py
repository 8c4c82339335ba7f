"""What can be said to ``kubescene matrix`` alone."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

Configurations: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A KubeSchedulerConfiguration to play them with. May be repeated.",
    ),
]
Executor: TypeAlias = Annotated[
    Literal["processes", "ray"] | None,
    typer.Option(help="Who plays them: processes of this machine, or Ray."),
]
FeatureGates: TypeAlias = Annotated[
    str, typer.Option(metavar="NAME=true,...", help="Feature gates of the scheduler.")
]
Files: TypeAlias = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenario files.")]
Format: TypeAlias = Annotated[
    Literal["table", "csv", "json", "parquet"], typer.Option(help="How to show the table.")
]
Jobs: TypeAlias = Annotated[
    int | None, typer.Option(help="How many runs at a time (default: the processors).")
]
Measures: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Show this measure, or MODULE:FUNCTION, one of yours. Repeatable."
    ),
]
Out: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Keep finished runs and the tables here, to go on later."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", help="Print the table and errors only.")]
Seed: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(metavar="S", help="Play everything with this seed. May be repeated."),
]
Seeds: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Play everything with the seeds 1 to N.")
]
Settings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE,VALUE",
        help="Play with each of these values of a field, such as "
        "spec.operations.1.createOperation.count=10,20. May be repeated.",
    ),
]
