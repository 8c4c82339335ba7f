"""Karpenter as a controller. It sleeps unless a scenario asks for it.

It watches from the definition of its kinds on, so that a world without NodePools pays nothing.
"""

from typing import TYPE_CHECKING

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.karpenter.flags import KarpenterFlags

if TYPE_CHECKING:
    from kubescene.karpenter.turns import KarpenterTurns

NAME = "karpenter"
NODE_POOL = GroupVersionKind("karpenter.sh", "v1", "NodePool")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")


class KarpenterController:
    """Asleep until there are NodePools."""

    name = NAME

    def __init__(self, context: ControllerContext, flags: KarpenterFlags | None) -> None:
        self._context = context
        self._flags = flags
        self._is_needed = False
        self._turns: KarpenterTurns | None = None
        if flags is None:
            # Without a watch, every change would wake it.
            context.client.watch(NAMESPACE, self._heard, quiet=True)
        elif NODE_POOL in context.scheme:
            context.client.watch(NODE_POOL, self._needed, quiet=True)
        else:
            context.client.watch(DEFINITION, self._defined, quiet=True)

    def _heard(self, change: Change) -> None:
        """Nothing follows from it."""

    def _defined(self, change: Change) -> None:
        del change
        if self._turns is None:
            self._context.wake()

    def _needed(self, change: Change) -> None:
        del change
        if self._turns is None:
            self._is_needed = True
            self._context.wake()

    def run_once(self) -> Progress:
        if self._flags is None or NODE_POOL not in self._context.scheme:
            return IDLE
        if self._turns is None:
            from kubescene.karpenter.turns import KarpenterTurns

            self._turns = KarpenterTurns(self._context, self._flags)
        return went(wrote=self._turns.run(), more=False)


def karpenter(
    context: ControllerContext, settings: KarpenterFlags | None = None
) -> KarpenterController:
    """The factory of the controller; without settings there is none."""
    return KarpenterController(context, settings)
