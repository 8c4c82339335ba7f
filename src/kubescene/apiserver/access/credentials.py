"""Who is asking over https: by a client certificate, a token of the file, or one of an account."""

from collections.abc import Mapping
from typing import Any

from kubescene.actors import Actor
from kubescene.apiserver.access.identity import user_named
from kubescene.apiserver.access.service_accounts import ServiceAccountTokens, TokenBearer
from kubescene.apiserver.access.tokens import BEARER, TokenFile

PEER = "kubescene.peer"
"""Where the state of a connection says whose certificate it showed."""


class Credentials:
    """All by which somebody is known. Without a file only accounts are."""

    def __init__(self, accounts: ServiceAccountTokens, file: TokenFile | None = None) -> None:
        self.accounts = accounts
        self.file = file

    def identify(self, scope: Mapping[str, Any]) -> tuple[Actor, str]:
        """The actor, and the path; `UnauthorizedError` unless somebody is known."""
        assert self.file is not None
        path: str = scope["path"]
        peer: Actor | None = (scope.get("state") or {}).get(PEER)
        if peer is not None:
            return peer, path
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) == 1 and given[0][: len(BEARER)].lower() == BEARER:
            bearer = self.accounts.bearer(given[0][len(BEARER) :].strip())
            if bearer.actor is not None:
                return bearer.actor, path
        return self.file.identify(scope)

    def bearer(self, token: bytes, audiences: tuple[str, ...]) -> TokenBearer:
        """Who would be asking with this token."""
        found = self.accounts.bearer(token, audiences) if audiences else self.accounts.bearer(token)
        if found.actor is not None or self.file is None:
            return found
        owner = self.file.actor_of(token)
        return found if owner is None else TokenBearer(owner, (), "")


def peer_of(transport: Any) -> Actor | None:
    """Whom the certificate names that a client has shown: its CN, in the groups of its O."""
    tls = transport.get_extra_info("ssl_object")
    certificate = None if tls is None else tls.getpeercert()
    if not certificate:
        return None
    parts = [pair for part in certificate.get("subject", ()) for pair in part]
    names = [value for name, value in parts if name == "commonName"]
    groups = [value for name, value in parts if name == "organizationName"]
    return user_named(names[0], groups) if names else None
