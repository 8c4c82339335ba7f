"""``kubescene run``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from kubescene.cli import options
from kubescene.errors import ConfigurationError
from kubescene.garbage import uncollected

if TYPE_CHECKING:
    from kubescene.cli.run.playing import RunArguments

Delete: TypeAlias = Annotated[
    bool,
    typer.Option("--delete", help="With --server: delete the Scenario when this command ends."),
]
File: TypeAlias = Annotated[
    Path, typer.Argument(help="The scenario file (YAML or JSON); - is standard input.")
]
FullStatus: TypeAlias = Annotated[
    bool, typer.Option("--full-status", help="Put the whole timeline into result.yaml, too.")
]
Interactive: TypeAlias = Annotated[
    bool, typer.Option("--interactive", "-i", help="Play it by hand: step by step, also back.")
]
Junit: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write what came of the expectations here, as JUnit XML."),
]
Out: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Write result, timeline, explanations and summary here."),
]
Outside: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COMMAND",
        help="Start a program that takes part as the controller NAME; {kubeconfig} and "
        "{server} in the command are replaced. May be repeated.",
    ),
]
Plain: TypeAlias = Annotated[
    bool,
    typer.Option("--plain", help="Without anything that is only faster; the same result, slower."),
]
PluginErrors: TypeAlias = Annotated[
    Literal["fail", "stop"],
    typer.Option(help="Whether a plugin that raises fails the attempt or stops the run."),
]
Snapshot: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="SNAPSHOT",
        help="The cluster that is there when it begins: a file or folder that `kubescene snapshot` "
        "reads or wrote.",
    ),
]
Remedies: TypeAlias = Annotated[
    bool, typer.Option("--remedies", help="Show what it would take to place pods that wait.")
]
Report: TypeAlias = Annotated[
    bool, typer.Option("--report", help="With --out: write report.html there, too.")
]
SchedulerConfigs: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="A KubeSchedulerConfiguration, instead of spec.simulation.schedulerConfig. "
        "Given twice, both are played and compared; then 1 means that they differ.",
    ),
]
CompareRecorded: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--compare-recorded",
        help="Of a scenario that replays a recording: how many pods got the place they had there.",
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(min=-(2**63), max=2**63 - 1, help="Instead of spec.simulation.seed."),
]
Server: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Let this server play it, such as http://127.0.0.1:8001."),
]


def run(
    file: File,
    out: Out = None,
    data_dir: options.KeptIn = None,
    seed: Seed = None,
    full_status: FullStatus = False,
    quiet: options.Quiet = False,
    plugin: options.Plugins = None,
    scheduler_config: SchedulerConfigs = None,
    feature_gates: options.FeatureGates = "",
    server: Server = None,
    delete: Delete = False,
    plugin_errors: PluginErrors = "fail",
    controller: options.Controllers = None,
    strict: options.Strict = False,
    interactive: Interactive = False,
    annotate: options.Annotate = False,
    junit: Junit = None,
    remedies: Remedies = False,
    report: Report = False,
    outside: Outside = None,
    waiter: options.Waiters = None,
    measure: options.OwnMeasures = None,
    plain: Plain = False,
    without: options.Without = None,
    snapshot: Snapshot = None,
    compare_recorded: CompareRecorded = False,
    autoscaler: options.Autoscalers = None,
    autoscaler_process: options.AutoscalerProcesses = None,
) -> None:
    """Play a scenario and show what happened.

    Exits with 0 if all is well, 1 if the run failed, 2 if the input is wrong, and 3 if an
    expectation does not hold.

    Example: kubescene run examples/01-first-scenario/scenario.yaml --out out/first
    """
    if delete and server is None:
        raise ConfigurationError("--delete goes with --server: a run of its own leaves no Scenario")
    with uncollected():
        from kubescene.cli.run.playing import RunArguments

    arguments = RunArguments(
        out=out,
        data_dir=data_dir,
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
        plain=plain,
        without=without or (),
        snapshot=snapshot,
        compare_recorded=compare_recorded,
        autoscalers=autoscaler or (),
        autoscaler_processes=autoscaler_process or (),
    )
    raise typer.Exit(run_as_asked(file, arguments, server, delete=delete))


def run_as_asked(path: Path, arguments: "RunArguments", server: str | None, *, delete: bool) -> int:
    """Play one file here, at a server, beside programs, or twice; returns the exit code."""
    is_elsewhere = (
        arguments.outside or arguments.interactive or len(arguments.scheduler_configs) > 1
    )
    if arguments.compare_recorded and (is_elsewhere or server is not None):
        raise ConfigurationError(
            "--compare-recorded is for one run that is played here: leave --server, --outside, "
            "--interactive and a second --scheduler-config away"
        )
    if server is not None and arguments.without:
        raise ConfigurationError(
            "--without cannot be used with --server: say it to `kubescene serve`, whose "
            "controllers play there"
        )
    if server is not None and arguments.has_autoscalers:
        raise ConfigurationError(
            "--autoscaler and --autoscaler-process cannot be used with --server: say them to "
            "`kubescene serve`, whose world it is"
        )
    # Whoever plays it here should not wait for what the others need.
    if server is not None:
        from kubescene.cli.run.at_server import run_file_on_server

        return run_file_on_server(path, arguments, server, delete=delete)
    if arguments.outside and arguments.snapshot is not None:
        raise ConfigurationError(
            "--from cannot be used with --outside: programs outside follow a world from its "
            "beginning; `kubescene serve --from` gives them one that holds a snapshot"
        )
    if arguments.outside:
        from kubescene.cli.run.programs import run_with_programs

        return run_with_programs(path, arguments)
    if len(arguments.scheduler_configs) > 1:
        from kubescene.cli.run.two_schedulers import run_both

        return run_both(path, arguments)
    from kubescene.cli.run.playing import run_scenario

    return run_scenario(path, arguments)
