"""What can be said to ``kubescene convert``."""

from pathlib import Path
from typing import Annotated

import typer


def convert(
    sources: Annotated[
        list[Path],
        typer.Argument(help="Manifests, a TrafficRun, a trace, or a scenario in the drafts' form."),
    ],
    to: Annotated[str, typer.Option(help="What to make: a scenario.")] = "scenario",
    name: Annotated[str, typer.Option(help="The name of the scenario.")] = "converted",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to a new file, not to the terminal.")
    ] = None,
    placed: Annotated[
        bool, typer.Option("--placed", help="Pods stay on their nodes instead of waiting again.")
    ] = False,
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NxSIZE",
            help="Add nodes, such as 3x8cpu,32Gi. May be repeated. Of a trace also its file of "
            "nodes.",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool,
        typer.Option("--skip-unknown", help="Leave out objects of kinds that nobody here knows."),
    ] = False,
    keep_values: Annotated[
        bool,
        typer.Option(
            "--keep-values",
            help="Keep values of environment variables, commands, data of ConfigMaps and all "
            "annotations.",
        ),
    ] = False,
) -> None:
    """Make a scenario of manifests, a cluster dump, a TrafficRun, a trace, or a draft.

    Example: kubescene convert cluster.yaml --name mine > scenario.yaml

    A dump is made by: kubectl get nodes,deployments,pods -A -o yaml > cluster.yaml

    A trace: kubescene convert openb_pod_list_default.csv --nodes openb_node_list_all_node.csv

    What a dump holds is made anew; `kubescene snapshot` and `run --from` keep a cluster as it is.
    """
    from kubescene.cli.convert.sources import convert_files

    if to != "scenario":
        raise typer.BadParameter(f"{to!r}: only scenarios are made", param_hint="--to")

    raise typer.Exit(
        convert_files(
            sources,
            name=name,
            out=out,
            placed=placed,
            nodes=nodes or [],
            known_only=skip_unknown,
            keep_values=keep_values,
        )
    )
