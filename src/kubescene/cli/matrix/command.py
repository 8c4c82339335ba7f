"""The command ``kubescene matrix``."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from kubescene.cli import options

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


def matrix(
    files: Files,
    scheduler_config: Configurations = None,
    seeds: Seeds = None,
    seed: Seed = None,
    settings: Settings = None,
    out: Out = None,
    jobs: Jobs = None,
    executor: Executor = None,
    format: Format = "table",
    measure: Measures = None,
    prices: options.Prices = None,
    plugin: options.Plugins = None,
    controller: options.Controllers = None,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
    feature_gates: FeatureGates = "",
    strict: options.Strict = False,
    quiet: Quiet = False,
) -> None:
    """Play scenarios x scheduler configurations x seeds in parallel, and show one table.

    Exits with 0 if all is well, 1 if a run failed, 2 if the input is wrong, and 3 if an expectation
    does not hold. With --out, the same command goes on where it was stopped.

    Example: kubescene matrix shop.yaml --scheduler-config pack.yaml --seeds 5 --out out/matrix
    """
    from kubescene.cli.matrix.playing import MatrixArguments, play_matrix

    arguments = MatrixArguments(
        files=files,
        configurations=scheduler_config or (),
        seeds=seeds,
        seed=seed or (),
        settings=settings or (),
        out=out,
        jobs=jobs,
        executor=executor,
        format=format,
        measures=measure or (),
        prices=prices,
        plugins=plugin or (),
        controllers=controller or (),
        autoscalers=autoscaler or (),
        autoscaler_processes=autoscaler_process or (),
        feature_gates=feature_gates,
        strict=strict,
        quiet=quiet,
    )
    raise typer.Exit(play_matrix(arguments))
