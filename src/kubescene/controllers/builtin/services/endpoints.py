"""The Endpoints controller: the pods of a Service in one object, as it was before slices."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TypeAlias

from kubescene.api.objects import Pod
from kubescene.api.records.changes import DELETED, Change
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.services.addresses import (
    address_order,
    pod_addresses,
    subset_ports,
)
from kubescene.controllers.builtin.services.endpoint_slices import address_types, has_endpoints
from kubescene.controllers.builtin.services.service_pods import (
    ENDPOINTS,
    HEADLESS,
    SERVICE,
    ServicePods,
    hostname_of,
    in_endpoints,
    is_headless,
    ports_of,
    target_of,
    with_time,
)
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Plan,
    Update,
    Write,
)
from kubescene.errors import ApiError, ConflictError, NotFoundError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MOST_ADDRESSES = 1000
_KINDS = ("addresses", "notReadyAddresses")


class EndpointsReconciler:
    """Keys are Services. Between passes it remembers their pods."""

    name = "endpoints"
    kinds: Sequence[GroupVersionKind] = (SERVICE, ENDPOINTS)

    def __init__(self) -> None:
        self._pods = ServicePods()

    @property
    def needs_pods(self) -> bool:
        return bool(self._pods)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        match record.resource.resource:
            case "pods":
                return self._pods.observe_pod(change)
            case "services":
                return (self._pods.observe_service(change),)
        # What somebody else writes into them stays until the Service or its pods change.
        return (ObjectKey(record.namespace, record.name),) if change.type is DELETED else ()

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        service = reader.find(ObjectRef(SERVICE, key.name, key.namespace))
        ref = ObjectRef(ENDPOINTS, key.name, key.namespace)
        known = reader.find(ref)
        if service is None:
            return NOTHING if known is None else Plan((Delete(ref),))
        if not has_endpoints(service):
            return NOTHING
        pods, changed_at = self._pods.look(key, service, reader)
        made = endpoints_of(service, pods)
        if known is None:
            return Plan((Create(with_annotations(made, {}, changed_at)),))
        annotations = known["metadata"].get("annotations") or {}
        if is_current(known, made):
            return NOTHING
        renewed = with_annotations(made, annotations, changed_at)
        metadata = {
            **known["metadata"],
            "labels": made["metadata"]["labels"],
            "annotations": renewed["metadata"].get("annotations") or {},
        }
        return Plan((Update({**known, "metadata": metadata, "subsets": renewed["subsets"]}),))

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """What is refused is told, unless others were faster, or nothing may be created."""
        del now
        if isinstance(error, ConflictError | NotFoundError):
            return NOTHING
        if error.has_cause("NamespaceTerminating"):
            return NOTHING
        verb = "Create" if isinstance(write, Create) else "Update"
        named = "endpoint for service" if verb == "Create" else "endpoint"
        message = f"Failed to {verb.lower()} {named} {key.namespace}/{key.name}: {error.message}"
        metadata = {"namespace": key.namespace, "name": key.name}
        unwritten = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
        known = reader.find(ObjectRef(ENDPOINTS, key.name, key.namespace)) or unwritten
        reason = f"FailedTo{verb}Endpoint"
        return Plan(notices=(Notice(regarding(known), WARNING, reason, message, MANAGER),))


def endpoints_of(service: JsonObject, pods: Iterable[JsonObject]) -> JsonObject:
    spec, metadata = service["spec"], service["metadata"]
    published = bool(spec.get("publishNotReadyAddresses"))
    family = (spec.get("ipFamilies") or address_types(service))[0]
    parts = Subsets()
    for pod in pods:
        if not in_endpoints(pod, while_terminating=published):
            continue
        addresses = pod_addresses(pod, family)
        if not addresses:
            continue
        address = {"ip": addresses[0], "targetRef": target_of(pod)}
        if node := pod["spec"].get("nodeName"):
            address["nodeName"] = node
        if hostname := hostname_of(pod, service):
            address["hostname"] = hostname
        ready = published or Pod(pod).is_ready
        if spec.get("ports"):
            for port in ports_of(service, pod):
                parts.add(address, port, ready=ready)
        elif spec.get("clusterIP") == "None":
            parts.add(address, None, ready=ready)
    labels = {**(metadata.get("labels") or {})}
    labels.pop(HEADLESS, None)
    if is_headless(service):
        labels[HEADLESS] = ""
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {**labels, MANAGED_BY: MANAGER},
        },
        "subsets": parts.packed(),
    }


Readiness: TypeAlias = tuple[tuple[tuple[str, str], bool], ...]
"""Addresses, by themselves and the uids of their pods, and whether they are ready."""


class Subsets:
    """Addresses by port, packed so that ports with the same addresses are written together."""

    def __init__(self) -> None:
        self._ports: dict[tuple[tuple[str, object], ...], dict[tuple[str, str], bool]] = {}
        self._addresses: dict[tuple[str, str], JsonObject] = {}

    def add(self, address: JsonObject, port: JsonObject | None, *, ready: bool) -> None:
        """An address that was once not ready at a port is not ready there."""
        key = (address["ip"], (address.get("targetRef") or {}).get("uid", ""))
        self._addresses.setdefault(key, address)
        at = self._ports.setdefault(tuple(sorted((port or {}).items())), {})
        at[key] = at.get(key, True) and ready

    def packed(self) -> list[JsonObject]:
        groups: dict[Readiness, list[JsonObject]] = {}
        for port, addresses in self._ports.items():
            named = {name: value for name, value in port if value != ""}
            groups.setdefault(tuple(sorted(addresses.items())), []).append(named)
        return [self._subset(addresses, ports) for addresses, ports in groups.items()]

    def _subset(self, addresses: Readiness, ports: list[JsonObject]) -> JsonObject:
        by_kind: dict[str, list[JsonObject]] = {}
        for key, ready in addresses:
            by_kind.setdefault(_KINDS[not ready], []).append(self._addresses[key])
        subset: JsonObject = {
            kind: sorted(by_kind[kind], key=address_order) for kind in _KINDS if kind in by_kind
        }
        return {**subset, "ports": subset_ports(ports)} if ports != [{}] else subset


def is_current(known: JsonObject, made: JsonObject) -> bool:
    """Whether nothing has to be written: addresses and labels agree, and nothing is cut off."""
    metadata, subsets = known["metadata"], known.get("subsets") or []
    return (
        subsets == made["subsets"]
        and (metadata.get("labels") or {}) == made["metadata"]["labels"]
        and OVER_CAPACITY not in (metadata.get("annotations") or {})
    )


def with_annotations(made: JsonObject, old: JsonObject, changed_at: str) -> JsonObject:
    """The same with annotations for the time of the change, and for what had to be left out."""
    kept = {name: value for name, value in old.items() if name != OVER_CAPACITY}
    annotations = with_time(kept, changed_at)
    subsets = truncated(made["subsets"])
    if subsets is not made["subsets"]:
        annotations[OVER_CAPACITY] = "truncated"
    metadata = made["metadata"] | ({"annotations": annotations} if annotations else {})
    return {**made, "metadata": metadata, "subsets": subsets}


def truncated(subsets: list[JsonObject]) -> list[JsonObject]:
    """No more than a thousand addresses, shared among the subsets; those that are ready first."""
    ready, others = (sum(len(each.get(kind, ())) for each in subsets) for kind in _KINDS)
    if ready + others <= MOST_ADDRESSES:
        return subsets
    cut, kept = (0, MOST_ADDRESSES) if ready > MOST_ADDRESSES else (1, MOST_ADDRESSES - ready)
    total, left, result = (ready, others)[cut], kept, []
    for subset in subsets:
        addresses = subset.get(_KINDS[cut], [])
        some = addresses[: min(ceil(len(addresses) / total * kept), left)]
        left -= len(some)
        rest = {name: each for name, each in subset.items() if name not in _KINDS[cut:]}
        result.append({**rest, **({_KINDS[cut]: some} if some else {})})
    return result


def endpoints(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(EndpointsReconciler(), context, EVERYTHING)
