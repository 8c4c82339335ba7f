"""When a program outside has nothing left to do, as far as one can tell from outside.

Nothing is on its way to it or from it; and then either the kernel says that it stands still, or
nothing has been heard of it for a while. The first is exact but for timers of its own, the second
a guess that is long enough for most; the Scenario's status says which it was.
"""

from kubescene.clock import MILLISECOND, Clock
from kubescene.outside.programs import Program
from kubescene.outside.round_trips import RoundTrip
from kubescene.outside.stillness import Stillness, can_be_watched
from kubescene.outside.wire import is_quiet

ONE_WORKER = 150 * MILLISECOND
MANY_WORKERS = 500 * MILLISECOND
"""Between two requests of one reaction, if its program is not to be watched."""


class Idleness:
    """Judges one program. ``linger`` is for what it does later by a timer of its own."""

    def __init__(self, program: Program, clock: Clock, quiet: int, linger: int = 0) -> None:
        self._program = program
        self._clock = clock
        self._quiet = quiet
        self.linger = linger
        self._since = 0
        self._sign = RoundTrip()
        pid = program.pid
        self._pid = pid if pid is not None and can_be_watched(pid) else None
        self._stillness = None if self._pid is None else Stillness(self._pid)

    @property
    def judged_by(self) -> str:
        return "quiet" if self._stillness is None else "still"

    def begin(self) -> None:
        """From now on, whatever was before."""
        self._restart(self._clock.now())

    def is_reached(self) -> bool:
        now, program = self._clock.now(), self._program
        if program.is_served or not program.has_seen:
            self._restart(now)
            return False
        if program.last_heard > self._since:
            self._restart(program.last_heard)
        if now - self._since < self.linger:
            return False
        if not self._sign.is_asked and self._is_still(now):
            # All it had to say is on its way, if it had anything to say: see whether that comes.
            self._sign.ask(program.errand)
        return self._sign.is_back

    def _is_still(self, now: int) -> bool:
        if self._stillness is None or self._pid is None:
            return now - self._since >= self._quiet
        if not self._stillness.is_still(now):
            return False
        # Who waits for us with one hand may read nothing with the other.
        return self._program.is_waiting or is_quiet(self._pid)

    def _restart(self, now: int) -> None:
        self._since = now
        self._sign.forget()
        if self._stillness is not None:
            self._stillness.begin(now)
