"""One node and what runs on it, in exact Python integers."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubescene.api.records import Record
from kubescene.api.resource_requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Amounts,
    node_allocatable,
)
from kubescene.scheduler.state.host_ports import UsedPorts, free, take
from kubescene.scheduler.state.pods import PodInfo
from kubescene.types import ReadOnlyObject

NO_ROW = -1
_NOTHING: Mapping[str, Any] = {}


class NodeInfo:
    """One node and what runs on it.

    Pods stand in the order of kube-scheduler's cache: appended on arrival, and on removal the last
    one fills the hole. ``row`` is the place in the `NodeTable`, or `NO_ROW`.
    """

    __slots__ = (
        "allocatable",
        "annotations",
        "exists",
        "features",
        "images",
        "labels",
        "name",
        "nonzero_cpu",
        "nonzero_memory",
        "pods",
        "ports",
        "record",
        "requested",
        "row",
        "taints",
        "unschedulable",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = NO_ROW
        self.exists = False
        self.record: Record | None = None
        self.labels: Mapping[str, str] = _NOTHING
        self.annotations: Mapping[str, str] = _NOTHING
        self.taints: tuple[ReadOnlyObject, ...] = ()
        self.unschedulable = False
        self.images: Sequence[ReadOnlyObject] = ()
        self.features: frozenset[str] = frozenset()
        self.allocatable: Amounts = {PODS: 0}
        self.requested: Amounts = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, PODS: 0}
        self.nonzero_cpu = 0
        self.nonzero_memory = 0
        self.pods: list[PodInfo] = []
        self.ports: UsedPorts = {}

    @property
    def object(self) -> ReadOnlyObject:
        """The decoded node, made anew at each call."""
        return _NOTHING if self.record is None else self.record.decode()

    def free(self, resource: str) -> int:
        """What is left of a resource; negative if the node is overcommitted."""
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)

    def set_node(self, record: Record, obj: ReadOnlyObject) -> None:
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        self.exists = True
        self.record = record
        self.labels = record.labels
        self.annotations = metadata.get("annotations") or _NOTHING
        self.taints = tuple(spec.get("taints") or ())
        self.unschedulable = bool(spec.get("unschedulable"))
        status: ReadOnlyObject = obj.get("status") or {}
        self.images = status.get("images") or ()
        self.features = frozenset(status.get("declaredFeatures") or ())
        self.allocatable = node_allocatable(obj)

    def clear_node(self) -> None:
        """The node is gone; its pods may still be here."""
        self.exists = False
        self.row = NO_ROW

    def add(self, pod: PodInfo) -> None:
        self.pods.append(pod)
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> PodInfo:
        """Take out the pod of this uid; the last one fills its place."""
        pods = self.pods
        try:
            position = pods.index(pod)
        except ValueError:  # It is here as it was.
            uid = pod.uid
            position = next(index for index, each in enumerate(pods) if each.uid == uid)
        found, last = pods[position], pods.pop()
        if last is not found:
            pods[position] = last
        self._count(found, -1)
        return found

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """Take out ``old`` and append ``new``, which asks for the same."""
        pods = self.pods
        if pods[-1] is not old:
            pods[pods.index(old)] = pods[-1]
        pods[-1] = new
        if old.pod_class.host_ports:
            take(old.pod_class.host_ports, self.ports)

    def _count(self, pod: PodInfo, sign: int) -> None:
        requested = self.requested
        for resource, amount in pod.requests.items():
            try:
                requested[resource] += sign * amount
            except KeyError:  # the first that asks for it
                requested[resource] = sign * amount
        requested[PODS] += sign
        self.nonzero_cpu += sign * pod.nonzero_cpu
        self.nonzero_memory += sign * pod.nonzero_memory
        if ports := pod.pod_class.host_ports:
            (take if sign > 0 else free)(ports, self.ports)

    def copy(self) -> "NodeInfo":
        """A node that can be changed without this one noticing; what never changes is shared."""
        copy: NodeInfo = object.__new__(NodeInfo)
        copy.name = self.name
        copy.row = self.row
        copy.exists = self.exists
        copy.record = self.record
        copy.labels = self.labels
        copy.annotations = self.annotations
        copy.taints = self.taints
        copy.unschedulable = self.unschedulable
        copy.images = self.images
        copy.features = self.features
        copy.allocatable = self.allocatable
        copy.requested = self.requested.copy()
        copy.nonzero_cpu = self.nonzero_cpu
        copy.nonzero_memory = self.nonzero_memory
        copy.pods = self.pods.copy()
        copy.ports = {number: {*at} for number, at in self.ports.items()}
        return copy

    def without_pods(self) -> "NodeInfo":
        """The same node with nothing on it."""
        bare = NodeInfo(self.name)
        bare.row = self.row
        bare.exists = self.exists
        bare.record = self.record
        bare.labels = self.labels
        bare.annotations = self.annotations
        bare.taints = self.taints
        bare.unschedulable = self.unschedulable
        bare.features = self.features
        bare.allocatable = self.allocatable
        return bare

    def __deepcopy__(self, memo: dict[int, Any]) -> "NodeInfo":
        return self.copy()

    def __repr__(self) -> str:
        return f"<NodeInfo {self.name} row {self.row}, {len(self.pods)} pods>"
