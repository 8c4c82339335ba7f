"""The commands that ask about a run: ``explain``, ``results`` and ``report``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kubescene.cli import explain_options, options
from kubescene.errors import ConfigurationError


def explain(
    pod: explain_options.Words,
    run: explain_options.Run = None,
    server: options.Server = None,
    scenario: options.ScenarioName = "",
    node: explain_options.Node = "",
    attempt: explain_options.Attempt = None,
    remedy: explain_options.Remedy = False,
    plugin: explain_options.Plugins = None,
    controller: explain_options.Controllers = None,
    scheduler_config: explain_options.SchedulerConfig = None,
    feature_gates: explain_options.FeatureGates = "",
    folder: explain_options.Folder = None,
) -> None:
    """Show why a pod was placed where it was, or why not, node by node.

    Example: kubescene explain pod default/database --run out/first-scenario
    """
    from kubescene.cli.explain import Question, answer, pod_named
    from kubescene.cli.replaying import PlayedWith

    if (run is None) == (server is None):
        raise ConfigurationError("explain needs either --run DIR or --server URL")
    given = PlayedWith(
        plugins=plugin or (),
        controllers=controller or (),
        scheduler_config=scheduler_config,
        feature_gates=feature_gates,
        folder=folder,
    )
    question = Question(pod=pod_named(pod), node=node, attempt=attempt, remedy=remedy)
    raise typer.Exit(answer(question, run, server or "", scenario, given))


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
            help="measures, pods, nodes, steps, allocation, utilization, attempts, preemptions "
            "or facts.",
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
