"""Who is asking.

Over https a token says who (`tokens`). Over plain http the URL does: ``/as/NAME/...`` acts as user
``NAME``. kubectl sends no credentials without TLS, but it keeps the path of the server URL in its
kubeconfig, so a prefix there is an identity that every client can carry. Without a prefix one is
``user``, who is an administrator.

Whoever may speak for others also says so as ``kubectl --as`` and ``--as-group`` do. Where everybody
may do everything groups mean nothing, so a request that asks for some is refused there rather than
carried out as somebody else.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

from kubescene.actors import Actor
from kubescene.apiserver.access.authorizing import (
    AUTHENTICATED,
    MASTERS,
    AllowAll,
    Attributes,
    Authorizer,
    forbidden,
)
from kubescene.errors import BadRequestError

DEFAULT_ACTOR = Actor("user", groups=(MASTERS, AUTHENTICATED))
PREFIX = "/as/"
IMPERSONATION = b"impersonate-"
USER, GROUP = "impersonate-user", "impersonate-group"
SERVICE_ACCOUNT = "system:serviceaccount:"


Authenticate: TypeAlias = Callable[[Mapping[str, Any]], tuple[Actor, str]]
"""Says of the scope of a request who asks, and for which path; 401 for somebody unknown."""


def by_prefix(scope: Mapping[str, Any]) -> tuple[Actor, str]:
    """The actor that the URL names, and the path without its prefix."""
    path, raw_path = scope["path"], scope["raw_path"]
    if not path.startswith(PREFIX):
        return DEFAULT_ACTOR, path
    name, slash, rest = raw_path.decode("latin-1")[len(PREFIX) :].partition("/")
    return (user_named(unquote(name)), unquote(slash + rest)) if name else (DEFAULT_ACTOR, path)


def user_named(name: str, groups: Sequence[str] = ()) -> Actor:
    """A user who is known, in these groups; without any, in those that the name says."""
    account = name.removeprefix(SERVICE_ACCOUNT) if name.startswith(SERVICE_ACCOUNT) else ""
    if account.count(":") == 1 and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.partition(':')[0]}")
    return Actor(name, groups=tuple(dict.fromkeys((*groups, AUTHENTICATED))))


def impersonated(
    actor: Actor, headers: Sequence[tuple[bytes, bytes]], authorizer: Authorizer
) -> Actor:
    """Whom ``actor`` speaks for. 400 if it asks for what is not known here, 403 if it may not."""
    for name, _ in headers:
        if name.startswith(IMPERSONATION):
            break
    else:
        return actor
    asked: dict[str, list[str]] = defaultdict(list)
    for name, value in headers:
        if name.startswith(IMPERSONATION):
            asked[name.decode("latin-1")].append(value.decode("latin-1"))
    is_open = isinstance(authorizer, AllowAll)
    more = sorted(asked.keys() - ({USER} if is_open else {USER, GROUP}))
    if more:
        known = "their names alone" if is_open else "their names and groups"
        unknown = "groups, uid or extra fields" if is_open else "uid or extra fields"
        raise BadRequestError(
            f"{', '.join(more)}: this server knows users by {known}; "
            f"impersonate a user without {unknown}"
        )
    user, groups = (asked.get(USER) or [""])[0], asked.get(GROUP, [])
    if not user:
        raise BadRequestError("Impersonate-User must name a user")
    for target in _wanted(user, groups):
        permission = authorizer.permission(actor, "impersonate", target)
        if not permission.is_given:
            raise forbidden(actor, "impersonate", target, permission.reason)
    return user_named(user, groups)


def _wanted(user: str, groups: Sequence[str]) -> list[Attributes]:
    """What one has to be allowed to impersonate."""
    account = user.removeprefix(SERVICE_ACCOUNT) if user.startswith(SERVICE_ACCOUNT) else ""
    namespace, _, name = account.partition(":")
    if namespace and name and ":" not in name:
        first = Attributes("", "v1", "serviceaccounts", "", namespace, name)
    else:
        first = Attributes("", "v1", "users", name=user)
    return [first, *(Attributes("", "v1", "groups", name=each) for each in groups)]
