"""Pods as Karpenter sees them: what they ask for, and what they give up when there is no place."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from kubescene.api.resource_requests import Nanos, exact_requests
from kubescene.api.selectors.tolerations import tolerates
from kubescene.clock.timestamps import parse_time
from kubescene.durations import parse_duration
from kubescene.karpenter.requirements import (
    DOES_NOT_EXIST,
    DOMAIN,
    NODE_POOL,
    Requirements,
    of_pod,
)
from kubescene.types import JsonObject, ReadOnlyObject

DO_NOT_DISRUPT = f"{DOMAIN}/do-not-disrupt"
DISRUPTED: Mapping[str, str] = {"key": f"{DOMAIN}/disrupted", "effect": "NoSchedule"}
"""The taint of nodes that are given up."""
DISRUPTION_COST = f"{DOMAIN}/disruption-cost"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
ONE = 10**9
"""One whole thing, in nano-units."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TOLERATES_PREFERENCES: JsonObject = {"operator": "Exists", "effect": "PreferNoSchedule"}
_ENDED = ("Succeeded", "Failed")


class UsedPort(Struct, frozen=True):
    """A port of the node itself."""

    ip: str
    port: int
    protocol: str

    def clashes(self, other: "UsedPort") -> bool:
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        anywhere = ("0.0.0.0", "::")
        return self.ip == other.ip or self.ip in anywhere or other.ip in anywhere


