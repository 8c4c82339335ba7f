"""The CPU of a replica: exact processor sharing in integers, one tight loop per batch.

Time is in nanoseconds, work in millicore-nanoseconds, capacity in millicores. ``work`` is how much
each sharer has received since the CPU was last idle; a request that starts with demand d leaves
when ``work`` reaches its tag, ``work + d``. The rules, which make equal bytes of equal input:

- at an event at t with n sharers, ``work += (t - last) * capacity // n``;
- the next end of CPU is at ``t + ceil((tag - work) * n / capacity)``, and there ``work = tag``;
- an idle CPU begins again with ``work = 0``;
- a change of capacity comes before an end at the same instant, and does not put it off;
- at one instant: end of CPU, then deadline, then arrival. A deadline takes the request out;
- at most ``limit`` share, the others wait in order; each gets at most ``ceiling`` millicores.

State moves at arrivals, ends, deadlines and changes of capacity only, never where somebody looks or
a batch ends: running until a and then until b is running until b.

Whoever comes later only ever delays those who are there. So both loops keep a lower bound of the
next departure, and compute it anew only when the bound has come: `oldest_first` where demands are
equal, `least_left_first` for all others.
"""

from collections.abc import Iterable
from typing import NamedTuple

NEVER = 1 << 62


class Service(NamedTuple):
    """What every request of a run has in common.

    ``demand`` is the mean where ``drawn``. ``limit`` and ``ceiling`` are 0 where there is none.
    """

    demand: int
    timeout: int = NEVER
    drawn: bool = False
    limit: int = 0
    ceiling: int = 0

    @property
    def in_order(self) -> bool:
        """Whether the oldest request in a CPU is always the next to leave it, and no slower one."""
        return not self.drawn and not self.ceiling


class Served(NamedTuple):
    """Who left the CPU: rows in order of leaving, when, and which positions by their deadline."""

    rows: list[int]
    instants: list[int]
    cancelled: list[int]


class Processor:
    """The CPU of one replica and who is in it. Integers and lists only: a copy is a fork."""

    __slots__ = (
        "arrived",
        "bound",
        "capacity",
        "idle",
        "rows",
        "service",
        "sharing",
        "since",
        "spent",
        "time",
        "work",
    )

    def __init__(self, service: Service, capacity: int, now: int) -> None:
        self.service = service
        self.capacity = capacity
        self.time = now
        self.work = 0
        self.sharing = 0
        self.bound = NEVER
        """Nobody leaves before, and if nobody else comes somebody leaves then."""
        self.arrived: list[int] = []
        self.rows: list[int] = []
        # For the utilisation: capacity was used since `since`, but for `idle` nanoseconds.
        self.since = now
        self.idle = 0
        self.spent = 0

    @property
    def held(self) -> int:
        """How many requests are in the CPU or wait for it."""
        raise NotImplementedError

    def serve(
        self, arrivals: list[int], rows: Iterable[int], demands: list[int] | None, until: int
    ) -> Served:
        """Take these arrivals, all before ``until``, and do all that happens before ``until``."""
        raise NotImplementedError

    def left(self) -> list[int]:
        """The rows of those who are in it."""
        raise NotImplementedError

    def least_tag(self) -> int:
        """The tag of the next of the sharers to end; there must be one."""
        raise NotImplementedError

    def used(self, now: int) -> int:
        """Work done so far. All that happens before ``now`` must have been served."""
        if self.service.ceiling:
            return self.spent + self.speed * (now - self.time)
        busy = now - self.since - self.idle
        if not self.sharing:
            busy -= now - self.time
        return self.spent + self.capacity * busy

    @property
    def speed(self) -> int:
        """How many millicores the sharers use together."""
        ceiling = self.service.ceiling
        if ceiling:
            return min(self.capacity, self.sharing * ceiling)
        return self.capacity if self.sharing else 0

    def resize(self, capacity: int, now: int) -> None:
        """Another capacity from ``now`` on. All that happens before must have been served."""
        self.spent = self.used(now)
        if self.sharing:
            work = self.work + (now - self.time) * self.speed // self.sharing
            # Who ends at this very instant got no more than it wanted: it never ends in the past.
            self.work = min(work, self.least_tag())
        self.time = self.since = now
        self.idle = 0
        self.capacity = capacity
        self.bound = now if self.sharing else NEVER
