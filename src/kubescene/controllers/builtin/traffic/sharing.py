"""Nodes that pods contend for: who shares one, and how flows that meet there go on together.

As long as the limits of all pods that serve on a node fit into it, each has its limit whatever the
others do. From the first pod on that has none, or that makes them too many, all of them share.
"""

from collections.abc import Callable
from typing import Protocol

from kubescene.controllers.builtin.traffic.pods import ServingPod
from kubescene.flows.flow import Flow, Station
from kubescene.flows.kernels import NEVER, Service
from kubescene.flows.node_kernel import NodeCpu, SharedProcessor


class Sharer(Protocol):
    """A pod that serves, or did so and is not done, and the flow that it serves."""

    pod: ServingPod
    station: Station | None
    leaves: Station | None

    @property
    def flow(self) -> Flow: ...

    @property
    def service(self) -> Service: ...


class Sharing:
    """All nodes of a world on which pods serve. Times are those of flows."""

    def __init__(self, capacity: Callable[[str], int]) -> None:
        """``capacity`` says how many millicores a node has, 0 if there is no such node."""
        self._capacity = capacity
        self._flows: list[Flow] = []
        self._shared: dict[str, NodeCpu] = {}
        self._sharers: dict[str, dict[str, Sharer]] = {}
        """By node, and by flow and pod."""
        self._changed: dict[str, None] = {}

    def add(self, flow: Flow) -> None:
        """One more flow, which has come as far as all others."""
        self._flows.append(flow)
        if self._shared:
            flow.together = self._advance

    def remove(self, flow: Flow) -> None:
        self._flows = [each for each in self._flows if each is not flow]
        flow.together = None

    def processor(self, pod: ServingPod, service: Service, now: int) -> SharedProcessor | None:
        """The CPU of a pod that joins now, if it shares its node."""
        if pod.node not in self._shared and self._is_contended(pod.node, pod):
            self._begin(pod.node, now)
        node = self._shared.get(pod.node)
        if node is None:
            return None
        self._advance(now)
        return SharedProcessor(node, service, now, limit=pod.cpu_limit, weight=pod.cpu_request)

    def is_shared(self, node: str) -> bool:
        return node in self._shared

    def joined(self, name: str, sharer: Sharer) -> None:
        self._sharers.setdefault(sharer.pod.node, {})[name] = sharer

    def shares_any(self, flow: Flow) -> bool:
        """Whether a node is shared on which its pods serve."""
        return any(
            each.flow is flow for node in self._shared for each in self._sharers[node].values()
        )

    def also_served(self, namespace: str, name: str) -> str:
        """Another Traffic that the pods of this one serve, too, if there is one."""
        own = f"{namespace}/{name}/"
        for sharers in self._sharers.values():
            pods = {each.pod.uid for key, each in sharers.items() if key.startswith(own)}
            for key, each in sharers.items():
                if each.pod.uid in pods and not key.startswith(own):
                    return key.rpartition("/")[0]
        return ""

    def left(self, name: str, node: str) -> None:
        """It does not serve any more, and has drained."""
        sharers = self._sharers.get(node, {})
        sharers.pop(name, None)
        if not sharers:
            self._sharers.pop(node, None)
            self._shared.pop(node, None)

    def resized(self, node: str, now: int) -> None:
        """A pod of it has another limit, or the node another capacity."""
        if node not in self._sharers:
            return
        shared = self._shared.get(node)
        if shared is None:
            if self._is_contended(node):
                self._begin(node, now)
        elif shared.capacity != (capacity := self._capacity(node) or 1):
            self._advance(now)
            shared.resize(capacity, now)

    def note(self, node: str) -> bool:
        """A node has changed; whether that matters to anybody."""
        if node not in self._sharers:
            return False
        self._changed[node] = None
        return True

    def go_on(self, now: int) -> None:
        """Nodes are as they were noted from now on."""
        changed, self._changed = self._changed, {}
        for node in changed:
            self.resized(node, now)

    def _is_contended(self, node: str, more: ServingPod | None = None) -> bool:
        pods = [each.pod for each in self._sharers.get(node, {}).values()]
        limits = [pod.cpu_limit for pod in (*pods, more) if pod is not None]
        return 0 in limits or sum(limits) > (self._capacity(node) or NEVER)

    def _begin(self, name: str, now: int) -> None:
        """From now on all who serve on this node share it."""
        for flow in self._flows:
            flow.advance(now)
        node = self._shared[name] = NodeCpu(self._capacity(name) or 1)
        for flow in self._flows:
            flow.together = self._advance
        for each in self._sharers.get(name, {}).values():
            station = each.station
            if station is None and each.leaves is not None and each.flow.works(each.leaves, now):
                station = each.leaves
            if station is not None:
                processor = SharedProcessor(
                    node,
                    each.service,
                    now,
                    limit=each.pod.cpu_limit,
                    weight=each.pod.cpu_request,
                )
                each.flow.share(station, processor, now)

    def _advance(self, now: int) -> None:
        """All flows go on to now: first it is said who comes, then nodes are played."""
        since = min((flow.now for flow in self._flows), default=now)
        marks = [mark for flow in self._flows[:1] for mark in flow.marks(since, now)]
        for until in (*marks, now):
            late = [flow for flow in self._flows if flow.now < until]
            for flow in late:
                flow.offer(until)
            for node in self._shared.values():
                node.play(until)
            for flow in late:
                flow.collect(until)
