"""LimitRanges: bounds and defaults that must not contradict each other."""

from collections.abc import Iterator
from typing import TypeAlias

from kubescene.api.quantity import Quantity, parse
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain, label_key
from kubescene.api.validation.resources import (
    allows_overcommit,
    check_container_resource_name,
    check_resource_name,
)
from kubescene.types import JsonObject

Amounts: TypeAlias = dict[str, Quantity]

_TYPES = frozenset({"Pod", "Container", "PersistentVolumeClaim"})
_FIELDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ONE = parse("1")
# Field blamed, smaller side, larger side, the words for both, and the value shown.
_ORDERINGS = (
    ("min", "min", "max", "min value", "max value", "min"),
    ("defaultRequest", "min", "defaultRequest", "min value", "default request value", ""),
    ("defaultRequest", "defaultRequest", "max", "default request value", "max value", ""),
    (
        "defaultRequest",
        "defaultRequest",
        "default",
        "default request value",
        "default limit value",
        "",
    ),
    ("default", "min", "default", "min value", "default value", "min"),
    ("default", "default", "max", "default value", "max value", "max"),
)


def validate_limit_range(limit_range: JsonObject, errors: ErrorList) -> None:
    validate_metadata(
        limit_range.get("metadata") or {}, errors, namespaced=True, name_rule=dns_subdomain
    )
    seen: set[str] = set()
    for position, limit in enumerate((limit_range.get("spec") or {}).get("limits") or ()):
        at, kind = SPEC.child("limits").index(position), limit.get("type", "")
        _check_type(kind, errors, at.child("type"))
        if kind in seen:
            errors.duplicate(at.child("type"), kind)
        seen.add(kind)
        _check_limit(limit, kind, errors, at)


def validate_limit_range_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    validate_limit_range(new, errors)


def _check_type(kind: str, errors: ErrorList, path: Path) -> None:
    if complaints := label_key(kind):
        errors.invalid_each(path, kind, complaints)
    elif "/" not in kind and kind not in _TYPES:
        errors.invalid(path, kind, "must be a standard limit type or fully qualified")


def _check_limit(limit: JsonObject, kind: str, errors: ErrorList, path: Path) -> None:
    for_pods = kind in ("Pod", "Container")
    check_name = check_container_resource_name if for_pods else check_resource_name
    for field in _FIELDS:
        if kind == "Pod" and field.startswith("default"):
            if limit.get(field):
                detail = "may not be specified when `type` is 'Pod'"
                errors.forbidden(path.child(field), detail)
            continue
        for name in limit.get(field) or ():
            check_name(name, errors, path.child(field).key(name))
        if field == "defaultRequest" and kind == "PersistentVolumeClaim":
            _require_storage(limit, errors, path.child("limits"))
    for name, amounts in _by_resource(limit, kind):
        _check_amounts(name, amounts, errors, path)


def _require_storage(limit: JsonObject, errors: ErrorList, path: Path) -> None:
    if not any("storage" in (limit.get(field) or {}) for field in ("min", "max")):
        errors.required(
            path, "either minimum or maximum storage value is required, but neither was provided"
        )


def _by_resource(limit: JsonObject, kind: str) -> Iterator[tuple[str, Amounts]]:
    fields = [field for field in _FIELDS if kind != "Pod" or not field.startswith("default")]
    names = dict.fromkeys(name for field in fields for name in limit.get(field) or ())
    for name in names:
        given = [field for field in fields if name in (limit.get(field) or {})]
        yield name, {field: parse(limit[field][name]) for field in given}


def _check_amounts(name: str, amounts: Amounts, errors: ErrorList, path: Path) -> None:
    for blamed, low, high, low_words, high_words, shown in _ORDERINGS:
        if low in amounts and high in amounts and amounts[low] > amounts[high]:
            detail = f"{low_words} {amounts[low]} is greater than {high_words} {amounts[high]}"
            errors.invalid(path.child(blamed).key(name), str(amounts[shown or blamed]), detail)
    if "maxLimitRequestRatio" in amounts:
        _check_ratio(amounts, errors, path.child("maxLimitRequestRatio").key(name))
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if default is None or request is None or default == request or allows_overcommit(name):
        return
    errors.invalid(
        path.child("defaultRequest").key(name),
        str(request),
        f"default value {default} must equal to defaultRequest value {request} in {name}",
    )


def _check_ratio(amounts: Amounts, errors: ErrorList, path: Path) -> None:
    ratio, low, high = (amounts.get(key) for key in ("maxLimitRequestRatio", "min", "max"))
    if ratio is None:
        return
    if ratio < _ONE:
        errors.invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if not low or high is None:
        return
    limit = high.milli_value() / low.milli_value()
    if ratio.milli_value() / 1000 > limit:
        errors.invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}")
