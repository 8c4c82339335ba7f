"""Volumes of a pod: each has a name and exactly one source."""

from collections.abc import Mapping

from kubescene.api.quantity import parse
from kubescene.api.validation.core.persistent_volume_claims import check_claim_template
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import dns_label, dns_subdomain, size
from kubescene.api.validation.paths import (
    check_descending,
    check_no_backsteps,
    check_not_reserved,
)
from kubescene.api.validation.pods.environment import (
    VOLUME_FIELDS,
    check_field_ref,
    check_resource_ref,
)
from kubescene.api.validation.pods.storage_systems import SourceCheck, storage_system_check
from kubescene.api.validation.resources import ZERO
from kubescene.types import JsonObject

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_ONE_SOURCE = "may not specify more than 1 volume type"
_CONFLICT = "conflicting duplicate paths"
_MIN_TOKEN_S = 600
_MAX_TOKEN_S = 2**32


def check_volumes(
    volumes: list[JsonObject], pod_name: str, errors: ErrorList, path: Path
) -> Mapping[str, JsonObject]:
    """Check all volumes; return the good ones by name, for mounts to refer to."""
    good: dict[str, JsonObject] = {}
    ephemeral = {
        f"{pod_name}-{volume.get('name', '')}"
        for volume in volumes
        if pod_name and volume.get("ephemeral") is not None
    }
    for position, volume in enumerate(volumes):
        at, before = path.index(position), len(errors)
        name = volume.get("name", "")
        _check_source(volume, pod_name, errors, at)
        if not name:
            errors.required(at.child("name"))
        elif complaints := dns_label(name):
            errors.invalid_each(at.child("name"), name, complaints)
        if name in good:
            errors.duplicate(at.child("name"), name)
        if len(errors) == before:
            good[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in ephemeral:
            errors.invalid(
                at.child("persistentVolumeClaim").child("claimName"),
                claim,
                "must not reference a PVC that gets created for an ephemeral volume",
            )
    return good


def _check_source(volume: JsonObject, pod_name: str, errors: ErrorList, path: Path) -> None:
    found = False
    for kind, check in _SOURCES.items():
        source = volume.get(kind)
        if source is None:
            continue
        if found:
            errors.forbidden(path.child(_MISNAMED.get(kind, kind)), _ONE_SOURCE)
            continue
        found = True
        # One source is reported under a name of its own.
        shown = "persistentDisk" if kind == "gcePersistentDisk" else kind
        check(source, errors, path.child(shown))
        if kind == "ephemeral":
            _check_generated_claim(volume.get("name", ""), pod_name, errors, path)
        elif kind == "image" and pod_name and not source.get("reference"):
            # A template may leave the image to whoever makes the pod.
            errors.required(path.child("image").child("reference"))
    if not found:
        errors.required(path, "must specify a volume type")


def _check_generated_claim(volume: str, pod_name: str, errors: ErrorList, path: Path) -> None:
    if volume and pod_name:
        claim = f"{pod_name}-{volume}"
        for complaint in dns_subdomain(claim):
            errors.invalid(path.child("name"), volume, f'PVC name "{claim}": {complaint}')


def _check_empty_dir(source: JsonObject, errors: ErrorList, path: Path) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and parse(limit) < ZERO:
        errors.forbidden(
            path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity"
        )


def check_host_path(source: JsonObject, errors: ErrorList, path: Path) -> None:
    if not source.get("path"):
        errors.required(path.child("path"))
    check_no_backsteps(source.get("path", ""), errors, path.child("path"))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        errors.not_supported(path.child("type"), kind, _HOST_PATH_TYPES)


def _check_git_repo(source: JsonObject, errors: ErrorList, path: Path) -> None:
    if not source.get("repository"):
        errors.required(path.child("repository"))
    check_descending(source.get("directory", ""), errors, path.child("directory"))


def check_nfs(source: JsonObject, errors: ErrorList, path: Path) -> None:
    for field in ("server", "path"):
        if not source.get(field):
            errors.required(path.child(field))
    if not source.get("path", "").startswith("/"):
        errors.invalid(path.child("path"), source.get("path", ""), "must be an absolute path")


def _check_mode(mode: int | None, errors: ErrorList, path: Path) -> None:
    if mode is not None and not 0 <= mode <= 0o777:
        errors.invalid(path, mode, _FILE_MODE)


def _check_secret(source: JsonObject, errors: ErrorList, path: Path) -> None:
    _check_keyed(source, "secretName", errors, path)


def _check_config_map(source: JsonObject, errors: ErrorList, path: Path) -> None:
    _check_keyed(source, "name", errors, path)


def _check_keyed(source: JsonObject, name_field: str, errors: ErrorList, path: Path) -> None:
    if not source.get(name_field):
        errors.required(path.child(name_field))
    _check_mode(source.get("defaultMode"), errors, path.child("defaultMode"))
    for position, item in enumerate(source.get("items") or ()):
        _check_item(item, errors, path.child("items").index(position))


def _check_item(item: JsonObject, errors: ErrorList, path: Path) -> None:
    for field in ("key", "path"):
        if not item.get(field):
            errors.required(path.child(field))
    check_not_reserved(item.get("path", ""), errors, path.child("path"))
    _check_mode(item.get("mode"), errors, path.child("mode"))


def _check_claim(source: JsonObject, errors: ErrorList, path: Path) -> None:
    if not source.get("claimName"):
        errors.required(path.child("claimName"))


def _check_downward_api(source: JsonObject, errors: ErrorList, path: Path) -> None:
    _check_mode(source.get("defaultMode"), errors, path.child("defaultMode"))
    for file in source.get("items") or ():
        _check_downward_file(file, errors, path)


def _check_downward_file(file: JsonObject, errors: ErrorList, path: Path) -> None:
    if not file.get("path"):
        errors.required(path.child("path"))
    check_not_reserved(file.get("path", ""), errors, path.child("path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        check_field_ref(field, errors, path.child("fieldRef"), VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.invalid(path, "resource", detail)
    elif resource is not None:
        check_resource_ref(resource, errors, path.child("resourceFieldRef"), volume=True)
    else:
        errors.required(path, "one of fieldRef and resourceFieldRef is required")
    _check_mode(file.get("mode"), errors, path.child("mode"))


def _check_projected(source: JsonObject, errors: ErrorList, path: Path) -> None:
    _check_mode(source.get("defaultMode"), errors, path.child("defaultMode"))
    seen: set[str] = set()
    for position, projection in enumerate(source.get("sources") or ()):
        at = path.child("sources").index(position)
        given = [kind for kind in _PROJECTIONS if projection.get(kind) is not None]
        for kind in given:
            before = errors
            _PROJECTIONS[kind](projection[kind], before, at.child(kind), path)
            _check_conflicts(projection[kind], kind, seen, errors, path)
        if len(given) > 1:
            errors.forbidden(at, "may not specify more than 1 volume type per source")


def _check_conflicts(
    projection: JsonObject, kind: str, seen: set[str], errors: ErrorList, path: Path
) -> None:
    for item in projection.get("items") or ():
        target = item.get("path")
        if target and target in seen:
            shown = target if kind == "downwardAPI" else projection.get("name", "")
            errors.invalid(path, shown, _CONFLICT)
        elif target:
            seen.add(target)


def _project_keyed(source: JsonObject, errors: ErrorList, path: Path, _volume: Path) -> None:
    if not source.get("name"):
        errors.required(path.child("name"))
    for position, item in enumerate(source.get("items") or ()):
        _check_item(item, errors, path.child("items").index(position))


def _project_downward(source: JsonObject, errors: ErrorList, path: Path, _volume: Path) -> None:
    for file in source.get("items") or ():
        _check_downward_file(file, errors, path)


def _project_token(source: JsonObject, errors: ErrorList, path: Path, volume: Path) -> None:
    expiration = source.get("expirationSeconds", 0)
    at = path.child("expirationSeconds")
    if expiration < _MIN_TOKEN_S:
        errors.invalid(at, expiration, "may not specify a duration less than 10 minutes")
    if expiration > _MAX_TOKEN_S:
        errors.invalid(at, expiration, "may not specify a duration larger than 2^32 seconds")
    if target := source.get("path"):
        check_not_reserved(target, errors, volume.child("path"))
    else:
        errors.required(volume.child("path"))


_PROJECTIONS = {
    "secret": _project_keyed,
    "configMap": _project_keyed,
    "downwardAPI": _project_downward,
    "serviceAccountToken": _project_token,
}


def check_csi_driver(driver: str, errors: ErrorList, path: Path) -> None:
    if not driver:
        errors.required(path)
        return
    if size(driver) > 63:
        errors.too_long(path, 63)
    errors.invalid_each(path, driver, dns_subdomain(driver.lower()))


def _check_csi(source: JsonObject, errors: ErrorList, path: Path) -> None:
    check_csi_driver(source.get("driver", ""), errors, path.child("driver"))
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return
    if name := secret.get("name"):
        errors.invalid_each(path.child("name"), name, dns_subdomain(name))
    else:
        errors.required(path.child("nodePublishSecretRef").child("name"))


def _check_ephemeral(source: JsonObject, errors: ErrorList, path: Path) -> None:
    at = path.child("volumeClaimTemplate")
    template = source.get("volumeClaimTemplate")
    if template is None:
        errors.required(at)
    else:
        check_claim_template(template, errors, at)


def _check_image(source: JsonObject, errors: ErrorList, path: Path) -> None:
    check_pull_policy(source.get("pullPolicy", ""), errors, path.child("pullPolicy"))


def check_pull_policy(policy: str, errors: ErrorList, path: Path) -> None:
    if not policy:
        errors.required(path)
    elif policy not in _PULL_POLICIES:
        errors.not_supported(path, policy, _PULL_POLICIES)


# In the order in which upstream looks for a second source.
_SOURCES: dict[str, SourceCheck] = {
    "emptyDir": _check_empty_dir,
    "hostPath": check_host_path,
    "gitRepo": _check_git_repo,
    "gcePersistentDisk": storage_system_check("gcePersistentDisk"),
    "awsElasticBlockStore": storage_system_check("awsElasticBlockStore"),
    "secret": _check_secret,
    "nfs": check_nfs,
    "iscsi": storage_system_check("iscsi"),
    "glusterfs": storage_system_check("glusterfs"),
    "flocker": storage_system_check("flocker"),
    "persistentVolumeClaim": _check_claim,
    "rbd": storage_system_check("rbd"),
    "cinder": storage_system_check("cinder"),
    "cephfs": storage_system_check("cephfs"),
    "quobyte": storage_system_check("quobyte"),
    "downwardAPI": _check_downward_api,
    "fc": storage_system_check("fc"),
    "flexVolume": storage_system_check("flexVolume"),
    "configMap": _check_config_map,
    "azureFile": storage_system_check("azureFile"),
    "vsphereVolume": storage_system_check("vsphereVolume"),
    "photonPersistentDisk": storage_system_check("photonPersistentDisk"),
    "portworxVolume": storage_system_check("portworxVolume"),
    "azureDisk": storage_system_check("azureDisk"),
    "storageos": storage_system_check("storageos"),
    "projected": _check_projected,
    "scaleIO": storage_system_check("scaleIO"),
    "csi": _check_csi,
    "ephemeral": _check_ephemeral,
    "image": _check_image,
}
# Upstream's own spellings in this one message.
_MISNAMED = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
