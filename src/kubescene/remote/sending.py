"""Objects and options as they are sent to a server."""

from kubescene.api.options import WriteOptions
from kubescene.registry.writes import WriteRequest
from kubescene.types import JsonObject

DATES = ("creationTimestamp", "deletionTimestamp")
"""Which nobody may change, and a server knows if they are left out."""


def plain(request: WriteRequest) -> WriteOptions:
    """The options as they can be told over HTTP."""
    options = request.options
    return WriteOptions(
        dry_run=options.dry_run,
        field_manager=request.manager,
        strict=options.strict,
        force=options.force,
    )


def named(name: str, namespace: str) -> JsonObject:
    """The metadata that say which object is meant."""
    return {**({"name": name} if name else {}), **({"namespace": namespace} if namespace else {})}


def undated(metadata: JsonObject) -> JsonObject:
    """Metadata that can be sent back: dates are the scenario's here, and the server's there."""
    return {name: value for name, value in metadata.items() if name not in DATES}


def is_same(new: JsonObject, old: JsonObject, subresource: str) -> bool:
    """Whether an update changes nothing, as far as can be told from here."""
    if subresource == "status":
        return bool(new.get("status") == old.get("status"))
    return new == old
