"""``kubescene kubeconfig``: what kubectl needs to reach a served cluster."""

from pathlib import Path
from typing import Annotated

import typer

from kubescene.errors import ConfigurationError

HERE = "http://127.0.0.1:8001"


def kubeconfig(
    as_user: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="NAME",
            help="Act as this user: by a prefix of the URL, or with --identities by a new token.",
        ),
    ] = "",
    server: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where the cluster is served; with --identities as the server said, "
            f"otherwise {HERE}.",
        ),
    ] = "",
    identities: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The identities of a server that serves https."),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="With --identities: a group of this user. May be repeated."),
    ] = None,
    certificate: Annotated[
        bool,
        typer.Option("--certificate", help="With --identities: by a certificate, not by a token."),
    ] = False,
    namespace: Annotated[str, typer.Option(help="Namespace of the context.")] = "default",
) -> None:
    """Print a kubeconfig for a cluster that kubescene serves.

    With --identities the user is made, and a token that was made before counts no longer; without
    --as it is the administrator.

    Example: kubescene kubeconfig --as alice > alice.yaml
    """
    # YAML and clients are imported only when they are needed.
    import yaml

    from kubescene.client.http.kubeconfigs import make_kubeconfig

    if group and not (identities and as_user):
        raise ConfigurationError("--group is for a user who is made: say --identities and --as")
    if certificate and not (identities and as_user):
        raise ConfigurationError(
            "--certificate is for a user who is made: say --identities and --as"
        )
    if identities is None:
        document = make_kubeconfig(server or HERE, as_user=as_user, namespace=namespace)
    else:
        # Those who take users at their word need no tokens.
        from kubescene.apiserver.access.identities import IdentityFolder

        folder = IdentityFolder(identities)
        make = folder.certified if certificate else folder.kubeconfig_of
        document = make(as_user, group or (), server=server, namespace=namespace)
    typer.echo(yaml.safe_dump(document, sort_keys=False), nl=False)
