"""``kubescene kubeconfig``: what kubectl needs to reach a served cluster."""

from typing import Annotated

import typer


def kubeconfig(
    as_user: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Act as this user, by a prefix of the URL.")
    ] = "",
    server: Annotated[
        str, typer.Option(metavar="URL", help="Where the cluster is served.")
    ] = "http://127.0.0.1:8001",
    namespace: Annotated[str, typer.Option(help="Namespace of the context.")] = "default",
) -> None:
    """Print a kubeconfig for a cluster that kubescene serves.

    Example: kubescene kubeconfig --as alice > alice.yaml
    """
    # YAML and clients are imported only when they are needed.
    import yaml

    from kubescene.client.http.kubeconfigs import make_kubeconfig

    document = make_kubeconfig(server, as_user=as_user, namespace=namespace)
    typer.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
