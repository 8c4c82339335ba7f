"""``kubescene kubeconfig``: what kubectl needs to reach a served cluster."""

from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from kubescene.errors import ConfigurationError

CLUSTER = "kubescene"


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
    # YAML is imported only when it is written.
    import yaml

    document = make_kubeconfig(server, as_user=as_user, namespace=namespace)
    typer.echo(yaml.safe_dump(document, sort_keys=False), nl=False)


def make_kubeconfig(
    server: str, *, as_user: str = "", namespace: str = "default"
) -> dict[str, Any]:
    """The kubeconfig as an object."""
    url = urlsplit(server)
    if url.scheme not in ("http", "https") or not url.netloc:
        raise ConfigurationError(f"{server!r} is not a URL such as http://127.0.0.1:8001")
    address = server.rstrip("/") + (f"/as/{quote(as_user, safe='')}" if as_user else "")
    user = as_user or "user"
    context = {"cluster": CLUSTER, "user": user, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": reached_at(address)}],
        "users": [{"name": user, "user": {}}],
        "contexts": [{"name": CLUSTER, "context": context}],
        "current-context": CLUSTER,
    }


def reached_at(address: str) -> dict[str, Any]:
    """How clients reach the server. Over plain http, the JavaScript client asks for a word more."""
    plain = {"insecure-skip-tls-verify": True} if address.startswith("http:") else {}
    return {"server": address, **plain}
