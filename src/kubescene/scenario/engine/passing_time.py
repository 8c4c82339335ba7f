"""An ``advanceOperation``: virtual time moves from one due instant to the next."""

from kubescene.control import Patience
from kubescene.scenario.engine.outstanding import Outstanding
from kubescene.scenario.engine.play import Play
from kubescene.scenario.engine.rest import Rest
from kubescene.scenario.phases import StepPhase


class PassingTime:
    """Each instant at which somebody woke is a small step of its own, minor steps continuing."""

    def __init__(self, play: Play, rest: Rest, outstanding: Outstanding) -> None:
        self._world = play.world
        self._participants = play.participants
        self._telling = play.telling
        self._patience = play.patience
        self._then = play.tasks.then
        self._rest = rest
        self._outstanding = outstanding

    def begin(self, duration: int) -> None:
        self._telling.finish()
        self._advance(self._world.clock.now() + duration, self._patience())

    def _advance(self, deadline: int, patience: Patience) -> None:
        """Move to the next due instant.

        ``patience`` is for the present instant: something may be due again and again.
        """
        due = self._world.event_queue.peek()
        if due is None or due > deadline:
            self._move_time(deadline)
            return
        if due > self._world.clock.now():
            patience = self._patience()
        patience.spend((), ())
        self._then(self._advance, deadline, patience)
        self._move_time(due)
        self._do_what_is_due()

    def _do_what_is_due(self) -> None:
        revision = self._world.revision
        self._world.event_queue.run_due()
        self._go_on(revision)

    def _go_on(self, revision: int) -> None:
        self._outstanding.go_on()
        if self._outstanding.is_halfway:
            self._then(self._go_on, revision)
            return
        if self._world.revision != revision or self._participants.is_anybody_awake():
            self._then(self._telling.finish)
            self._rest.come()
            self._telling.enter(StepPhase.OPERATING, controller="")

    def _move_time(self, instant: int) -> None:
        self._world.clock.wait_until(instant)
        for hook in self._world.instruments.time_advanced:
            hook(instant)
