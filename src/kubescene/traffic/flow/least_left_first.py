"""Processor sharing where everybody wants something else: whoever has the least left is next.

A heap of tags says who that is. Deadlines are in order of arrival; one that has left by its
deadline stays in the heap until it comes to the top.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from kubescene.traffic.flow.kernels import NEVER, Processor, Served, Service

SEQUENCE_BITS = 32
SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
GONE = -1
LEAST_TRIMMED = 64


class LeastLeftFirst(Processor):
    """Requests are known by their places in ``arrived``; in the heap ``base`` is added to them."""

    __slots__ = ("base", "demands", "heap", "oldest", "present", "started")

    def __init__(self, service: Service, capacity: int, now: int) -> None:
        super().__init__(service, capacity, now)
        self.demands: list[int] = []
        self.heap: list[int] = []
        """The tags of those who share, in the higher bits."""
        self.base = 0
        self.oldest = 0
        """Nobody who came before this place is left."""
        self.started = 0
        """Who came before this place has begun; the others wait."""
        self.present = 0

    @property
    def held(self) -> int:
        return self.present

    def left(self) -> list[int]:
        return [row for row, at in zip(self.rows, self.arrived, strict=True) if at != GONE]

    def least_tag(self) -> int:
        heap, arrived, base = self.heap, self.arrived, self.base
        while arrived[(heap[0] & SEQUENCE_MASK) - base] < 0:
            heappop(heap)
        return heap[0] >> SEQUENCE_BITS

    def serve(
        self, arrivals: list[int], rows: Iterable[int], demands: list[int] | None, until: int
    ) -> Served:
        self.rows += rows
        self.demands += [self.service.demand] * len(arrivals) if demands is None else demands
        served = self._play(arrivals, until)
        self.present += len(arrivals) - len(served.rows)
        self._trim()
        return served

    def _play(  # noqa: C901, PLR0912, PLR0915 - one loop without calls: this is where time goes
        self, arrivals: list[int], until: int
    ) -> Served:
        heap, arrived, demands, rows = self.heap, self.arrived, self.demands, self.rows
        n, t, work, capacity = self.sharing, self.time, self.work, self.capacity
        base, oldest, started = self.base, self.oldest, self.started
        timeout, ceiling = self.service.timeout, self.service.ceiling
        limit, speed = self.service.limit or NEVER, self.speed or capacity
        left: list[int] = []
        done: list[int] = []
        cancelled: list[int] = []
        bound, late = self.bound, False
        for at in (*arrivals, None):
            last = until - 1 if at is None else at
            while bound <= last:
                if not late:
                    while arrived[(heap[0] & SEQUENCE_MASK) - base] < 0:
                        heappop(heap)
                    while arrived[oldest] < 0:
                        oldest += 1
                    end = t + (((heap[0] >> SEQUENCE_BITS) - work) * n + speed - 1) // speed
                    deadline = arrived[oldest] + timeout
                    late = end > deadline
                    bound = deadline if late else end
                    if bound > last:
                        break
                if ceiling:
                    self.spent += (bound - t) * speed
                if late:
                    work += (bound - t) * speed // n
                    place = oldest
                    cancelled.append(len(left))
                    late = False
                else:
                    first = heappop(heap)
                    work = first >> SEQUENCE_BITS
                    place = (first & SEQUENCE_MASK) - base
                t = bound
                done.append(t)
                left.append(rows[place])
                arrived[place] = GONE
                if started < len(arrived):
                    heappush(heap, (work + demands[started] << SEQUENCE_BITS) + base + started)
                    started += 1
                    continue
                n -= 1
                if not n:
                    bound = NEVER
                    heap.clear()
                elif ceiling:
                    speed = min(capacity, n * ceiling)
            if at is None:
                break
            if n:
                if ceiling:
                    self.spent += (at - t) * speed
                work += (at - t) * speed // n
            else:
                self.idle += at - t
                work, oldest = 0, len(arrived)
            t = at
            arrived.append(at)
            if n < limit:
                own = (work + demands[started] << SEQUENCE_BITS) + base + started
                heappush(heap, own)
                started += 1
                n += 1
                if ceiling:
                    speed = min(capacity, n * ceiling)
                if heap[0] == own:
                    bound, late = 0, False  # It has overtaken everybody.
        self.sharing, self.time, self.work, self.bound = n, t, work, bound
        self.oldest, self.started = oldest, started
        return Served(left, done, cancelled)

    def _trim(self) -> None:
        """Forget those who left: at once when nobody is there, else when most of it is dead."""
        if not self.present:
            self._forget_all()
        elif len(self.arrived) >= max(2 * self.present, LEAST_TRIMMED):
            self._compact()

    def _forget_all(self) -> None:
        self.base += len(self.arrived)
        if self.base > SEQUENCE_MASK >> 1:
            self.base = 0
        for each in (self.arrived, self.rows, self.demands, self.heap):
            each.clear()
        self.oldest = self.started = 0

    def _compact(self) -> None:
        kept = [place for place, at in enumerate(self.arrived) if at != GONE]
        renamed = {self.base + place: number for number, place in enumerate(kept)}
        self.heap = [
            (each >> SEQUENCE_BITS << SEQUENCE_BITS) + renamed[each & SEQUENCE_MASK]
            for each in self.heap
            if each & SEQUENCE_MASK in renamed
        ]
        heapify(self.heap)
        self.started = sum(place < self.started for place in kept)
        self.base = self.oldest = 0
        self.arrived = [self.arrived[place] for place in kept]
        self.rows = [self.rows[place] for place in kept]
        self.demands = [self.demands[place] for place in kept]
