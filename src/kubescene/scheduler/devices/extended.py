"""Extended resources that a DeviceClass backs: pods ask for a number, devices are allocated.

A node whose kubelet offers such a resource gives it to pods as ever; for all others one claim is
made per pod, with a request per container and resource.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from kubescene.api.quantity import Quantity, QuantityError, parse
from kubescene.scheduler.devices.classes import DeviceClass, DeviceClasses, is_extended
from kubescene.scheduler.devices.cluster import EXTENDED_RESOURCE_CLAIM
from kubescene.scheduler.devices.requests import ClaimSpec, read_spec
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import JsonObject, ReadOnlyObject

IN_MEMORY = "<extended-resources>"
"""The name of a claim that is not written yet; no real one can have it."""


class NodeClaim(NamedTuple):
    """The claim for those resources that a node does not offer by itself."""

    requests: list[JsonObject]
    mappings: list[JsonObject]
    spec: ClaimSpec


@dataclass(slots=True)
class ExtendedResources:
    """What one pod asks for. ``claim`` is in memory, or left over from an earlier attempt."""

    claim: ReadOnlyObject
    containers: Sequence[ReadOnlyObject]
    init_count: int
    amounts: Mapping[str, int]
    classes: Mapping[str, DeviceClass]
    _variants: dict[tuple[str, ...], NodeClaim] = field(default_factory=dict)

    @property
    def is_left_over(self) -> bool:
        return bool(((self.claim.get("spec") or {}).get("devices") or {}).get("requests"))

    def missing_on(self, node: NodeInfo) -> tuple[str, ...] | None:
        """The resources for which the node needs devices; None if it lacks one for good."""
        missing = []
        for name in self.amounts:
            if name in self.classes and not node.allocatable.get(name):
                missing.append(name)
            elif name not in node.allocatable:
                return None
        return tuple(missing)

    def variant(self, missing: tuple[str, ...]) -> NodeClaim:
        """The claim for some of the resources."""
        found = self._variants.get(missing)
        if found is None:
            requests, mappings = _requests(self, sorted(missing))
            spec = read_spec(orjson.dumps({"requests": requests}))
            found = self._variants[missing] = NodeClaim(requests, mappings, spec)
        return found


def extended_resources(
    pod: PodInfo, classes: DeviceClasses, left_over: ReadOnlyObject | None
) -> ExtendedResources:
    spec = pod.object["spec"]
    init = spec.get("initContainers") or ()
    amounts = {name: each for name, each in pod.requests.items() if each and is_extended(name)}
    mapped = {name: found for name in amounts if (found := classes.of_resource(name)) is not None}
    containers = (*init, *spec["containers"])
    claim = left_over or in_memory_claim(pod)
    return ExtendedResources(claim, containers, len(init), amounts, mapped)


def in_memory_claim(pod: PodInfo) -> JsonObject:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    metadata = {
        "namespace": pod.namespace,
        "name": IN_MEMORY,
        "generateName": f"{pod.name}-extended-resources-",
        "ownerReferences": [{**owner, "controller": True}],
        "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {}},
    }


def _requests(
    pod: ExtendedResources, names: Sequence[str]
) -> tuple[list[JsonObject], list[JsonObject]]:
    """Requests in order of their names, and which container uses which of them.

    Init containers that end before others begin use the devices of later containers first; what
    they need beyond is one request for all of them.
    """
    requests: list[JsonObject] = []
    mappings: list[JsonObject] = []
    for resource in names:
        made = _ResourceRequests(pod, resource)
        requests.extend(made.requests())
        mappings.extend(made.mappings())
    return sorted(requests, key=_name), mappings


class _Asked(NamedTuple):
    """A request that a container makes of its own, and all that it uses."""

    request: JsonObject | None
    used: list[JsonObject]


class _ResourceRequests:
    """Requests for one resource."""

    def __init__(self, pod: ExtendedResources, resource: str) -> None:
        self._pod = pod
        self._resource = resource
        self._class_name = pod.classes[resource].name
        self._lasting = {at: self._asked(at, ()) for at in self._positions(lasting=True)}
        self._passing = [self._asked(at, self._later(at)) for at in self._positions(lasting=False)]

    def requests(self) -> Iterator[JsonObject]:
        if (largest := self._largest()) is not None:
            yield largest
        yield from (each.request for each in self._lasting.values() if each.request is not None)

    def mappings(self) -> Iterator[JsonObject]:
        for lasting in self._lasting.values():
            yield from lasting.used
        largest = self._largest()
        merged = {each.request["name"] for each in self._passing if each.request is not None}
        for passing in self._passing:
            for used in passing.used:
                is_merged = largest is not None and used["requestName"] in merged
                yield {**used, "requestName": largest["name"]} if largest and is_merged else used

    def _positions(self, *, lasting: bool) -> Iterator[int]:
        for at, container in enumerate(self._pod.containers):
            passes = at < self._pod.init_count and container.get("restartPolicy") != "Always"
            if passes is not lasting:
                yield at

    def _later(self, at: int) -> list[JsonObject]:
        """Requests of containers that run after a passing one."""
        return [
            each.request
            for position, each in self._lasting.items()
            if position >= at and each.request is not None
        ]

    def _largest(self) -> JsonObject | None:
        own = [each.request for each in self._passing if each.request is not None]
        return max(own, key=_count, default=None)

    def _asked(self, at: int, reusable: Sequence[JsonObject]) -> _Asked:
        container = self._pod.containers[at]
        asked = (container.get("resources") or {}).get("requests") or {}
        amount = _whole(asked.get(self._resource))
        used: list[JsonObject] = []
        held = 0
        if not amount:
            return _Asked(None, used)
        for request in reusable:
            held += _count(request)
            used.append(self._mapping(container, request))
            if held >= amount:
                return _Asked(None, used)
        name = f"container-{at}-request-{sorted(asked).index(self._resource)}"
        exactly = {
            "deviceClassName": self._class_name,
            "allocationMode": "ExactCount",
            "count": amount - held,
        }
        request = {"name": name, "exactly": exactly}
        return _Asked(request, [*used, self._mapping(container, request)])

    def _mapping(self, container: ReadOnlyObject, request: JsonObject) -> JsonObject:
        return {
            "containerName": container["name"],
            "resourceName": self._resource,
            "requestName": request["name"],
        }


def _whole(amount: str | int | None) -> int:
    try:
        quantity = Quantity(0) if amount is None else parse(amount)
    except QuantityError:
        return 0
    return quantity.value()


def _name(request: JsonObject) -> str:
    name: str = request["name"]
    return name


def _count(request: JsonObject) -> int:
    count: int = request["exactly"]["count"]
    return count
