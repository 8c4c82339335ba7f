"""Pods by node, for controllers that need to know only once something happens to a node."""

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource
from kubescene.controllers.reconcile import ObjectKey

PODS = GroupResource("", "pods")


class PodsOnNodes:
    """The keys of those pods that have a node."""

    def __init__(self) -> None:
        self._by_node: dict[str, set[ObjectKey]] = {}

    def observe(self, change: Change) -> None:
        record = change.record
        if not record.node:
            return
        key = ObjectKey(record.namespace, record.name)
        if change.type is not ChangeType.DELETED:
            self._by_node.setdefault(record.node, set()).add(key)
        elif keys := self._by_node.get(record.node):
            keys.discard(key)
            if not keys:
                del self._by_node[record.node]

    def on(self, node: str) -> list[ObjectKey]:
        """By namespace and name, whenever they came."""
        return sorted(self._by_node.get(node, ()))
