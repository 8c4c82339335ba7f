"""Kubeconfigs for a cluster that Kubescene serves."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from kubescene.errors import ConfigurationError

CLUSTER = "kubescene"


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


def server_of(document: Mapping[str, Any]) -> str:
    """The server of a kubeconfig that `make_kubeconfig` made."""
    server: str = document["clusters"][0]["cluster"]["server"]
    return server
