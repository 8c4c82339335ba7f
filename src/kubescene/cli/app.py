"""The ``kubescene`` command and its subcommands."""

import gc
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from kubescene.cli.autoscalers import autoscaler
from kubescene.cli.bench import bench
from kubescene.cli.controller import controller
from kubescene.cli.kubeconfig import kubeconfig
from kubescene.cli.matrix import matrix
from kubescene.cli.outside_settings import outside_commands
from kubescene.cli.serve import serve
from kubescene.cli.traffic_commands import traffic
from kubescene.errors import ConfigurationError, KubesceneError, RecorderError
from kubescene.loading import uncollected
from kubescene.version import __version__

RUN_FAILED = 1
BAD_INPUT = 2

app = typer.Typer(
    name="kubescene",
    help="Rehearse a Kubernetes cluster: play scenarios through the scheduler and the controllers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kubescene {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Rehearse a Kubernetes cluster: play scenarios through the scheduler and the controllers."""


@app.command()
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
    plugin: Annotated[
        list[str] | None,
        typer.Option(help="A scheduler plugin of yours, as module:Class. May be repeated."),
    ] = None,
    scheduler_config: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A KubeSchedulerConfiguration, instead of spec.simulation.schedulerConfig. "
            "Given twice, both are played and compared; then 1 means that they differ.",
        ),
    ] = None,
    feature_gates: Annotated[
        str,
        typer.Option(
            metavar="NAME=true,...", help="Feature gates of the scheduler, such as GangScheduling."
        ),
    ] = "",
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
    controller: Annotated[
        list[str] | None,
        typer.Option(help="A controller of yours, as module:Class. May be repeated."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="What is not simulated is a fault, not a warning.")
    ] = False,
    interactive: Annotated[
        bool,
        typer.Option("--interactive", "-i", help="Play it by hand: step by step, also back."),
    ] = False,
    annotate: Annotated[
        bool,
        typer.Option("--annotate", help="Annotate pods with the results of every attempt."),
    ] = False,
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
    waiter: Annotated[
        list[str] | None,
        typer.Option(help="A ControllerWaiter of yours, as module:Class. May be repeated."),
    ] = None,
) -> None:
    """Play a scenario and show what happened.

    Exits with 0 if all is well, 1 if the run failed, 2 if the input is wrong, and 3 if an
    expectation does not hold.

    Example: kubescene run examples/01-first-scenario/scenario.yaml --out out/first
    """
    if server is not None:
        from kubescene.cli.files import read_scenario
        from kubescene.cli.junit import told_to
        from kubescene.cli.remote import check_local_options, run_on_server
        from kubescene.cli.run import forget_summary, output_path, with_annotations

        local: dict[str, object] = {
            "--full-status": full_status,
            "--plugin": plugin,
            "--controller": controller,
        }
        local |= {"--strict": strict, "--interactive": interactive, "--remedies": remedies}
        local |= {"--scheduler-config": scheduler_config, "--feature-gates": feature_gates}
        local |= {"--plugin-errors stop": plugin_errors == "stop", "--report": report}
        local |= {"--outside": outside, "--waiter": waiter}
        check_local_options(local)
        forget_summary(output_path(out))
        with told_to(junit, file) as told:
            asked = with_annotations(read_scenario(file), wanted=annotate)
            play = partial(run_on_server, asked, server, out=output_path(out), junit=told)
            code = play(seed=seed, quiet=quiet, delete=delete)
        raise typer.Exit(code)
    if delete:
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
        scheduler_config=scheduler_config[0] if scheduler_config else None,
        feature_gates=feature_gates,
        interactive=interactive,
        plugin_errors=plugin_errors,
        remedies=remedies,
        annotate=annotate,
        junit=junit,
        report=report,
        waiters=waiter or (),
    )
    if outside:
        from kubescene.cli.outside import run_with_programs

        raise typer.Exit(run_with_programs(file, arguments, outside))
    if scheduler_config is not None and len(scheduler_config) > 1:
        from kubescene.cli.two_schedulers import run_both

        raise typer.Exit(run_both(file, arguments, scheduler_config))
    raise typer.Exit(run_scenario(file, arguments))


@app.command()
def validate(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files to check; - is standard input.")
    ],
    controller: Annotated[
        list[str] | None,
        typer.Option(help="A controller of yours, as module:Class. May be repeated."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="What is not simulated is a fault, not a warning.")
    ] = False,
    waiter: Annotated[
        list[str] | None,
        typer.Option(help="A ControllerWaiter of yours, as module:Class. May be repeated."),
    ] = None,
) -> None:
    """Check scenario files without playing them: all faults, with line and column.

    Example: kubescene validate examples/*/scenario.yaml
    """
    from kubescene.cli.validate import validate_files

    asked = partial(validate_files, controllers=controller or (), waiters=waiter or ())
    raise typer.Exit(asked(files, strict=strict))


