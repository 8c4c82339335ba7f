"""The folder of those whom a server knows: its authority, their tokens, and the administrator.

::

    ca.crt, ca.key       the authority that certifies the server, made at its first start
    accounts.key         by which tokens of ServiceAccounts are known
    tokens.jsonl         who is known (`tokens`): no token, only what one is recognised by
    administrator.yaml   a kubeconfig, written at each start: where the server is, whom it trusts

The folder is its owner's alone, as are the files. An identity that is made again has a new token in
place of the one before.
"""

import fcntl
import os
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kubescene.api.text.yaml_text import read_yaml
from kubescene.apiserver.access.authorizing import MASTERS
from kubescene.apiserver.access.service_accounts import KEY_BYTES
from kubescene.apiserver.access.tokens import TokenFile, TokenOwner, read_identities
from kubescene.certificates import OpenSsl, Pem
from kubescene.client.http.kubeconfigs import make_kubeconfig, server_of
from kubescene.clock.randomness import unguessable
from kubescene.errors import ConfigurationError, KubesceneError

ADMINISTRATOR = "administrator"
TOKEN_BYTES = 32
INSTEAD = "give --tls-cert and --tls-key"
LONGEST_NAME = 253


class IdentityFolder:
    """Identities in a folder; several processes may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tokens = path / "tokens.jsonl"
        self.kubeconfig = path / "administrator.yaml"

    def prepare(self) -> TokenFile:
        """Make what is missing; raises `ConfigurationError` if others can read the folder."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = self.path.stat().st_mode
        except OSError as error:
            raise ConfigurationError(
                f"the identities cannot be kept in {self.path}: {error.strerror}"
            ) from None
        if mode & 0o077:
            raise ConfigurationError(
                f"others can read the identities in {self.path}: chmod 700 {self.path}"
            )
        with self._locked():
            if not self._tokens.exists():
                self._write(self._tokens, b"")
        return TokenFile(self._tokens)

    def authority(self) -> Pem:
        """What signs the certificate of the server; made when it is asked for first."""
        certificate, key = self.path / "ca.crt", self.path / "ca.key"
        with self._locked():
            if not (certificate.exists() and key.exists()):
                made = OpenSsl(INSTEAD).authority("kubescene")
                self._write(key, made.key)
                self._write(certificate, made.certificate)
            return Pem(certificate.read_bytes(), key.read_bytes())

    def signing_key(self) -> bytes:
        """By which tokens of ServiceAccounts are known; made when it is asked for first."""
        path = self.path / "accounts.key"
        with self._locked():
            if not path.exists():
                self._write(path, unguessable(KEY_BYTES))
            return path.read_bytes()

    def certified(
        self, name: str, groups: Sequence[str], *, server: str = "", namespace: str = "default"
    ) -> dict[str, Any]:
        """A kubeconfig for somebody who is known by a certificate of the folder's authority."""
        told = self._told()
        bundle = str(told["clusters"][0]["cluster"]["certificate-authority-data"])
        made = OpenSsl(INSTEAD).client(self.authority(), name, groups)
        document = make_kubeconfig(server or server_of(told), namespace=namespace)
        document = with_token(document, bundle, name, "")
        pair = {"client-certificate-data": made.certificate, "client-key-data": made.key}
        document["users"][0]["user"] = {
            field: b64encode(data).decode() for field, data in pair.items()
        }
        return document

    def add(self, name: str, groups: Sequence[str] = ()) -> str:
        """The token of a new identity, or a new one for a name that is known."""
        for each in (name, *groups):
            if not each or len(each) > LONGEST_NAME or not each.isprintable():
                raise ConfigurationError(f"{each!r} is no name of a user or group")
        token = urlsafe_b64encode(unguessable(TOKEN_BYTES)).decode().rstrip("=")
        digest = sha256(token.encode()).hexdigest()
        with self._locked():
            kept = [each for each in read_identities(self._tokens) if each.name != name]
            kept.append(TokenOwner(name, digest, tuple(dict.fromkeys(groups))))
            encode = msgspec.json.encode
            self._write(self._tokens, b"".join(encode(each) + b"\n" for each in kept))
        return token

    def introduce(self, url: str, bundle: bytes, tokens: TokenFile) -> Path:
        """The kubeconfig of the administrator, who is made unless the one there is still known."""
        token = ""
        if self.kubeconfig.exists():
            token = str(self._told()["users"][0]["user"].get("token") or "")
        actor = tokens.actor_of(token.encode()) if token else None
        if actor is None or MASTERS not in actor.groups:
            token = self.add(ADMINISTRATOR, [MASTERS])
        document = made_for(url, bundle, ADMINISTRATOR, token)
        with self._locked():
            self._write(self.kubeconfig, yaml.safe_dump(document, sort_keys=False).encode())
        return self.kubeconfig

    def kubeconfig_of(
        self, name: str, groups: Sequence[str], *, server: str = "", namespace: str = "default"
    ) -> dict[str, Any]:
        """A kubeconfig for a new identity; without a name, that of the administrator."""
        told = self._told()
        cluster = told["clusters"][0]["cluster"]
        url, bundle = server or server_of(told), str(cluster["certificate-authority-data"])
        if not url.startswith("https://"):
            raise ConfigurationError(f"a token for {url} would be sent in clear: use https")
        token = self.add(name, groups) if name else str(told["users"][0]["user"]["token"])
        document = make_kubeconfig(url, namespace=namespace)
        return with_token(document, bundle, name or ADMINISTRATOR, token)

    def _told(self) -> dict[str, Any]:
        """The kubeconfig that the server has written."""
        try:
            (document,) = read_yaml(self.kubeconfig.read_bytes())
            told: dict[str, Any] = document.value
            told["clusters"][0]["cluster"]["certificate-authority-data"]
            told["users"][0]["user"]
        except FileNotFoundError:
            raise ConfigurationError(
                f"{self.kubeconfig} is not there: start a server with these identities first "
                f"(kubescene serve --tls --identities {self.path})"
            ) from None
        except (OSError, KubesceneError, ValueError, LookupError, TypeError) as error:
            raise ConfigurationError(
                f"{self.kubeconfig} is not what a server wrote ({error}): remove it, and start the "
                "server again"
            ) from None
        return told

    def _write(self, path: Path, data: bytes) -> None:
        """All of it or nothing, for the owner alone."""
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One process writes at a time."""
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigurationError(
                f"the identities in {self.path} cannot be used: {error.strerror}"
            ) from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def made_for(url: str, bundle: bytes, name: str, token: str) -> dict[str, Any]:
    """A kubeconfig with a token."""
    return with_token(make_kubeconfig(url), b64encode(bundle).decode(), name, token)


def with_token(document: dict[str, Any], bundle: str, name: str, token: str) -> dict[str, Any]:
    """A kubeconfig of ours, for somebody who shows a token to a server that is certified."""
    document["clusters"][0]["cluster"]["certificate-authority-data"] = bundle
    document["users"] = [{"name": name, "user": {"token": token}}]
    document["contexts"][0]["context"]["user"] = name
    return document
