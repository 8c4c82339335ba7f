"""A bag of controllers in one program (a controller manager): rounds, and the state they end in.

Its many workers cannot be told apart from outside. They see all that has happened, then what they
want to write is carried out together, in an order that does not depend on chance; and again, until
a round brings nothing and has lasted as long as their own timers do.
"""

from kubescene.api.scheme import GroupResource
from kubescene.clock import MILLISECOND
from kubescene.control import IDLE, WAITING, Progress
from kubescene.errors import ScenarioError
from kubescene.outside.idleness import MANY_WORKERS, Idleness
from kubescene.outside.programs import Held
from kubescene.outside.turns.turn import Turn

RETRIES = 100 * MILLISECOND
"""A write that met a conflict is tried again after a few milliseconds."""
TIMERS = 1200 * MILLISECOND
TIMED = (GroupResource("batch", "jobs"), GroupResource("discovery.k8s.io", "endpointslices"))
"""Written by timers of a second, where there are any."""


MOST_ROUNDS = 1000
"""In one turn: whoever writes in every one of them has no end."""


class BagTurn(Turn):
    """Moves one bag."""

    _idle: Idleness | None = None
    _lingering: Idleness | None = None
    _batch: list[Held] | None = None
    _rounds = 0
    _last = ""

    @property
    def judged_by(self) -> tuple[str, ...]:
        return () if self._idle is None else (self._idle.judged_by, "linger")

    def _begin(self) -> Progress:
        if not self._program.feeds:
            return self._come_back()
        self._wrote = False
        self._rounds = 0
        self._program.let_read()
        return self._round()

    def _round(self) -> Progress:
        self._check_rounds()
        self._program.give_all()
        self._program.unpark()
        real, quiet = self._world.real_clock, MANY_WORKERS
        if self._idle is None or self._lingering is None:
            self._idle = Idleness(self._program, real, quiet)
            self._lingering = Idleness(self._program, real, quiet)
        self._lingering.linger = self._linger()
        self._idle.begin()
        self._lingering.begin()
        return self._go(self._working, "it was still busy")

    def _check_rounds(self) -> None:
        self._rounds += 1
        if self._rounds > MOST_ROUNDS:
            raise ScenarioError(
                f"it wrote in {MOST_ROUNDS} rounds one after the other, last {self._last}, and "
                "has no end",
                where=f"controller {self.name}",
            )

    def _linger(self) -> int:
        """What it may do later by itself decides how long one has to look."""
        waiter = self._declared.waiter
        if waiter is not None and waiter.quiet_ns is not None:
            return waiter.quiet_ns
        return TIMERS if any(map(self._world.count, TIMED)) else RETRIES

    def _working(self) -> Progress:
        assert self._idle is not None
        assert self._lingering is not None
        if not self._idle.is_reached():
            return WAITING
        if self._program.writes:
            return self._go(self._releasing, "its writes were not answered")
        if not self._program.feeds:
            return self._come_back()
        if not self._lingering.is_reached() or not self._is_content():
            return WAITING
        self._program.may_read = False
        self._state = self._begin
        return Progress(wrote=True, more=False) if self._wrote else IDLE

    def _releasing(self) -> Progress:
        """One write after the other, those that come meanwhile belong to the next round."""
        program = self._program
        if self._batch is None:
            self._batch = program.writes
        if program.passed:
            return WAITING
        if self._batch:
            self._wrote = True
            held = self._batch.pop(0)
            self._last = str(held.asked)
            program.let_in(held)
            return WAITING
        self._batch = None
        return self._round()
