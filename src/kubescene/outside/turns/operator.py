"""An operator, write by write.

It sees all that has happened, then whatever it wants to write is held until it has nothing else to
do; the first write, in an order that does not depend on chance, is carried out. That is one loop.
Its next turn begins with its own echo. A program that says when a loop is over (``parked``) writes
all of the loop in one turn; of several workers that wait one goes on.
"""

from kubescene.control import WAITING, Progress
from kubescene.errors import ScenarioError
from kubescene.outside.idleness import ONE_WORKER, Idleness
from kubescene.outside.turns.turn import Turn

MOST_WRITES = 10_000
"""In one loop of a program that parks."""


class OperatorTurn(Turn):
    """Moves one operator."""

    _idle: Idleness | None = None

    @property
    def judged_by(self) -> tuple[str, ...]:
        by = () if self._idle is None else (self._idle.judged_by,)
        return ("parked", *by) if self._program.has_parked else by

    def _begin(self) -> Progress:
        program = self._program
        if not program.feeds:
            return self._come_back()
        self._wrote = 0
        program.let_read()
        program.give_all()
        program.unpark(most=1)
        self._others = len(program.parked)
        self._judge().begin()
        return self._go(self._working, "it was still busy")

    def _judge(self) -> Idleness:
        if self._idle is None:
            waiter = self._declared.waiter
            quiet = ONE_WORKER if waiter is None or waiter.quiet_ns is None else waiter.quiet_ns
            linger = 0 if waiter is None or waiter.quiet_ns is None else waiter.quiet_ns
            self._idle = Idleness(self._program, self._world.real_clock, quiet, linger)
        return self._idle

    def _working(self) -> Progress:
        program = self._program
        if not self._judge().is_reached():
            return WAITING
        if writes := program.writes:
            program.let_in(writes[0])
            self._wrote += 1
            if self._wrote > MOST_WRITES:
                raise ScenarioError(
                    f"it wrote {self._wrote} times in one loop, without end as it seems",
                    where=f"controller {self.name}",
                )
            # One that tells when its loop is over: until then its writes belong together.
            state = self._echoing if program.has_parked else self._answering
            return self._go(state, "its write was not answered")
        if len(program.parked) > self._others:
            # A loop is over; whether another follows, only its own queue knows.
            return self._end(Progress(wrote=self._wrote > 0, more=True))
        if not program.feeds:
            return self._come_back()
        if self._wrote or not self._is_content():
            return WAITING
        return self._end(Progress(wrote=False, more=bool(program.parked)))

    def _echoing(self) -> Progress:
        """In the middle of a loop: it sees its own write before it writes again."""
        if self._program.passed:
            return WAITING
        self._program.give_all()
        self._judge().begin()
        return self._go(self._working, "its loop was not over: it did not park")

    def _answering(self) -> Progress:
        if self._program.passed:
            return WAITING
        return self._end(Progress(wrote=True, more=True))

    def _end(self, progress: Progress) -> Progress:
        self._program.may_read = False
        self._state = self._begin
        return progress
