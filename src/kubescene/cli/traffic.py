"""``kubescene traffic``: how an autoscaler behaves under traffic."""

from pathlib import Path
from typing import Annotated

import typer

traffic = typer.Typer(
    name="traffic",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@traffic.callback()
def commands() -> None:
    """Simulate requests, replicas and the autoscalers that change them.

    Example: kubescene traffic run examples/traffic/step.yaml
    """


@traffic.command("run")
def run(
    file: Annotated[Path, typer.Argument(help="A TrafficRun (YAML or JSON).")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Set a field, such as spec.replicas.initial=3. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write requests, decisions and summary here."),
    ] = None,
    autoscaler: Annotated[
        list[str] | None,
        typer.Option(help="An autoscaler of yours, as module:Class. May be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Simulate a TrafficRun and show what happened.

    Example: kubescene traffic run examples/traffic/step.yaml --set spec.traffic.step.rps=20
    """
    from kubescene.cli.traffic_running import run_traffic

    raise typer.Exit(
        run_traffic(file, settings or (), autoscaler or (), out=out, as_json=as_json, quiet=quiet)
    )
