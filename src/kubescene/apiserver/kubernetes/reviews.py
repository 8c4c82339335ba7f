"""Questions about access, which are objects that are created and never stored.

They are answered by whoever is asked before every request. What a running scenario refuses, it
refuses when the write comes.
"""

from collections.abc import Callable

from kubescene.actors import Actor
from kubescene.api.scheme import ResourceType
from kubescene.apiserver.access import Attributes, Authorizer, actor_named
from kubescene.types import JsonObject

_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_EVERYTHING = ["*"]


def is_review(resource_type: ResourceType) -> bool:
    return resource_type.gvk.group in _GROUPS and resource_type.verbs == ("create",)


def review(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    """The question with its answer."""
    return {**obj, "status": _ANSWERS[obj["kind"]](obj, actor, authorizer)}


def _allowed(obj: JsonObject, actor: Actor, authorizer: Authorizer) -> JsonObject:
    spec = obj.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    user = spec.get("user")
    asking = actor_named(user) if isinstance(user, str) and user else actor
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
