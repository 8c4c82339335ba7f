"""Three paces of one time, and a clock that changes between them.

A clock answers two questions: what time is it, and (for the event loop only) please let it
become this time. `VirtualClock` jumps there, `WallClock` sleeps until then, `ScaledClock` sleeps a
fraction of it. Nothing else in Kubescene knows which of the three it was given; who has to sleep by
other means, such as a thread that waits for commands too, asks `seconds_until`. A served world has
a `LentClock`: one of the three, and virtual while a scenario has the world.

Instants are integer nanoseconds since the Unix epoch, so that arithmetic is exact. Clocks can be
copied: the copy of a virtual clock stands where the original stood, the others go on alike.

A `Stopwatch` says how long something takes on this machine, for benchmarks: no result may depend on
it.
"""

import time
from typing import NamedTuple, Protocol

from kubescene.clock.timestamps import parse_time
from kubescene.durations import SECOND


class Span(NamedTuple):
    """How long something took."""

    wall_s: float
    cpu_s: float


class Stopwatch:
    """Runs from its making; CPU time is that of this process, all threads."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Span:
        return Span(time.perf_counter() - self._wall, time.process_time() - self._cpu)


DEFAULT_START = parse_time("2026-01-01T00:00:00Z")
"""Where virtual time begins unless a scenario says otherwise."""

LONGEST_SLEEP_S = 3600.0
"""The machine's time may be set while we sleep, and `time.sleep` refuses centuries."""


class Clock(Protocol):
    """What components receive. Reading is for everyone, the rest for the event loop."""

    def now(self) -> int:
        """The current instant."""
        ...

    def wait_until(self, instant: int) -> None:
        """Return when `now() >= instant`. Instants that have passed return at once."""
        ...

    def seconds_until(self, instant: int) -> float | None:
        """Real seconds until ``instant``: 0.0 if it has come, None if only being told helps."""
        ...


class PacedClock(Clock, Protocol):
    """A clock that a world can own: it begins again with it, and others can have its pace."""

    def reset(self, start: int | None = None) -> None:
        """Begin again, at ``start`` if that is given."""
        ...

    def going_on(self, instant: int) -> "PacedClock":
        """A clock of the same pace that begins at ``instant``."""
        ...


class Deadline:
    """An instant of a clock by which something must have happened."""

    __slots__ = ("_at", "_clock")

    def __init__(self, clock: Clock, timeout: int) -> None:
        """``timeout`` nanoseconds from now."""
        self._clock = clock
        self._at = clock.now() + timeout

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        return max(self._at - self._clock.now(), 0) / SECOND

    @property
    def is_over(self) -> bool:
        return self._clock.now() >= self._at


class VirtualClock:
    """Stands still until told to move. The pace of every rehearsal."""

    __slots__ = ("_now", "start")

    def __init__(self, start: int = DEFAULT_START) -> None:
        self.start = start
        self._now = start

    def now(self) -> int:
        return self._now

    def wait_until(self, instant: int) -> None:
        if instant > self._now:  # noqa: PLR1730 - a call of max costs three times as much
            self._now = instant

    def seconds_until(self, instant: int) -> float | None:
        return 0.0 if instant <= self._now else None

    def reset(self, start: int | None = None) -> None:
        """Begin again, for a new scenario in the same process."""
        if start is not None:
            self.start = start
        self._now = self.start

    def going_on(self, instant: int) -> "VirtualClock":
        """A clock of the same pace that stands at ``instant``."""
        return VirtualClock(instant)


class WallClock:
    """The machine's time, for serving a live cluster."""

    __slots__ = ()

    def now(self) -> int:
        return time.time_ns()

    def wait_until(self, instant: int) -> None:
        while (seconds := self.seconds_until(instant)) > 0.0:
            time.sleep(min(seconds, LONGEST_SLEEP_S))

    def seconds_until(self, instant: int) -> float:
        return max(instant - self.now(), 0) / SECOND

    def reset(self, start: int | None = None) -> None:
        """Nobody sets the machine's time."""

    def going_on(self, instant: int) -> "ScaledClock":
        """A clock of the same pace that begins at ``instant``."""
        return ScaledClock(1, instant)


class ScaledClock:
    """Runs ``rate`` times as fast as the machine's time, for watching a rehearsal happen."""

    __slots__ = ("_origin", "_rate", "start")

    def __init__(self, rate: int, start: int = DEFAULT_START) -> None:
        if rate < 1:
            raise ValueError(f"a scaled clock needs a whole rate of at least 1, not {rate}")
        self._rate = rate
        self.start = start
        self._origin = time.monotonic_ns()

    def now(self) -> int:
        return self.start + (time.monotonic_ns() - self._origin) * self._rate

    def wait_until(self, instant: int) -> None:
        while (seconds := self.seconds_until(instant)) > 0.0:
            time.sleep(min(seconds, LONGEST_SLEEP_S))

    def seconds_until(self, instant: int) -> float:
        return max(instant - self.now(), 0) / (SECOND * self._rate)

    def reset(self, start: int | None = None) -> None:
        """Begin again, for a new scenario in the same process."""
        if start is not None:
            self.start = start
        self._origin = time.monotonic_ns()

    def going_on(self, instant: int) -> "ScaledClock":
        """A clock of the same pace that begins at ``instant``."""
        return ScaledClock(self._rate, instant)


class LentClock:
    """Another clock that a scenario may have for itself: then time is virtual.

    Whoever was given it sees one time: it never runs backwards but where a world begins anew. After
    the scenario time goes on at its own pace from where the scenario left it.
    """

    __slots__ = ("_own", "_present")

    def __init__(self, own: PacedClock) -> None:
        self._own = own
        self._present: PacedClock = own

    def now(self) -> int:
        return self._present.now()

    def wait_until(self, instant: int) -> None:
        self._present.wait_until(instant)

    def seconds_until(self, instant: int) -> float | None:
        return self._present.seconds_until(instant)

    def lend(self, start: int) -> None:
        """From now on time stands still at ``start`` until told to move."""
        self._present = VirtualClock(start)

    def take_back(self) -> None:
        """Let time pass by itself again, from the present instant on."""
        self._present = self._own.going_on(self.now())

    def reset(self, start: int | None = None) -> None:
        """Begin again, as at first."""
        self._own.reset(start)
        self._present = self._own

    @property
    def passes_by_itself(self) -> bool:
        """Whether its own pace is another than being told."""
        return not isinstance(self._own, VirtualClock)
