"""A reconciler whose kinds may not exist yet: a scenario can bring their definitions itself."""

from collections.abc import Sequence

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import ControllerContext, Progress
from kubescene.controllers.reconcile import Reconciler
from kubescene.controllers.runtime import ReconcilerController

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class LateReconcilerController(ReconcilerController):
    """Watches those of its kinds that exist, and the others from their definition on."""

    def __init__(self, reconciler: Reconciler, context: ControllerContext) -> None:
        self._missing = [kind for kind in reconciler.kinds if kind not in context.scheme]
        super().__init__(reconciler, context)
        if self._missing:
            context.client.watch(DEFINITION, self._defined, quiet=True)

    def run_once(self) -> Progress:
        # Not where the definition is told of: who is being told does not look yet.
        for kind in [kind for kind in self._missing if kind in self._context.scheme]:
            self._missing.remove(kind)
            self._client.watch(kind, self._changed, quiet=True)
        return super().run_once()

    def _watched(self, kinds: Sequence[GroupVersionKind]) -> list[GroupVersionKind]:
        return [kind for kind in kinds if kind not in self._missing]

    def _defined(self, change: Change) -> None:
        del change
        if self._missing:
            self._context.wake()
