"""Questions about access: objects that are created, answered, and never stored."""

from collections.abc import Callable, Sequence

from kubescene.actors import Actor
from kubescene.api.scheme import ResourceType
from kubescene.apiserver.access.authorizing import (
    AUTHENTICATED,
    MASTERS,
    AllowAll,
    Attributes,
    Authorizer,
)
from kubescene.apiserver.access.rbac import EVERYTHING, Rbac
from kubescene.apiserver.access.tokens import TokenFile
from kubescene.types import JsonObject

_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


def is_review(resource_type: ResourceType) -> bool:
    return resource_type.gvk.group in _GROUPS and resource_type.verbs == ("create",)


def review(
    obj: JsonObject, actor: Actor, authorizer: Authorizer, tokens: TokenFile | None = None
) -> JsonObject:
    """The question with its answer; ``tokens``: who is known by one."""
    if obj["kind"] == "TokenReview":
        status = _token(obj, tokens)
    elif obj["kind"] == "SelfSubjectReview":
        status = _self(actor, authorizer, tokens)
    else:
        status = _ANSWERS[obj["kind"]](obj, actor, authorizer)
    return {**obj, "status": status}


def _allowed(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    spec = _spec(obj)
    is_given, reason = authorizer.permission(_asking(obj, actor), *_question(spec))
    return {"allowed": is_given, **({"reason": reason} if reason else {})}


def _asking(obj: JsonObject, actor: Actor) -> Actor:
    """Whose access is asked about: whoever asks, or whom the review names."""
    spec = _spec(obj)
    user, groups = spec.get("user"), spec.get("groups")
    if obj["kind"] == "SelfSubjectAccessReview" or not (user or groups):
        return actor
    return Actor(str(user or ""), groups=tuple(str(each) for each in groups or ()))


def _spec(obj: JsonObject) -> JsonObject:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


def _question(spec: JsonObject) -> tuple[str, Attributes]:
    """The verb and what it is asked of: a resource, or a path."""
    given = spec.get("resourceAttributes") or spec.get("nonResourceAttributes")
    given = given if isinstance(given, dict) else {}
    names = Attributes.__struct_fields__
    return str(given.get("verb") or ""), Attributes(
        **{name: str(given.get(name) or "") for name in names}
    )


def _rules(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    if isinstance(authorizer, Rbac):
        rules = authorizer.rules_of(actor, str(_spec(obj).get("namespace") or ""))
    else:
        rules = [each.written() for each in EVERYTHING]
    paths = [each for each in rules if "nonResourceURLs" in each]
    resources = [each for each in rules if "nonResourceURLs" not in each]
    return {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}


def _self(actor: Actor, authorizer: Authorizer, tokens: TokenFile | None) -> JsonObject:
    everybody = (MASTERS, AUTHENTICATED)
    groups = everybody if tokens is None and isinstance(authorizer, AllowAll) else actor.groups
    return {"userInfo": _user(actor.name, groups)}


def _token(obj: JsonObject, tokens: TokenFile | None) -> JsonObject:
    if tokens is None:
        return {"user": {}, "error": "no token is known here: users are taken at their word"}
    owner = tokens.actor_of(str(_spec(obj).get("token") or "").encode())
    if owner is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user(owner.name, owner.groups)}


def _user(name: str, groups: Sequence[str]) -> JsonObject:
    return {"username": name, "groups": list(groups)}


_ANSWERS: dict[str, Callable[[JsonObject, Actor, Authorizer], JsonObject]] = {
    "LocalSubjectAccessReview": _allowed,
    "SelfSubjectAccessReview": _allowed,
    "SelfSubjectRulesReview": _rules,
    "SubjectAccessReview": _allowed,
}
