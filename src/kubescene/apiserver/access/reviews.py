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
from kubescene.apiserver.access.credentials import Credentials
from kubescene.apiserver.access.rbac import EVERYTHING, Rbac
from kubescene.apiserver.access.service_accounts import UNKNOWN
from kubescene.types import JsonObject

_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


def is_review(resource_type: ResourceType) -> bool:
    return resource_type.gvk.group in _GROUPS and resource_type.verbs == ("create",)


def review(
    obj: JsonObject, actor: Actor, authorizer: Authorizer, credentials: Credentials
) -> JsonObject:
    """The question with its answer; ``credentials``: who is known by a token."""
    if obj["kind"] == "TokenReview":
        status = _token(obj, credentials)
    elif obj["kind"] == "SelfSubjectReview":
        status = _self(actor, authorizer, credentials)
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


def _self(actor: Actor, authorizer: Authorizer, credentials: Credentials) -> JsonObject:
    everybody = (MASTERS, AUTHENTICATED)
    is_open = credentials.file is None and isinstance(authorizer, AllowAll)
    return {"userInfo": _user(actor, everybody if is_open else actor.groups)}


def _token(obj: JsonObject, credentials: Credentials) -> JsonObject:
    spec = _spec(obj)
    audiences = tuple(str(each) for each in spec.get("audiences") or ())
    found = credentials.bearer(str(spec.get("token") or "").encode(), audiences)
    if found.actor is None:
        if credentials.file is None and found is UNKNOWN:
            why = "no token but those of ServiceAccounts is known here: "
            return {"user": {}, "error": f"{why}users are taken at their word"}
        return {"user": {}, "error": found.error}
    meant = {"audiences": [*found.audiences]} if found.audiences else {}
    return {"authenticated": True, "user": _user(found.actor, found.actor.groups), **meant}


def _user(actor: Actor, groups: Sequence[str]) -> JsonObject:
    known: JsonObject = {"username": actor.name, "groups": list(groups)}
    if actor.uid:
        known["uid"] = actor.uid
    if actor.extra:
        known["extra"] = {name: [*values] for name, values in actor.extra}
    return known


_ANSWERS: dict[str, Callable[[JsonObject, Actor, Authorizer], JsonObject]] = {
    "LocalSubjectAccessReview": _allowed,
    "SelfSubjectAccessReview": _allowed,
    "SelfSubjectRulesReview": _rules,
    "SubjectAccessReview": _allowed,
}
