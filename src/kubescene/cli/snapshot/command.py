"""What can be said to ``kubescene snapshot``."""

from pathlib import Path
from typing import Annotated

import typer


def snapshot(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SOURCE]...",
            help="Files, folders or archives that hold a cluster. Without one, a cluster is asked.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The new file; packed if its name ends with .gz."),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the API server is; without it, as kubectl finds."),
    ] = None,
    context: Annotated[str, typer.Option(help="A context of the kubeconfig.")] = "",
    namespace: Annotated[
        str, typer.Option(help="Only this namespace, and what belongs to none.")
    ] = "",
    selector: Annotated[
        str, typer.Option(help="Only objects of namespaces that have these labels.")
    ] = "",
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace every name and label value.")
    ] = False,
    keep_values: Annotated[
        bool,
        typer.Option(
            "--keep-values",
            help="Keep values of environment variables, commands, data of ConfigMaps, annotations "
            "and custom resources of others. Secrets are never kept.",
        ),
    ] = False,
    finished: Annotated[bool, typer.Option(help="Whether pods that have ended come along.")] = True,
    format: Annotated[
        str, typer.Option(metavar="NAME", help="The form of the sources, if it is in doubt.")
    ] = "",
    formats: Annotated[
        bool, typer.Option("--formats", help="List the forms that can be read, and end.")
    ] = False,
    role: Annotated[
        bool,
        typer.Option(
            "--cluster-role", help="Print the ClusterRole that asking a cluster needs, and end."
        ),
    ] = False,
) -> None:
    """Make one file of a cluster as it is now, or as files have it. Nothing is ever written to it.

    Example: kubescene snapshot --out shop.snapshot.json.gz

    Example: kubescene snapshot dump.yaml must-gather/ --out shop.snapshot.json.gz
    """
    from kubescene.cli.snapshot.taking import Asked, print_cluster_role, print_formats, take

    if formats:
        raise typer.Exit(print_formats())
    if role:
        raise typer.Exit(print_cluster_role())
    asked = Asked(
        sources=tuple(sources or ()),
        out=out,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        selector=selector,
        anonymize=anonymize,
        keep_values=keep_values,
        finished=finished,
        format=format,
    )
    raise typer.Exit(take(asked))
