"""Controllers of kinds that most worlds never define: they are loaded when somebody does."""

from collections.abc import Callable, Sequence

from kubescene.api.records.changes import Change
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import IDLE, Concluding, ControllerContext, Progress, Releasing
from kubescene.controllers.authoring import DEFINITION
from kubescene.controllers.runtime import ReconcilerController

Make = Callable[[ControllerContext], ReconcilerController]


class SleepingController:
    """Becomes the controller that ``make`` makes as soon as all ``kinds`` are defined."""

    def __init__(
        self,
        context: ControllerContext,
        *,
        name: str,
        kinds: Sequence[GroupVersionKind],
        make: Make,
    ) -> None:
        self.name = name
        self._kinds = kinds
        self._make = make
        self._context = context
        self._awake: ReconcilerController | None = None
        if not self._is_defined():
            context.client.watch(DEFINITION, self._defined, quiet=True)
        else:
            context.wake()

    def run_once(self) -> Progress:
        # Not where the definition is told of: who is being told does not look yet.
        if self._awake is None:
            if not self._is_defined():
                return IDLE
            self._awake = self._make(self._context)
        return self._awake.run_once()

    def begin_step(self) -> None:
        self.retry_refused()

    def retry_refused(self) -> None:
        """What was refused is tried again."""
        if self._awake is not None:
            self._awake.retry_refused()

    def conclude(self) -> None:
        """A run is over."""
        awake: object = self._awake
        if isinstance(awake, Concluding):
            awake.conclude()

    def release(self) -> None:
        """It is let go."""
        awake: object = self._awake
        if isinstance(awake, Releasing):
            awake.release()

    def _is_defined(self) -> bool:
        return all(kind in self._context.scheme for kind in self._kinds)

    def _defined(self, change: Change) -> None:
        del change
        if self._awake is None:
            self._context.wake()
