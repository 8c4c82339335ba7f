"""Environment variables of containers and where their values come from."""

from collections.abc import Callable

from kubescene.api.quantity import parse
from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import Path
from kubescene.api.validation.names import (
    as_prefix,
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    label_key,
)
from kubescene.api.validation.paths import check_no_backsteps
from kubescene.types import JsonObject

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_CONVERTIBLE_FIELDS = frozenset(
    (*_ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "status.phase")
)
_RESOURCE_FIELDS = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGE_FIELDS = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = frozenset({"1m", "1"})
_BYTE_DIVISORS = frozenset(
    {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)
_BYTE_DIVISOR_TEXT = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def check_env(variables: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.required(path.index(position).child("name"))
        elif complaints := env_name(name):
            errors.invalid_each(path.index(position).child("name"), name, complaints)
        if (source := variable.get("valueFrom")) is not None:
            _check_source(source, variable, errors, path.index(position).child("valueFrom"))


def _check_source(source: JsonObject, variable: JsonObject, errors: ErrorList, path: Path) -> None:
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        _CHECKS[name](source[name], errors, path.child(name))
    if not given:
        errors.invalid(
            path,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
            "`secretKeyRef` or `fileKeyRef`",
        )
    elif variable.get("value"):
        errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        errors.invalid(path, "", "may not have more than one field specified at a time")


def check_env_from(sources: list[JsonObject], errors: ErrorList, path: Path) -> None:
    for position, source in enumerate(sources):
        at = path.index(position)
        if prefix := source.get("prefix"):
            errors.invalid_each(at.child("prefix"), prefix, env_name(prefix))
        given = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in given:
            _check_reference(source[key], errors, at.child(key))
        if not given:
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            errors.invalid(path, "", "may not have more than one field specified at a time")


def _check_reference(reference: JsonObject, errors: ErrorList, path: Path) -> None:
    if name := reference.get("name"):
        errors.invalid_each(path.child("name"), name, dns_subdomain(as_prefix(name)))
    else:
        errors.required(path.child("name"))


def check_field_ref(
    reference: JsonObject, errors: ErrorList, path: Path, allowed: tuple[str, ...] = _ENV_FIELDS
) -> None:
    """A reference to a field of the pod itself."""
    field = reference.get("fieldPath", "")
    if not reference.get("apiVersion"):
        errors.required(path.child("apiVersion"))
    if not field:
        errors.required(path.child("fieldPath"))
        return
    base, bracket, rest = field.partition("['")
    if bracket and rest.endswith("']"):
        _check_subscript(base, rest[:-2], field, errors, path)
    elif field == "spec.host":
        errors.not_supported(path.child("fieldPath"), "spec.nodeName", allowed)
    elif field not in _CONVERTIBLE_FIELDS:
        detail = f"error converting fieldPath: field label not supported: {field}"
        errors.invalid(path.child("fieldPath"), field, detail)
    elif field not in allowed:
        errors.not_supported(path.child("fieldPath"), field, allowed)


def _check_subscript(base: str, key: str, field: str, errors: ErrorList, path: Path) -> None:
    if base == "metadata.annotations":
        errors.invalid_each(path, key.lower(), label_key(key.lower()))
    elif base == "metadata.labels":
        errors.invalid_each(path, key, label_key(key))
    else:
        detail = f"error converting fieldPath: field label does not support subscript: {field}"
        errors.invalid(path.child("fieldPath"), field, detail)


def check_resource_ref(
    reference: JsonObject, errors: ErrorList, path: Path, *, volume: bool = False
) -> None:
    """A reference to requests or limits of a container."""
    resource = reference.get("resource", "")
    if volume and not reference.get("containerName"):
        errors.required(path.child("containerName"))
    elif not resource:
        errors.required(path.child("resource"))
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGE_FIELDS):
        errors.not_supported(path.child("resource"), resource, _RESOURCE_FIELDS)
    _check_divisor(resource, reference.get("divisor"), errors, path)


def _check_divisor(resource: str, divisor: str | int | None, errors: ErrorList, path: Path) -> None:
    if divisor is None or not parse(divisor):
        return
    allowed, shown, what = _BYTE_DIVISORS, _BYTE_DIVISOR_TEXT, ""
    if resource.endswith(".cpu"):
        allowed, shown, what = _CPU_DIVISORS, "1m and 1", "cpu"
    elif resource.endswith(".memory"):
        what = "memory"
    elif resource.endswith(".ephemeral-storage"):
        what = "local ephemeral storage"
    elif resource.startswith(_HUGE_PAGE_FIELDS):
        what = "hugepages"
    if what and str(parse(divisor)) not in allowed:
        detail = f"only divisor's values {shown} are supported with the {what} resource"
        errors.invalid(path.child("divisor"), resource, detail)


def _check_key_ref(reference: JsonObject, errors: ErrorList, path: Path) -> None:
    name, key = reference.get("name", ""), reference.get("key", "")
    errors.invalid_each(path.child("name"), name, dns_subdomain(name))
    if key:
        errors.invalid_each(path.child("key"), key, config_key(key))
    else:
        errors.required(path.child("key"))


def _check_file_ref(reference: JsonObject, errors: ErrorList, path: Path) -> None:
    for field, rule in (("key", env_name), ("volumeName", dns_label)):
        if value := reference.get(field):
            errors.invalid_each(path.child(field), value, rule(value))
        else:
            errors.required(path.child(field))
    if file := reference.get("path"):
        check_no_backsteps(file, errors, path.child("path"))
    else:
        errors.required(path.child("path"))


_CHECKS: dict[str, Callable[[JsonObject, ErrorList, Path], None]] = {
    "fieldRef": check_field_ref,
    "resourceFieldRef": check_resource_ref,
    "configMapKeyRef": _check_key_ref,
    "secretKeyRef": _check_key_ref,
    "fileKeyRef": _check_file_ref,
}
