"""The EndpointSlice controller: the pods of a Service, in slices of at most a hundred.

Pods with the same port numbers share slices. A Service without pods has one slice without
endpoints, so that a client can tell an empty Service from one that nobody has looked at.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from kubescene.api.kinds import NODE
from kubescene.api.objects import Pod
from kubescene.api.records.changes import ADDED, Change
from kubescene.api.records.traits import EVERYTHING
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.services.addresses import (
    IPV4,
    IPV6,
    pod_addresses,
    slice_ports,
    spelled,
)
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
from kubescene.errors import ApiError
from kubescene.types import JsonObject

MANAGER = "endpointslice-controller.k8s.io"
REPORTER = "endpoint-slice-controller"
MOST_ENDPOINTS = 100
ZONE = "topology.kubernetes.io/zone"
_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)
_SAME_NODE = "PreferSameNode"
_CLOSE = ("PreferClose", "PreferSameZone", _SAME_NODE)
_TOPOLOGY_MODES = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)


class EndpointSliceReconciler:
    """Keys are Services. Between passes it remembers their pods and slices."""

    name = "endpointslice"
    kinds: Sequence[GroupVersionKind] = (SERVICE, ENDPOINT_SLICE, NODE)

    def __init__(self) -> None:
        self._pods = ServicePods()
        self._slices = KnownSlices(MANAGER)
        self._waiting_for: dict[str, dict[ObjectKey, None]] = {}
        """By node that is not there, the Services with pods on it."""

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
            case "nodes":
                return self._waiting_for.pop(record.name, ()) if change.type is ADDED else ()
        return self._slices.observe(change)

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        del now
        service = reader.find(ObjectRef(SERVICE, key.name, key.namespace))
        if service is None or not has_endpoints(service):
            return NOTHING
        pods, changed_at = self._pods.look(key, service, reader)
        known = self._slices.of(key, reader)
        types = address_types(service)
        writes: list[Write] = []
        for address_type in types:
            slices = [each for each in known if each["addressType"] == address_type]
            endpoints = [*self._endpoints(key, service, pods, address_type, reader)]
            writes += SlicePlan(service, address_type, slices, endpoints).writes(changed_at)
        writes += [Delete(ObjectRef.to(each)) for each in known if each["addressType"] not in types]
        return Plan(writes)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del now
        service = reader.find(ObjectRef(SERVICE, key.name, key.namespace))
        return refusal(service, write, error, REPORTER)

    def _endpoints(
        self,
        key: ObjectKey,
        service: JsonObject,
        pods: Iterable[JsonObject],
        address_type: str,
        reader: Reader,
    ) -> Iterator[tuple[list[JsonObject], JsonObject | None]]:
        """The ports of each pod and its endpoint; none if it has no address of the type.

        A pod on a node that is not there is left out, unless the Service asks for all addresses.
        """
        for pod in pods:
            if not in_endpoints(pod, while_terminating=True):
                continue
            name = pod["spec"].get("nodeName", "")
            node = reader.find(ObjectRef(NODE, name)) if name else None
            endpoint = None
            if node is not None or service["spec"].get("publishNotReadyAddresses"):
                endpoint = endpoint_of(pod, node, service, address_type)
            else:
                self._waiting_for.setdefault(name, {}).setdefault(key)
            yield slice_ports(ports_of(service, pod)), endpoint


def has_endpoints(service: JsonObject) -> bool:
    """Whether the endpoints of a Service are its pods: it has a selector, and a place inside."""
    spec = service["spec"]
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def address_types(service: JsonObject) -> list[str]:
    spec = service["spec"]
    if families := spec.get("ipFamilies"):
        return [each for each in (IPV4, IPV6) if each in families]
    if is_headless(service):
        return [IPV4, IPV6]
    own = spelled(spec["clusterIP"])
    return [own[1] if own else IPV4]


def endpoint_of(
    pod: JsonObject, node: JsonObject | None, service: JsonObject, address_type: str
) -> JsonObject | None:
    addresses = pod_addresses(pod, address_type)
    if not addresses:
        return None
    view = Pod(pod)
    serving, terminating = view.is_ready, view.is_deleting
    published = bool(service["spec"].get("publishNotReadyAddresses"))
    endpoint: JsonObject = {
        "addresses": addresses,
        "conditions": {
            "ready": published or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": target_of(pod),
    }
    zone = ((node or {}).get("metadata", {}).get("labels") or {}).get(ZONE)
    rest = {
        "hostname": hostname_of(pod, service),
        "nodeName": pod["spec"].get("nodeName"),
        "zone": zone,
    }
    return endpoint | {name: value for name, value in rest.items() if value}


def labels_of(service: JsonObject) -> dict[str, str]:
    own = service["metadata"].get("labels") or {}
    labels = {name: value for name, value in own.items() if name not in _RESERVED}
    if is_headless(service):
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: MANAGER}


class SlicePlan:
    """What has to become of the slices of a Service that have addresses of one type."""

    def __init__(
        self,
        service: JsonObject,
        address_type: str,
        slices: Sequence[JsonObject],
        endpoints: Iterable[tuple[list[JsonObject], JsonObject | None]],
    ) -> None:
        self._service = service
        self._type = address_type
        self._labels = labels_of(service)
        self._known = {each["metadata"]["name"]: each for each in slices}
        self._created: list[JsonObject] = []
        self._updated: dict[str, JsonObject] = {}
        self._deleted = [each["metadata"]["name"] for each in slices if not self._owns(each)]
        self._arrange([each for each in slices if self._owns(each)], endpoints)
        self._keep_one()
        self._give_hints()

    def writes(self, changed_at: str) -> Iterator[Write]:
        """New slices are written over those that would go: clients see one change, not two."""
        self._reuse()
        if not self._service["metadata"].get("deletionTimestamp"):
            for each in self._created:
                yield Create(timed(each, changed_at))
        for each in self._updated.values():
            yield Update(timed(each, changed_at))
        for name in self._deleted:
            yield Delete(ObjectRef.to(self._known[name]))

    def _owns(self, known: JsonObject) -> bool:
        uid = self._service["metadata"]["uid"]
        owners = known["metadata"].get("ownerReferences") or ()
        return any(
            (each["uid"], each["kind"], each["apiVersion"]) == (uid, "Service", "v1")
            for each in owners
        )

    def _arrange(
        self,
        slices: Iterable[JsonObject],
        endpoints: Iterable[tuple[list[JsonObject], JsonObject | None]],
    ) -> None:
        """Each group of pods with the same ports into slices of its own."""
        known: dict[Hashable, list[JsonObject]] = {}
        for each in slices:
            known.setdefault(ports_key(each), []).append(each)
        wanted: dict[Hashable, dict[Hashable, JsonObject]] = {}
        ports_by_key: dict[Hashable, list[JsonObject]] = {}
        for ports, endpoint in endpoints:
            key = ports_key({"ports": ports})
            ports_by_key.setdefault(key, ports)
            group = wanted.setdefault(key, {})
            if endpoint is not None:
                group[endpoint_key(endpoint)] = endpoint
        for key, group in wanted.items():
            self._fit(known.get(key, ()), group, ports_by_key[key])
        for key, group_of_slices in known.items():
            if key not in wanted:
                self._deleted += [each["metadata"]["name"] for each in group_of_slices]

    def _fit(
        self,
        slices: Iterable[JsonObject],
        wanted: dict[Hashable, JsonObject],
        ports: list[JsonObject],
    ) -> None:
        """Endpoints stay where they are; new ones go where a write is due anyway, if they fit."""
        updated: dict[str, JsonObject] = {}
        unchanged: dict[str, JsonObject] = {}
        for each in slices:
            name, old = each["metadata"]["name"], each.get("endpoints") or []
            pairs = [(one, wanted.pop(endpoint_key(one), None)) for one in old]
            kept = [new for _, new in pairs if new is not None]
            same = len(kept) == len(old) and all(
                new is not None and same_endpoint(one, new) for one, new in pairs
            )
            if not same and not kept:
                self._deleted.append(name)
            elif not same:
                updated[name] = {**self._labelled(each), "endpoints": kept}
            elif comparable(each["metadata"].get("labels")) != comparable(self._labels):
                updated[name] = self._labelled(each)
            else:
                unchanged[name] = each
        left = [*wanted.values()]
        for name, each in sorted(updated.items(), key=lambda it: -len(it[1]["endpoints"])):
            updated[name], left = filled(each, left)
        while left:
            room = roomiest_fit(unchanged.values(), len(left))
            if room is None:
                made = new_slice(self._service, self._type, ports, self._labels)
                made, left = filled(made, left)
                self._created.append(made)
            else:
                name = room["metadata"]["name"]
                updated[name], left = filled(unchanged.pop(name), left)
        self._updated |= updated

    def _labelled(self, known: JsonObject) -> JsonObject:
        return {**known, "metadata": {**known["metadata"], "labels": self._labels}}

    def _keep_one(self) -> None:
        """Where no slice would be left, there is one without endpoints."""
        if self._created or len(self._known) != len(self._deleted):
            return
        empty = new_slice(self._service, self._type, [], self._labels)
        if len(self._deleted) == 1 and is_alike(self._known[self._deleted[0]], empty):
            self._deleted = []
        else:
            self._created.append(empty)

    def _give_hints(self) -> None:
        """Where traffic should go, if the Service says that it should stay close."""
        hinted = hints_for(self._service)
        for name, each in self._known.items():
            old = each.get("endpoints") or []
            if name not in self._updated and name not in self._deleted and old != hinted(old):
                self._updated[name] = each
        self._created = [{**each, "endpoints": hinted(each["endpoints"])} for each in self._created]
        for name, each in self._updated.items():
            self._updated[name] = {**each, "endpoints": hinted(each.get("endpoints") or [])}

    def _reuse(self) -> None:
        for name in [*self._deleted]:
            if self._created and self._owns(self._known[name]):
                self._updated[name] = in_place_of(self._created.pop(), self._known[name])
                self._deleted.remove(name)


def timed(obj: JsonObject, changed_at: str) -> JsonObject:
    metadata = dict(obj["metadata"])
    annotations = with_time(metadata.pop("annotations", None) or {}, changed_at)
    return {
        **obj,
        "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
    }


def comparable(labels: JsonObject | None) -> dict[str, str]:
    """Labels that a change of the Service's own can have changed."""
    return {name: each for name, each in (labels or {}).items() if name not in _RESERVED}


