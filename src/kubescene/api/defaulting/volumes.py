"""Defaults of the volumes in a pod spec."""

from functools import partial

from kubescene.api.defaulting.claims import default_claim_spec
from kubescene.api.defaulting.images import pull_policy
from kubescene.api.defaulting.resources import canonical_quantity
from kubescene.api.defaulting.sharing import (
    Defaulter,
    at,
    filled,
    filled_unset,
    into,
    within,
    within_each,
)
from kubescene.types import JsonObject

_READABLE_BY_ALL = {"defaultMode": 0o644}
_TOKEN_LIFETIME = {"expirationSeconds": 3600}
_FIELD_API_VERSION = {"apiVersion": "v1"}

_PLAIN_SOURCES: dict[str, JsonObject] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_AZURE_DISK = {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}

SHARED_SOURCES = (*_PLAIN_SOURCES, "azureDisk", "hostPath")
"""Sources with defaults that pods and persistent volumes have in common."""


def default_volume(volume: JsonObject) -> JsonObject:
    """A volume without any source is an emptyDir; each kind of source has its own defaults."""
    changes: JsonObject = {}
    has_source = False
    for key, source in volume.items():
        if key == "name" or source is None:
            continue
        has_source = True
        default = _SOURCES.get(key)
        if default is not None:
            done = default(source)
            if done is not source:
                changes[key] = done
    if not has_source:
        changes["emptyDir"] = {}
    return {**volume, **changes} if changes else volume


def default_source(kind: str, source: JsonObject) -> JsonObject:
    """Defaults of a source that pods and persistent volumes share."""
    if kind == "azureDisk":
        return filled_unset(source, _AZURE_DISK)
    if kind == "hostPath":
        return filled_unset(source, {"type": ""})
    plain = _PLAIN_SOURCES.get(kind)
    return filled(source, plain) if plain else source


def default_field_ref(selector: JsonObject) -> JsonObject:
    """Fields are named in the vocabulary of ``v1`` unless said otherwise."""
    return filled(selector, _FIELD_API_VERSION)


def _mode(source: JsonObject) -> JsonObject:
    return filled_unset(source, _READABLE_BY_ALL)


def default_resource_ref(selector: JsonObject) -> JsonObject:
    """The divisor in canonical form; "0" stands for the unit of the resource."""
    stated = selector.get("divisor")
    divisor = canonical_quantity(stated or "0")
    return selector if divisor == stated else {**selector, "divisor": divisor}


def _downward_item(item: JsonObject) -> JsonObject:
    item = within(item, "resourceFieldRef", default_resource_ref)
    return within(item, "fieldRef", default_field_ref)


def _downward_api(source: JsonObject) -> JsonObject:
    return within_each(_mode(source), "items", _downward_item)


def _projection(source: JsonObject) -> JsonObject:
    source = at(source, ("serviceAccountToken",), lambda it: filled_unset(it, _TOKEN_LIFETIME))
    return within(source, "downwardAPI", lambda it: within_each(it, "items", _downward_item))


def _projected(source: JsonObject) -> JsonObject:
    return within_each(_mode(source), "sources", _projection)


def _empty_dir(source: JsonObject) -> JsonObject:
    return within(source, "sizeLimit", canonical_quantity)


def _ephemeral(source: JsonObject) -> JsonObject:
    return within(source, "volumeClaimTemplate", _claim_template)


def _claim_template(template: JsonObject) -> JsonObject:
    return into(filled_unset(template, {"metadata": {}}), "spec", default_claim_spec)


def _image(source: JsonObject) -> JsonObject:
    if source.get("pullPolicy"):
        return source
    return {**source, "pullPolicy": pull_policy(source.get("reference") or "")}


_SOURCES: dict[str, Defaulter] = {
    "secret": _mode,
    "configMap": _mode,
    "downwardAPI": _downward_api,
    "projected": _projected,
    "ephemeral": _ephemeral,
    "image": _image,
    "emptyDir": _empty_dir,
    **{kind: partial(default_source, kind) for kind in SHARED_SOURCES},
}
