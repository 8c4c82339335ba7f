"""The commands about files: ``validate``, ``convert`` and ``schema``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kubescene.cli import options


def validate(
    files: Annotated[
        list[Path], typer.Argument(help="Scenario files to check; - is standard input.")
    ],
    controller: options.Controllers = None,
    strict: options.Strict = False,
    waiter: options.Waiters = None,
    measure: options.OwnMeasures = None,
) -> None:
    """Check scenario files without playing them: all faults, with line and column.

    Example: kubescene validate examples/*/scenario.yaml
    """
    from kubescene.cli.validate import validate_files

    given = partial(validate_files, controllers=controller or (), waiters=waiter or ())
    raise typer.Exit(given(files, measures=measure or (), strict=strict))


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
        from kubescene.api.text.yaml_text import dump_yaml
        from kubescene.scenario.fields.definition import scenario_definition

        typer.echo(dump_yaml(scenario_definition()), nl=False)
        return
    from kubescene.scenario.fields.json_schema import editor_schema

    typer.echo(orjson.dumps(editor_schema(), option=orjson.OPT_INDENT_2).decode())
