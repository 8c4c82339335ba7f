"""Pods as the scheduler sees them.

`PodInfo` is one pod: identity, priority, and what the queue and the node state need of it. What
depends on its spec alone lives in its `PodClass`, shared by all pods whose scheduling-relevant
spec is the same (those of one Deployment, say): requests, tolerations, selectors, and everything
that plugins compile from them. A class is keyed by the encoding of the fields in question, so
pods find their class by one look-up.

Pods stay small: the decoded object is not kept, `PodInfo.object` decodes it anew.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson

from kubescene.api.records import Record
from kubescene.api.resource_requests import (
    Amounts,
    nonzero_requests,
    pod_requests,
    resized,
    scoring_requests,
)
from kubescene.types import JsonObject, ReadOnlyObject

DEFAULT_SCHEDULER = "default-scheduler"
CLASSES_KEPT = 4096

T = TypeVar("T")

_SPEC_FIELDS = (
    "affinity",
    "hostNetwork",
    "hostUsers",
    "nodeSelector",
    "overhead",
    "resources",
    "tolerations",
    "topologySpreadConstraints",
)
_CONTAINER_FIELDS = ("image", "ports", "resources", "restartPolicy", "restartPolicyRules")


class PodClass:
    """What pods with the same scheduling-relevant spec have in common.

    ``spec`` holds the relevant fields only. Name, namespace, labels, priority and node are not
    among them: a class says nothing about who the pod is.
    """

    __slots__ = (
        "_compiled",
        "nonzero_cpu",
        "nonzero_memory",
        "requests",
        "scoring_requests",
        "spec",
        "tolerations",
    )

    def __init__(self, spec: ReadOnlyObject) -> None:
        self.spec = spec
        pod = {"spec": spec}
        self.requests: Amounts = pod_requests(pod)
        self.scoring_requests: Amounts = scoring_requests(pod)
        self.nonzero_cpu, self.nonzero_memory = nonzero_requests(pod)
        self.tolerations: tuple[ReadOnlyObject, ...] = tuple(spec.get("tolerations") or ())
        self._compiled: dict[str, Any] = {}

    def compiled(self, key: str, compile_spec: Callable[[ReadOnlyObject], T]) -> T:
        """What ``compile_spec`` makes of the spec, made once per class and ``key``."""
        try:
            found: T = self._compiled[key]
        except KeyError:
            found = self._compiled[key] = compile_spec(self.spec)
        return found


class PodClasses:
    """Finds the class of a spec; forgets those that were not asked for in a long time."""

    def __init__(self, kept: int = CLASSES_KEPT) -> None:
        self._kept = kept
        self._classes: OrderedDict[bytes, PodClass] = OrderedDict()

    def of(self, spec: ReadOnlyObject) -> PodClass:
        key = orjson.dumps(_relevant(spec))
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = PodClass(orjson.loads(key))
            if len(self._classes) > self._kept:
                self._classes.popitem(last=False)
        else:
            self._classes.move_to_end(key)
        return found


class PodInfo:
    """One pod at one revision. Immutable by convention; an update makes a new one."""

    __slots__ = (
        "gates",
        "generation",
        "key",
        "labels",
        "name",
        "namespace",
        "node",
        "nominated_node",
        "nonzero_cpu",
        "nonzero_memory",
        "pod_class",
        "priority",
        "record",
        "requests",
        "scheduler_name",
        "terminating",
        "uid",
    )

    def __init__(self, record: Record, obj: ReadOnlyObject, classes: PodClasses) -> None:
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        status: ReadOnlyObject = obj.get("status") or {}
        self.record = record
        self.namespace = record.namespace
        self.name = record.name
        self.uid = record.uid
        self.key = f"{record.namespace}/{record.name}"
        self.labels: Mapping[str, str] = record.labels
        self.node: str = record.node
        self.priority: int = spec.get("priority") or 0
        self.scheduler_name: str = spec.get("schedulerName") or DEFAULT_SCHEDULER
        self.gates = tuple(gate["name"] for gate in spec.get("schedulingGates") or ())
        self.terminating = metadata.get("deletionTimestamp") is not None
        self.generation: int = metadata.get("generation") or 0
        self.nominated_node: str = status.get("nominatedNodeName") or ""
        self.pod_class = pod_class = classes.of(spec)
        self.requests = pod_class.requests
        self.nonzero_cpu = pod_class.nonzero_cpu
        self.nonzero_memory = pod_class.nonzero_memory
        if status and resized(status):
            self.requests = pod_requests(obj)
            self.nonzero_cpu, self.nonzero_memory = nonzero_requests(obj)

    @property
    def object(self) -> JsonObject:
        """The decoded pod, made anew at each call."""
        return self.record.decode()

    def assumed(self, node: str) -> "PodInfo":
        """The same pod as it will be once it is bound to ``node``."""
        copy: PodInfo = object.__new__(PodInfo)
        copy.record = self.record
        copy.namespace = self.namespace
        copy.name = self.name
        copy.uid = self.uid
        copy.key = self.key
        copy.labels = self.labels
        copy.node = node
        copy.priority = self.priority
        copy.scheduler_name = self.scheduler_name
        copy.gates = self.gates
        copy.terminating = self.terminating
        copy.generation = self.generation
        copy.nominated_node = ""
        copy.pod_class = self.pod_class
        copy.requests = self.requests
        copy.nonzero_cpu = self.nonzero_cpu
        copy.nonzero_memory = self.nonzero_memory
        return copy

    def confirm(self, record: Record) -> None:
        """The binding of an `assumed` pod was accepted. It changes neither spec nor class."""
        self.record = record
        self.labels = record.labels

    def __repr__(self) -> str:
        place = f" on {self.node}" if self.node else ""
        return f"<PodInfo {self.key}{place}>"


def _relevant(spec: ReadOnlyObject) -> JsonObject:
    fields = {field: spec[field] for field in _SPEC_FIELDS if field in spec}
    for kind in ("containers", "initContainers"):
        if containers := spec.get(kind):
            fields[kind] = [
                {field: each[field] for field in _CONTAINER_FIELDS if field in each}
                for each in containers
            ]
    return fields
