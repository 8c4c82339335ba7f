"""``kubescene schema``: what scenario files may hold, for editors and API servers."""

from typing import Annotated

import typer


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
