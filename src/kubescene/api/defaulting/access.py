"""Defaults of role bindings and of API priority and fairness."""

from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    within,
    within_each,
)
from kubescene.api.scheme import GroupVersionKind
from kubescene.types import JsonObject

_RBAC = "rbac.authorization.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"
_IN_RBAC = {"apiGroup": _RBAC}
_EXEMPT = {"nominalConcurrencyShares": 0, "lendablePercent": 0}
_LIMITED = {"nominalConcurrencyShares": 30, "lendablePercent": 0}
_QUEUING = {"handSize": 8, "queues": 64, "queueLengthLimit": 50}


def default_role_binding(binding: JsonObject) -> JsonObject:
    """Roles, users and groups are names in the RBAC group; service accounts are core."""
    binding = into(binding, "roleRef", lambda ref: filled(ref, _IN_RBAC))
    return within_each(binding, "subjects", _subject)


def default_flow_schema(schema: JsonObject) -> JsonObject:
    """A schema in the middle of the matching order."""
    return into(schema, "spec", lambda spec: filled(spec, {"matchingPrecedence": 1000}))


def default_priority_level(level: JsonObject) -> JsonObject:
    """Shares and queues of a priority level."""
    level = at(level, ("spec", "exempt"), lambda it: filled_unset(it, _EXEMPT))
    return at(level, ("spec", "limited"), _limited)


def _subject(subject: JsonObject) -> JsonObject:
    return filled(subject, _IN_RBAC) if subject.get("kind") in {"User", "Group"} else subject


def _limited(limited: JsonObject) -> JsonObject:
    limited = filled_unset(limited, _LIMITED)
    return within(
        limited, "limitResponse", lambda it: within(it, "queuing", lambda q: filled(q, _QUEUING))
    )


DEFAULTERS: dict[GroupVersionKind, Defaulter] = {
    GroupVersionKind(_FLOW, "v1", "FlowSchema"): default_flow_schema,
    GroupVersionKind(_FLOW, "v1", "PriorityLevelConfiguration"): default_priority_level,
    GroupVersionKind(_RBAC, "v1", "ClusterRoleBinding"): default_role_binding,
    GroupVersionKind(_RBAC, "v1", "RoleBinding"): default_role_binding,
}
