"""What pods have in common, at two levels.

What depends on the scheduling-relevant spec of a pod alone lives in its `PodClass`, shared by all
pods whose spec asks for the same: requests, tolerations, selectors, and everything that plugins
compile from them. The `PodSignature` is a class together with namespace, labels, priority, volumes,
claims and owner. Pods of one signature are alike in everything but their name: what selectors,
spreading and queueing hints say of one of them holds for all (those of one ReplicaSet, say).

All are immutable, and shared by the copies of a world.
"""

from collections.abc import Mapping, Sequence

import orjson

from kubescene.api.records import Record
from kubescene.api.resource_requests import (
    CPU,
    MEMORY,
    Amounts,
    names_its_requests,
    nonzero_requests,
    pod_requests,
    resized,
    scoring_requests,
)
from kubescene.scheduler.state.host_ports import HostPort, host_ports
from kubescene.scheduler.state.memo import Shared
from kubescene.types import ReadOnlyObject

DEFAULT_SCHEDULER = "default-scheduler"
NO_NAME = "*"
_CLAIM = "persistentVolumeClaim"


class PodClass(Shared):
    """What pods with the same scheduling-relevant spec have in common.

    ``spec`` holds the relevant fields only. Name, namespace, labels, priority and node are not
    among them: a class says nothing about who the pod is.
    """

    __slots__ = (
        "host_ports",
        "nonzero_cpu",
        "nonzero_memory",
        "requests",
        "scoring_requests",
        "spec",
        "tolerations",
    )

    def __init__(self, spec: ReadOnlyObject) -> None:
        super().__init__()
        self.spec = spec
        pod = {"spec": spec}
        self.requests: Amounts = pod_requests(pod)
        if names_its_requests(spec):
            self.scoring_requests: Amounts = self.requests
            self.nonzero_cpu, self.nonzero_memory = self.requests[CPU], self.requests[MEMORY]
        else:
            self.scoring_requests = scoring_requests(pod)
            self.nonzero_cpu, self.nonzero_memory = nonzero_requests(pod)
        self.tolerations: tuple[ReadOnlyObject, ...] = tuple(spec.get("tolerations") or ())
        self.host_ports: tuple[HostPort, ...] = host_ports(spec)


def group_of(spec: ReadOnlyObject) -> str:
    """The name of a pod's group; empty if it has none."""
    return str((spec.get("schedulingGroup") or {}).get("podGroupName") or "")


class PodSpec(Shared):
    """What is read from the spec of a pod, apart from its node.

    ``alike`` is what decides about the signature; ``is_own`` says that a volume or claim is made
    for this pod alone (``ephemeral``, ``resourceClaimTemplateName``). ``unnamed`` is the same spec
    without the names of claims among its volumes; None if it mentions none.
    """

    __slots__ = (
        "alike",
        "claims",
        "gates",
        "group",
        "is_own",
        "pod_class",
        "preemption_policy",
        "priority",
        "scheduler_name",
        "unnamed",
        "volumes",
    )

    def __init__(self, spec: ReadOnlyObject, pod_class: PodClass) -> None:
        super().__init__()
        volumes, claims = spec.get("volumes"), spec.get("resourceClaims")
        self.pod_class = pod_class
        self.priority: int = spec.get("priority") or 0
        self.scheduler_name: str = spec.get("schedulerName") or DEFAULT_SCHEDULER
        self.gates = tuple(gate["name"] for gate in spec.get("schedulingGates") or ())
        self.preemption_policy: str = spec.get("preemptionPolicy") or ""
        self.group = group_of(spec)
        self.volumes: Sequence[ReadOnlyObject] = _copied(volumes)
        self.claims: Sequence[ReadOnlyObject] = _copied(claims)
        self.is_own = any("ephemeral" in each for each in self.volumes) or any(
            each.get("resourceClaimTemplateName") for each in self.claims
        )
        self.alike = (
            pod_class,
            self.priority,
            self.scheduler_name,
            spec.get("preemptionPolicy"),
            self.group,
            orjson.dumps(volumes) if volumes else b"",
            orjson.dumps(claims) if claims else b"",
        )
        self.unnamed: PodSpec | None = None
        if (others := without_names(self.volumes)) != self.volumes:
            self.unnamed = PodSpec({**spec, "volumes": others}, pod_class)

    def naming(self, names: Sequence[str]) -> "PodSpec":
        """The same spec with these claims in the places of its nameless ones."""
        told = iter(names)
        named: PodSpec = object.__new__(PodSpec)
        for slot in PodSpec.__slots__:
            setattr(named, slot, getattr(self, slot))
        named._compiled = {}
        named.unnamed = self
        named.volumes = tuple(
            [_claiming(each, next(told)) if _names_claim(each) else each for each in self.volumes]
        )
        named.alike = (*self.alike[:-2], orjson.dumps(named.volumes), self.alike[-1])
        return named


def without_names(volumes: Sequence[ReadOnlyObject]) -> Sequence[ReadOnlyObject]:
    """The volumes of a pod, the names of claims replaced by one that no claim can have."""
    return tuple([_claiming(each, NO_NAME) if _names_claim(each) else each for each in volumes])


def _names_claim(volume: ReadOnlyObject) -> bool:
    return "claimName" in (volume.get(_CLAIM) or ())


def _claiming(volume: ReadOnlyObject, name: str) -> ReadOnlyObject:
    return {**volume, _CLAIM: {**volume[_CLAIM], "claimName": name}}


class PodStatus:
    """What is read from the status of a pod."""

    __slots__ = ("nominated_node", "resized", "start_time")

    def __init__(self, status: ReadOnlyObject) -> None:
        self.nominated_node: str = status.get("nominatedNodeName") or ""
        self.start_time: str = status.get("startTime") or ""
        self.resized = bool(status) and resized(status)


class PodSignature(Shared):
    """What pods have in common that differ in nothing a plugin may count, select or compare.

    ``owner`` is the uid of the managing controller. A volume or claim that is made for one pod
    alone makes the pod's signature its own. ``kind`` is the signature of all pods that differ from
    these in nothing but the names of claims among their volumes; without such it is this one.
    """

    __slots__ = (
        "_kind",
        "claims",
        "group",
        "labels",
        "namespace",
        "owner",
        "pod_class",
        "preemption_policy",
        "priority",
        "scheduler_name",
        "volumes",
    )

    def __init__(self, record: Record, spec: PodSpec, kind: "PodSignature | None" = None) -> None:
        super().__init__()
        self.pod_class = spec.pod_class
        self.namespace = record.namespace
        self.labels: Mapping[str, str] = dict(record.labels)
        self.priority = spec.priority
        self.scheduler_name = spec.scheduler_name
        self.owner = record.owner
        self.preemption_policy = spec.preemption_policy
        self.group = spec.group
        self.volumes = spec.volumes
        self.claims = spec.claims
        self._kind = kind

    @property
    def kind(self) -> "PodSignature":
        return self._kind or self

    def __repr__(self) -> str:
        return f"<PodSignature {self.namespace} {dict(self.labels)}>"


def _copied(items: Sequence[ReadOnlyObject] | None) -> Sequence[ReadOnlyObject]:
    """A copy of its own, since the object that it is part of is not kept."""
    return tuple(orjson.loads(orjson.dumps(items))) if items else ()
