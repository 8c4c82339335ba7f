"""What can be said to ``kubescene results``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError


def results(
    run: options.RunArgument = None,
    directory: Annotated[
        str | None, typer.Option("--run", metavar="DIR", help="The same as RUN.")
    ] = None,
    server: options.Server = None,
    scenario: options.ScenarioName = "",
    table: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="measures, pods, nodes, workloads, rollouts, budgets, scaling, traffic, "
            "windows, series, workload_series, steps, allocation, utilization, attempts, "
            "preemptions, outcomes or facts.",
        ),
    ] = "measures",
    format: Annotated[
        Literal["table", "csv", "json", "parquet"], typer.Option(help="How to show it.")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to a file, not to the terminal.")
    ] = None,
    every: Annotated[
        str,
        typer.Option(
            metavar="SPAN",
            help="With series and workload_series: a row every so often (30s, 5m), at the end of "
            "each step (step), or at each change (change).",
        ),
    ] = "change",
    prices: options.Prices = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="With pods and nodes: a column for a label; repeatable."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A measure of your own, a function of the run; repeatable.",
        ),
    ] = None,
) -> None:
    """Show what a run comes down to: measures, pods, nodes, steps and other tables.

    Example: kubescene results out/first --table pods --format csv
    """
    from kubescene.cli.origins import origin_of
    from kubescene.cli.results.tables import TableWish, show_results

    if run is not None and directory is not None:
        raise ConfigurationError("name the run once: RUN and --run mean the same")
    origin = origin_of(run or directory, server, scenario)
    wish = TableWish(
        table=table,
        format=format,
        out=out,
        every=every,
        prices=prices,
        labels=tuple(label or ()),
        measures=tuple(measure or ()),
    )
    raise typer.Exit(show_results(origin, wish))
