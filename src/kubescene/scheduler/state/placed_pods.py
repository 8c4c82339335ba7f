"""Pods that have a node: those that a watch has confirmed there, and those that are assumed.

A pod is *assumed* on its node from the decision on, so that the next one finds the node as it will
be, until the watch tells of its binding or the binding fails.
"""

from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.state.pods import PodInfo


class PlacedPods:
    """The pods of a node table, by uid."""

    def __init__(self, nodes: NodeTable, pod_groups: PodGroups) -> None:
        self.nodes = nodes
        self.by_uid: dict[str, PodInfo] = {}
        self._pod_groups = pod_groups

    def assume(self, pod: PodInfo, node: str) -> PodInfo:
        """Count a pod on a node that was decided for it."""
        assumed = pod.assumed(node)  # N-8
        self.by_uid[pod.uid] = assumed
        self.nodes.add_pod(assumed, node)
        if pod.spec.group:
            self._pod_groups.assume(pod.namespace, pod.group, pod.uid)
        return assumed

    def forget(self, assumed: PodInfo) -> bool:
        """Take an assumed pod off its node; False if it is not there any more."""
        if self.by_uid.get(assumed.uid) is not assumed:
            return False
        del self.by_uid[assumed.uid]
        self.nodes.remove_pod(assumed, assumed.node)
        if assumed.group:
            self._pod_groups.forget(assumed.namespace, assumed.group, assumed.uid)
        return True

    def put(self, pod: PodInfo, before: PodInfo | None = None) -> None:
        """A watch tells of a pod on its node, which was known there before or was not."""
        self.by_uid[pod.uid] = pod
        if before is None:
            self.nodes.add_pod(pod, pod.node)
        else:
            self.nodes.update_pod(before, pod, pod.node)

    def remove(self, placed: PodInfo) -> None:
        """A pod has gone."""
        del self.by_uid[placed.uid]
        self.nodes.remove_pod(placed, placed.node)
