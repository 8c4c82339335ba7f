"""Which requests a rule is about: resources, operations, names, namespaces and labels.

A request is about one version of a resource. With ``matchPolicy: Equivalent`` a rule for another
version matches as well, and whoever is asked sees the object in that one.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubescene.api import conversion
from kubescene.api.scheme import GroupVersionKind, ResourceType, Scheme
from kubescene.api.selectors import from_label_selector
from kubescene.errors import NotFoundError
from kubescene.registry.admission.chain import AdmissionRequest
from kubescene.registry.admission.plugins.namespace_lifecycle import NAMESPACES
from kubescene.registry.custom_resources import CustomResources
from kubescene.store import Store
from kubescene.types import JsonObject

_NO_LABELS: Mapping[str, str] = {}


class Matched(Struct, frozen=True):
    """In which version somebody is asked about a request."""

    resource_type: ResourceType
    kind: GroupVersionKind


class Surroundings(Struct, frozen=True):
    """Where a request is looked at: what is stored, and which kinds there are."""

    store: Store
    scheme: Scheme
    custom: CustomResources

    def namespace(self, name: str) -> JsonObject | None:
        record = self.store.get(NAMESPACES, "", name) if name else None
        return None if record is None else self.store.decoded(record)

    def equivalents(self, of: ResourceType) -> list[ResourceType]:
        """All served versions of a resource, itself among them."""
        return [each for each in self.scheme if each.group_resource == of.group_resource]

    def shown(self, obj: JsonObject | None, kind: GroupVersionKind) -> JsonObject | None:
        """An object in another version of its kind."""
        if obj is None:
            return None
        own = GroupVersionKind.of(obj.get("apiVersion", ""), obj.get("kind", ""))
        if own == kind:
            return obj
        if self.custom.of(kind) is not None:
            return self.custom.converted(obj, kind)
        return conversion.convert(obj, own, kind)


class AdmissionSubject(Struct, frozen=True):
    """What a request is about, as rules see it. The namespace of a namespace is itself."""

    served: ResourceType
    kind: GroupVersionKind
    subresource: str
    operation: str
    namespace: str
    name: str
    obj: JsonObject | None
    old: JsonObject | None

    @classmethod
    def of(cls, request: AdmissionRequest) -> "AdmissionSubject":
        served = request.served
        kind = served.gvk
        if request.subresource:
            kind = served.subresource(request.subresource).gvk
        is_namespace = served.group_resource == NAMESPACES
        return cls(
            served,
            kind,
            request.subresource,
            request.verb.upper(),
            request.name if is_namespace else request.namespace,
            request.name,
            None if request.verb == "delete" else request.obj,
            request.old,
        )

    @property
    def is_of_namespace(self) -> bool:
        return self.served.group_resource == NAMESPACES


def match(
    constraints: JsonObject, subject: AdmissionSubject, where: Surroundings
) -> Matched | None:
    """In which version the constraints of a policy or binding are about a request; None if not."""
    if not is_in_namespace(constraints.get("namespaceSelector"), subject, where):
        return None
    if not has_labels(constraints.get("objectSelector"), subject):
        return None
    is_exact = constraints.get("matchPolicy") == "Exact"
    if match_rules(constraints.get("excludeResourceRules") or (), subject, where, is_exact):
        return None
    rules = constraints.get("resourceRules") or ()
    if not rules:
        return Matched(subject.served, subject.kind)
    return match_rules(rules, subject, where, is_exact)


def match_rules(
    rules: Sequence[JsonObject], subject: AdmissionSubject, where: Surroundings, is_exact: bool
) -> Matched | None:
    """The version in which a rule is about a request: that of the request before all others."""
    served = subject.served
    if any(_is_about(rule, subject, served) for rule in rules):
        return Matched(served, subject.kind)
    if is_exact:
        return None
    others = [each for each in where.equivalents(served) if each.gvk != served.gvk]
    for rule in rules:
        for other in others:
            if _is_about(rule, subject, other):
                is_own = subject.kind == served.gvk
                return Matched(other, other.gvk if is_own else subject.kind)
    return None


def _is_about(rule: JsonObject, subject: AdmissionSubject, resource_type: ResourceType) -> bool:
    names = rule.get("resourceNames")
    gvk = resource_type.gvk
    return (
        _is_in_scope(rule.get("scope") or "*", subject)
        and _has(rule.get("operations"), subject.operation)
        and _has(rule.get("apiGroups"), gvk.group)
        and _has(rule.get("apiVersions"), gvk.version)
        and _names(rule.get("resources") or (), resource_type.plural, subject.subresource)
        and (not names or subject.name in names)
    )


def _is_in_scope(scope: str, subject: AdmissionSubject) -> bool:
    is_namespaced = bool(subject.namespace) and not subject.is_of_namespace
    return scope == "*" or (scope == "Namespaced") is is_namespaced


def _has(items: Iterable[str] | None, wanted: str) -> bool:
    return any(item in ("*", wanted) for item in items or ())


def _names(resources: Iterable[str], plural: str, subresource: str) -> bool:
    for resource in resources:
        name, _, below = resource.partition("/")
        if name in ("*", plural) and below in ("*", subresource):
            return True
    return False


def is_in_namespace(
    selector: JsonObject | None, subject: AdmissionSubject, where: Surroundings
) -> bool:
    """Whether a selector of namespaces lets a request through; what is in none passes."""
    if not subject.namespace and not subject.is_of_namespace:
        return True
    wanted = from_label_selector(selector or {})
    if wanted.is_everything:
        return True
    if subject.is_of_namespace and subject.obj is not None and not subject.subresource:
        return wanted.matches(labels_of(subject.obj))
    namespace = where.namespace(subject.namespace)
    if namespace is None:
        message = f'namespaces "{subject.namespace}" not found'
        raise NotFoundError(message, name=subject.namespace, kind="namespaces")
    return wanted.matches(labels_of(namespace))


def has_labels(selector: JsonObject | None, subject: AdmissionSubject) -> bool:
    """Whether a selector of objects takes the object, as it is or as it was."""
    wanted = from_label_selector(selector or {})
    if wanted.is_everything:
        return True
    seen = (each for each in (subject.obj, subject.old) if each is not None)
    return any(wanted.matches(labels_of(each)) for each in seen)


def labels_of(obj: JsonObject) -> Mapping[str, str]:
    labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or _NO_LABELS
    return labels
