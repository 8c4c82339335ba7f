"""Who is asking. Over plain http the URL says it: ``/as/NAME/...`` acts as user ``NAME``.

kubectl sends no credentials without TLS, but it keeps the path of the server URL in its
kubeconfig, so a prefix there is an identity that every client can carry.
"""

from functools import lru_cache
from urllib.parse import unquote

from kubescene.actors import Actor, Role

DEFAULT_ACTOR = Actor("user", Role.USER)
PREFIX = "/as/"


@lru_cache(maxsize=1024)
def actor_named(name: str) -> Actor:
    return Actor(name, Role.USER)


def identify(path: str, raw_path: bytes) -> tuple[Actor, str]:
    """The actor, and the path without its prefix. ``raw_path`` is the path before unquoting."""
    if not path.startswith(PREFIX):
        return DEFAULT_ACTOR, path
    name, slash, rest = raw_path.decode("latin-1")[len(PREFIX) :].partition("/")
    return (actor_named(unquote(name)), unquote(slash + rest)) if name else (DEFAULT_ACTOR, path)
