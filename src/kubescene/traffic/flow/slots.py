"""Replicas as a router plays them: one request comes, some have left.

The same rules as `kernels`, for requests that come one at a time. `InOrderSlot` is for services of
which the oldest request leaves first; those of all others are in `any_order_slots`.
"""

from kubescene.traffic.flow.kernels import NEVER, Service

MOST_GONE = 256
"""So many who have left are remembered before they are forgotten all at once."""


class Slot:
    """One replica. ``bound``: nobody leaves its CPU before."""

    __slots__ = ("bound", "io", "number", "service")

    def __init__(self, number: int, service: Service, io: int) -> None:
        self.number = number
        self.service = service
        self.io = io
        self.bound = NEVER

    def admit(self, at: int, demand: int) -> int:
        """One comes, after everybody left who leaves by then; answers the bound."""
        raise NotImplementedError

    def leave(self, until: int) -> list[int]:
        """Who leaves the CPU before ``until``: for each, when its wait is over, too."""
        raise NotImplementedError

    def resize(self, capacity: int, now: int) -> None:
        """Another capacity from ``now`` on; everybody has left who leaves before."""
        raise NotImplementedError


class InOrderSlot(Slot):
    """Those from ``head`` on are inside; those that have no tag yet wait."""

    __slots__ = ("_arrived", "_capacity", "_head", "_limit", "_tags", "_time", "_timeout", "_work")

    def __init__(self, number: int, service: Service, io: int, capacity: int, now: int) -> None:
        super().__init__(number, service, io)
        self._capacity = capacity
        self._limit = service.limit or NEVER
        self._timeout = service.timeout
        self._time = now
        self._work = 0
        self._head = 0
        self._tags: list[int] = []
        self._arrived: list[int] = []

    def admit(self, at: int, demand: int) -> int:
        tags = self._tags
        sharing = len(tags) - self._head
        if sharing:
            self._work += (at - self._time) * self._capacity // sharing
        else:
            self._work = 0
            self.bound = at + min(-(-demand // self._capacity), self._timeout)
        if sharing < self._limit:
            tags.append(self._work + demand)
        self._time = at
        self._arrived.append(at)
        return self.bound

    def leave(self, until: int) -> list[int]:
        tags, arrived, head, t, work = self._tags, self._arrived, self._head, self._time, self._work
        timeout, capacity, io = self._timeout, self._capacity, self.io
        over, up = [], capacity - 1
        self.bound = NEVER
        while sharing := len(tags) - head:
            deadline = arrived[head] + timeout
            end = t + ((tags[head] - work) * sharing + up) // capacity
            leaves = end if end <= deadline else deadline
            if leaves >= until:
                self.bound = leaves
                break
            work = tags[head] if end <= deadline else work + (leaves - t) * capacity // sharing
            t = leaves
            over.append(min(leaves + io, deadline))
            head += 1
            if len(tags) < len(arrived):
                tags.append(work + self.service.demand)
        self._time, self._work, self._head = t, work, head
        if head > MOST_GONE:
            del tags[:head], arrived[:head]
            self._head = 0
        return over

    def resize(self, capacity: int, now: int) -> None:
        if sharing := len(self._tags) - self._head:
            work = self._work + (now - self._time) * self._capacity // sharing
            self._work = min(work, self._tags[self._head])
        self._time, self._capacity = now, capacity
