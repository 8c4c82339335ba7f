"""An operator, write by write.

It sees all that has happened, then whatever it wants to write is held until it has nothing else to
do; the first write, in an order that does not depend on chance, is carried out. That is one loop.
Its next turn begins with its own echo. A program that says when a loop is over (``parked``) writes
all of the loop in one turn; of several workers that wait one goes on.

When one that parks has nothing left to do, it may wait for news and not park; that is seen. Or it
loops without end and parks again, having written nothing. One that only lists is then done at once.
One that watches may have a queue, of at most as many items as there are objects to watch: it is
done when it has looped as often and some more; from then on it is known not to have one.
"""

from kubescene.control import WAITING, Progress
from kubescene.errors import ScenarioError
from kubescene.outside.idleness import ONE_WORKER, Idleness
from kubescene.outside.turns.turn import Turn

MOST_WRITES = 10_000
"""In one loop of a program that parks."""
MOST_SURPLUS = 3
"""Loops that nothing asked for: one or two may be retries of its own."""


class OperatorTurn(Turn):
    """Moves one operator."""

    _idle: Idleness | None = None
    _queued = 0
    """How many items its queue may have."""
    _surplus = 0
    """How often it has looped though its queue, if it had one, was empty."""
    _has_no_queue = False
    _watched = 0
    """How many watches it had when its queue was measured."""

    @property
    def judged_by(self) -> tuple[str, ...]:
        by = () if self._idle is None else (self._idle.judged_by,)
        return ("parked", *by) if self._program.has_parked else by

    def _begin(self) -> Progress:
        program = self._program
        if not program.feeds and not program.stands:
            return self._come_back()
        self._wrote = 0
        program.let_read()
        self._give()
        program.unpark(most=1)
        self._others = len(program.parked)
        self._judge().begin()
        return self._go(self._working, "it was still busy")

    def _give(self) -> None:
        """Let it see all that has happened; what it is given may come to be in its queue."""
        given, feeds = self._program.give_all(), self._program.feeds
        if given or len(feeds) != self._watched:
            self._watched, self._surplus = len(feeds), 0
            resources = {feed.resource for feed in feeds}
            self._queued = given + sum(map(self._world.count, resources))

    def _has_more(self) -> bool:
        """Whether a loop that wrote nothing may be followed by one that does."""
        if self._has_no_queue or not self._program.feeds:
            return False
        if self._queued:
            self._queued -= 1
            return True
        self._surplus += 1
        self._has_no_queue = self._surplus >= MOST_SURPLUS
        return not self._has_no_queue

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
            more = self._wrote > 0 or self._has_more()
            if more or self._is_content():
                return self._end(Progress(wrote=self._wrote > 0, more=more))
            self._state = self._begin
            return Progress(wrote=False, more=True)
        if not program.feeds:
            return WAITING if program.has_parked else self._come_back()
        if self._wrote or not self._is_content():
            return WAITING
        self._queued = 0
        return self._end(Progress(wrote=False, more=bool(program.parked)))

    def _echoing(self) -> Progress:
        """In the middle of a loop: it sees its own write before it writes again."""
        if self._program.passed:
            return WAITING
        self._give()
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
