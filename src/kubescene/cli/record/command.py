"""What can be said to ``kubescene record``."""

from pathlib import Path
from typing import Annotated

import typer


def record(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The new file; packed if its name ends with .gz."),
    ] = None,
    length: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="So long, such as 24h; else to Ctrl-C.")
    ] = "",
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the API server is; without it, as kubectl finds."),
    ] = None,
    context: Annotated[str, typer.Option(help="A context of the kubeconfig.")] = "",
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace every name and label value.")
    ] = False,
    keep_values: Annotated[
        bool,
        typer.Option(
            "--keep-values",
            help="Keep values of environment variables, commands and annotations. Secrets and the "
            "data of ConfigMaps are never asked for.",
        ),
    ] = False,
    role: Annotated[
        bool,
        typer.Option(
            "--cluster-role", help="Print the ClusterRole that following a cluster needs, and end."
        ),
    ] = False,
) -> None:
    """Write down what happens to a cluster, to be replayed. Nothing is ever written to it.

    Example: kubescene record --for 24h --out day.jsonl.gz

    Replay: kubescene convert day.jsonl.gz --out day.yaml, then kubescene run day.yaml
    """
    from kubescene.cli.record.recording import RecordingOrder, print_cluster_role, record_cluster

    if role:
        raise typer.Exit(print_cluster_role())
    if out is None:
        raise typer.BadParameter("name the new file", param_hint="--out")
    raise typer.Exit(
        record_cluster(
            RecordingOrder(
                out=out,
                length=length,
                kubeconfig=kubeconfig,
                context=context,
                anonymize=anonymize,
                keep_values=keep_values,
            )
        )
    )
