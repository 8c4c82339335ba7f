"""When a program outside has nothing left to do, as far as one can tell from outside.

Nothing is on its way to it or from it; and then either the kernel says that it stands still, or
nothing has been heard of it for a while. The first is exact, the second a guess that is long
enough for most; the Scenario's status says which it was.
"""

from kubescene.clock import MILLISECOND, Clock
from kubescene.outside.programs import Program
from kubescene.outside.stillness import Stillness, can_be_watched
from kubescene.outside.wire import is_quiet

ONE_WORKER = 20 * MILLISECOND
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
        pid = program.pid
        watched = pid is not None and can_be_watched(pid)
        self._stillness = Stillness(pid) if watched and pid is not None else None

    @property
    def judged_by(self) -> str:
        return "quiet" if self._stillness is None else "still"

    def begin(self) -> None:
        """From now on, whatever was before."""
        self._since = self._clock.now()
        if self._stillness is not None:
            self._stillness.begin(self._since)

    def is_reached(self) -> bool:
        now, program = self._clock.now(), self._program
        if program.passed or not program.has_seen:
            self._restart(now)
            return False
        self._since = max(self._since, program.last_heard)
        if now - self._since < self.linger:
            return False
        if self._stillness is None:
            return now - self._since >= self._quiet
        if not self._stillness.is_still(now):
            return False
        # Who waits for us with one hand may read nothing with the other.
        if program.is_waiting or is_quiet(program.ports):
            return True
        self._restart(now)
        return False

    def _restart(self, now: int) -> None:
        self._since = now
        if self._stillness is not None:
            self._stillness.begin(now)
