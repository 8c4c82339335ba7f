"""Watching pods no sooner than somebody needs to know of them.

Most worlds have no node that fails and no disruption budget, and nobody shall pay for every pod
there. So some controllers do not watch pods from the start: as soon as its reconciler needs them,
such a controller does, and what is there already is told then.
"""

from collections.abc import Sequence
from typing import Protocol

from kubescene.api.kinds import POD
from kubescene.api.records.traits import PLACED
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import ControllerContext, Progress
from kubescene.controllers.reconcile import Reconciler
from kubescene.controllers.runtime import ReconcilerController


class PodSeeker(Reconciler, Protocol):
    """A reconciler that watches other kinds, and pods once it says so."""

    @property
    def needs_pods(self) -> bool: ...


class LatePodsController(ReconcilerController):
    """Watches pods from the moment its reconciler needs them: changes with certain ``traits``.

    Kinds that matter from the same moment are ``before`` them.
    """

    def __init__(
        self,
        reconciler: PodSeeker,
        context: ControllerContext,
        traits: int = PLACED,
        before: Sequence[GroupVersionKind] = (),
    ) -> None:
        super().__init__(reconciler, context)
        self._seeker = reconciler
        self._traits = traits
        self._before = before
        self.is_following = False

    def run_once(self) -> Progress:
        # Not where the change is told that makes pods matter: who is being told does not look yet.
        if self._seeker.needs_pods and not self.is_following:
            self.is_following = True
            for kind in self._before:
                self._client.watch(kind, self._changed, quiet=True)
            self._client.watch(POD, self._changed, quiet=True, traits=self._traits)
        return super().run_once()