@app.command()
def explain(
    pod: Annotated[
        list[str], typer.Argument(help="pod NAME; NAME is NAMESPACE/NAME, or a name in default.")
    ],
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The --out directory of a run.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="A server that has played a scenario.")
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="With --server: which scenario, if there are several.")
    ] = "",
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


@app.command()
def report(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The --out directory of a run.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="A server that has played a scenario.")
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="With --server: which scenario, if there are several.")
    ] = "",
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


@app.command()
def results(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The --out directory of a run.")
    ] = None,
    directory: Annotated[
        str | None, typer.Option("--run", metavar="DIR", help="The same as RUN.")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="A server that has played a scenario.")
    ] = None,
    scenario: Annotated[
        str, typer.Option(help="With --server: which scenario, if there are several.")
    ] = "",
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
    prices: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What nodes cost in an hour; without it no cost."),
    ] = None,
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


@app.command()
def compare(
    run_a: Annotated[
        str, typer.Argument(help="The --out directory of a run, or URL#SCENARIO of a server.")
    ],
    run_b: Annotated[str, typer.Argument(help="That of the run to compare with it.")],
    form: Annotated[
        Literal["terminal", "markdown", "json"] | None,
        typer.Option("--format", help="How to show it; by default as the name of --out ends."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file, not to the terminal.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=0, help="For how many pods to find out which plugin moved them.")
    ] = 200,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="Play runs again that have not kept why pods were placed."),
    ] = False,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Ask B's scheduler about pods that follow, in A's cluster; plays A again.",
        ),
    ] = False,
    plugin: Annotated[
        list[str] | None, typer.Option(help="To play again: a plugin that a run was given.")
    ] = None,
    controller: Annotated[
        list[str] | None, typer.Option(help="To play again: a controller that they were given.")
    ] = None,
    feature_gates: Annotated[
        str, typer.Option(metavar="NAME=true,...", help="To play again: those of the runs.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="To play again: where objectFrom reads.")
    ] = None,
) -> None:
    """Show what differs between two runs, and which plugin moved whom. Exits 1 if they differ.

    Example: kubescene compare out/before out/after --format markdown
    """
    from kubescene.cli.compare import Format, compare_runs, show_comparison
    from kubescene.cli.replaying import PlayedWith
    from kubescene.cli.run_origins import origin_of

    given = PlayedWith(
        plugins=plugin or (),
        controllers=controller or (),
        feature_gates=feature_gates,
        folder=folder,
    )
    found = compare_runs(
        origin_of(run_a),
        origin_of(run_b),
        looked_at=limit,
        replay=given if replay else None,
        what_if=given if what_if else None,
    )
    raise typer.Exit(show_comparison(found, None if form is None else Format(form), out))


@app.command()
def convert(
    sources: Annotated[
        list[Path],
        typer.Argument(help="A scenario in the drafts' form, or files and folders of manifests."),
    ],
    name: Annotated[str, typer.Option(help="The name of the scenario.")] = "converted",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to a new file, not to the terminal.")
    ] = None,
    placed: Annotated[
        bool, typer.Option("--placed", help="Pods stay on their nodes instead of waiting again.")
    ] = False,
) -> None:
    """Make a scenario of manifests, of a cluster dump, or of a scenario in the drafts' form.

    Example: kubescene convert cluster.yaml --name mine > scenario.yaml

    A dump is made by: kubectl get nodes,deployments,pods -A -o yaml > cluster.yaml
    """
    from kubescene.cli.convert import convert_files

    raise typer.Exit(convert_files(sources, name=name, out=out, placed=placed))


@app.command()
def schema(
    crd: Annotated[
        bool,
        typer.Option("--crd", help="The CustomResourceDefinition instead, for any API server."),
    ] = False,
) -> None:
    """Print the JSON Schema of scenario files, for editors.

    Example: kubescene schema > scenario.schema.json
    """
    import orjson

    if crd:
        from kubescene.api.yaml_text import dump_yaml
        from kubescene.scenario.definition import scenario_definition

        typer.echo(dump_yaml(scenario_definition()), nl=False)
        return
    from kubescene.scenario.json_schema import editor_schema

    typer.echo(orjson.dumps(editor_schema(), option=orjson.OPT_INDENT_2).decode())


app.command()(matrix)
app.command()(serve)
app.command()(controller)
app.command()(kubeconfig)
app.add_typer(bench)
app.add_typer(traffic)
app.add_typer(autoscaler)
app.add_typer(outside_commands)


def main() -> None:
    """The entry point: errors that Kubescene raises on purpose become one line and a code."""
    try:
        app()
    except KubesceneError as error:
        sys.stderr.write(f"kubescene: {error}\n")
        raise SystemExit(RUN_FAILED if isinstance(error, RecorderError) else BAD_INPUT) from None
    except OSError as error:
        sys.stderr.write(f"kubescene: {error.filename or 'the output'}: {error.strerror}\n")
        # What is left in the buffer could not be written at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(RUN_FAILED) from None
    finally:
        gc.freeze()  # The process ends: to look for garbage in all that it made would be in vain.
