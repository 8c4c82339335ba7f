"""A node table and pods on it, without a cluster around them, for tests of single plugins."""

from typing import Any

import numpy as np

from kubescene.api.records import make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing.builders import merged
from kubescene.types import JsonObject

NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")


class Table:
    """Nodes, pods and the plain truth about who is where."""

    def __init__(self, *nodes: JsonObject) -> None:
        self.nodes = NodeTable()
        self.classes = PodClasses()
        for node in nodes:
            self.set_node(node)
        self.nodes.refresh()

    def set_node(self, node: JsonObject) -> None:
        self.nodes.set_node(make_record(NODES, node, 1), node)

    def pod(self, obj: JsonObject) -> PodInfo:
        obj = merged(obj, {"metadata": {"uid": obj["metadata"]["name"]}})
        return PodInfo.read(make_record(PODS, obj, 1), obj, self.classes)

    def add(self, obj: JsonObject, node: str) -> PodInfo:
        pod = self.pod(obj).assumed(node)
        self.nodes.add_pod(pod, node)
        return pod

    def again(self, pod: PodInfo) -> PodInfo:
        """The same pod as a later event brings it, nothing about it changed."""
        return pod.assumed(pod.node)

    @property
    def rows(self) -> Any:
        return np.arange(len(self.nodes), dtype=np.intp)


def change(after: JsonObject, before: JsonObject | None = None, *, gone: bool = False) -> Change:
    """A change of an object, as a watch tells it."""
    resource = GroupResource("", f"{after['kind'].lower()}s")
    what = ChangeType.DELETED if gone else ChangeType.MODIFIED if before else ChangeType.ADDED
    previous = make_record(resource, before, 1) if before else None
    return Change(what, make_record(resource, after, 2), previous, Store())
