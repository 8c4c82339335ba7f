"""A replica as far as requests see it."""

from kubescene.traffic.flow.kernels import NEVER, Processor
from kubescene.traffic.flow.sampling import Meter


class Station:
    """A processor, and a meter if somebody wants samples."""

    __slots__ = ("_waits", "last_end", "meter", "number", "processor", "room")

    def __init__(self, number: int, processor: Processor, meter: Meter | None) -> None:
        self.number = number
        self.processor = processor
        self.meter = meter
        self.last_end = 0
        self.room = NEVER
        """So many requests it can hold; one more and it is out of memory."""
        self._waits: list[int] = []

    def waits_until(self, ends: list[int]) -> None:
        """These have left the CPU and are inside until then."""
        self._waits += ends

    def inside(self, now: int) -> int:
        """How many are in the CPU, or wait after it. Kept only where there is a bound."""
        self._waits = [end for end in self._waits if end >= now]
        return self.processor.held + len(self._waits)
