"""Nobody gives away by a Role or a binding what they do not have.

As in kube-apiserver: whoever may ``escalate`` a Role writes any rules into it, whoever may ``bind``
one binds it; all others need every permission that they grant.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from kubescene.actors import Actor
from kubescene.api.scheme import GroupResource
from kubescene.apiserver.access.authorizing import MASTERS, Attributes
from kubescene.apiserver.access.rbac import (
    ANY,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    EVERYTHING,
    ROLES,
    Rbac,
    Rule,
)
from kubescene.errors import ForbiddenError, NotFoundError
from kubescene.types import JsonObject

VERSION = "v1"


class EscalationCheck:
    """Looks at Roles and bindings that somebody wants to write."""

    def __init__(self, rbac: Rbac) -> None:
        self._rbac = rbac

    def check(self, actor: Actor, resource: GroupResource, obj: JsonObject, namespace: str) -> None:
        """403 if the object grants what the actor does not have; 404 for a Role that is not."""
        if MASTERS in actor.groups:
            return
        name = str((obj.get("metadata") or {}).get("name") or "")
        if resource in (ROLES, CLUSTER_ROLES):
            if not self._may(actor, "escalate", resource, namespace, name):
                self._confirm(actor, resource, name, namespace, _granted(obj))
        elif resource in (BINDINGS, CLUSTER_BINDINGS):
            self._check_binding(actor, resource, obj, namespace, name)

    def _check_binding(
        self, actor: Actor, resource: GroupResource, obj: JsonObject, namespace: str, name: str
    ) -> None:
        reference = obj.get("roleRef") or {}
        role, role_name = _role_of(reference), str(reference.get("name") or "")
        if role is None or self._may(actor, "bind", role, namespace, role_name):
            return
        place = namespace if role == ROLES else ""
        rules = self._rbac.rules_at(role, place, role_name)
        if rules is None:
            # Under the name of the Role it is the binding that is said to be missing.
            raise NotFoundError(
                f'{resource.resource}.{resource.group} "{role_name}" not found',
                name=role_name,
                group=resource.group,
                kind=resource.resource,
            )
        self._confirm(actor, resource, name, namespace, rules)

    def _may(
        self, actor: Actor, verb: str, resource: GroupResource, namespace: str, name: str
    ) -> bool:
        target = Attributes(
            resource.group, VERSION, resource.resource, namespace=namespace, name=name
        )
        return self._rbac.permission(actor, verb, target).is_given

    def _confirm(
        self,
        actor: Actor,
        resource: GroupResource,
        name: str,
        namespace: str,
        rules: Sequence[Rule],
    ) -> None:
        owned = [
            rule for grant in self._rbac.policy.grants_to(actor, namespace) for rule in grant.rules
        ]
        missing = [
            part
            for rule in rules
            for part in _parts(rule)
            if not any(covers(o, part) for o in owned)
        ]
        if not missing:
            return
        groups = "[" + " ".join(f'"{each}"' for each in actor.groups) + "]"
        told = "\n".join(sorted({_told(each) for each in _merged(missing)}))
        raise ForbiddenError(
            f'{resource.resource}.{resource.group} "{name}" is forbidden: user "{actor.name}" '
            f"(groups={groups}) is attempting to grant RBAC permissions not currently held:\n"
            f"{told}",
            name=name,
            group=resource.group,
            kind=resource.resource,
        )


def _granted(role: JsonObject) -> Sequence[Rule]:
    """What a Role grants; one that gathers the rules of others may come to grant anything."""
    rules = [Rule.of(each) for each in role.get("rules") or () if isinstance(each, dict)]
    return [*rules, *EVERYTHING] if role.get("aggregationRule") else rules


def _role_of(reference: JsonObject) -> GroupResource | None:
    return {"Role": ROLES, "ClusterRole": CLUSTER_ROLES}.get(str(reference.get("kind")))


def _parts(rule: Rule) -> Iterator[Rule]:
    """A rule as many that have one verb and reach one thing each."""
    for group, resource, verb, name in product(
        rule.groups, rule.resources, rule.verbs, rule.names or ("",)
    ):
        yield Rule((verb,), (group,), (resource,), (name,) if name else (), ())
    for path, verb in product(rule.paths, rule.verbs):
        yield Rule((verb,), (), (), (), (path,))


def covers(owned: Rule, part: Rule) -> bool:
    """Whether a rule that somebody has allows all that one part allows."""
    (verb,) = part.verbs
    if ANY not in owned.verbs and verb not in owned.verbs:
        return False
    if part.paths:
        return any(_covers_path(each, part.paths[0]) for each in owned.paths)
    return (
        (ANY in owned.groups or part.groups[0] in owned.groups)
        and any(_covers_resource(each, part.resources[0]) for each in owned.resources)
        and (not owned.names or (bool(part.names) and part.names[0] in owned.names))
    )


def _covers_path(owned: str, path: str) -> bool:
    return owned in (ANY, path) or (owned.endswith(ANY) and path.startswith(owned.rstrip(ANY)))


def _covers_resource(owned: str, resource: str) -> bool:
    subresource = resource.partition("/")[2]
    return owned in (ANY, resource) or (bool(subresource) and owned == f"{ANY}/{subresource}")


def _merged(parts: Iterable[Rule]) -> Iterable[Rule]:
    """Parts that differ in their verbs alone as one."""
    found: dict[Rule, list[str]] = {}
    for part in parts:
        if part.paths:
            found.setdefault(part, list(part.verbs))
        else:
            found.setdefault(part._replace(verbs=()), []).extend(part.verbs)
    return [part._replace(verbs=verbs) for part, verbs in found.items()]


def _told(rule: Rule) -> str:
    """As Go prints a rule of which members may be missing."""
    members = {
        "APIGroups": rule.groups,
        "Resources": rule.resources,
        "NonResourceURLs": rule.paths,
        "ResourceNames": rule.names,
        "Verbs": rule.verbs,
    }
    return "{" + ", ".join(f"{name}:{_list(said)}" for name, said in members.items() if said) + "}"


def _list(texts: Sequence[str]) -> str:
    return "[" + " ".join(f'"{each}"' for each in texts) + "]"
