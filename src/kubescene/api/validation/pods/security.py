"""Security contexts of pods and containers."""

import re

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.inner_forms import SECCOMP_PROFILE, SECURITY_CONTEXT, inner
from kubescene.api.validation.names import size, user_or_group_id
from kubescene.api.validation.paths import check_descending
from kubescene.types import JsonObject

_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS = ("Default", "Unmasked")
_FS_GROUP_POLICIES = ("Always", "OnRootMismatch")
_SUPPLEMENTAL_POLICIES = ("Merge", "Strict")
_SELINUX_POLICIES = ("Recursive",)
_APPARMOR_LIMIT = 4095
_SYSCTL_LIMIT = 253
_SYSCTL = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_is_sysctl = re.compile(_SYSCTL[1:-1]).fullmatch


def check_security_context(
    context: JsonObject, errors: ErrorList, path: Path, *, host_users: bool
) -> None:
    """The security context of a container."""
    _check_ids(context, ("runAsUser", "runAsGroup"), errors, path)
    if (mount := context.get("procMount")) is not None:
        if mount not in _PROC_MOUNTS:
            errors.not_supported(path.child("procMount"), mount, _PROC_MOUNTS)
        if host_users and mount == "Unmasked":
            errors.invalid(
                path.child("procMount"), mount, "`hostUsers` must be false to use `Unmasked`"
            )
    _check_seccomp(context.get("seccompProfile"), errors, path.child("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        _check_escalation(context, errors, path)
    _check_apparmor(context.get("appArmorProfile"), errors, path.child("appArmorProfile"))


def _check_escalation(context: JsonObject, errors: ErrorList, path: Path) -> None:
    shown = inner(context, SECURITY_CONTEXT)
    refusal = "cannot set `allowPrivilegeEscalation` to false and "
    if context.get("privileged"):
        errors.invalid(path, shown, refusal + "`privileged` to true")
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        errors.invalid(path, shown, refusal + "`capabilities.Add` CAP_SYS_ADMIN")


def check_pod_security_context(
    context: JsonObject, spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    """The security context that all containers of a pod share."""
    _check_ids(context, ("fsGroup", "runAsUser", "runAsGroup"), errors, path)
    for position, group in enumerate(context.get("supplementalGroups") or ()):
        if complaints := user_or_group_id(group):
            errors.invalid_each(path.child("supplementalGroups").index(position), group, complaints)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        errors.invalid(
            path.child("shareProcessNamespace"),
            True,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        )
    if sysctls := context.get("sysctls"):
        _check_sysctls(sysctls, spec, errors, path.child("sysctls"))
    _check_optional(context, "fsGroupChangePolicy", _FS_GROUP_POLICIES, errors, path)
    _check_seccomp(context.get("seccompProfile"), errors, path.child("seccompProfile"))
    _check_apparmor(context.get("appArmorProfile"), errors, path.child("appArmorProfile"))
    _check_optional(context, "supplementalGroupsPolicy", _SUPPLEMENTAL_POLICIES, errors, path)
    _check_optional(context, "seLinuxChangePolicy", _SELINUX_POLICIES, errors, path)


def _check_optional(
    holder: JsonObject, field: str, allowed: tuple[str, ...], errors: ErrorList, path: Path
) -> None:
    value = holder.get(field)
    if value is not None and value not in allowed:
        errors.not_supported(path.child(field), value, allowed)


def _check_ids(context: JsonObject, fields: tuple[str, ...], errors: ErrorList, path: Path) -> None:
    for field in fields:
        value = context.get(field)
        if value is not None and (complaints := user_or_group_id(value)):
            errors.invalid_each(path.child(field), value, complaints)


def _check_sysctls(
    sysctls: list[JsonObject], spec: JsonObject, errors: ErrorList, path: Path
) -> None:
    seen: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        name, at = sysctl.get("name", ""), path.index(position).child("name")
        if not name:
            errors.required(at)
        elif size(name) > _SYSCTL_LIMIT or not _is_sysctl(name):
            detail = f"must have at most {_SYSCTL_LIMIT} characters and match regex {_SYSCTL}"
            errors.invalid(at, name, detail)
        elif name in seen:
            errors.duplicate(at, name)
        _check_host_sysctl(name, spec, errors, at)
        seen.add(name)


def _check_host_sysctl(name: str, spec: JsonObject, errors: ErrorList, path: Path) -> None:
    dotted = name.replace("/", ".")
    if spec.get("hostNetwork") and dotted.startswith("net."):
        errors.invalid(path, name, "may not be specified when 'hostNetwork' is true")
    ipc = dotted.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or dotted == "kernel.sem"
    if spec.get("hostIPC") and ipc:
        errors.invalid(path, name, "may not be specified when 'hostIPC' is true")


def _check_seccomp(profile: JsonObject | None, errors: ErrorList, path: Path) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.required(path.child("type"), "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        errors.not_supported(path.child("type"), kind, _PROFILE_TYPES)
    if kind != "Localhost":
        if local is not None:
            detail = "can only be set when seccomp type is Localhost"
            errors.invalid(path.child("localhostProfile"), inner(profile, SECCOMP_PROFILE), detail)
    elif local is None:
        detail = "must be set when seccomp type is Localhost"
        errors.required(path.child("localhostProfile"), detail)
    else:
        check_descending(local, errors, path.child("localhostProfile"))


def _check_apparmor(profile: JsonObject | None, errors: ErrorList, path: Path) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.required(path.child("type"), "type is required when appArmorProfile is set")
    elif kind not in _PROFILE_TYPES:
        errors.not_supported(path.child("type"), kind, _PROFILE_TYPES)
    elif kind == "Localhost":
        _check_local_apparmor(local, errors, path.child("localhostProfile"))
    elif local is not None:
        detail = "can only be set when AppArmor type is Localhost"
        errors.invalid(path.child("localhostProfile"), local, detail)


def _check_local_apparmor(local: str | None, errors: ErrorList, path: Path) -> None:
    if local is None or not local:
        errors.required(path, "must be set when AppArmor type is Localhost")
        return
    if local.strip() != local:
        errors.invalid(path, local, "must not be padded with whitespace")
    if size(local) > _APPARMOR_LIMIT:
        errors.too_long(path, _APPARMOR_LIMIT)
