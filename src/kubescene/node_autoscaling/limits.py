"""Totals: how much cpu and memory the whole cluster may have, or has to keep."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubescene.node_autoscaling.flags import Flags
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.provider import NodeGroup, Provider

GIB = 1024**3


class Allowed(NamedTuple):
    """So many nodes may come or go; ``exceeded`` names what does not suffice for all."""

    nodes: int
    exceeded: tuple[str, ...] = ()


class ResourceTotals:
    """What is left of totals. All nodes of a group count like the first one that was seen."""

    def __init__(self, left: Mapping[str, int], provider: Provider) -> None:
        self._left = dict(left)
        self._provider = provider
        self._of_group: dict[str, tuple[int, int]] = {}

    @classmethod
    def at_most(
        cls, flags: Flags, nodes: Iterable[SeenNode], provider: Provider
    ) -> "ResourceTotals":
        """What may still be added."""
        totals = cls({}, provider)
        cores, memory = totals._used(nodes)
        most_cores, most_memory = flags.cores_total[1], flags.memory_total[1] * GIB
        totals._left = {"cpu": max(most_cores - cores, 0), "memory": max(most_memory - memory, 0)}
        return totals

    @classmethod
    def at_least(
        cls, flags: Flags, nodes: Iterable[SeenNode], provider: Provider
    ) -> "ResourceTotals":
        """What may still be taken away."""
        totals = cls({}, provider)
        cores, memory = totals._used(nodes)
        least_cores, least_memory = flags.cores_total[0], flags.memory_total[0] * GIB
        totals._left = {
            "cpu": max(cores - least_cores, 0),
            "memory": max(memory - least_memory, 0),
        }
        return totals

    def _used(self, nodes: Iterable[SeenNode]) -> tuple[int, int]:
        cores = memory = 0
        for node in nodes:
            if node.labels.get("type") == "virtual-kubelet":
                continue
            size = self._size(node, self._provider.group_of(node.provider_id, node.name))
            cores, memory = cores + size[0], memory + size[1]
        return cores, memory

    def _size(self, node: SeenNode, group: NodeGroup | None) -> tuple[int, int]:
        if group is None:
            return node.cores, node.memory
        return self._of_group.setdefault(group.id, (node.cores, node.memory))

    def allow(self, group: NodeGroup, node: SeenNode, count: int) -> Allowed:
        """How many of so many nodes like this one are allowed."""
        allowed, exceeded = count, []
        sizes = zip(("cpu", "memory"), self._size(node, group), strict=True)
        for resource, size in sizes:
            if size > 0 and self._left[resource] < size * count:
                allowed = min(allowed, self._left[resource] // size)
                exceeded.append(resource)
        return Allowed(allowed, tuple(exceeded))

    def take(self, group: NodeGroup, node: SeenNode, count: int) -> Allowed:
        """Use up what so many nodes need, if all of them are allowed."""
        allowed = self.allow(group, node, count)
        if allowed.nodes == count:
            sizes = zip(("cpu", "memory"), self._size(node, group), strict=True)
            for resource, size in sizes:
                self._left[resource] = max(self._left[resource] - size * count, 0)
        return allowed
