"""How containers use the volumes of their pod: as mounts or as block devices."""

from collections.abc import Mapping

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.paths import check_descending
from kubescene.types import JsonObject

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_MODES = ("Disabled", "Enabled", "IfPossible")


def check_mounts(
    container: JsonObject, volumes: Mapping[str, JsonObject], errors: ErrorList, path: Path
) -> None:
    """``volumeMounts`` of a container, against the volumes that its pod has."""
    devices = {
        device.get("name", ""): device.get("devicePath", "")
        for device in container.get("volumeDevices") or ()
    }
    seen: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if name not in volumes or not target or target in seen or devices:
            _check_target(mount, volumes, seen, devices, errors, path.index(position))
        seen.add(target)
        if mount.get("subPath") or mount.get("subPathExpr"):
            _check_sub_path(mount, errors, path, path.index(position))
        if mount.get("mountPropagation") is not None:
            _check_propagation(mount, container, errors, path.child("mountPropagation"))
        if mount.get("recursiveReadOnly") is not None:
            _check_recursive_read_only(mount, errors, path.child("recursiveReadOnly"))


def _check_target(
    mount: JsonObject,
    volumes: Mapping[str, JsonObject],
    seen: set[str],
    devices: dict[str, str],
    errors: ErrorList,
    path: Path,
) -> None:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        errors.required(path.child("name"))
    if name not in volumes:
        errors.not_found(path.child("name"), name)
    if not target:
        errors.required(path.child("mountPath"))
    if target in seen:
        errors.invalid(path.child("mountPath"), target, "must be unique")
    if name in devices:
        errors.invalid(path.child("name"), name, "must not already exist in volumeDevices")
    if target in devices.values():
        detail = "must not already exist as a path in volumeDevices"
        errors.invalid(path.child("mountPath"), target, detail)


def _check_sub_path(mount: JsonObject, errors: ErrorList, mounts: Path, path: Path) -> None:
    # The list, not the mount, is what upstream names for bad sub-paths.
    plain, expression = mount.get("subPath"), mount.get("subPathExpr")
    if plain:
        check_descending(plain, errors, mounts.child("subPath"))
    if expression:
        if plain:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.invalid(path.child("subPathExpr"), expression, detail)
        check_descending(expression, errors, mounts.child("subPathExpr"))


def _check_propagation(
    mount: JsonObject, container: JsonObject, errors: ErrorList, path: Path
) -> None:
    mode = mount["mountPropagation"]
    if mode not in _PROPAGATIONS:
        errors.not_supported(path, mode, _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mode == "Bidirectional" and not privileged:
        errors.forbidden(
            path, "Bidirectional mount propagation is available only to privileged containers"
        )


def _check_recursive_read_only(mount: JsonObject, errors: ErrorList, path: Path) -> None:
    mode = mount["recursiveReadOnly"]
    if mode not in _READ_ONLY_MODES:
        errors.not_supported(path, mode, _READ_ONLY_MODES)
    elif mode != "Disabled":
        if not mount.get("readOnly"):
            errors.forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, "None"):
            errors.forbidden(
                path, "may only be specified when mountPropagation is None or not specified"
            )


def check_devices(
    container: JsonObject, volumes: Mapping[str, JsonObject], errors: ErrorList, path: Path
) -> None:
    """``volumeDevices`` of a container."""
    mounts = {
        mount.get("name", ""): mount.get("mountPath", "")
        for mount in container.get("volumeMounts") or ()
    }
    names: set[str] = set()
    targets: set[str] = set()
    for position, device in enumerate(container["volumeDevices"]):
        at = path.index(position)
        _check_device_name(device.get("name", ""), volumes, names, mounts, errors, at.child("name"))
        target = device.get("devicePath", "")
        _check_device_path(target, targets, mounts, errors, at.child("devicePath"))


def _check_device_name(
    name: str,
    volumes: Mapping[str, JsonObject],
    names: set[str],
    mounts: dict[str, str],
    errors: ErrorList,
    path: Path,
) -> None:
    if not name:
        errors.required(path)
    if name in names:
        errors.invalid(path, name, "must be unique")
    volume = volumes.get(name)
    if volume is None:
        errors.not_found(path, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        errors.invalid(
            path,
            name,
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
        )
    if name in mounts:
        errors.invalid(path, name, "must not already exist in volumeMounts")
    if name:
        names.add(name)


def _check_device_path(
    target: str, targets: set[str], mounts: dict[str, str], errors: ErrorList, path: Path
) -> None:
    if not target:
        errors.required(path)
    if target in targets:
        errors.invalid(path, target, "must be unique")
    if ".." in target.split("/"):
        errors.invalid(path, target, "can not contain backsteps ('..')")
    else:
        targets.add(target)
    if target in mounts.values():
        errors.invalid(path, target, "must not already exist as a path in volumeMounts")
