"""``kubescene run``."""

import typer

from kubescene.cli import options, run_options
from kubescene.errors import ConfigurationError
from kubescene.garbage import uncollected


def run(
    file: run_options.File,
    out: run_options.Out = None,
    seed: run_options.Seed = None,
    full_status: run_options.FullStatus = False,
    quiet: options.Quiet = False,
    plugin: options.Plugins = None,
    scheduler_config: run_options.SchedulerConfigs = None,
    feature_gates: options.FeatureGates = "",
    server: run_options.Server = None,
    delete: run_options.Delete = False,
    plugin_errors: run_options.PluginErrors = "fail",
    controller: options.Controllers = None,
    strict: options.Strict = False,
    interactive: run_options.Interactive = False,
    annotate: options.Annotate = False,
    junit: run_options.Junit = None,
    remedies: run_options.Remedies = False,
    report: run_options.Report = False,
    outside: run_options.Outside = None,
    waiter: options.Waiters = None,
    measure: options.OwnMeasures = None,
    plain: run_options.Plain = False,
) -> None:
    """Play a scenario and show what happened.

    Exits with 0 if all is well, 1 if the run failed, 2 if the input is wrong, and 3 if an
    expectation does not hold.

    Example: kubescene run examples/01-first-scenario/scenario.yaml --out out/first
    """
    if delete and server is None:
        raise ConfigurationError("--delete goes with --server: a run of its own leaves no Scenario")
    with uncollected():
        from kubescene.cli.run import RunArguments, run_as_asked

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
        plain=plain,
    )
    raise typer.Exit(run_as_asked(file, arguments, server, delete=delete))