class PodSeen:
    """One pod; what it has given up so far makes another one of it (`relaxed`)."""

    def __init__(self, obj: ReadOnlyObject, spec: Mapping[str, Any] | None = None) -> None:
        metadata = obj["metadata"]
        self.object = obj
        self.spec: Mapping[str, Any] = obj["spec"] if spec is None else spec
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "default")
        self.key = f"{self.namespace}/{self.name}"
        self.uid: str = metadata.get("uid") or self.key
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self.status: Mapping[str, Any] = obj.get("status") or {}

    def __repr__(self) -> str:
        return f"<PodSeen {self.key}>"

    # -- what it is ------------------------------------------------------------------------

    @property
    def node(self) -> str:
        return str(self.spec.get("nodeName") or "")

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.object["metadata"].get("annotations") or {}

    @cached_property
    def created(self) -> int:
        stamp = self.object["metadata"].get("creationTimestamp")
        return 0 if stamp is None else parse_time(stamp)

    @property
    def has_ended(self) -> bool:
        return self.status.get("phase") in _ENDED

    @property
    def is_terminating(self) -> bool:
        return self.object["metadata"].get("deletionTimestamp") is not None

    @property
    def is_active(self) -> bool:
        return not self.has_ended and not self.is_terminating

    def is_owned_by(self, kind: str) -> bool:
        owners = self.object["metadata"].get("ownerReferences") or ()
        return any(each.get("kind") == kind for each in owners)

    @property
    def is_provisionable(self) -> bool:
        """Whether the scheduler found no node for it, and a new one might help."""
        if self.node or self.status.get("nominatedNodeName") or self.is_owned_by("DaemonSet"):
            return False
        return not self.is_owned_by("Node") and any(
            each.get("type") == "PodScheduled" and each.get("reason") == "Unschedulable"
            for each in self.status.get("conditions") or ()
        )

    @property
    def is_reschedulable(self) -> bool:
        """Whether it has to go somewhere else if its node goes."""
        stays = self.is_active or (self.is_terminating and self.is_owned_by("StatefulSet"))
        return stays and not self.is_owned_by("DaemonSet") and not self.is_owned_by("Node")

    def is_protected(self, now: int) -> bool:
        """Whether its annotation forbids that its node is disrupted."""
        value = self.annotations.get(DO_NOT_DISRUPT)
        if value is None or value == "true":
            return value is not None
        try:
            wait = parse_duration(value)
        except ValueError:
            return False
        if wait <= 0:
            return False
        started = self.status.get("startTime")
        return started is None or now - parse_time(started) < wait

    def is_evictable(self, now: int) -> bool:
        if not self.is_active or self.is_owned_by("Node") or self.is_protected(now):
            return False
        return not any(tolerates(each, DISRUPTED) for each in self.tolerations)

    @property
    def eviction_cost(self) -> float:
        """How dear it is to move it: 1, more or less by annotation and priority."""
        cost = 1.0
        text = self.annotations.get(DISRUPTION_COST, self.annotations.get(DELETION_COST))
        if text is not None:
            cost += _int32(text) / 2.0**27
        if (priority := self.spec.get("priority")) is not None:
            cost += priority / 2.0**25
        return min(max(cost, -10.0), 10.0)

    def placement_fault(self) -> str:
        """Why nobody orders a node for it; empty if somebody may."""
        affinity = (self.spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get(_REQUIRED) or {}
        if any(each.get("matchFields") for each in required.get("nodeSelectorTerms") or ()):
            return "node selector term with matchFields is not supported"
        try:
            asked = self.requirements
        except ValueError as error:
            return str(error)
        if NODE_POOL in asked and asked[NODE_POOL].operator == DOES_NOT_EXIST:
            return "configured to not run on a Karpenter provisioned node"
        return ""

    # -- what it asks for ------------------------------------------------------------------

    @cached_property
    def requests(self) -> Nanos:
        return {**exact_requests({"spec": self.spec, "status": self.status}), "pods": ONE}

    @cached_property
    def requirements(self) -> Requirements:
        return of_pod(self.spec)

    @cached_property
    def strict_requirements(self) -> Requirements:
        return of_pod(self.spec, preferred=False)

    @property
    def tolerations(self) -> Sequence[ReadOnlyObject]:
        return self.spec.get("tolerations") or ()

    @cached_property
    def ports(self) -> Sequence[UsedPort]:
        return [
            UsedPort(port.get("hostIP") or "0.0.0.0", port["hostPort"], port.get("protocol", "TCP"))
            for container in self.spec.get("containers") or ()
            for port in container.get("ports") or ()
            if port.get("hostPort")
        ]

    def terms(self, kind: str, *, preferred: bool) -> list[ReadOnlyObject]:
        """Terms of ``podAffinity`` or ``podAntiAffinity``, required before preferred ones."""
        affinity = (self.spec.get("affinity") or {}).get(kind) or {}
        found = [*(affinity.get(_REQUIRED) or ())]
        if preferred:
            found += [each["podAffinityTerm"] for each in affinity.get(_PREFERRED) or ()]
        return found

    def has_anti_affinity(self, *, preferred: bool) -> bool:
        return bool(self.terms("podAntiAffinity", preferred=preferred))

    # -- what it gives up ------------------------------------------------------------------

    def relaxed(self, *, tolerates_preferences: bool) -> "PodSeen | None":
        """The pod with one wish less; None if nothing is left that it could do without."""
        spec = (
            _without_required_term(self.spec)
            or _without_heaviest(self.spec, "podAffinity")
            or _without_heaviest(self.spec, "podAntiAffinity")
            or _without_heaviest(self.spec, "nodeAffinity")
            or _without_soft_spread(self.spec)
            or (_tolerating(self.spec) if tolerates_preferences else None)
        )
        return None if spec is None else PodSeen(self.object, spec)

    def without_required_term(self) -> "PodSeen | None":
        spec = _without_required_term(self.spec)
        return None if spec is None else PodSeen(self.object, spec)

    def tolerating_preferences(self) -> "PodSeen":
        spec = _tolerating(self.spec)
        return self if spec is None else PodSeen(self.object, spec)


def daemon_pod(daemon_set: ReadOnlyObject) -> PodSeen:
    """A pod as a DaemonSet would make it: what is limited and not asked for is asked for."""
    spec = daemon_set["spec"]["template"]["spec"]
    filled = {
        kind: [_with_requests(each) for each in spec[kind]]
        for kind in ("containers", "initContainers")
        if kind in spec
    }
    metadata = {name: daemon_set["metadata"].get(name) for name in ("name", "namespace")}
    return PodSeen({"metadata": metadata, "spec": {**spec, **filled}})


def _with_requests(container: Mapping[str, Any]) -> JsonObject:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": asked}}


def total(pods: Iterable[PodSeen]) -> Nanos:
    """What these pods ask for together."""
    found: Nanos = {"pods": 0}
    for each in pods:
        add(found, each.requests)
    return found


def add(to: Nanos, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0) + amount


def fits(asked: Mapping[str, int], there: Mapping[str, int]) -> bool:
    """Whether there is enough of everything; where something is overdrawn, nothing fits."""
    for amount in there.values():
        if amount < 0:
            return False
    return all(amount <= there.get(name, 0) for name, amount in asked.items())


def _int32(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        return 0
    return number if -(2**31) <= number < 2**31 else 0


def _with_affinity(spec: Mapping[str, Any], kind: str, changed: JsonObject) -> JsonObject:
    affinity = spec["affinity"]
    return {**spec, "affinity": {**affinity, kind: {**affinity[kind], **changed}}}


def _without_required_term(spec: Mapping[str, Any]) -> JsonObject | None:
    """Terms are alternatives: the next one may do."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(_REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or ()
    if len(terms) < 2:
        return None
    return _with_affinity(
        spec, "nodeAffinity", {_REQUIRED: {**required, "nodeSelectorTerms": [*terms[1:]]}}
    )


def _without_heaviest(spec: Mapping[str, Any], kind: str) -> JsonObject | None:
    affinity = (spec.get("affinity") or {}).get(kind) or {}
    terms = affinity.get(_PREFERRED) or ()
    if not terms:
        return None
    lighter = sorted(terms, key=lambda each: -each["weight"])[1:]
    return _with_affinity(spec, kind, {_PREFERRED: lighter})


def _without_soft_spread(spec: Mapping[str, Any]) -> JsonObject | None:
    """The last constraint takes the place of the one that goes."""
    constraints = [*(spec.get("topologySpreadConstraints") or ())]
    for number, each in enumerate(constraints):
        if each.get("whenUnsatisfiable") == "ScheduleAnyway":
            constraints[number] = constraints[-1]
            return {**spec, "topologySpreadConstraints": constraints[:-1]}
    return None


def _tolerating(spec: Mapping[str, Any]) -> JsonObject | None:
    tolerations = [*(spec.get("tolerations") or ())]
    for each in tolerations:
        same = (each.get("operator"), each.get("effect")) == ("Exists", "PreferNoSchedule")
        if same and not each.get("key") and not each.get("value"):
            return None
    return {**spec, "tolerations": [*tolerations, _TOLERATES_PREFERENCES]}
