"""The mirroring controller: Endpoints that somebody wrote by hand, as EndpointSlices.

It looks after Services without a selector only: those with one have slices of their own.
"""

from collections.abc import Hashable, Iterable, Sequence

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.services.addresses import IPV4, IPV6, slice_ports, spelled
from kubescene.controllers.builtin.services.known_slices import (
    MANAGED_BY,
    SERVICE_NAME,
    KnownSlices,
    endpoint_key,
    in_place_of,
    new_slice,
    ports_key,
    refusal,
    same_endpoint,
)
from kubescene.controllers.builtin.services.service_pods import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    LAST_CHANGE,
    SERVICE,
)
from kubescene.controllers.reconcile import (
    Create,
    Delete,
    ObjectKey,
    Plan,
    Update,
    Write,
)
from kubescene.controllers.runtime import ReconcilerController
from kubescene.errors import ApiError
from kubescene.recording import WARNING, Notice, regarding
from kubescene.types import JsonObject

MANAGER = "endpointslicemirroring-controller.k8s.io"
REPORTER = "endpoint-slice-mirroring-controller"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
MOST_ADDRESSES = 1000
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_NOT_MIRRORED = (LAST_CHANGE, "kubectl.kubernetes.io/last-applied-configuration")


class MirroringReconciler:
    """Keys are Endpoints. Between passes it remembers the slices it made of them."""

    name = "endpointslicemirroring"
    kinds: Sequence[GroupVersionKind] = (ENDPOINTS, SERVICE, ENDPOINT_SLICE)

    def __init__(self) -> None:
        self._slices = KnownSlices(MANAGER)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        record = change.record
        if record.resource.resource == "endpointslices":
            return self._slices.observe(change)
        return (ObjectKey(record.namespace, record.name),)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        known = self._slices.of(key, reader)
        endpoints = reader.find(ObjectRef(ENDPOINTS, key.name, key.namespace))
        service = reader.find(ObjectRef(SERVICE, key.name, key.namespace))
        if (
            endpoints is None
            or not is_mirrored(endpoints)
            or service is None
            or service["spec"].get("selector")
        ):
            return Plan([Delete(ObjectRef.to(each)) for each in known])
        return mirrored(endpoints, known)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del now
        endpoints = reader.find(ObjectRef(ENDPOINTS, key.name, key.namespace))
        return refusal(endpoints, write, error, REPORTER)


def is_mirrored(endpoints: JsonObject) -> bool:
    metadata = endpoints["metadata"]
    skips = (metadata.get("labels") or {}).get(SKIP) == "true"
    return not skips and _LEADER not in (metadata.get("annotations") or {})


def mirrored(endpoints: JsonObject, known: Iterable[JsonObject]) -> Plan:
    """One slice for the addresses of a type that have the same ports."""
    wanted, skipped = wanted_slices(endpoints)
    old: dict[Hashable, list[JsonObject]] = {}
    for each in known:
        old.setdefault((each["addressType"], ports_key(each)), []).append(each)
    created, updated, deleted = [], [], []
    for key, made in wanted.items():
        same = old.pop(key, [])
        deleted += same[1:]
        if not same:
            created.append(made)
        elif not is_current(same[0], made):
            updated.append(in_place_of(made, same[0]))
    deleted += [each for slices in old.values() for each in slices]
    for each in [*deleted]:
        fitting = [made for made in created if made["addressType"] == each["addressType"]]
        if fitting:
            created.remove(fitting[0])
            deleted.remove(each)
            updated.append(in_place_of(fitting[0], each))
    if endpoints["metadata"].get("deletionTimestamp"):
        created = []
    writes: list[Write] = [Create(each) for each in created]
    writes += [Update(each) for each in updated]
    writes += [Delete(ObjectRef.to(each)) for each in deleted]
    return Plan(writes, notices=(too_many(endpoints, skipped),) if skipped else ())


def wanted_slices(endpoints: JsonObject) -> tuple[dict[Hashable, JsonObject], int]:
    """The slices that there should be, and how many addresses were one too many for a subset."""
    slices: dict[Hashable, JsonObject] = {}
    taken: set[Hashable] = set()
    skipped = 0
    for subset in endpoints.get("subsets") or ():
        ports = slice_ports({"name": "", **port} for port in subset.get("ports") or ())
        given = [(each, True) for each in subset.get("addresses") or ()]
        given += [(each, False) for each in subset.get("notReadyAddresses") or ()]
        skipped += max(len(given) - MOST_ADDRESSES, 0)
        for address, ready in given[:MOST_ADDRESSES]:
            found = spelled(address["ip"])
            if found is None:
                continue
            endpoint, address_type = endpoint_of(address, found[0], ready=ready), found[1]
            key = (address_type, ports_key({"ports": ports}))
            if (key, endpoint_key(endpoint)) not in taken:
                taken.add((key, endpoint_key(endpoint)))
                made = slices.get(key) or slices.setdefault(
                    key, empty_slice(endpoints, address_type, ports)
                )
                made["endpoints"].append(endpoint)
    ordered = sorted(slices, key=lambda key: (IPV4, IPV6).index(slices[key]["addressType"]))
    return {key: slices[key] for key in ordered}, skipped


def endpoint_of(address: JsonObject, text: str, *, ready: bool) -> JsonObject:
    kept = ("hostname", "nodeName", "targetRef")
    rest = {name: address[name] for name in kept if address.get(name)}
    return {"addresses": [text], "conditions": {"ready": ready}, **rest}


def empty_slice(endpoints: JsonObject, address_type: str, ports: list[JsonObject]) -> JsonObject:
    metadata = endpoints["metadata"]
    own = {SERVICE_NAME: metadata["name"], MANAGED_BY: MANAGER}
    made = new_slice(endpoints, address_type, ports, (metadata.get("labels") or {}) | own)
    if annotations := kept_annotations(metadata):
        made["metadata"]["annotations"] = annotations
    return made


def kept_annotations(metadata: JsonObject) -> dict[str, str]:
    given = metadata.get("annotations") or {}
    return {name: value for name, value in given.items() if name not in _NOT_MIRRORED}


def is_current(known: JsonObject, made: JsonObject) -> bool:
    """Whether a slice has the same endpoints, labels and annotations."""
    old = {endpoint_key(each): each for each in known.get("endpoints") or ()}
    new = {endpoint_key(each): each for each in made["endpoints"]}
    metadata = known["metadata"]
    return (
        old.keys() == new.keys()
        and all(same_endpoint(each, new[key]) for key, each in old.items())
        and (metadata.get("labels") or {}) == made["metadata"]["labels"]
        and (metadata.get("annotations") or {}) == made["metadata"].get("annotations", {})
    )


def too_many(endpoints: JsonObject, skipped: int) -> Notice:
    message = (
        f"A max of {MOST_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints "
        f"subset. {skipped} addresses were skipped"
    )
    return Notice(regarding(endpoints), WARNING, "TooManyAddressesToMirror", message, REPORTER)


def mirrored_endpoints(context: ControllerContext) -> ReconcilerController:
    """The factory of the controller."""
    return ReconcilerController(MirroringReconciler(), context)