def is_alike(known: JsonObject, empty: JsonObject) -> bool:
    return (
        not known.get("endpoints")
        and not known.get("ports")
        and known["metadata"].get("labels") == empty["metadata"]["labels"]
    )


def filled(into: JsonObject, endpoints: list[JsonObject]) -> tuple[JsonObject, list[JsonObject]]:
    """A slice with as many of the endpoints as it has room for, and the others."""
    old = into.get("endpoints") or []
    room = max(MOST_ENDPOINTS - len(old), 0)
    return {**into, "endpoints": [*old, *endpoints[:room]]}, endpoints[room:]


def roomiest_fit(slices: Iterable[JsonObject], count: int) -> JsonObject | None:
    """The slice that would be fullest with so many more endpoints."""
    fitting = [
        each for each in slices if 0 < len(each.get("endpoints") or ()) + count <= MOST_ENDPOINTS
    ]
    if count >= MOST_ENDPOINTS or not fitting:
        return None
    return max(fitting, key=lambda each: len(each.get("endpoints") or ()))


def hints_for(service: JsonObject) -> Callable[[list[JsonObject]], list[JsonObject]]:
    """What gives endpoints the hints that a Service asks for, and takes all others."""
    distribution = service["spec"].get("trafficDistribution")
    annotations = service["metadata"].get("annotations") or {}
    mode = next((annotations[name] for name in _TOPOLOGY_MODES if name in annotations), "")
    if distribution not in _CLOSE or mode in ("Auto", "auto"):
        return lambda endpoints: [without_hints(each) for each in endpoints]
    to_node = distribution == _SAME_NODE
    return lambda endpoints: [with_hints(each, to_node=to_node) for each in endpoints]


def without_hints(endpoint: JsonObject) -> JsonObject:
    return {name: value for name, value in endpoint.items() if name != "hints"}


def with_hints(endpoint: JsonObject, *, to_node: bool) -> JsonObject:
    """Hints to the zone of a ready endpoint, and to its node if asked for."""
    if not endpoint["conditions"].get("ready"):
        return endpoint
    hints = {}
    if zone := endpoint.get("zone"):
        hints["forZones"] = [{"name": zone}]
    if to_node and (node := endpoint.get("nodeName")):
        hints["forNodes"] = [{"name": node}]
    return {**without_hints(endpoint), **({"hints": hints} if hints else {})}


def endpoint_slices(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(EndpointSliceReconciler(), context, EVERYTHING)
