"""Nodes as Karpenter sees them: a Node, the NodeClaim that it came from, and its pods."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from kubescene.api.quantity import parse
from kubescene.api.resource_requests import Nanos
from kubescene.clock.timestamps import parse_time
from kubescene.karpenter.pods import ONE, PodSeen, UsedPort, add
from kubescene.karpenter.requirements import (
    DOMAIN,
    HOSTNAME,
    INITIALIZED,
    NODE_POOL,
    REGISTERED,
)
from kubescene.types import ReadOnlyObject

UNREGISTERED: Mapping[str, str] = {"key": f"{DOMAIN}/unregistered", "effect": "NoExecute"}
NODES = "nodes"
"""A resource of limits: how many nodes there may be."""
_PASSING = (
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    (UNREGISTERED["key"], UNREGISTERED["effect"]),
)
"""Taints that a node loses as it gets ready."""
_PASSING_PREFIX = "readiness.k8s.io/"


class KarpenterNode:
    """One machine of the cluster, Karpenter's or not."""

    def __init__(
        self,
        node: ReadOnlyObject | None,
        claim: ReadOnlyObject | None,
        pods: Sequence[PodSeen] = (),
        *,
        is_marked: bool = False,
    ) -> None:
        self.node, self.claim = node, claim
        self.pods = [each for each in pods if not each.has_ended]
        self._marked = is_marked
        """Whether a disruption of ours is under way."""

    def __repr__(self) -> str:
        return f"<KarpenterNode {self.name}>"

    @property
    def is_managed(self) -> bool:
        return self.claim is not None

    @cached_property
    def node_labels(self) -> Mapping[str, str]:
        return {} if self.node is None else self.node["metadata"].get("labels") or {}

    @cached_property
    def is_registered(self) -> bool:
        return not self.is_managed or self.node_labels.get(REGISTERED) == "true"

    @cached_property
    def is_initialized(self) -> bool:
        return not self.is_managed or self.node_labels.get(INITIALIZED) == "true"

    @cached_property
    def _shown(self) -> ReadOnlyObject:
        """What speaks for it: its claim until its node has registered."""
        if self.node is not None and (self.claim is None or self.is_registered):
            return self.node
        assert self.claim is not None
        return self.claim

    @cached_property
    def name(self) -> str:
        return str(self._shown["metadata"]["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        return self._shown["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return self._shown["metadata"].get("annotations") or {}

    @property
    def pool(self) -> str:
        return self.labels.get(NODE_POOL, "")

    @property
    def host(self) -> str:
        return self.labels.get(HOSTNAME) or self.name

    @cached_property
    def taints(self) -> Sequence[ReadOnlyObject]:
        """Those that stay: a machine of ours loses others as it gets ready."""
        if self.node is None or (self.claim is not None and not self.is_registered):
            assert self.claim is not None
            taints = self.claim["spec"].get("taints") or ()
        else:
            taints = (self.node.get("spec") or {}).get("taints") or ()
        if self.is_initialized or self.claim is None:
            return taints
        startup = {_kind(each) for each in self.claim["spec"].get("startupTaints") or ()}
        return [each for each in taints if _kind(each) not in startup and not is_passing(each)]

    @cached_property
    def capacity(self) -> Nanos:
        return {**self._amounts("capacity"), NODES: ONE}

    @cached_property
    def allocatable(self) -> Nanos:
        return self._amounts("allocatable")

    def _amounts(self, which: str) -> Nanos:
        """What the node says; while it gets ready, its claim fills in what is missing."""
        told = {} if self.node is None else _nanos((self.node.get("status") or {}).get(which))
        if self.is_initialized or self.claim is None:
            return told
        promised = _nanos((self.claim.get("status") or {}).get(which))
        if self.node is None:
            return promised
        return {**told, **{k: v for k, v in promised.items() if not told.get(k)}}

    @cached_property
    def available(self) -> Nanos:
        """What its pods leave."""
        used: Nanos = {}
        for each in self.pods:
            add(used, each.requests)
        return {name: amount - used.get(name, 0) for name, amount in self.allocatable.items()}

    @cached_property
    def daemon_requests(self) -> Nanos:
        used: Nanos = {}
        for each in self.pods:
            if each.is_owned_by("DaemonSet"):
                add(used, each.requests)
        return used

    @cached_property
    def ports(self) -> dict[str, Sequence[UsedPort]]:
        return {each.key: each.ports for each in self.pods if each.ports}

    @property
    def is_leaving(self) -> bool:
        if self._marked:
            return True
        if self.claim is not None:
            if self.claim["metadata"].get("deletionTimestamp"):
                return True
            return condition(self.claim, "InstanceTerminating") == "True"
        assert self.node is not None
        return bool(self.node["metadata"].get("deletionTimestamp"))

    @property
    def is_ready(self) -> bool:
        return self.node is not None and condition(self.node, "Ready") == "True"

    def is_under_consolidate_after(self, wait: int | None, now: int) -> bool:
        """Whether something happened there so recently that nobody should add to it."""
        if self.claim is None or not wait or condition(self.claim, "Initialized") != "True":
            return False
        return now - last_pod_event(self.claim) < wait


def is_passing(taint: ReadOnlyObject) -> bool:
    """Whether a node loses this taint as it gets ready."""
    key: str = taint["key"]
    return _kind(taint) in _PASSING or key.startswith(_PASSING_PREFIX)


def last_pod_event(claim: ReadOnlyObject) -> int:
    """When a pod last came or went; without any, when the node was ready for them."""
    told = (claim.get("status") or {}).get("lastPodEventTime")
    if told is not None:
        return parse_time(told)
    found = find_condition(claim, "Initialized") or {}
    stamp = found.get("lastTransitionTime")
    return 0 if stamp is None else parse_time(stamp)


def find_condition(obj: ReadOnlyObject, kind: str) -> ReadOnlyObject | None:
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each.get("type") == kind:
            found: ReadOnlyObject = each
            return found
    return None


def condition(obj: ReadOnlyObject, kind: str) -> str:
    found = find_condition(obj, kind)
    return "Unknown" if found is None else str(found.get("status", "Unknown"))


def _kind(taint: ReadOnlyObject) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _nanos(amounts: Mapping[str, Any] | None) -> Nanos:
    return {name: parse(amount).nanos for name, amount in (amounts or {}).items()}


def leaving(nodes: Iterable[KarpenterNode]) -> list[KarpenterNode]:
    return [each for each in nodes if each.is_leaving]
