"""PodDisruptionBudgets and PriorityClasses."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, STATUS, Path
from kubescene.api.validation.inner_forms import BUDGET_SPEC, inner
from kubescene.api.validation.label_selectors import check_label_selector
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    check_not_negative,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_subdomain, path_segment
from kubescene.api.validation.percentages import check_int_or_percent, check_percent_limit
from kubescene.api.validation.pods.containers import check_choice
from kubescene.api.validation.pods.pods import PREEMPTION_POLICIES
from kubescene.types import JsonObject

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_PREFIX = "system-"
_SYSTEM_CLASSES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def validate_budget(budget: JsonObject, errors: ErrorList) -> None:
    _check_budget_spec(budget.get("spec") or {}, errors)
    if not errors:
        validate_metadata(
            budget.get("metadata") or {},
            errors,
            namespaced=True,
            name_rule=path_segment,
            kube_finalizers=False,
        )


def validate_budget_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)
    _check_budget_spec(new.get("spec") or {}, errors)


def _check_budget_spec(spec: JsonObject, errors: ErrorList) -> None:
    bounds = ("minAvailable", "maxUnavailable")
    if all(spec.get(field) is not None for field in bounds):
        shown = inner(spec, BUDGET_SPEC)
        errors.invalid(SPEC, shown, "minAvailable and maxUnavailable cannot be both set")
    for field in bounds:
        if (bound := spec.get(field)) is not None:
            check_int_or_percent(bound, errors, SPEC.child(field))
            check_percent_limit(bound, errors, SPEC.child(field))
    check_label_selector(spec.get("selector"), errors, SPEC.child("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        at = SPEC.child("unhealthyPodEvictionPolicy")
        errors.not_supported(at, policy, _EVICTION_POLICIES)


def validate_budget_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    check_not_negative(new.get("status") or {}, counts, errors, STATUS)


def validate_priority_class(priority_class: JsonObject, errors: ErrorList) -> None:
    metadata, value = priority_class.get("metadata") or {}, priority_class.get("value", 0)
    validate_metadata(metadata, errors, namespaced=False, name_rule=dns_subdomain)
    name = metadata.get("name", "")
    if name.startswith(_SYSTEM_PREFIX):
        if problem := _system_class_problem(name, value, priority_class.get("globalDefault")):
            errors.forbidden(
                METADATA.child("name"),
                f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system "
                f"use only. error: {problem}",
            )
    elif value > _HIGHEST_USER_PRIORITY:
        errors.forbidden(
            Path("value"),
            f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}",
        )
    if (policy := priority_class.get("preemptionPolicy")) is not None:
        check_choice(policy, PREEMPTION_POLICIES, errors, Path("preemptionPolicy"))


def _system_class_problem(name: str, value: int, global_default: bool | None) -> str:
    known = _SYSTEM_CLASSES.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if global_default else ""


def validate_priority_class_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    if new.get("value", 0) != old.get("value", 0):
        errors.forbidden(Path("value"), "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.invalid(Path("preemptionPolicy"), new.get("preemptionPolicy"), IMMUTABLE)
