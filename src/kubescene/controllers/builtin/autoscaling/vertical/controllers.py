"""The two controllers, asleep until there is a VerticalPodAutoscaler: loops every so often.

A world without such objects pays for one watch: neither their kind nor the rules are loaded. A loop
begins at whole multiples of its interval, whenever the first object came; so how time is cut into
pieces changes nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.controllers.authoring import DEFINITION
from kubescene.controllers.builtin.autoscaling.flags import DEFAULTS, VerticalSettings
from kubescene.controllers.builtin.autoscaling.vertical.kinds import AUTOSCALER
from kubescene.types import Nanoseconds

RECOMMENDER, UPDATER = "vpa-recommender", "vpa-updater"


class LoopBody(Protocol):
    """What a loop does. Made with the first object."""

    def run(self, now: Nanoseconds) -> bool:
        """One loop; whether something was written."""
        ...

    def forget(self, namespace: str, name: str) -> None:
        """An object is gone."""
        ...


class LoopController:
    """Turns a loop while there are objects of ``kind``."""

    def __init__(
        self,
        name: str,
        kind: GroupVersionKind,
        interval: Nanoseconds,
        make: Callable[[ControllerContext], LoopBody],
        context: ControllerContext,
    ) -> None:
        self.name = name
        self._kind = kind
        self._interval = interval
        self._make = make
        self._context = context
        self._turns: LoopBody | None = None
        self._objects: dict[tuple[str, str], None] = {}
        self._due: Nanoseconds | None = None
        self._is_following = kind in context.scheme
        if self._is_following:
            context.client.watch(kind, self._changed, quiet=True)
        else:
            context.client.watch(DEFINITION, self._defined, quiet=True)

    def run_once(self) -> Progress:
        # Not where the definition is told of: who is being told does not look yet.
        if not self._is_following and self._kind in self._context.scheme:
            self._is_following = True
            self._context.client.watch(self._kind, self._changed, quiet=True)
        if not self._objects:
            self._due = None
            return IDLE
        if self._turns is None:
            self._turns = self._make(self._context)
        now, wrote = self._context.timers.now(), False
        if self._due is not None and now >= self._due:
            self._due = None
            wrote = self._turns.run(now)
        if self._due is None:
            self._due = now - now % self._interval + self._interval
            self._context.timers.at(self._due, _nothing, name=f"{self.name}: loop")
        return went(wrote=wrote, more=False)

    def _defined(self, change: Change) -> None:
        del change
        if not self._is_following:
            self._context.wake()

    def _changed(self, change: Change) -> None:
        record = change.record
        if change.type is ChangeType.DELETED:
            self._objects.pop(record.key, None)
            if self._turns is not None:
                self._turns.forget(*record.key)
        elif record.key not in self._objects:
            self._objects[record.key] = None
            self._context.wake()


def _nothing() -> None:
    """A timer wakes its controller; there is nothing else to do."""


def recommender(
    context: ControllerContext, settings: VerticalSettings = DEFAULTS.vertical
) -> LoopController:
    """The factory of the recommender."""
    make = partial(_recommending, settings=settings)
    interval = settings.recommender_interval
    return LoopController(RECOMMENDER, AUTOSCALER, interval, make, context)


def updater(
    context: ControllerContext, settings: VerticalSettings = DEFAULTS.vertical
) -> LoopController:
    """The factory of the updater."""
    make = partial(_updating, settings=settings)
    return LoopController(UPDATER, AUTOSCALER, settings.updater_interval, make, context)


# The rules take longer to load than many a run: with the first object.


def _recommending(context: ControllerContext, settings: VerticalSettings) -> LoopBody:
    from kubescene.controllers.builtin.autoscaling.vertical.recommending import Recommending

    return Recommending(context, settings)


def _updating(context: ControllerContext, settings: VerticalSettings) -> LoopBody:
    from kubescene.controllers.builtin.autoscaling.vertical.updating import Updating

    return Updating(context, settings)
