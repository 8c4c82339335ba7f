"""Where requests wait while there is no replica.

As in Knative's activator: they wait in order of arrival until the first replicas are active, and
those whose time-outs come before leave by them.
"""

from enum import StrEnum

import numpy as np

from kubescene.clock.batches import Integers
from kubescene.flows.kernels import NEVER
from kubescene.flows.records import NO_REPLICA, RequestColumns, RequestOutcome


class WhenNone(StrEnum):
    """What becomes of requests that come while no replica is active.

    ``refuse``: they fail at once. ``wait``: until one is, or until their time-outs. ``auto``: they
    wait where a ConcurrencyAutoscaler scales, as Knative's activator has it, and are refused
    otherwise, as a Service without endpoints does.
    """

    AUTO = "auto"
    REFUSE = "refuse"
    WAIT = "wait"


class ActivatorQueue:
    """Rows that wait: one range, since all who come while there is nobody come here."""

    def __init__(self, columns: RequestColumns, timeout: int) -> None:
        self._columns = columns
        self._timeout = timeout
        self.rows = range(0)
        self.demands: list[int] | None = None
        self.came = 0
        """How many ever waited."""
        self._waited = 0
        """The sum of the waits of all who have left."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def since(self) -> Integers:
        return self._columns.arrived[self.rows.start : self.rows.stop]

    def enter(self, rows: range, demands: list[int] | None) -> None:
        self._columns.replica[rows.start : rows.stop] = NO_REPLICA
        self.came += len(rows)
        if not self.rows:
            self.rows, self.demands = rows, demands
            return
        self.rows = range(self.rows.start, rows.stop)
        if demands is not None:
            assert self.demands is not None
            self.demands += demands

    def expire(self, until: int) -> int:
        """Whose time-outs come before ``until`` leave by them; how many did."""
        if not self.rows or self._timeout >= NEVER:
            return 0
        late = int(np.searchsorted(self.since, until - self._timeout))
        if late:
            here = slice(self.rows.start, self.rows.start + late)
            self._columns.completed[here] = self._columns.arrived[here] + self._timeout
            self._columns.outcome[here] = RequestOutcome.TIMEOUT
            self._waited += late * self._timeout
            self._cut(late)
        return late

    def leave(self, now: int) -> tuple[range, list[int] | None, list[int]]:
        """Everybody goes: the rows, what they demand, and since when they waited."""
        left = self.rows, self.demands, self.since.tolist()
        self._waited += len(self.rows) * now - sum(left[2])
        self.rows, self.demands = range(0), None
        return left

    def waited(self, now: int) -> int:
        """The integral over time of how many wait, in request-nanoseconds."""
        return self._waited + len(self.rows) * now - int(self.since.sum())

    def _cut(self, count: int) -> None:
        self.rows = self.rows[count:]
        if self.demands is not None:
            self.demands = self.demands[count:]
