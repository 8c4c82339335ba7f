"""Operations that are not over at once: begun in a step, they go on while virtual time passes."""

from collections.abc import Callable

from kubescene.actors import ENGINE
from kubescene.clock import Scheduled
from kubescene.scenario.engine.play import Play
from kubescene.scenario.operations.arriving import ArrivingObjects
from kubescene.scenario.operations.drains import Drain
from kubescene.scenario.operations.evictions import Eviction
from kubescene.scenario.operations.undertakings import OperationContext, State, Undertaking
from kubescene.scenario.spec import Operation, OperationKind
from kubescene.timeline import OperationOutcome


def replayed(operation: Operation, setting: OperationContext) -> Undertaking:
    """Readers of histories are loaded with the first one: most runs replay none."""
    from kubescene.scenario.operations.replaying import Replay

    return Replay(operation, setting)


LASTING: dict[OperationKind, Callable[[Operation, OperationContext], Undertaking]] = {
    OperationKind.EVICT: Eviction,
    OperationKind.DRAIN: Drain,
    OperationKind.REPLAY: replayed,
}
"""Kinds of operations that may take time."""


def takes_time(operation: Operation) -> bool:
    return operation.arrives or operation.kind in LASTING


class Outstanding:
    """What was begun and is not over, in the order in which it was begun."""

    def __init__(self, play: Play) -> None:
        self._world = play.world
        self._recorder = play.recorder
        self._undertakings: list[Undertaking] = []
        self._turn = 0
        """Whose turn it is, by place."""
        self._alarm: Scheduled | None = None

    def __bool__(self) -> bool:
        return bool(self._undertakings)

    def begin(self, operation: Operation) -> None:
        world = self._world
        setting = OperationContext(
            world.client(ENGINE), world.scheme, world.clock, world.streams, self.tell
        )
        begun = ArrivingObjects if operation.arrives else LASTING[operation.kind]
        self._undertakings.append(begun(operation, setting))
        self.go_on()

    def go_on(self) -> bool:
        """Let each do what it can at this instant; whether anything was written.

        Where one is halfway, so are all of them (`is_halfway`): ask again, before all else.
        """
        if not self._undertakings:
            return False
        revision = self._world.revision
        while self._turn < len(self._undertakings):
            self._undertakings[self._turn].go_on()
            if self.is_halfway:
                return True
            self._turn += 1
        self._turn = 0
        self._undertakings = [each for each in self._undertakings if not each.is_over]
        self._set_alarm()
        return self._world.revision != revision

    @property
    def is_halfway(self) -> bool:
        """Whether somebody was interrupted, so that nobody waits for long."""
        at = self._turn
        return at < len(self._undertakings) and self._undertakings[at].is_halfway

    def tell(self, operation: Operation, state: State, message: str, subject: str = "") -> None:
        """What came of an operation, or of a part of it."""
        self._recorder.record(
            OperationOutcome,
            ENGINE,
            id=operation.id,
            operation=str(operation.kind),
            state=str(state),
            subject=subject,
            message=message,
        )

    def tell_unfinished(self) -> None:
        """The scenario pauses or ends here."""
        for each in self._undertakings:
            each.tell_unfinished()

    def _set_alarm(self) -> None:
        """Have time stop where somebody is due next. The alarm itself does nothing."""
        due = min(filter(None, (each.due for each in self._undertakings)), default=None)
        alarm = self._alarm
        if alarm is not None and alarm.pending and alarm.instant == due:
            return
        if alarm is not None:
            alarm.cancel()
        self._alarm = None if due is None else self._world.event_queue.at(due, stop_here)


def stop_here() -> None:
    """An instant at which time stops."""
