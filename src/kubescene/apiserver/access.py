"""Who is asking, and who may.

Over plain http the URL says who: ``/as/NAME/...`` acts as user ``NAME``. kubectl sends no
credentials without TLS, but it keeps the path of the server URL in its kubeconfig, so a prefix
there is an identity that every client can carry. Whoever may be anybody may also say so as
``kubectl --as`` does: ``Impersonate-User`` is honoured. Groups are not known here, so a request
that asks for some is refused rather than carried out as somebody else.

Who may do what an `Authorizer` says, to every request before it is carried out, and to
reviews: questions about access, which are objects that are created and never stored. What a running
scenario refuses, it refuses when the write comes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import unquote

from msgspec import Struct

from kubescene.actors import Actor
from kubescene.api.scheme import ResourceType
from kubescene.errors import BadRequestError
from kubescene.types import JsonObject

DEFAULT_ACTOR = Actor("user")
PREFIX = "/as/"
IMPERSONATION = b"impersonate-"
_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_EVERYTHING = ["*"]


def identify(path: str, raw_path: bytes) -> tuple[Actor, str]:
    """The actor, and the path without its prefix. ``raw_path`` is the path before unquoting."""
    if not path.startswith(PREFIX):
        return DEFAULT_ACTOR, path
    name, slash, rest = raw_path.decode("latin-1")[len(PREFIX) :].partition("/")
    return (Actor(unquote(name)), unquote(slash + rest)) if name else (DEFAULT_ACTOR, path)


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
    return Actor(user)


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


def is_review(resource_type: ResourceType) -> bool:
    return resource_type.gvk.group in _GROUPS and resource_type.verbs == ("create",)


def review(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    """The question with its answer."""
    return {**obj, "status": _ANSWERS[obj["kind"]](obj, actor, authorizer)}


def _allowed(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    user = spec.get("user")
    asking = Actor(user) if isinstance(user, str) and user else actor
    if authorizer.allows(asking, *_question(spec)):
        return {"allowed": True, "reason": getattr(authorizer, "reason", "")}
    return {"allowed": False, "reason": ""}


def _question(spec: JsonObject) -> tuple[str, Attributes]:
    """The verb and what it is asked of: a resource, or a path."""
    given = spec.get("resourceAttributes") or spec.get("nonResourceAttributes")
    given = given if isinstance(given, dict) else {}
    names = Attributes.__struct_fields__
    return str(given.get("verb") or ""), Attributes(
        **{name: str(given.get(name) or "") for name in names}
    )


def _rules(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    return {
        "resourceRules": [
            {"verbs": _EVERYTHING, "apiGroups": _EVERYTHING, "resources": _EVERYTHING}
        ],
        "nonResourceRules": [{"verbs": _EVERYTHING, "nonResourceURLs": _EVERYTHING}],
        "incomplete": False,
    }


def _user(actor: Actor) -> JsonObject:
    return {"username": actor.name, "groups": ["system:masters", "system:authenticated"]}


def _self(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    return {"userInfo": _user(actor)}


def _token(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    return {"user": {}, "error": "no token is known here: users are taken at their word"}


_ANSWERS: dict[str, Callable[[JsonObject, Actor, Authorizer], JsonObject]] = {
    "LocalSubjectAccessReview": _allowed,
    "SelfSubjectAccessReview": _allowed,
    "SelfSubjectReview": _self,
    "SelfSubjectRulesReview": _rules,
    "SubjectAccessReview": _allowed,
    "TokenReview": _token,
}
