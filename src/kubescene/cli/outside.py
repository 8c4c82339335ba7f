"""``kubescene outside``: programs that take part in a Scenario from outside."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubescene.scenario.outside import OutsideController, OutsideKind

outside_commands = typer.Typer(
    name="outside",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@outside_commands.callback()
def commands() -> None:
    """Prepare programs that take part in a Scenario from outside.

    Example: kubescene outside settings "kube-scheduler --config my-config.yaml"
    """


@outside_commands.command("settings")
def settings(
    command: Annotated[str, typer.Argument(help="The command that would start the program.")],
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write its scheduler configuration here, completed; - is standard output.",
        ),
    ] = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            help="The pods that it will be given, if it is a scheduler; repeatable for several "
            "profiles."
        ),
    ] = None,
) -> None:
    """Show what a program's command line and configuration lack to be played exactly.

    Exits with 0 if nothing is missing, 1 if something is, and 2 if a file cannot be read. With
    --write, what the completed configuration still lacks is shown.

    Example: kubescene outside settings "kube-scheduler --config my-config.yaml" --write exact.yaml
    """
    from kubescene.outside.commands import kind_of, words_of
    from kubescene.outside.settings import ANY
    from kubescene.scenario.outside import OutsideController, OutsideKind

    words = words_of(command)
    kind = kind_of(words)
    if kind is OutsideKind.OPERATOR:
        typer.echo(f"{words[0]}: nothing is known of its flags; one worker and no timers are best")
        raise typer.Exit(0)
    declared = OutsideController("it", kind, tuple(scheduler_name)) if scheduler_name else ANY
    missing = show(words, declared, kind) if write is None else complete(words, declared, write)
    raise typer.Exit(1 if missing else 0)


def show(words: "list[str]", declared: "OutsideController", kind: "OutsideKind") -> bool:
    """Tell what is missing and what to do about it; whether something is."""
    from kubescene.outside.commands import advised_in, missing_in
    from kubescene.outside.manager_settings import manager_arguments
    from kubescene.outside.settings import recommended_arguments

    missing = missing_in(words, kind, declared)
    tell(missing, advised_in(words, kind))
    if not missing:
        typer.echo("nothing is missing")
    elif kind == "bag":
        typer.echo(f"flags    {' '.join(manager_arguments())}")
    else:
        typer.echo(f"flags    {' '.join(recommended_arguments(words)) or 'fine'}")
        typer.echo("config   --write FILE writes it with what is missing")
    return bool(missing)


def complete(words: "list[str]", declared: "OutsideController", target: Path) -> bool:
    """Write the configuration with what was missing; whether something still is."""
    from kubescene.api.text.yaml_text import dump_yaml
    from kubescene.errors import ConfigurationError
    from kubescene.outside.commands import configuration_of, kind_of
    from kubescene.outside.settings import (
        missing_settings,
        recommended_arguments,
        recommended_configuration,
    )

    if kind_of(words) != "scheduler":
        raise ConfigurationError("--write is for schedulers: others are told all by flags")
    config = recommended_configuration(configuration_of(words))
    flags = recommended_arguments(words)
    if str(target) == "-":
        typer.echo(dump_yaml(config), nl=False)
    else:
        target.write_text(dump_yaml(config), encoding="utf-8")
    missing = missing_settings(config, [*words, *flags], declared)
    tell(missing, (), err=True)
    typer.echo(f"flags    {' '.join(flags) or 'fine'}", err=True)
    return bool(missing)


def tell(missing: "Sequence[str]", advised: "Sequence[str]", *, err: bool = False) -> None:
    for each in missing:
        typer.echo(f"missing  {each}", err=err)
    for each in advised:
        typer.echo(f"advised  {each}", err=err)
