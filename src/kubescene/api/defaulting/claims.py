"""Defaults of PersistentVolumeClaim, also where its spec is embedded as a template."""

from kubescene.api.defaulting.resources import default_resources, resource_list
from kubescene.api.defaulting.sharing import filled, filled_unset, into, within
from kubescene.types import JsonObject

_SPEC: JsonObject = {"volumeMode": "Filesystem", "resources": {}}
_PENDING = {"phase": "Pending"}


def default_claim(claim: JsonObject) -> JsonObject:
    """A claim: a file system, pending until it is bound."""
    return into(into(claim, "spec", default_claim_spec), "status", _claim_status)


def default_claim_spec(spec: JsonObject) -> JsonObject:
    """The spec of a claim or of a claim template."""
    return within(filled_unset(spec, _SPEC), "resources", default_resources)


def _claim_status(status: JsonObject) -> JsonObject:
    status = filled(status, _PENDING)
    for key in ("capacity", "allocatedResources"):
        status = within(status, key, resource_list)
    return status
