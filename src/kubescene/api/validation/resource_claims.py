"""ResourceClaims, as far as components rely on being refused: what a claim asks for stays the same,
and only so many pods can use it.
"""

from collections.abc import Iterator

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, STATUS, Path
from kubescene.api.validation.members import check_members
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_label, dns_subdomain
from kubescene.api.validation.pods.placement import check_node_selector
from kubescene.types import JsonObject

MOST_CONSUMERS = 256
_NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


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
    status, before = new.get("status") or {}, old.get("status") or {}
    allocation, consumers = status.get("allocation"), status.get("reservedFor") or ()
    if len(consumers) > MOST_CONSUMERS:
        errors.too_many(STATUS.child("reservedFor"), len(consumers), MOST_CONSUMERS)
    for position, consumer in enumerate(consumers):
        _check_consumer(consumer or {}, errors, STATUS.child("reservedFor").index(position))
    allocated = {_device_of(it) for it in _results_of(allocation)}
    for position, device in enumerate(status.get("devices") or ()):
        place = STATUS.child("devices").index(position)
        _check_device(device or {}, errors, place)
        if _device_of(device or {}) not in allocated:
            shown = "/".join(filter(None, _device_of(device or {})))
            errors.invalid(place, shown, "must be an allocated device in the claim")
    if consumers and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.forbidden(STATUS.child("reservedFor"), detail)
    if allocation is not None and before.get("allocation") is None:
        _check_allocation(allocation, new, errors)


def _check_consumer(consumer: JsonObject, errors: ErrorList, path: Path) -> None:
    for name in ("resource", "name", "uid"):
        if not consumer.get(name):
            errors.required(path.child(name))


def _device_of(device: JsonObject) -> tuple[str, ...]:
    return tuple(device.get(name, "") for name in ("driver", "pool", "device", "shareID"))


def _check_device(device: JsonObject, errors: ErrorList, path: Path) -> None:
    for name in ("driver", "pool"):
        if not device.get(name):
            errors.required(path.child(name))
    text = device.get("device", "")
    errors.invalid_each(path.child("device"), text, dns_label(text))


def _check_allocation(allocation: JsonObject, claim: JsonObject, errors: ErrorList) -> None:
    """A new allocation is of requests that the claim makes."""
    path, known = STATUS.child("allocation"), set(_requests_of(claim))
    for position, result in enumerate(_results_of(allocation)):
        place = path.child("devices").child("results").index(position)
        request = result.get("request", "")
        if request not in known:
            errors.invalid(place.child("request"), request, _NO_REQUEST)
        _check_device(result, errors, place)
    if (selector := allocation.get("nodeSelector")) is not None:
        check_node_selector(selector, errors, path.child("nodeSelector"))


def _results_of(allocation: JsonObject | None) -> list[JsonObject]:
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    return [each or {} for each in results]


def _requests_of(claim: JsonObject) -> Iterator[str]:
    for request in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        name = request.get("name", "")
        yield name
        yield from (f"{name}/{it.get('name', '')}" for it in request.get("firstAvailable") or ())
