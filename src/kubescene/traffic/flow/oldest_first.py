"""Processor sharing where all want the same: whoever came first leaves first, whatever happens.

Tags and deadlines are both in order of arrival, so that lists do where others need a heap.
"""

from collections.abc import Iterable

from kubescene.traffic.flow.kernels import NEVER, Processor, Served, Service


class OldestFirst(Processor):
    """Tags are of those who share, the oldest first; whoever is behind them waits."""

    __slots__ = ("tags",)

    def __init__(self, service: Service, capacity: int, now: int) -> None:
        super().__init__(service, capacity, now)
        self.tags: list[int] = []

    @property
    def held(self) -> int:
        return len(self.arrived)

    def left(self) -> list[int]:
        return list(self.rows)

    def least_tag(self) -> int:
        return self.tags[0]

    def serve(
        self, arrivals: list[int], rows: Iterable[int], demands: list[int] | None, until: int
    ) -> Served:
        del demands  # all want the same
        waiting = len(self.arrived) - self.sharing
        self.arrived += arrivals
        self.rows += rows
        done, cancelled = self._play(arrivals, waiting, until)
        if not (gone := len(done)):
            return Served([], done, cancelled)
        left = self.rows[:gone]
        del self.tags[:gone], self.arrived[:gone], self.rows[:gone]
        return Served(left, done, cancelled)

    def _play(  # noqa: PLR0912 - one loop without calls: this is where time goes
        self, arrivals: list[int], waiting: int, until: int
    ) -> tuple[list[int], list[int]]:
        """When who leaves, and which of them by their deadlines."""
        tags, arrived = self.tags, self.arrived
        n, t, work, capacity = self.sharing, self.time, self.work, self.capacity
        demand, timeout, limit = self.service.demand, self.service.timeout, self.service.limit
        limit, alone = limit or NEVER, min(-(-demand // capacity), timeout)
        up = capacity - 1  # Rounded up this way: divisions below 0 take twice as long.
        done: list[int] = []
        cancelled: list[int] = []
        head, bound, late = 0, self.bound, False
        for at in (*arrivals, None):
            last = until - 1 if at is None else at
            while bound <= last:
                if not late:
                    end = t + ((tags[head] - work) * n + up) // capacity
                    deadline = arrived[head] + timeout
                    late = end > deadline
                    bound = deadline if late else end
                    if bound > last:
                        break
                if late:
                    work += (bound - t) * capacity // n
                    cancelled.append(head)
                    late = False
                else:
                    work = tags[head]
                t = bound
                done.append(t)
                head += 1
                if waiting:
                    waiting -= 1
                    tags.append(work + demand)
                elif n > 1:
                    n -= 1
                else:
                    n, bound = 0, NEVER
            if at is None:
                break
            if n:
                work += (at - t) * capacity // n
            else:
                self.idle += at - t
                work, bound = 0, at + alone
            t = at
            if n < limit:
                n += 1
                tags.append(work + demand)
            else:
                waiting += 1
        self.sharing, self.time, self.work, self.bound = n, t, work, bound
        return done, cancelled
