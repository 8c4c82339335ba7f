"""Leases."""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain
from kubescene.types import JsonObject


def validate_lease(lease: JsonObject, errors: ErrorList) -> None:
    validate_metadata(
        lease.get("metadata") or {},
        errors,
        namespaced=True,
        name_rule=dns_subdomain,
        kube_finalizers=False,
    )
    _check_spec(lease.get("spec") or {}, errors)


def validate_lease_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)
    _check_spec(new.get("spec") or {}, errors)


def _check_spec(spec: JsonObject, errors: ErrorList) -> None:
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.invalid(SPEC.child("leaseDurationSeconds"), duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        errors.invalid(SPEC.child("leaseTransitions"), transitions, detail)
    if spec.get("preferredHolder") and not spec.get("strategy"):
        detail = "may only be specified if `strategy` is defined"
        errors.forbidden(SPEC.child("preferredHolder"), detail)
