"""The commands that ask about a run: ``explain``, ``results`` and ``report``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError


def explain(
    pod: Annotated[
        list[str], typer.Argument(help="pod NAME; NAME is NAMESPACE/NAME, or a name in default.")
    ],
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The --out directory of a run.")
    ] = None,
    server: options.Server = None,
    scenario: options.ScenarioName = "",
    node: Annotated[str, typer.Option(help="Show what was said about this node only.")] = "",
    attempt: Annotated[
        int | None, typer.Option(help="Show one attempt: 1 is the first, -1 the last.")
    ] = None,
    remedy: Annotated[
        bool,
        typer.Option("--remedy", help="Show what it would take to place it; plays --run again."),
    ] = False,
    plugin: Annotated[
        list[str] | None, typer.Option(help="With --remedy: a plugin that the run was given.")
    ] = None,
    controller: Annotated[
        list[str] | None, typer.Option(help="With --remedy: a controller that the run was given.")
    ] = None,
    scheduler_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --remedy: that of the run.")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(metavar="NAME=true,...", help="With --remedy: those of the run.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --remedy: where objectFrom reads.")
    ] = None,
) -> None:
    """Show why a pod was placed where it was, or why not, node by node.

    Example: kubescene explain pod default/database --run out/first-scenario
    """
    from kubescene.cli.explain import (
        Question,
        explain_run,
        explain_served,
        pod_named,
        remedy_run,
        remedy_served,
    )
    from kubescene.cli.replaying import PlayedWith

    if (run is None) == (server is None):
        raise ConfigurationError("explain needs either --run DIR or --server URL")
    question = Question(pod=pod_named(pod), node=node, attempt=attempt)
    if remedy and server is not None:
        raise typer.Exit(remedy_served(question.pod, server))
    if remedy and run is not None:
        given = PlayedWith(
            plugins=plugin or (),
            controllers=controller or (),
            scheduler_config=scheduler_config,
            feature_gates=feature_gates,
            folder=folder,
        )
        raise typer.Exit(remedy_run(question.pod, run, given))
    if run is not None:
        raise typer.Exit(explain_run(question, run))
    raise typer.Exit(explain_served(question, server or "", scenario))


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
            help="measures, pods, nodes, steps, allocation, utilization, attempts or preemptions.",
        ),
    ] = "measures",
    format: Annotated[
        Literal["table", "csv", "json", "parquet"], typer.Option(help="How to show it.")
    ] = "table",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to a file, not to the terminal.")
    ] = None,
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
    from kubescene.cli.results import Wish, show_results
    from kubescene.cli.run_origins import origin_of

    if run is not None and directory is not None:
        raise ConfigurationError("name the run once: RUN and --run mean the same")
    origin = origin_of(run or directory, server, scenario)
    wish = Wish(
        table=table,
        format=format,
        out=out,
        prices=prices,
        labels=tuple(label or ()),
        measures=tuple(measure or ()),
    )
    raise typer.Exit(show_results(origin, wish))


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
    from kubescene.cli.report import report_run
    from kubescene.cli.run_origins import origin_of

    raise typer.Exit(report_run(origin_of(run, server, scenario), out))
