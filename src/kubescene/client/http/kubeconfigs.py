"""Kubeconfigs: which API server one means, with which credentials; and those of our own servers.

Read are the current context (or a named one), the server, its certificate authority, client
certificates and tokens, in line or in files. What would run a command, and what would be
silently wrong if it were ignored, is refused.
"""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

from kubescene.api.text.reading import ReadingError
from kubescene.api.text.yaml_text import read_yaml
from kubescene.client.http.endpoints import Endpoint
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject

MAX_SIZE = 4 * 1024 * 1024

UNVERIFIED = (
    "it has `insecure-skip-tls-verify`, so anybody could answer as that server: put the "
    "certificate of its authority under `certificate-authority`, or allow it "
    "(--insecure-skip-tls-verify)"
)

Section: TypeAlias = dict[str, Any]

_REFUSED_OF_USERS = {
    "exec": "it would run a command: put the token that the command prints under `token`",
    "auth-provider": "such providers are gone from Kubernetes: use a token or a certificate",
    "username": "passwords are gone from Kubernetes: use a token or a certificate",
    "as": "impersonation is not supported: use the credentials of that user",
}
_REFUSED_OF_CLUSTERS = {"proxy-url": "proxies are not supported: connect to the server itself"}


def read_kubeconfig(
    path: Path | None = None, *, context: str = "", allow_unverified: bool = False
) -> Endpoint:
    """The API server of a kubeconfig.

    Without ``path``, that of ``KUBECONFIG`` or ``~/.kube/config``; without ``context``, its current
    one. ``insecure-skip-tls-verify`` is refused unless ``allow_unverified``: whoever answers would
    get the credentials. Raises `ConfigurationError`.
    """
    path = path or default_path()
    kubeconfig = Kubeconfig(path, _load(path), allow_unverified=allow_unverified)
    return kubeconfig.endpoint(context)


def endpoint_at(url: str) -> Endpoint:
    """The API server of a URL; over https as the user's kubeconfig says, if it is that server's."""
    plain = Endpoint(url.rstrip("/"))
    if not plain.is_secure:
        return plain
    try:
        known = read_kubeconfig()
    except ConfigurationError:
        return plain
    return known if known.url == plain.url else plain


def default_path() -> Path:
    named = os.environ.get("KUBECONFIG", "")
    if os.pathsep in named:
        raise ConfigurationError(
            f"KUBECONFIG names several files ({named}): name the one that is meant"
        )
    return Path(named) if named else Path.home() / ".kube" / "config"


class Kubeconfig:
    """A kubeconfig that was read from ``path``; relative paths in it start from there."""

    def __init__(self, path: Path, document: JsonObject, *, allow_unverified: bool = False) -> None:
        self._path = path
        self._allow_unverified = allow_unverified
        self._document = document

    def endpoint(self, context: str = "") -> Endpoint:
        name = context or str(self._document.get("current-context") or "")
        if not name:
            raise self._error("it has no current-context: name a context")
        chosen = self._named("contexts", "context", name)
        cluster = self._named("clusters", "cluster", str(chosen.get("cluster") or ""))
        user_name = str(chosen.get("user") or "")
        user = self._named("users", "user", user_name) if user_name else {}
        self._refuse(cluster, _REFUSED_OF_CLUSTERS)
        self._refuse(user, _REFUSED_OF_USERS)
        token_file = user.get("tokenFile")
        return Endpoint(
            str(cluster.get("server") or "").rstrip("/"),
            token=str(user.get("token") or ""),
            token_file=self._path.parent / str(token_file) if token_file else None,
            tls=self._tls(cluster, user),
            server_name=str(cluster.get("tls-server-name") or ""),
        )

    def _tls(self, cluster: Section, user: Section) -> ssl.SSLContext | None:
        if not str(cluster.get("server") or "").lower().startswith("https:"):
            return None
        authority = self._data(cluster, "certificate-authority")
        try:
            tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
            if cluster.get("insecure-skip-tls-verify"):
                if not self._allow_unverified:
                    raise self._error(UNVERIFIED)
                tls.check_hostname = False
                tls.verify_mode = ssl.CERT_NONE
            certificate = self._data(user, "client-certificate")
            if certificate:
                load_pair(tls, certificate, self._data(user, "client-key"))
        except (ssl.SSLError, ValueError) as error:
            raise self._error(f"its certificates cannot be used: {error}") from None
        return tls

    def _data(self, section: Section, name: str) -> bytes:
        """A certificate or key, in line or in a file."""
        if text := section.get(f"{name}-data"):
            try:
                return base64.b64decode(str(text), validate=True)
            except binascii.Error as error:
                raise self._error(f"{name}-data is not base64: {error}") from None
        if not (file := section.get(name)):
            return b""
        try:
            return (self._path.parent / str(file)).read_bytes()
        except OSError as error:
            raise self._error(f"{name} {file} cannot be read: {error.strerror}") from None

    def _named(self, kind: str, field: str, name: str) -> Section:
        rows = self._document.get(kind)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and row.get("name") == name:
                section = row.get(field)
                return section if isinstance(section, dict) else {}
        raise self._error(f"it has no {field} named {name!r}")

    def _refuse(self, section: Section, reasons: dict[str, str]) -> None:
        for field, why in reasons.items():
            if section.get(field):
                raise self._error(f"it has `{field}`: {why}")

    def _error(self, message: str) -> ConfigurationError:
        return ConfigurationError(f"kubeconfig {self._path}: {message}")


def load_pair(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Give a client certificate to a context, which takes it from a file only."""
    handle, name = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        tls.load_cert_chain(name)
    finally:
        Path(name).unlink()


def _load(path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SIZE + 1)
        documents = read_yaml(data) if len(data) <= MAX_SIZE else []
    except OSError as error:
        raise ConfigurationError(f"kubeconfig {path} cannot be read: {error.strerror}") from None
    except ReadingError as error:
        raise ConfigurationError(f"kubeconfig {path} is not YAML: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise ConfigurationError(f"{path} is not a kubeconfig: it should hold one YAML mapping")
    document: JsonObject = documents[0].value
    return document


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
