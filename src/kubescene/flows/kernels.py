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
next departure, and compute it anew only when the bound has come: `OldestFirst` where demands are
equal, `LeastLeftFirst` for all others.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

NEVER = 1 << 62
SEQUENCE_BITS = 32
SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
GONE = -1
LEAST_TRIMMED = 64


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


class Resident(NamedTuple):
    """A request inside a processor: its row, when it came, and how much of its work is left."""

    row: int
    arrived: int
    left: int


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

    def admit(
        self, rows: Iterable[int], demands: list[int] | None, since: list[int], now: int
    ) -> Served:
        """Requests that waited elsewhere ``since`` they arrived, and begin now; nobody is here."""
        assert not self.held
        rows = list(rows)
        served = self.serve([now] * len(rows), rows, demands, now)
        arrived_at = dict(zip(rows, since, strict=True))
        for place, row in enumerate(self.rows):
            if self.arrived[place] >= 0:
                self.arrived[place] = arrived_at[row]
        # Deadlines are sooner than those of who arrives now: the bound is looked for anew.
        self.bound = now if self.sharing else NEVER
        return served

    def waiting(
        self, rows: Iterable[int], demands: list[int] | None, since: list[int]
    ) -> list[Resident]:
        """Requests that have waited elsewhere, as they are before they begin."""
        rows = list(rows)
        wanted = demands or [self.service.demand] * len(rows)
        return [Resident(*each) for each in zip(rows, since, wanted, strict=True)]

    def left(self) -> list[int]:
        """The rows of those who are in it."""
        raise NotImplementedError

    def residents(self, now: int) -> list[Resident]:
        """Those who are in it, in order of arrival; all that happens before has been served."""
        raise NotImplementedError

    def adopt(self, residents: Iterable[Resident], used: int, now: int) -> None:
        """Requests that have been served elsewhere until now, and what was used for them."""
        raise NotImplementedError

    def _begin(self, used: int, sharing: int, now: int) -> None:
        """So many share from now on, when so much was used."""
        self.spent, self.sharing = used, sharing
        self.time = self.since = now
        self.work = self.idle = 0
        self.bound = now if sharing else NEVER

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


class OldestFirst(Processor):
    """Where all want the same: whoever came first leaves first, whatever happens.

    Tags are of those who share, the oldest first; whoever is behind them waits. Tags and deadlines
    are both in order of arrival, so that lists do where others need a heap.
    """

    __slots__ = ("tags",)

    def __init__(self, service: Service, capacity: int, now: int) -> None:
        super().__init__(service, capacity, now)
        self.tags: list[int] = []

    @property
    def held(self) -> int:
        return len(self.arrived)

    def left(self) -> list[int]:
        return list(self.rows)

    def residents(self, now: int) -> list[Resident]:
        self.resize(self.capacity, now)
        demand = self.service.demand
        left = [tag - self.work for tag in self.tags]
        left += [demand] * (len(self.arrived) - len(left))
        return list(map(Resident, self.rows, self.arrived, left))

    def adopt(self, residents: Iterable[Resident], used: int, now: int) -> None:
        for row, arrived, left in residents:
            self.rows.append(row)
            self.arrived.append(arrived)
            self.tags.append(left)
        del self.tags[self.service.limit or NEVER :]
        self._begin(used, len(self.tags), now)

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


class LeastLeftFirst(Processor):
    """Where everybody wants something else: whoever has the least left is next.

    A heap of tags says who that is. Deadlines are in order of arrival; one that has left by its
    deadline stays in the heap until it comes to the top. Requests are known by their places in
    ``arrived``; in the heap ``base`` is added to them.
    """

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

    def residents(self, now: int) -> list[Resident]:
        self.resize(self.capacity, now)
        left = list(self.demands)
        for each in self.heap:
            place = (each & SEQUENCE_MASK) - self.base
            left[place] = (each >> SEQUENCE_BITS) - self.work
        return [
            Resident(row, at, own)
            for row, at, own in zip(self.rows, self.arrived, left, strict=True)
            if at != GONE
        ]

    def adopt(self, residents: Iterable[Resident], used: int, now: int) -> None:
        for row, arrived, left in residents:
            self.rows.append(row)
            self.arrived.append(arrived)
            self.demands.append(left)
        self.present = len(self.rows)
        self.started = min(self.present, self.service.limit or NEVER)
        self.heap = [(self.demands[each] << SEQUENCE_BITS) + each for each in range(self.started)]
        heapify(self.heap)
        self._begin(used, self.started, now)

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
