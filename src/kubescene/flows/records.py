"""What is kept of every request: four columns, 21 bytes.

A row is a request, in order of arrival. ``completed`` is when it left, whatever its outcome; for
one that was refused that is when it arrived, for one that is open the end of the run.
"""

from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kubescene.clock.batches import Integers

Numbers: TypeAlias = npt.NDArray[np.int32]
Outcomes: TypeAlias = npt.NDArray[np.uint8]

ROW = np.dtype(
    [("arrived", "<i8"), ("completed", "<i8"), ("replica", "<i4"), ("outcome", "u1")], align=False
)
"""A row as it stands in a file."""
NO_REPLICA = 0
LEAST_ROWS = 1024


class RequestOutcome(IntEnum):
    """How a request ended."""

    OPEN = 0
    """The run ended first."""
    OK = 1
    TIMEOUT = 2
    REFUSED = 3
    """No replica was active."""
    KILLED = 4
    """Its replica ended with the request inside."""


FAILED = (RequestOutcome.TIMEOUT, RequestOutcome.REFUSED, RequestOutcome.KILLED)
"""In order: whatever is not less than the first of them."""


class RequestColumns:
    """Grows by a half when it is full; pages that nobody wrote to cost nothing."""

    def __init__(self, expected: int = 0) -> None:
        # Poisson arrivals: six standard deviations more than expected is as good as certain.
        room = max(expected + 6 * int(expected**0.5), LEAST_ROWS)
        self.count = 0
        self._arrived: Integers = np.empty(room, dtype=np.int64)
        self._completed: Integers = np.empty(room, dtype=np.int64)
        self._replica: Numbers = np.empty(room, dtype=np.int32)
        self._outcome: Outcomes = np.zeros(room, dtype=np.uint8)

    @property
    def arrived(self) -> Integers:
        return self._arrived[: self.count]

    @property
    def completed(self) -> Integers:
        return self._completed[: self.count]

    @property
    def replica(self) -> Numbers:
        """The number in the replica's name; 0 for requests that reached none."""
        return self._replica[: self.count]

    @property
    def outcome(self) -> Outcomes:
        return self._outcome[: self.count]

    def append(self, arrived: Integers) -> range:
        """Rows for these arrivals; who gets them and how they end is written later."""
        first, end = self.count, self.count + len(arrived)
        if end > len(self._arrived):
            self._grow(end)
        self._arrived[first:end] = arrived
        self.count = end
        return range(first, end)

    def close(self, halt: int) -> None:
        """The run is over: whoever has not left by now is open."""
        late = self.completed >= halt
        self.outcome[late] = RequestOutcome.OPEN
        self.completed[self.outcome == RequestOutcome.OPEN] = halt

    def rows(self) -> npt.NDArray[np.void]:
        """All rows as one array of records."""
        table = np.empty(self.count, dtype=ROW)
        for name in ROW.names or ():
            table[name] = getattr(self, name)
        return table

    @classmethod
    def of_rows(cls, table: npt.NDArray[np.void]) -> "RequestColumns":
        columns = cls(len(table))
        columns.count = len(table)
        for name in ROW.names or ():
            getattr(columns, name)[:] = table[name]
        return columns

    def _grow(self, least: int) -> None:
        room = max(least, len(self._arrived) * 3 // 2)
        for name in ("_arrived", "_completed", "_replica", "_outcome"):
            old = getattr(self, name)
            new = np.zeros(room, dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
