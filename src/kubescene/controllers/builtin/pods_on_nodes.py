"""Pods by node, for controllers that need to know only once something happens to a node.

Most worlds have no node that fails, and nobody shall pay for every pod there. So pods are not
watched from the start: as soon as its reconciler needs them, the controller does, and what is
there already is told then.
"""

from typing import Protocol

from kubescene.api.changes import Change, ChangeType
from kubescene.api.kinds import POD
from kubescene.api.scheme import GroupResource
from kubescene.api.traits import PLACED
from kubescene.control.loops import ControllerContext, Progress
from kubescene.controllers.reconcile import ObjectKey, Reconciler
from kubescene.controllers.runtime import ReconcilerController

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


class PodSeeker(Reconciler, Protocol):
    """A reconciler that watches nodes, and pods once it says so."""

    @property
    def needs_pods(self) -> bool: ...


class LatePodsController(ReconcilerController):
    """Watches pods that have a node from the moment its reconciler needs them."""

    def __init__(self, reconciler: PodSeeker, context: ControllerContext) -> None:
        super().__init__(reconciler, context)
        self._seeker = reconciler
        self._is_following = False

    def run_once(self) -> Progress:
        # Not where the change is told that makes pods matter: who is being told does not look yet.
        if self._seeker.needs_pods and not self._is_following:
            self._is_following = True
            self._client.watch(POD, self._changed, quiet=True, traits=PLACED)
        return super().run_once()
