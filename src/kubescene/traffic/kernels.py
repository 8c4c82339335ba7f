"""The CPU of a replica: exact processor sharing in integers, one tight loop per batch.

Time is in nanoseconds, work in millicore-nanoseconds, capacity in millicores. ``work`` is how much
each sharer has received since the CPU was last idle; a request that starts with demand d leaves
when ``work`` reaches its tag, ``work + d``. The rules, which make equal bytes of equal input:

- at an event at t with n sharers, ``work += (t - last) * capacity // n``;
- the next end of CPU is at ``t + ceil((tag - work) * n / capacity)``, and there ``work = tag``;
- an idle CPU begins again with ``work = 0``;
- at one instant: end of CPU, then deadline, then arrival. A deadline takes the request out.

State moves at arrivals, ends, deadlines and changes of capacity only, never where somebody looks or
a batch ends: running until a and then until b is running until b.

`serve_equal`: equal demands and timeouts, so that only the oldest can leave next and no heap is
needed. `serve_drawn`: demands of their own, a heap of tags and lazy deletion. `serve_limited`:
either, with at most ``limit`` sharers (the others wait in order) and at most ``ceiling``
millicores for each.
"""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

NEVER = 1 << 62
_SEQUENCE_BITS = 32
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1
_GONE = -1
_WAITING = -1


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
    def plain(self) -> bool:
        return not self.limit and not self.ceiling


class Served(NamedTuple):
    """Who left the CPU: rows in order of leaving, when, and which positions by their deadline."""

    rows: list[int]
    instants: list[int]
    cancelled: list[int]


class Processor:
    """The CPU of one replica and who is in it. Integers and lists only: a copy is a fork."""

    __slots__ = (
        "arrived",
        "base",
        "capacity",
        "demands",
        "heap",
        "idle",
        "oldest",
        "present",
        "rows",
        "service",
        "sharing",
        "since",
        "spent",
        "tags",
        "time",
        "waiting",
        "work",
    )

    def __init__(self, service: Service, capacity: int, now: int) -> None:
        self.service = service
        self.capacity = capacity
        self.time = now
        self.work = 0
        self.tags: list[int] = []
        self.arrived: list[int] = []
        self.rows: list[int] = []
        # Of the heap forms: the heap, the sequence number of arrived[0], the oldest that is left.
        self.heap: list[int] = []
        self.base = 0
        self.oldest = 0
        self.present = 0
        # Of the limited form: what those who wait will want, who they are, how many share.
        self.demands: list[int] = []
        self.waiting = 0
        self.sharing = 0
        # For the utilisation: capacity was used since `since`, but for `idle` nanoseconds.
        self.since = now
        self.idle = 0
        self.spent = 0

    @property
    def held(self) -> int:
        """How many requests are in the CPU or wait for it."""
        return len(self.tags) if self._is_fifo else self.present

    @property
    def _is_fifo(self) -> bool:
        return self.service.plain and not self.service.drawn

    def serve(
        self, arrivals: list[int], rows: Iterable[int], demands: list[int] | None, until: int
    ) -> Served:
        """Take these arrivals, all before ``until``, and do all that happens before ``until``."""
        if self._is_fifo:
            return serve_equal(self, arrivals, rows, until)
        if demands is None:
            demands = [self.service.demand] * len(arrivals)
        if self.service.plain:
            return serve_drawn(self, arrivals, rows, demands, until)
        return serve_limited(self, arrivals, rows, demands, until)

    def used(self, now: int) -> int:
        """Work done so far. All that happens before ``now`` must have been served."""
        if not self.service.plain:
            return self.spent + self.speed(self.sharing) * (now - self.time)
        busy = now - self.since - self.idle
        if not self.held:
            busy -= now - self.time
        return self.spent + self.capacity * busy

    def speed(self, sharing: int) -> int:
        """How many millicores so many sharers use together."""
        ceiling = self.service.ceiling
        return min(self.capacity, sharing * ceiling) if ceiling else self.capacity * bool(sharing)

    def resize(self, capacity: int, now: int) -> None:
        """Another capacity from ``now`` on. All that happens before must have been served."""
        self.spent = self.used(now)
        sharing = self.held if self.service.plain else self.sharing
        if sharing:
            self.work += (now - self.time) * self.speed(sharing) // sharing
        self.time = self.since = now
        self.idle = 0
        self.capacity = capacity

    def next_end(self) -> int:
        """When the next one leaves, if nobody else comes; `NEVER` if nobody is inside."""
        if self._is_fifo:
            if not self.tags:
                return NEVER
            tag, sharing, speed = self.tags[0], len(self.tags), self.capacity
        elif self.present:
            tag = self.heap[0] >> _SEQUENCE_BITS
            sharing = self.present if self.service.plain else self.sharing
            speed = self.speed(sharing)
        else:
            return NEVER
        end = self.time - (self.work - tag) * sharing // speed
        return min(end, self.arrived[self.oldest] + self.service.timeout)

    def left(self) -> list[int]:
        """The rows of those who are in it."""
        if self._is_fifo:
            return list(self.rows)
        return [row for row, at in zip(self.rows, self.arrived, strict=True) if at != _GONE]


