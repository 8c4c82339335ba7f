"""What can be said to ``kubescene run``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError
from kubescene.loading import uncollected


def run(
    file: Annotated[
        Path, typer.Argument(help="The scenario file (YAML or JSON); - is standard input.")
    ],
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write result, timeline, explanations and summary here."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=-(2**63), max=2**63 - 1, help="Instead of spec.simulation.seed."),
    ] = None,
    full_status: Annotated[
        bool,
        typer.Option("--full-status", help="Put the whole timeline into result.yaml, too."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    plugin: options.Plugins = None,
    scheduler_config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A KubeSchedulerConfiguration, instead of spec.simulation.schedulerConfig. "
            "Given twice, both are played and compared; then 1 means that they differ.",
        ),
    ] = None,
    feature_gates: options.FeatureGates = "",
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Let this server play it, such as http://127.0.0.1:8001."),
    ] = None,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="With --server: delete the Scenario when this command ends."),
    ] = False,
    plugin_errors: Annotated[
        Literal["fail", "stop"],
        typer.Option(help="Whether a plugin that raises fails the attempt or stops the run."),
    ] = "fail",
    controller: options.Controllers = None,
    strict: options.Strict = False,
    interactive: Annotated[
        bool,
        typer.Option("--interactive", "-i", help="Play it by hand: step by step, also back."),
    ] = False,
    annotate: options.Annotate = False,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write what came of the expectations here, as JUnit XML."
        ),
    ] = None,
    remedies: Annotated[
        bool,
        typer.Option("--remedies", help="Show what it would take to place pods that wait."),
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="With --out: write report.html there, too.")
    ] = False,
    outside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COMMAND",
            help="Start a program that takes part as the controller NAME; {kubeconfig} and "
            "{server} in the command are replaced. May be repeated.",
        ),
    ] = None,
    waiter: options.Waiters = None,
    measure: options.OwnMeasures = None,
) -> None:
    """Play a scenario and show what happened.

    Exits with 0 if all is well, 1 if the run failed, 2 if the input is wrong, and 3 if an
    expectation does not hold.

    Example: kubescene run examples/01-first-scenario/scenario.yaml --out out/first
    """
    if delete and server is None:
        raise ConfigurationError("--delete goes with --server: a run of its own leaves no Scenario")
    with uncollected():
        from kubescene.cli.run import RunArguments, run_scenario

    arguments = RunArguments(
        out=out,
        seed=seed,
        full_status=full_status,
        quiet=quiet,
        strict=strict,
        plugins=plugin or (),
        controllers=controller or (),
        scheduler_configs=scheduler_config or (),
        feature_gates=feature_gates,
        interactive=interactive,
        plugin_errors=plugin_errors,
        remedies=remedies,
        annotate=annotate,
        junit=junit,
        report=report,
        waiters=waiter or (),
        outside=outside or (),
        measures=measure or (),
    )
    if server is not None:
        from kubescene.cli.remote import run_file_on_server

        raise typer.Exit(run_file_on_server(file, arguments, server, delete=delete))
    if outside:
        from kubescene.cli.outside import run_with_programs

        raise typer.Exit(run_with_programs(file, arguments))
    if len(arguments.scheduler_configs) > 1:
        from kubescene.cli.two_schedulers import run_both

        raise typer.Exit(run_both(file, arguments))
    raise typer.Exit(run_scenario(file, arguments))
