"""Who is asking, and who may.

Over plain http the URL says who: ``/as/NAME/...`` acts as user ``NAME``. kubectl sends no
credentials without TLS, but it keeps the path of the server URL in its kubeconfig, so a prefix
there is an identity that every client can carry. Whoever may be anybody may also say so as
``kubectl --as`` does: ``Impersonate-User`` is honoured. Groups are not known here, so a request
that asks for some is refused rather than carried out as somebody else.

Who may do what an `Authorizer` says, to every request before it is carried out, and to reviews.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol
from urllib.parse import unquote

from msgspec import Struct

from kubescene.actors import Actor, Role
from kubescene.errors import BadRequestError

DEFAULT_ACTOR = Actor("user", Role.USER)
PREFIX = "/as/"
IMPERSONATION = b"impersonate-"


@lru_cache(maxsize=1024)
def actor_named(name: str) -> Actor:
    return Actor(name, Role.USER)


def identify(path: str, raw_path: bytes) -> tuple[Actor, str]:
    """The actor, and the path without its prefix. ``raw_path`` is the path before unquoting."""
    if not path.startswith(PREFIX):
        return DEFAULT_ACTOR, path
    name, slash, rest = raw_path.decode("latin-1")[len(PREFIX) :].partition("/")
    return (actor_named(unquote(name)), unquote(slash + rest)) if name else (DEFAULT_ACTOR, path)


def impersonated(actor: Actor, headers: Sequence[tuple[bytes, bytes]]) -> Actor:
    """Whom ``actor`` speaks for; 400 if it asks for more than a name."""
    for name, _ in headers:
        if name.startswith(IMPERSONATION):
            break
    else:
        return actor
    asked = {name: value for name, value in headers if name.startswith(IMPERSONATION)}
    more = sorted(name.decode("latin-1") for name in asked if name != b"impersonate-user")
    if more:
        raise BadRequestError(
            f"{', '.join(more)}: this server knows users by their names alone; "
            "impersonate a user without groups, uid or extra fields"
        )
    user = asked[b"impersonate-user"].decode("latin-1")
    if not user:
        raise BadRequestError("Impersonate-User must name a user")
    return actor_named(user)


class Attributes(Struct, frozen=True):
    """What somebody wants to reach: a resource of Kubernetes, or another ``path``."""

    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Authorizer(Protocol):
    """Asked before every request, and by reviews. Any thread may ask."""

    def allows(self, actor: Actor, verb: str, target: Attributes) -> bool:
        """Whether the actor may: ``verb`` is one of Kubernetes, or a method in small letters."""
        ...


class AllowAll:
    """Nobody is kept out of a simulated cluster."""

    reason = "every user may do everything in a simulated cluster"

    def allows(self, actor: Actor, verb: str, target: Attributes) -> bool:
        del actor, verb, target
        return True
