"""Who is asking, by a bearer token: a file says which tokens there are.

A line of the file is an identity as JSON: a name, its groups, and the SHA-256 of its token, which
nobody can turn back into the token. The file is read again when it has changed, so that an identity
counts, or counts no more, from the next request on. A file that cannot be read knows nobody.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final

import msgspec

from kubescene.actors import Actor
from kubescene.apiserver.access.identity import user_named
from kubescene.errors import ConfigurationError, UnauthorizedError

MAX_SIZE = 4 * 1024 * 1024
ANONYMOUS: Final = Actor("system:anonymous", groups=("system:unauthenticated",))
"""Whoever shows no token, and asks for what is open to everybody."""
OPEN = ("/healthz", "/livez", "/readyz", "/version", "/ui")
OPEN_BELOW = "/ui/"
"""The files of the pages, which hold nothing of the cluster."""
BEARER = b"bearer "

_log = logging.getLogger(__name__)


class TokenOwner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the file."""

    name: str
    sha256: str
    groups: tuple[str, ...] = ()


class TokenFile:
    """The identities of a file. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        """Raises `ConfigurationError` if the file cannot be read."""
        self.path = path
        self._seen = _state(path)
        self._known = _actors(read_identities(path))

    def actor_of(self, token: bytes) -> Actor | None:
        """Whose token it is. Takes as long for a wrong token as for a right one."""
        shown, found = sha256(token).digest(), None
        for digest, actor in self._current():
            if compare_digest(digest, shown):
                found = actor
        return found

    def identify(self, scope: Mapping[str, Any]) -> tuple[Actor, str]:
        """The actor, and the path; `UnauthorizedError` unless a token is known."""
        path: str = scope["path"]
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not given:
            if is_open(scope.get("method", ""), path):
                return ANONYMOUS, path
            raise UnauthorizedError("Unauthorized")
        kind, token = given[0][: len(BEARER)].lower(), given[0][len(BEARER) :].strip()
        actor = self.actor_of(token) if kind == BEARER and token and len(given) == 1 else None
        if actor is None:
            raise UnauthorizedError("Unauthorized")
        return actor, path

    def _current(self) -> Sequence[tuple[bytes, Actor]]:
        seen = _state(self.path)
        if seen != self._seen:
            try:
                self._known = _actors(read_identities(self.path))
            except ConfigurationError as error:
                _log.error("%s: until then nobody is known", error)
                self._known = []
            self._seen = seen
        return self._known


def is_open(method: str, path: str) -> bool:
    """Whether everybody may ask, without a token."""
    return method in ("GET", "HEAD") and (path in OPEN or path.startswith(OPEN_BELOW))


def read_identities(path: Path) -> list[TokenOwner]:
    """All lines of a file; raises `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SIZE + 1)
    except OSError as error:
        raise ConfigurationError(f"the tokens {path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_SIZE:
        raise ConfigurationError(f"the tokens {path} are more than {MAX_SIZE} bytes")
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            identity = msgspec.json.decode(line, type=TokenOwner)
            bytes.fromhex(identity.sha256)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            raise ConfigurationError(
                f"{path}, line {number} is no identity ({error}): mend or remove it"
            ) from None
        found.append(identity)
    return found


def _actors(identities: Sequence[TokenOwner]) -> list[tuple[bytes, Actor]]:
    return [(bytes.fromhex(each.sha256), user_named(each.name, each.groups)) for each in identities]


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
