"""ResourceClaims, as far as components rely on being refused: what a claim asks for stays the same,
and only so many pods can use it.
"""

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, STATUS
from kubescene.api.validation.members import check_members
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain
from kubescene.types import JsonObject

MOST_CONSUMERS = 256


def validate_resource_claim(claim: JsonObject, errors: ErrorList) -> None:
    metadata = claim.get("metadata") or {}
    validate_metadata(metadata, errors, namespaced=True, name_rule=dns_subdomain)
    check_members(("resource.k8s.io", "ResourceClaim"), claim, errors)


def validate_resource_claim_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    if new.get("spec") != old.get("spec"):
        errors.invalid(SPEC, new.get("spec"), "field is immutable")


def validate_resource_claim_status_update(
    new: JsonObject, old: JsonObject, errors: ErrorList
) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    consumers = (new.get("status") or {}).get("reservedFor") or ()
    if len(consumers) > MOST_CONSUMERS:
        errors.too_many(STATUS.child("reservedFor"), len(consumers), MOST_CONSUMERS)