def serve_equal(  # noqa: C901, PLR0912, PLR0915 - one loop without calls: this is where time goes
    cpu: Processor, new: list[int], rows: Iterable[int], until: int
) -> Served:
    tags, arrived = cpu.tags, cpu.arrived
    n, capacity, t, work, idle = len(tags), cpu.capacity, cpu.time, cpu.work, cpu.idle
    demand, timeout = cpu.service.demand, cpu.service.timeout
    arrived += new
    cpu.rows += rows
    done: list[int] = []
    cancelled: list[int] = []
    head, end, late, deadline = 0, NEVER, False, NEVER
    if n:
        deadline = arrived[0] + timeout
        end = t - (work - tags[0]) * n // capacity
        if late := end > deadline:
            end = deadline
    for at in new:
        if end <= at:
            while end <= at:
                done.append(end)
                if late:
                    work += (end - t) * capacity // n
                    cancelled.append(head)
                else:
                    work = tags[head]
                head += 1
                n -= 1
                t = end
                if not n:
                    end = NEVER
                    break
                deadline = arrived[head] + timeout
                end = t - (work - tags[head]) * n // capacity
                if late := end > deadline:
                    end = deadline
        if n:
            work += (at - t) * capacity // n
            t = at
            n += 1
            tags.append(work + demand)
            # One more only delays the others: who was late stays late.
            if not late:
                end = t - (work - tags[head]) * n // capacity
                if late := end > deadline:
                    end = deadline
        else:
            idle += at - t
            t = at
            work = 0
            n = 1
            tags.append(demand)
            deadline = at + timeout
            end = at - (-demand // capacity)
            if late := end > deadline:
                end = deadline
    while end < until:
        done.append(end)
        if late:
            work += (end - t) * capacity // n
            cancelled.append(head)
        else:
            work = tags[head]
        head += 1
        n -= 1
        t = end
        if not n:
            break
        deadline = arrived[head] + timeout
        end = t - (work - tags[head]) * n // capacity
        if late := end > deadline:
            end = deadline
    left = cpu.rows[:head]
    del tags[:head], arrived[:head], cpu.rows[:head]
    cpu.time, cpu.work, cpu.idle = t, work, idle
    return Served(left, done, cancelled)


def serve_drawn(  # noqa: C901, PLR0912, PLR0915 - as above
    cpu: Processor, new: list[int], rows: Iterable[int], demands: list[int], until: int
) -> Served:
    heap, arrived, known = cpu.heap, cpu.arrived, cpu.rows
    n, capacity, t, work, idle = cpu.present, cpu.capacity, cpu.time, cpu.work, cpu.idle
    base, oldest, timeout = cpu.base, cpu.oldest, cpu.service.timeout
    sequence = base + len(arrived)
    known += rows
    done: list[int] = []
    left: list[int] = []
    cancelled: list[int] = []
    end, late = NEVER, False
    if n:
        while arrived[(heap[0] & _SEQUENCE_MASK) - base] < 0:
            heappop(heap)
        end = t - (work - (heap[0] >> _SEQUENCE_BITS)) * n // capacity
        while arrived[oldest] < 0:
            oldest += 1
        if late := end > arrived[oldest] + timeout:
            end = arrived[oldest] + timeout
    upcoming = len(new)
    for index in range(upcoming + 1):
        at = new[index] if index < upcoming else until - 1
        while end <= at:
            done.append(end)
            if late:
                work += (end - t) * capacity // n
                place = oldest
                cancelled.append(len(left))
            else:
                first = heappop(heap)
                work = first >> _SEQUENCE_BITS
                place = (first & _SEQUENCE_MASK) - base
            arrived[place] = _GONE
            left.append(known[place])
            n -= 1
            t = end
            if not n:
                end = NEVER
                heap.clear()
                break
            while arrived[(heap[0] & _SEQUENCE_MASK) - base] < 0:
                heappop(heap)
            end = t - (work - (heap[0] >> _SEQUENCE_BITS)) * n // capacity
            while arrived[oldest] < 0:
                oldest += 1
            if late := end > arrived[oldest] + timeout:
                end = arrived[oldest] + timeout
        if index == upcoming:
            break
        if n:
            work += (at - t) * capacity // n
        else:
            idle += at - t
            work = 0
            oldest = len(arrived)
        t = at
        n += 1
        own = (work + demands[index] << _SEQUENCE_BITS) + sequence
        heappush(heap, own)
        sequence += 1
        arrived.append(at)
        # Only one that overtakes everybody can bring the next end forward.
        if not late or heap[0] == own:
            end = t - (work - (heap[0] >> _SEQUENCE_BITS)) * n // capacity
            if late := end > arrived[oldest] + timeout:
                end = arrived[oldest] + timeout
    cpu.time, cpu.work, cpu.idle, cpu.present, cpu.oldest = t, work, idle, n, oldest
    _trim(cpu)
    return Served(left, done, cancelled)


def _trim(cpu: Processor) -> None:
    """Forget those who left: all at once when nobody is there, else when most of it is dead."""
    arrived, n = cpu.arrived, cpu.present
    if not n:
        cpu.base += len(arrived)
        cpu.oldest = 0
        arrived.clear()
        cpu.rows.clear()
        cpu.demands.clear()
        cpu.heap.clear()
        cpu.tags.clear()
        cpu.waiting = 0
        if cpu.base > _SEQUENCE_MASK >> 1:
            cpu.base = 0
        return
    if len(arrived) < 64 or len(arrived) < 2 * n:
        return
    kept = [place for place, at in enumerate(arrived) if at != _GONE]
    renamed = {cpu.base + place: number for number, place in enumerate(kept)}
    tops = [
        (each >> _SEQUENCE_BITS << _SEQUENCE_BITS) + renamed[each & _SEQUENCE_MASK]
        for each in cpu.heap
        if each & _SEQUENCE_MASK in renamed
    ]
    heapify(tops)
    cpu.waiting = sum(place < cpu.waiting for place in kept)
    cpu.heap, cpu.base, cpu.oldest = tops, 0, 0
    cpu.arrived = [arrived[place] for place in kept]
    cpu.rows = [cpu.rows[place] for place in kept]
    if cpu.tags:
        cpu.tags = [cpu.tags[place] for place in kept]
        cpu.demands = [cpu.demands[place] for place in kept]


def serve_limited(
    cpu: Processor, new: list[int], rows: Iterable[int], demands: list[int], until: int
) -> Served:
    cpu.rows += rows
    cpu.demands += demands
    served = Served([], [], [])
    for at in new:
        _let_go(cpu, at + 1, served)
        _advance(cpu, at)
        cpu.arrived.append(at)
        cpu.tags.append(_WAITING)
        cpu.present += 1
        _start_waiting(cpu)
    _let_go(cpu, until, served)
    _trim(cpu)
    return served


def _let_go(cpu: Processor, until: int, served: Served) -> None:
    """Whoever ends, or is late, before ``until``."""
    heap, arrived, timeout = cpu.heap, cpu.arrived, cpu.service.timeout
    while cpu.present:
        while arrived[(heap[0] & _SEQUENCE_MASK) - cpu.base] < 0:
            heappop(heap)
        while arrived[cpu.oldest] < 0:
            cpu.oldest += 1
        tag, sharing = heap[0] >> _SEQUENCE_BITS, cpu.sharing
        end = cpu.time - (cpu.work - tag) * sharing // cpu.speed(sharing)
        deadline = arrived[cpu.oldest] + timeout
        if min(end, deadline) >= until:
            return
        if end > deadline:
            _advance(cpu, deadline)
            place = cpu.oldest
            served.cancelled.append(len(served.rows))
        else:
            _advance(cpu, end)
            cpu.work = tag
            place = (heappop(heap) & _SEQUENCE_MASK) - cpu.base
        served.rows.append(cpu.rows[place])
        served.instants.append(cpu.time)
        cpu.sharing -= cpu.tags[place] != _WAITING
        arrived[place] = _GONE
        cpu.present -= 1
        _start_waiting(cpu)


def _advance(cpu: Processor, now: int) -> None:
    if sharing := cpu.sharing:
        speed = cpu.speed(sharing)
        cpu.spent += speed * (now - cpu.time)
        cpu.work += (now - cpu.time) * speed // sharing
    cpu.time = now


def _start_waiting(cpu: Processor) -> None:
    """Let those begin who wait, in order, as far as there is room."""
    limit = cpu.service.limit or NEVER
    if not cpu.sharing:
        cpu.work = 0
    while cpu.sharing < limit and cpu.waiting < len(cpu.arrived):
        place = cpu.waiting
        cpu.waiting += 1
        if cpu.arrived[place] != _GONE:
            tag = cpu.tags[place] = cpu.work + cpu.demands[place]
            heappush(cpu.heap, (tag << _SEQUENCE_BITS) + cpu.base + place)
            cpu.sharing += 1
