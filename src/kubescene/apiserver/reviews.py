"""Questions about access, which are objects that are created and never stored.

Nobody is kept out of a simulated cluster: whoever asks is told that everything is allowed. What a
running scenario refuses, it refuses when the write comes.
"""

from collections.abc import Callable

from kubescene.actors import Actor
from kubescene.api.scheme import ResourceType
from kubescene.types import JsonObject

_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_EVERYTHING = ["*"]


def is_review(resource_type: ResourceType) -> bool:
    return resource_type.gvk.group in _GROUPS and resource_type.verbs == ("create",)


def review(obj: JsonObject, actor: Actor) -> JsonObject:
    """The question with its answer."""
    return {**obj, "status": _ANSWERS[obj["kind"]](obj, actor)}


def _allowed(obj: JsonObject, actor: Actor) -> JsonObject:
    return {"allowed": True, "reason": "every user may do everything in a simulated cluster"}


def _rules(obj: JsonObject, actor: Actor) -> JsonObject:
    return {
        "resourceRules": [
            {"verbs": _EVERYTHING, "apiGroups": _EVERYTHING, "resources": _EVERYTHING}
        ],
        "nonResourceRules": [{"verbs": _EVERYTHING, "nonResourceURLs": _EVERYTHING}],
        "incomplete": False,
    }


def _user(actor: Actor) -> JsonObject:
    return {"username": actor.name, "groups": ["system:masters", "system:authenticated"]}


def _self(obj: JsonObject, actor: Actor) -> JsonObject:
    return {"userInfo": _user(actor)}


def _token(obj: JsonObject, actor: Actor) -> JsonObject:
    return {"authenticated": True, "user": _user(actor)}


_ANSWERS: dict[str, Callable[[JsonObject, Actor], JsonObject]] = {
    "LocalSubjectAccessReview": _allowed,
    "SelfSubjectAccessReview": _allowed,
    "SelfSubjectReview": _self,
    "SelfSubjectRulesReview": _rules,
    "SubjectAccessReview": _allowed,
    "TokenReview": _token,
}
