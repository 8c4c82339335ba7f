"""Whether somebody may: the question, who answers it, and what a refusal says."""

from typing import NamedTuple, Protocol

from msgspec import Struct

from kubescene.actors import Actor
from kubescene.errors import ForbiddenError

MASTERS = "system:masters"
"""The group that may do everything, whatever Roles say."""
AUTHENTICATED = "system:authenticated"


class Attributes(Struct, frozen=True):
    """What somebody wants to reach: a resource of Kubernetes, or another ``path``."""

    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined(self) -> str:
        """The resource with its subresource, as rules name them."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class Permission(NamedTuple):
    """Whether somebody may, and what says so."""

    is_given: bool
    reason: str = ""


class Authorizer(Protocol):
    """Asked before every request, and by reviews. Any thread may ask."""

    def permission(self, actor: Actor, verb: str, target: Attributes) -> Permission:
        """Whether the actor may: ``verb`` is one of Kubernetes, or a method in small letters."""
        ...


class AllowAll:
    """Nobody is kept out of a simulated cluster."""

    def permission(self, actor: Actor, verb: str, target: Attributes) -> Permission:
        del actor, verb, target
        return Permission(True, "every user may do everything in a simulated cluster")


def forbidden(actor: Actor, verb: str, target: Attributes, reason: str = "") -> ForbiddenError:
    """The refusal, in kube-apiserver's words."""
    user = _quoted(actor.name)
    more = f": {reason}" if reason else ""
    if target.path:
        path = _quoted(target.path)
        return ForbiddenError(f"forbidden: User {user} cannot {verb} path {path}{more}")
    named = f"{target.resource}.{target.group}" if target.group else target.resource
    if target.name:
        named = f"{named} {_quoted(target.name)}"
    where = (
        f"in the namespace {_quoted(target.namespace)}"
        if target.namespace
        else "at the cluster scope"
    )
    return ForbiddenError(
        f"{named} is forbidden: User {user} cannot {verb} resource {_quoted(target.combined)} in "
        f"API group {_quoted(target.group)} {where}{more}",
        name=target.name,
        group=target.group,
        kind=target.resource,
    )


def _quoted(text: str) -> str:
    return f'"{text}"'
