"""PersistentVolumes: one source, a capacity, and little that may change."""

import posixpath

from kubescene.api.quantity import parse
from kubescene.api.validation.core.persistent_volume_claims import VOLUME_MODES, check_access_modes
from kubescene.api.validation.equality import same, show_difference
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import SPEC, Path
from kubescene.api.validation.inner_forms import VOLUME_NODE_AFFINITY, inner
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    NOT_POSITIVE,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import dns_subdomain
from kubescene.api.validation.paths import check_no_backsteps
from kubescene.api.validation.pods.placement import check_node_selector
from kubescene.api.validation.pods.storage_systems import storage_system_check
from kubescene.api.validation.pods.volumes import check_csi_driver, check_host_path, check_nfs
from kubescene.api.validation.resources import ZERO
from kubescene.types import JsonObject

_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def validate_volume(volume: JsonObject, errors: ErrorList) -> None:
    validate_metadata(
        volume.get("metadata") or {}, errors, namespaced=False, name_rule=dns_subdomain
    )
    _check_spec(volume.get("spec") or {}, errors)


def _check_spec(spec: JsonObject, errors: ErrorList) -> None:
    modes = spec.get("accessModes") or []
    if not modes:
        errors.required(SPEC.child("accessModes"))
    check_access_modes(modes, errors, SPEC.child("accessModes"))
    _check_capacity(spec.get("capacity") or {}, errors, SPEC.child("capacity"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in _RECLAIM_POLICIES:
        at = SPEC.child("persistentVolumeReclaimPolicy")
        errors.not_supported(at, policy, _RECLAIM_POLICIES)
    _check_node_affinity(spec.get("nodeAffinity"), errors)
    _check_source(spec, errors)
    _check_recycling(spec, errors)
    if name := spec.get("storageClassName"):
        errors.invalid_each(SPEC.child("storageClassName"), name, dns_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.not_supported(SPEC.child("volumeMode"), mode, VOLUME_MODES)
    if (name := spec.get("volumeAttributesClassName")) is not None:
        _check_attributes_class(name, spec, errors)


def _check_capacity(capacity: JsonObject, errors: ErrorList, path: Path) -> None:
    if not capacity:
        errors.required(path)
    if "storage" not in capacity or len(capacity) > 1:
        shown = {name: str(parse(amount)) for name, amount in sorted(capacity.items())}
        errors.not_supported(path, shown or None, ("storage",))
    for name, text in capacity.items():
        amount = parse(text)
        if amount < ZERO:
            detail = "must be a valid resource quantity"
            errors.invalid(path.key(name), amount.value(), detail)
        if amount <= ZERO:
            errors.invalid(path.key(name), str(amount), NOT_POSITIVE)


def _check_node_affinity(affinity: JsonObject | None, errors: ErrorList) -> None:
    if affinity is None:
        return
    at = SPEC.child("nodeAffinity").child("required")
    if affinity.get("required") is None:
        errors.required(at, "must specify required node constraints")
    else:
        check_node_selector(affinity["required"], errors, at)


def _check_source(spec: JsonObject, errors: ErrorList) -> None:
    given = [kind for kind in _SOURCES if spec.get(kind) is not None]
    if not given:
        errors.required(SPEC, "must specify a volume type")
        return
    _check_known_source(given[0], spec, errors, SPEC.child(given[0]))
    for kind in given[1:]:
        errors.forbidden(SPEC.child(kind), "may not specify more than 1 volume type")


def _check_known_source(kind: str, spec: JsonObject, errors: ErrorList, path: Path) -> None:
    source = spec[kind]
    match kind:
        case "hostPath":
            check_host_path(source, errors, path)
        case "nfs":
            check_nfs(source, errors, path)
        case "local":
            if not source.get("path"):
                errors.required(path.child("path"))
            check_no_backsteps(source.get("path", ""), errors, path.child("path"))
            if spec.get("nodeAffinity") is None:
                at = SPEC.child("nodeAffinity")
                errors.required(at, "Local volume requires node affinity")
        case "csi":
            check_csi_driver(source.get("driver", ""), errors, path.child("driver"))
            if not source.get("volumeHandle"):
                errors.required(path.child("volumeHandle"))
            for member in _CSI_SECRETS:
                secret = source.get(member)
                for name in ("name", "namespace") if secret is not None else ():
                    if not secret.get(name):
                        errors.required(path.child(member).child(name))
        case _:
            at = SPEC.child("persistentDisk") if kind == "gcePersistentDisk" else path
            storage_system_check(kind)(source, errors, at)


def _check_recycling(spec: JsonObject, errors: ErrorList) -> None:
    path = (spec.get("hostPath") or {}).get("path")
    recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if path and recycled and posixpath.normpath(path) in ("/", "//"):
        errors.forbidden(
            SPEC.child("persistentVolumeReclaimPolicy"),
            "may not be 'recycle' for a hostPath mount of '/'",
        )


def _check_attributes_class(name: str, spec: JsonObject, errors: ErrorList) -> None:
    at = SPEC.child("volumeAttributesClassName")
    if name:
        errors.invalid_each(at, name, dns_subdomain(name))
    else:
        errors.required(at, "an empty string is disallowed")
    if spec.get("csi") is None:
        detail = "has to be specified when using volumeAttributesClassName"
        errors.required(SPEC.child("csi"), detail)


def validate_volume_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    """The source stays, as does where the volume can be reached from."""
    validate_metadata_update(new["metadata"], old["metadata"], errors, kube_finalizers=False)
    validate_volume(new, errors)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    now, was = _source(spec, before), _source(before, before)
    if not same(now, was):
        errors.forbidden(
            SPEC.child("persistentvolumesource"),
            "spec.persistentvolumesource is immutable after creation\n" + show_difference(was, now),
        )
    if spec.get("volumeMode") != before.get("volumeMode"):
        errors.invalid(Path("volumeMode"), spec.get("volumeMode"), IMMUTABLE)
    affinity = spec.get("nodeAffinity")
    if before.get("nodeAffinity") is not None and not same(affinity, before["nodeAffinity"]):
        detail = f"{IMMUTABLE}, except for updating from beta label to GA"
        shown = inner(affinity, VOLUME_NODE_AFFINITY)
        errors.invalid(Path("nodeAffinity"), shown, detail)
    gone = spec.get("volumeAttributesClassName") is None
    if gone and before.get("volumeAttributesClassName") is not None:
        at = SPEC.child("volumeAttributesClassName")
        errors.forbidden(at, "update from non-nil value to nil is forbidden")


def _source(spec: JsonObject, before: JsonObject) -> JsonObject:
    """The sources of a volume. A secret for growing may be added to CSI later."""
    sources = {kind: spec[kind] for kind in _SOURCES if spec.get(kind) is not None}
    old_csi = before.get("csi")
    if "csi" in sources and old_csi and old_csi.get("controllerExpandSecretRef") is None:
        sources["csi"] = {**sources["csi"], "controllerExpandSecretRef": None}
    return sources
