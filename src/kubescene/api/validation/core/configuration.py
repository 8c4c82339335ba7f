"""ConfigMaps and Secrets: keys, size, and the switch that freezes them."""

import base64
import binascii
import json

from kubescene.api.validation.field_errors import ErrorList
from kubescene.api.validation.field_paths import METADATA, Path
from kubescene.api.validation.metadata import (
    IMMUTABLE,
    validate_metadata,
    validate_metadata_update,
)
from kubescene.api.validation.names import config_key, dns_subdomain, size
from kubescene.types import JsonObject

_MAX_SIZE = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"
_REQUIRED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_DOCKER_KEYS = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_GO_KINDS = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}
_DATA = Path("data")


def validate_config_map(config_map: JsonObject, errors: ErrorList) -> None:
    validate_metadata(
        config_map.get("metadata") or {}, errors, namespaced=True, name_rule=dns_subdomain
    )
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    for key in data:
        errors.invalid_each(_DATA.key(key), key, config_key(key))
        if key in binary:
            errors.invalid(_DATA.key(key), key, "duplicate of key present in binaryData")
    for key in binary:
        errors.invalid_each(Path("binaryData").key(key), key, config_key(key))
    total = sum(map(size, data.values())) + sum(map(_decoded_size, binary.values()))
    if total > _MAX_SIZE:
        errors.too_long(Path("[]"), _MAX_SIZE)


def validate_config_map_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    _check_frozen(new, old, ("data", "binaryData"), errors)
    validate_config_map(new, errors)


def validate_secret(secret: JsonObject, errors: ErrorList) -> None:
    metadata, data = secret.get("metadata") or {}, secret.get("data") or {}
    validate_metadata(metadata, errors, namespaced=True, name_rule=dns_subdomain)
    for key in data:
        errors.invalid_each(_DATA.key(key), key, config_key(key))
    if sum(map(_decoded_size, data.values())) > _MAX_SIZE:
        errors.too_long(_DATA, _MAX_SIZE)
    kind = secret.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        if not (metadata.get("annotations") or {}).get(_SERVICE_ACCOUNT):
            errors.required(METADATA.child("annotations").key(_SERVICE_ACCOUNT))
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors.required(_DATA.key("username"))
            errors.required(_DATA.key("password"))
    else:
        _check_keys(kind, data, errors)


def _check_keys(kind: str, data: dict[str, str], errors: ErrorList) -> None:
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            errors.required(_DATA.key(key))
    docker = _DOCKER_KEYS.get(kind)
    if docker in data and (problem := _json_problem(data[docker])):
        errors.invalid(_DATA.key(docker), "<secret contents redacted>", problem)


def _json_problem(encoded: str | list[int]) -> str:
    """Why this is no JSON object. Only the commonest of Go's complaints are told apart."""
    try:
        data = bytes(encoded) if isinstance(encoded, list) else base64.b64decode(encoded)
        text = data.decode(errors="replace").strip()
        value = json.loads(text)
    except binascii.Error:
        return "illegal base64 data"
    except ValueError:
        if not text:
            return "unexpected end of JSON input"
        return f"invalid character '{text[0]}' looking for beginning of value"
    kind = _GO_KINDS.get(type(value))
    if kind is None:
        return ""
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


def _decoded_size(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def validate_secret_update(new: JsonObject, old: JsonObject, errors: ErrorList) -> None:
    validate_metadata_update(new["metadata"], old["metadata"], errors)
    if new.get("type", "") != old.get("type", ""):
        errors.invalid(Path("type"), new.get("type", ""), IMMUTABLE)
    _check_frozen(new, old, ("data",), errors)
    validate_secret(new, errors)


def _check_frozen(
    new: JsonObject, old: JsonObject, fields: tuple[str, ...], errors: ErrorList
) -> None:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        errors.forbidden(Path("immutable"), _FROZEN)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            errors.forbidden(Path(field), _FROZEN)
