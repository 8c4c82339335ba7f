"""The command ``kubescene tune``."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from kubescene.cli import options
from kubescene.cli.matrix.command import Executor, Jobs, Quiet, Seed, Seeds

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A scenario file.")]
Vary: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH=RANGE",
        help="A field and its values: 2..40, 2..40/2, 0.5..0.9, 100m..900m/100m or a,b,c. "
        "May be repeated.",
    ),
]
Minimize: TypeAlias = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="What is to be least, such as cost.")
]
Maximize: TypeAlias = Annotated[
    str | None, typer.Option(metavar="MEASURE", help="What is to be most.")
]
SubjectTo: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CONDITION",
        help="What has to hold in every run, such as 'p99_ms < 300'. May be repeated.",
    ),
]
Trials: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Try at most so many combinations.")
]
Search: TypeAlias = Annotated[
    Literal["auto", "grid", "random", "optuna"],
    typer.Option(help="auto: all combinations if they are no more than --trials, else random."),
]
SearchSeed: TypeAlias = Annotated[int, typer.Option(help="What the search draws from.")]
Format: TypeAlias = Annotated[
    Literal["table", "csv", "json"], typer.Option(help="How to show what was tried.")
]
Out: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="DIR", help="Keep runs, tables and tune.html here, to go on later and to look at."
    ),
]


def tune(
    file: File,
    vary: Vary = None,
    minimize: Minimize = None,
    maximize: Maximize = None,
    subject_to: SubjectTo = None,
    trials: Trials = 50,
    search: Search = "auto",
    search_seed: SearchSeed = 0,
    seeds: Seeds = None,
    seed: Seed = None,
    out: Out = None,
    jobs: Jobs = None,
    executor: Executor = None,
    format: Format = "table",
    prices: options.Prices = None,
    quiet: Quiet = False,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
) -> None:
    """Search the settings of a scenario for the cheapest that keep what they must.

    Shows the best, and the frontier: what it costs to be better. Exits with 0 if some combination
    keeps all conditions, 3 if none does, 1 if every run failed, 2 if the input is wrong.

    Example: kubescene tune spike.yaml --minimize cost --subject-to 'p99_ms < 300'
    --vary spec.operations.web.createOperation.object.spec.replicas=2..20
    """
    from kubescene.cli.tune.playing import TuneArguments, play_tune

    arguments = TuneArguments(
        file=file,
        vary=vary or (),
        minimize=minimize,
        maximize=maximize,
        subject_to=subject_to or (),
        trials=trials,
        search=search,
        search_seed=search_seed,
        seeds=seeds,
        seed=seed or (),
        out=out,
        jobs=jobs,
        executor=executor,
        format=format,
        prices=prices,
        quiet=quiet,
        autoscalers=autoscaler or (),
        autoscaler_processes=autoscaler_process or (),
    )
    raise typer.Exit(play_tune(arguments))
