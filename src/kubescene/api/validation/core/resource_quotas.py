"""ResourceQuotas: what is counted, and which of the objects."""

from kubescene.api.quantity import parse
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, STATUS, Path
from kubescene.api.validation.inner_forms import SCOPE_SELECTOR, inner
from kubescene.api.validation.label_selectors import NOT_AN_OPERATOR
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_subdomain
from kubescene.api.validation.resources import (
    check_quantity,
    check_resource_name,
    is_quota_huge_page,
)
from kubescene.types import JsonObject

_COMPUTE = frozenset(
    {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
_QUOTA_RESOURCES = _COMPUTE | {
    "ephemeral-storage",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
}
_POD_RESOURCES = _COMPUTE | {"pods"}
_COUNTED = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_VALUED_SCOPES = frozenset({"PriorityClass", "VolumeAttributesClass"})
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_EXISTS_ONLY = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def validate_quota(quota: JsonObject, errors: ErrorList) -> None:
    validate_metadata(quota.get("metadata") or {}, errors, namespaced=True, name_rule=dns_subdomain)
    _check_spec(quota.get("spec") or {}, errors)
    _check_status(quota.get("status") or {}, errors)


def validate_quota_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Scopes stay."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _check_spec(spec, errors)
    if set(spec.get("scopes") or ()) != set(before.get("scopes") or ()):
        errors.invalid(SPEC.child("scopes"), spec.get("scopes"), IMMUTABLE)


def validate_quota_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    if not new["metadata"].get("resourceVersion"):
        errors.required(Path("resourceVersion"))
    _check_status(new.get("status") or {}, errors)


def _check_status(status: JsonObject, errors: ErrorList) -> None:
    for field in ("hard", "used"):
        _check_hard(status.get(field) or {}, errors, STATUS.child(field))


def _is_counted(name: str) -> bool:
    return name in _QUOTA_RESOURCES or is_quota_huge_page(name)


def _check_hard(hard: JsonObject, errors: ErrorList, path: Path) -> None:
    for name, amount in hard.items():
        at = path.key(name)
        check_resource_name(name, errors, at)
        if "/" not in name and not _is_counted(name):
            errors.invalid(at, name, "must be a standard resource for quota")
        check_quantity(name, parse(amount), errors, at)


def _check_spec(spec: JsonObject, errors: ErrorList) -> None:
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    _check_hard(hard, errors, SPEC.child("hard"))
    at = SPEC.child("scopes")
    for scope in scopes:
        if scope not in _COUNTED:
            errors.invalid(at, scopes, "unsupported scope")
        for _ in range(_applied_wrongly(scope, hard)):
            errors.invalid(at, scopes, "unsupported scope applied to resource")
    _check_conflicts(scopes, scopes, errors, at)
    if (selector := spec.get("scopeSelector")) is not None:
        _check_selector(selector, spec, errors, SPEC.child("scopeSelector"))


def _applied_wrongly(scope: str, hard: JsonObject) -> int:
    """To how many resources a scope does not apply; each is a cause of its own."""
    counted = _COUNTED.get(scope)
    if counted is None:
        return 0
    return sum(_is_counted(name) and name not in counted for name in hard)


def _check_conflicts(
    scopes: list[str], shown: list[str] | None, errors: ErrorList, path: Path
) -> None:
    for first, second in _CONFLICTS:
        if first in scopes and second in scopes:
            errors.invalid(path, shown, "conflicting scopes")


def _check_selector(selector: JsonObject, spec: JsonObject, errors: ErrorList, path: Path) -> None:
    at = path.child("matchExpressions")
    requirements = selector.get("matchExpressions") or []
    for requirement in requirements:
        scope = requirement.get("scopeName", "")
        if scope not in _COUNTED:
            errors.invalid(at.child("scopeName"), scope, "unsupported scope")
        for _ in range(_applied_wrongly(scope, spec.get("hard") or {})):
            shown = inner(selector, SCOPE_SELECTOR)
            errors.invalid(at, shown, "unsupported scope applied to resource")
        _check_requirement(requirement, scope, errors, at)
    named = [requirement.get("scopeName", "") for requirement in requirements]
    _check_conflicts(named, spec.get("scopes"), errors, at)


def _check_requirement(requirement: JsonObject, scope: str, errors: ErrorList, path: Path) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if scope in _COUNTED and scope not in _VALUED_SCOPES and operator != "Exists":
        errors.invalid(path.child("operator"), operator, _EXISTS_ONLY)
    if operator in ("In", "NotIn"):
        if not values:
            detail = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            errors.required(path.child("values"), detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            errors.invalid(path.child("values"), values, detail)
    else:
        errors.invalid(path.child("operator"), operator, NOT_AN_OPERATOR)
