"""Namespaces: their name, their finalizers and the two phases they can be in."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, STATUS, Path
from kubescene.api.validation.metadata import (
    check_kube_finalizers,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_label, label_key
from kubescene.types import JsonObject

_FINALIZERS = SPEC.child("finalizers")


def validate_namespace(namespace: JsonObject, errors: ErrorList) -> None:
    validate_metadata(
        namespace.get("metadata") or {}, errors, namespaced=False, name_rule=dns_label
    )
    for finalizer in (namespace.get("spec") or {}).get("finalizers") or ():
        _check_finalizer(finalizer, errors, _FINALIZERS)


def _check_finalizer(finalizer: str, errors: ErrorList, path: Path) -> None:
    errors.invalid_each(path, finalizer, label_key(finalizer))
    found = ErrorList()
    check_kube_finalizers([finalizer], found, path)
    if found:
        errors.invalid(path, finalizer, found[0].detail)


def validate_namespace_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    validate_namespace(new, errors)


def validate_namespace_finalize(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """An update through the ``finalize`` subresource."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    for position, finalizer in enumerate((new.get("spec") or {}).get("finalizers") or ()):
        _check_finalizer(finalizer, errors, _FINALIZERS.index(position))


def validate_namespace_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Terminating exactly while being deleted."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    deleted = new["metadata"].get("deletionTimestamp") is not None
    phase = (new.get("status") or {}).get("phase", "")
    only, state = ("Terminating", "not empty") if deleted else ("Active", "empty")
    if phase != only:
        detail = f"may only be '{only}' if `deletionTimestamp` is {state}"
        errors.invalid(STATUS.child("Phase"), phase, detail)
