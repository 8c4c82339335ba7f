"""EndpointSlices by the Service that they belong to, and how their endpoints are compared."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from kubescene.api.records.changes import DELETED, Change
from kubescene.client import ObjectRef, Reader
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.services.service_pods import ENDPOINT_SLICE
from kubescene.controllers.reconcile import NOTHING, Create, Delete, ObjectKey, Plan, Write
from kubescene.errors import ApiError, ConflictError, NotFoundError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"


class KnownSlices:
    """The slices that one controller manages."""

    def __init__(self, manager: str) -> None:
        self._manager = manager
        self._names: dict[ObjectKey, dict[str, None]] = {}
        self._services: dict[ObjectKey, ObjectKey] = {}

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        """The Services to which a slice belongs or belonged."""
        record = change.record
        name = ObjectKey(record.namespace, record.name)
        before, now = self._services.pop(name, None), None
        if change.type is not DELETED and record.labels.get(MANAGED_BY) == self._manager:
            now = ObjectKey(record.namespace, record.labels.get(SERVICE_NAME, ""))
            self._services[name] = now
        if before != now:
            if before is not None:
                del self._names[before][name.name]
                if not self._names[before]:
                    del self._names[before]
            if now is not None:
                self._names.setdefault(now, {}).setdefault(name.name)
        return dict.fromkeys(each for each in (before, now) if each is not None)

    def of(self, service: ObjectKey, reader: Reader) -> list[JsonObject]:
        """The slices of a Service, by name."""
        refs = (
            ObjectRef(ENDPOINT_SLICE, name, service.namespace)
            for name in sorted(self._names.get(service, ()))
        )
        found = (reader.find(ref) for ref in refs)
        return [each for each in found if each is not None]


def new_slice(
    owner: JsonObject, address_type: str, ports: list[JsonObject], labels: Mapping[str, str]
) -> JsonObject:
    """A slice without endpoints, to be named after its owner."""
    metadata = owner["metadata"]
    made: JsonObject = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": dict(labels),
            "ownerReferences": [controller_of(owner)],
        },
        "addressType": address_type,
        "endpoints": [],
    }
    return {**made, "ports": ports} if ports else made


def in_place_of(made: JsonObject, old: JsonObject) -> JsonObject:
    """A new slice written over one that is there already."""
    identity = ("name", "uid", "resourceVersion", "creationTimestamp", "generateName")
    kept = {name: old["metadata"][name] for name in identity if name in old["metadata"]}
    return {**made, "metadata": {**made["metadata"], **kept}}


def ports_key(obj: JsonObject) -> Hashable:
    """Slices with the same ports hold endpoints that are interchangeable."""
    return tuple(tuple(sorted(port.items())) for port in obj.get("ports") or ())


def endpoint_key(endpoint: JsonObject) -> Hashable:
    """Endpoints that differ here are different ones; what else differs can change."""
    target = endpoint.get("targetRef") or {}
    addresses = tuple(endpoint["addresses"])
    return (addresses, endpoint.get("hostname"), target.get("namespace"), target.get("name"))


def same_endpoint(one: JsonObject, other: JsonObject) -> bool:
    """Whether two endpoints with the same key agree, hints aside."""
    return _compared(one) == _compared(other)


def _compared(endpoint: JsonObject) -> dict[str, Any]:
    target = endpoint.get("targetRef") or {}
    conditions = endpoint.get("conditions") or {}
    return {
        "nodeName": endpoint.get("nodeName"),
        "zone": endpoint.get("zone"),
        "conditions": {name: value for name, value in conditions.items() if value is not None},
        "targetRef": {name: each for name, each in target.items() if name != "resourceVersion"},
    }


def refusal(owner: JsonObject | None, write: Write, error: ApiError, reporter: str) -> Plan:
    """Tell that slices of a Service or of Endpoints could not be written.

    Nothing is told if others were faster, or if the namespace goes and nothing can be created.
    """
    if (
        owner is None
        or isinstance(error, ConflictError | NotFoundError)
        or error.has_cause("NamespaceTerminating")
    ):
        return NOTHING
    place, kind = f"{owner['metadata']['namespace']}/{owner['metadata']['name']}", owner["kind"]
    verb = {Create: "create", Delete: "delete"}.get(type(write), "update")
    message = (
        f"Error updating Endpoint Slices for {kind} {place}: failed to {verb} EndpointSlice for "
        f"{kind} {place}: {error.message}"
    )
    reason = "FailedToUpdateEndpointSlices"
    return Plan(notices=(Notice(regarding(owner), WARNING, reason, message, reporter),))
