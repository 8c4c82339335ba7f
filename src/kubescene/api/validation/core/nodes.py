"""Nodes: taints, pod networks and resources."""

from typing import Any

from kubescene.api.quantity import parse
from kubescene.api.validation.addresses import check_cidr, families
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, SPEC, STATUS, Path
from kubescene.api.validation.inner_forms import NODE_ADDRESS, inner
from kubescene.api.validation.metadata import validate_metadata, validate_metadata_update
from kubescene.api.validation.names import dns_subdomain
from kubescene.api.validation.pods.placement import check_taints
from kubescene.api.validation.resources import check_quantity
from kubescene.types import JsonObject

# Upstream reports taints below metadata, not below spec.
_TAINTS = METADATA.child("taints")
_POD_CIDRS = SPEC.child("podCIDRs")


def validate_node(node: JsonObject, errors: ErrorList) -> None:
    validate_metadata(node.get("metadata") or {}, errors, namespaced=False, name_rule=dns_subdomain)
    spec, status = node.get("spec") or {}, node.get("status") or {}
    if taints := spec.get("taints"):
        check_taints(taints, errors, _TAINTS)
    _check_resources(status, errors)
    _check_features(status.get("declaredFeatures") or [], errors)
    if blocks := spec.get("podCIDRs"):
        _check_pod_cidrs(blocks, errors)


def _check_pod_cidrs(blocks: list[str], errors: ErrorList) -> None:
    for position, block in enumerate(blocks):
        check_cidr(block, errors, _POD_CIDRS.index(position))
    if len(blocks) > 1 and (len(blocks) > 2 or len(families(blocks)) < 2):
        detail = "may specify no more than one CIDR for each IP family"
        errors.invalid(_POD_CIDRS, blocks, detail)


def _check_resources(status: JsonObject, errors: ErrorList) -> None:
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            check_quantity(name, parse(amount), errors, STATUS.child(field).child(name))


def _check_features(features: list[str], errors: ErrorList) -> None:
    path = STATUS.child("declaredFeatures")
    for position in range(1, len(features)):
        before, feature = features[position - 1], features[position]
        if feature == before:
            errors.duplicate(path.index(position), feature)
        elif feature < before:
            errors.invalid(path.index(position), feature, "list must be sorted alphabetically")


def validate_node_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_node(new, errors)
    validate_node_status_update(new, old, errors)


def validate_node_status_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """Pod networks and the provider's id are set once."""
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    spec, before, status = new.get("spec") or {}, old.get("spec") or {}, new.get("status") or {}
    _check_resources(status, errors)
    _check_features(status.get("declaredFeatures") or [], errors)
    _check_addresses(status.get("addresses") or [], errors)
    _check_set_once(spec, before, errors)
    if taints := spec.get("taints"):
        check_taints(taints, errors, _TAINTS)


def _check_addresses(addresses: list[JsonObject], errors: ErrorList) -> None:
    seen: set[tuple[Any, Any]] = set()
    for position, address in enumerate(addresses):
        key = (address.get("type"), address.get("address"))
        if key in seen:
            shown = inner(address, NODE_ADDRESS)
            errors.duplicate(STATUS.child("addresses").index(position), shown)
        seen.add(key)


def _check_set_once(spec: JsonObject, before: JsonObject, errors: ErrorList) -> None:
    refusal = 'node updates may not change {} except from "" to valid'
    old, new = before.get("podCIDRs") or [], spec.get("podCIDRs") or []
    if old and len(old) != len(new):
        errors.forbidden(_POD_CIDRS, refusal.format("podCIDR"))
    elif old:
        for was, now in zip(old, new, strict=True):
            if was != now:
                errors.forbidden(_POD_CIDRS, refusal.format("podCIDR"))
    provider = before.get("providerID")
    if provider and provider != spec.get("providerID"):
        errors.forbidden(Path("spec").child("providerID"), refusal.format("providerID"))
