"""StorageClasses."""

from typing import Any

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_subdomain, label_key, size
from kubescene.types import JsonObject

_RECLAIM_POLICIES = ("Delete", "Retain")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_MAX_PARAMETERS = 512
_MAX_PARAMETERS_SIZE = 256 * 1024
_FIXED = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def validate_storage_class(storage_class: JsonObject, errors: ErrorList) -> None:
    validate_metadata(
        storage_class.get("metadata") or {}, errors, namespaced=False, name_rule=dns_subdomain
    )
    provisioner = storage_class.get("provisioner", "")
    if provisioner:
        name = provisioner.lower()
        errors.invalid_each(Path("provisioner"), name, label_key(name))
    else:
        errors.required(Path("provisioner"))
    _check_parameters(storage_class.get("parameters") or {}, errors, Path("parameters"))
    policy = storage_class.get("reclaimPolicy")
    if policy and policy not in _RECLAIM_POLICIES:
        errors.not_supported(Path("reclaimPolicy"), policy, _RECLAIM_POLICIES)
    mode = storage_class.get("volumeBindingMode")
    if mode is None:
        errors.required(Path("volumeBindingMode"))
    elif mode not in _BINDING_MODES:
        errors.not_supported(Path("volumeBindingMode"), mode, _BINDING_MODES)
    _check_topologies(storage_class.get("allowedTopologies") or [], errors)


def _check_parameters(parameters: dict[str, str], errors: ErrorList, path: Path) -> None:
    if len(parameters) > _MAX_PARAMETERS:
        errors.too_long(path, _MAX_PARAMETERS)
    if "" in parameters:
        errors.invalid(path, "", "field can not be empty.")
    if sum(size(key) + size(value) for key, value in parameters.items()) > _MAX_PARAMETERS_SIZE:
        errors.too_long(path, _MAX_PARAMETERS_SIZE)


def _check_topologies(terms: list[JsonObject], errors: ErrorList) -> None:
    seen: list[Any] = []
    for position, term in enumerate(terms):
        at = Path("allowedTopologies").index(position).child("matchLabelExpressions")
        keys: dict[str, frozenset[str]] = {}
        for index, requirement in enumerate(term.get("matchLabelExpressions") or ()):
            _check_topology(requirement, keys, errors, at.index(index))
        if keys in seen or not keys:
            errors.duplicate(at, "")
        seen.append(keys)


def _check_topology(
    requirement: JsonObject, keys: dict[str, frozenset[str]], errors: ErrorList, path: Path
) -> None:
    key, values = requirement.get("key", ""), requirement.get("values") or ()
    if not values:
        errors.required(path.child("values"))
    for position, value in enumerate(values):
        if value in values[:position]:
            errors.duplicate(path.child("values").index(position), value)
    errors.invalid_each(path.child("key"), key, label_key(key))
    if key in keys:
        errors.duplicate(path.child("key"), key)
    keys[key] = frozenset(values)


def validate_storage_class_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_storage_class(new, errors)
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    for field in _FIXED:
        if (new.get(field) or None) != (old.get(field) or None):
            errors.invalid(Path(field), new.get(field), IMMUTABLE)
