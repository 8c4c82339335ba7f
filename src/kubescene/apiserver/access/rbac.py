"""Who may do what by the Roles, ClusterRoles and bindings that a world holds.

As kube-apiserver's RBAC authorizer: rules only add, a binding of a cluster counts everywhere, one
of a namespace there alone, and a Role that is not there gives nothing. What the bindings come to is
worked out anew after one of these objects has changed.

A world begins with those of kube-apiserver v1.36 (`data/default_roles.json`, as
`tools/rbac/build.py` read them); one that is there already stays as it is.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import orjson

from kubescene.actors import ENGINE, Actor
from kubescene.api.scheme import GroupResource
from kubescene.apiserver.access.authorizing import MASTERS, Attributes, Permission
from kubescene.registry import Registry
from kubescene.store import Store
from kubescene.types import JsonObject

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS = (
    GroupResource(GROUP, plural)
    for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
)
OBJECTS = (ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS)
EVERYWHERE = ""
ANY = "*"
_DATA = Path(__file__).parent / "data" / "default_roles.json"
MEMBERS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


class Rule(NamedTuple):
    """A rule of a Role."""

    verbs: Sequence[str]
    groups: Sequence[str]
    resources: Sequence[str]
    names: Sequence[str]
    paths: Sequence[str]

    @classmethod
    def of(cls, rule: JsonObject) -> "Rule":
        return cls(*(tuple(rule.get(each) or ()) for each in MEMBERS))

    def written(self) -> JsonObject:
        """As a Role has it."""
        return {name: list(said) for name, said in zip(MEMBERS, self, strict=True) if said}

    def allows(self, verb: str, target: Attributes) -> bool:
        if ANY not in self.verbs and verb not in self.verbs:
            return False
        if target.path:
            return any(_reaches(each, target.path) for each in self.paths)
        return (
            (ANY in self.groups or target.group in self.groups)
            and any(_covers(each, target) for each in self.resources)
            and (not self.names or target.name in self.names)
        )


def _reaches(pattern: str, path: str) -> bool:
    if pattern in (ANY, path):
        return True
    return pattern.endswith(ANY) and path.startswith(pattern.rstrip(ANY))


def _covers(pattern: str, target: Attributes) -> bool:
    if pattern in (ANY, target.combined):
        return True
    return bool(target.subresource) and pattern == f"{ANY}/{target.subresource}"


EVERYTHING = (Rule((ANY,), (ANY,), (ANY,), (), ()), Rule((ANY,), (), (), (), (ANY,)))


class Grant(NamedTuple):
    """The rules that a binding gives to a subject, and how it is told that it does."""

    rules: Sequence[Rule]
    told: str
    fault: str = ""
    """What is wrong with the binding: its Role is not there."""


class RolePolicy(NamedTuple):
    """What all bindings come to: grants by namespace (or `EVERYWHERE`) and subject."""

    revision: int
    grants: Mapping[tuple[str, str], Sequence[Grant]]

    def grants_to(self, actor: Actor, namespace: str) -> Iterator[Grant]:
        """Those that count for somebody in a namespace, or for what has none."""
        for place in (EVERYWHERE, namespace) if namespace else (EVERYWHERE,):
            yield from self.grants.get((place, _user(actor.name)), ())
            for group in actor.groups:
                yield from self.grants.get((place, _group(group)), ())


class Rbac:
    """An authorizer over the records of a store, which any thread may read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._policy = RolePolicy(-1, {})

    def permission(self, actor: Actor, verb: str, target: Attributes) -> Permission:
        if MASTERS in actor.groups:
            return Permission(True)
        faults: list[str] = []
        for grant in self.policy.grants_to(actor, target.namespace):
            if any(rule.allows(verb, target) for rule in grant.rules):
                return Permission(True, f"RBAC: allowed by {grant.told}")
            if grant.fault and grant.fault not in faults:
                faults.append(grant.fault)
        told = f"[{', '.join(faults)}]" if len(faults) > 1 else "".join(faults)
        return Permission(False, f"RBAC: {told}" if faults else "")

    def rules_of(self, actor: Actor, namespace: str) -> list[JsonObject]:
        """The rules that count for somebody in a namespace, as Roles have them."""
        grants = [] if MASTERS not in actor.groups else [Grant(EVERYTHING, MASTERS)]
        grants += self.policy.grants_to(actor, namespace)
        return [rule.written() for grant in grants for rule in grant.rules]

    @property
    def policy(self) -> RolePolicy:
        """What counts now."""
        newest = max(self._store.newest(each) for each in OBJECTS)
        if self._policy.revision != newest:
            self._policy = RolePolicy(newest, self._worked_out())
        return self._policy

    def _worked_out(self) -> Mapping[tuple[str, str], Sequence[Grant]]:
        grants: dict[tuple[str, str], list[Grant]] = defaultdict(list)
        for resource in (CLUSTER_BINDINGS, BINDINGS):
            for record in self._store.list(resource):
                binding = record.decode()
                role = binding["roleRef"]
                place = (ROLES, record.namespace) if role["kind"] == "Role" else (CLUSTER_ROLES, "")
                rules = self.rules_at(*place, role["name"])
                kind = f"{role['kind'].lower()}.{GROUP}"
                fault = f'{kind} "{role["name"]}" not found' if rules is None else ""
                for subject in _subjects(binding, record.namespace):
                    grant = Grant(rules or (), _told(binding, subject), fault)
                    grants[record.namespace, subject.key].append(grant)
        return grants

    def rules_at(self, resource: GroupResource, namespace: str, name: str) -> list[Rule] | None:
        """The rules of a Role; None if there is none."""
        record = self._store.get(resource, namespace, name)
        if record is None:
            return None
        return [Rule.of(each) for each in record.decode().get("rules") or ()]


class BoundSubject(NamedTuple):
    """Whom a binding names, by the key of its grants and as reasons tell it."""

    key: str
    told: str


def _subjects(binding: JsonObject, namespace: str) -> Iterator[BoundSubject]:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User":
            yield BoundSubject(_user(name), f'User "{name}"')
        elif kind == "Group":
            yield BoundSubject(_group(name), f'Group "{name}"')
        elif kind == "ServiceAccount" and (place := subject.get("namespace") or namespace):
            key = _user(f"system:serviceaccount:{place}:{name}")
            yield BoundSubject(key, f'ServiceAccount "{name}/{place}"')


def _told(binding: JsonObject, subject: BoundSubject) -> str:
    metadata, role = binding["metadata"], binding["roleRef"]
    name = metadata["name"]
    if place := metadata.get("namespace"):
        name = f"{name}/{place}"
    return f'{binding["kind"]} "{name}" of {role["kind"]} "{role["name"]}" to {subject.told}'


def _user(name: str) -> str:
    return f"User {name}"


def _group(name: str) -> str:
    return f"Group {name}"


@cache
def default_roles() -> tuple[JsonObject, ...]:
    """Roles before the bindings of them."""
    return tuple(orjson.loads(_DATA.read_bytes()))


def furnish_roles(registry: Registry) -> None:
    """Make those that are missing. On the thread that writes, before others do."""
    for obj in default_roles():
        metadata = obj["metadata"]
        resource = registry.scheme.of_kind(obj["apiVersion"], obj["kind"]).group_resource
        if registry.store.get(resource, metadata.get("namespace", ""), metadata["name"]) is None:
            registry.create(ENGINE, obj)
