"""The ``kubescene`` command and its subcommands."""

import os
import sys
from typing import Annotated, Any

import typer

from kubescene.cli.autoscaler import autoscaler
from kubescene.cli.bench.command import bench
from kubescene.cli.compare.command import compare
from kubescene.cli.controller import controller
from kubescene.cli.convert.command import convert
from kubescene.cli.data import data
from kubescene.cli.explain.command import explain
from kubescene.cli.kubeconfig import kubeconfig
from kubescene.cli.matrix.command import matrix
from kubescene.cli.outside import outside_commands
from kubescene.cli.record.command import record
from kubescene.cli.report.command import report
from kubescene.cli.results.command import results
from kubescene.cli.run.command import run
from kubescene.cli.runs import runs
from kubescene.cli.schema import schema
from kubescene.cli.serve import serve
from kubescene.cli.size import size
from kubescene.cli.snapshot.command import snapshot
from kubescene.cli.terminals import write_what_can_be_written
from kubescene.cli.traffic.command import traffic
from kubescene.cli.tune.command import tune
from kubescene.cli.ui import ui
from kubescene.cli.validate.command import validate
from kubescene.cli.what_if.command import what_if
from kubescene.errors import KubesceneError, RecorderError
from kubescene.garbage import end_of_process, take_charge
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


app.command()(run)
app.command()(validate)
app.command()(explain)
app.command()(report)
app.command()(results)
app.command()(compare)
app.command()(convert)
app.command()(snapshot)
app.command()(record)
app.command("what-if")(what_if)
app.command()(schema)
app.command()(matrix)
app.command()(tune)
app.command()(size)
app.command()(serve)
app.command()(ui)
app.command()(controller)
app.command()(kubeconfig)
app.add_typer(bench)
app.add_typer(traffic)
app.add_typer(runs)
app.add_typer(data)
app.add_typer(autoscaler)
app.add_typer(outside_commands)


def replace_closed_streams() -> None:
    """Who closed a standard stream (``2>&-``) has nothing to say, or does not want to hear."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  (until the process ends)


NUMBERS = {
    "int": "whole number",
    "int range": "whole number",
    "float": "number",
    "float range": "number",
}
"""What Typer calls them in help and complaints, and what people do."""


def name_numbers(command: Any) -> None:
    """Let a command and those below it speak of numbers in words."""
    for parameter in command.params:
        parameter.type.name = NUMBERS.get(parameter.type.name, parameter.type.name)
    for below in getattr(command, "commands", {}).values():
        name_numbers(below)


def main() -> None:
    """The command line: errors that Kubescene raises on purpose become one line and a code."""
    replace_closed_streams()
    write_what_can_be_written()
    take_charge()
    try:
        commands = typer.main.get_command(app)
        name_numbers(commands)
        commands()
    except KubesceneError as error:
        from kubescene.cli.files import complain  # the path of those who need it

        complain([str(error)], "kubescene: ")
        raise SystemExit(RUN_FAILED if isinstance(error, RecorderError) else BAD_INPUT) from None
    except OSError as error:
        sys.stderr.write(f"kubescene: {error.filename or 'the output'}: {error.strerror}\n")
        # What is left in the buffer could not be written at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(RUN_FAILED) from None
    finally:
        end_of_process()
