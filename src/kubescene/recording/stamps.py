"""Names of Events: the object's name and an instant, as ``web.18a2f0c81b3e5d00``.

On a real cluster nanoseconds make them unique. Here many things happen at one instant, so the
stamp moves on by one nanosecond for each: the same world gives the same names.
"""

from kubescene.clock import Clock

MAX_NAME_LENGTH = 253


class EventStamps:
    """Stamps of one world, shared by all of its recorders."""

    __slots__ = ("_clock", "_last")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = -1

    def name(self, about: str) -> str:
        """A name that no Event of this world has had."""
        stamp = self._last = max(self._clock.now(), self._last + 1)
        name = f"{about}.{stamp:x}"
        # A name that long is no name any more; upstream makes one up, too.
        return name if len(name) <= MAX_NAME_LENGTH else f"{stamp:x}"

    def reset(self) -> None:
        self._last = -1
