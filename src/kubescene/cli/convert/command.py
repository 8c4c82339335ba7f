"""What can be said to ``kubescene convert``."""

from pathlib import Path
from typing import Annotated

import typer


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
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="NxSIZE", help="Add nodes, such as 3x8cpu,32Gi. May be repeated."),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out objects of kinds that nobody here knows."),
    ] = False,
) -> None:
    """Make a scenario of manifests, of a cluster dump, or of a scenario in the drafts' form.

    Example: kubescene convert cluster.yaml --name mine > scenario.yaml

    A dump is made by: kubectl get nodes,deployments,pods -A -o yaml > cluster.yaml
    """
    from kubescene.cli.convert.sources import convert_files

    raise typer.Exit(
        convert_files(
            sources, name=name, out=out, placed=placed, nodes=nodes or [], known_only=skip_unknown
        )
    )
