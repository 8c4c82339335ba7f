"""``kubescene autoscaler``: autoscalers as processes of their own."""

from pathlib import Path
from typing import Annotated

import typer

autoscaler = typer.Typer(
    name="autoscaler",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

_MARKS = {True: "ok", False: "FAILED", None: "-"}


@autoscaler.callback()
def commands() -> None:
    """Check and serve autoscalers that run in processes of their own.

    Example: kubescene autoscaler check "python my_autoscaler.py"
    """


@autoscaler.command("check")
def check(
    command: Annotated[str, typer.Argument(help="The command that starts the plugin.")],
    object: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The object it is created with (YAML), not a sample."),
    ] = None,
    start_s: Annotated[
        float, typer.Option("--start-timeout", min=0.1, help="Seconds until it must answer.")
    ] = 60.0,
    call_s: Annotated[
        float, typer.Option("--call-timeout", min=0.1, help="Seconds that every answer may take.")
    ] = 30.0,
) -> None:
    """Start a plugin, play a short run with it and show whether it does what hosts expect.

    Exits with 0 if all is well, 1 if something failed, and 2 if the command is no plugin that runs.

    Example: kubescene autoscaler check "python examples/autoscaler-plugin/per_request.py"
    """
    from kubescene.autoscalers.process.conformance import check

    yaml = object.read_text(encoding="utf-8") if object is not None else ""
    checks = check(command, yaml, start_s=start_s, call_s=call_s)
    width = max(len(each.name) for each in checks)
    for each in checks:
        typer.echo(f"{_MARKS[each.passed]:6}  {each.name:{width}}  {each.told}".rstrip())
    raise typer.Exit(1 if any(each.passed is False for each in checks) else 0)


@autoscaler.command("serve")
def serve(
    reference: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="An autoscaler class.")],
) -> None:
    """Serve an autoscaler class to the host that starts this command.

    Example: kubescene autoscaler serve kubescene.autoscalers.horizontal:HorizontalPlugin
    """
    from kubescene.autoscalers import serve
    from kubescene.autoscalers.references import load_autoscaler
    from kubescene.cli.components import look_here

    look_here([reference])
    serve(load_autoscaler(reference))
