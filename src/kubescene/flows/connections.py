"""Routing to whoever has the fewest requests inside, those that only wait included.

Who that is depends on what has left by the instant of each arrival, which ties all replicas
together: batches cannot be divided first and served afterwards. So the router keeps replicas of its
own, slots, and plays every arrival through them; what it finds out are places, and the replicas
serve their parts as with any other router.

Arrivals only ever delay others under processor sharing. So a slot is looked at only when the
earliest instant has come at which somebody may leave it. Among equals the next one after the last
target is taken.

Slots have the same rules as `kernels`, for requests that come one at a time: one comes, some have
left. `InOrderSlot` is for services of which the oldest request leaves first, `AnyOrderSlot` for all
others.
"""

from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from kubescene.flows.kernels import NEVER, Resident, Service
from kubescene.flows.routing import BatchDivision, RequestBatch, parts_of

MOST_GONE = 256
"""So many who have left are remembered before they are forgotten all at once."""
NUMBER_BITS = 32
NUMBER_MASK = (1 << NUMBER_BITS) - 1
GONE = NOBODY = -1


class RouterSlot:
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

    def waited(self, since: list[int]) -> None:
        """The last who came had arrived ``since``: what they wait for begins to run out then."""
        raise NotImplementedError

    def resize(self, capacity: int, now: int) -> None:
        """Another capacity from ``now`` on; everybody has left who leaves before."""
        raise NotImplementedError


class InOrderSlot(RouterSlot):
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

    def waited(self, since: list[int]) -> None:
        known = min(len(since), len(self._arrived) - self._head)
        if known:
            self._arrived[-known:] = since[-known:]

    def resize(self, capacity: int, now: int) -> None:
        if sharing := len(self._tags) - self._head:
            work = self._work + (now - self._time) * self._capacity // sharing
            self._work = min(work, self._tags[self._head])
        self._time, self._capacity = now, capacity


class AnyOrderSlot(RouterSlot):
    """Where everybody wants something else: a heap of tags says who is next, as in `kernels`.

    Requests are numbered as they come; those before ``_first`` are forgotten.

    One that is alone is in no list until somebody else comes, which is often never.
    """

    __slots__ = (
        "_arrived",
        "_capacity",
        "_ceiling",
        "_demands",
        "_first",
        "_heap",
        "_limit",
        "_lone",
        "_oldest",
        "_sharing",
        "_speed",
        "_started",
        "_time",
        "_timeout",
        "_work",
    )

    def __init__(self, number: int, service: Service, io: int, capacity: int, now: int) -> None:
        super().__init__(number, service, io)
        self._capacity = self._speed = capacity
        self._ceiling = service.ceiling
        self._limit = service.limit or NEVER
        self._timeout = service.timeout
        self._time = now
        self._work = self._sharing = 0
        self._lone = NOBODY
        """What the one wants who is alone."""
        self._arrived: list[int] = []
        self._demands: list[int] = []
        self._heap: list[int] = []
        """The tags of those who share, with their numbers in the lower bits."""
        self._first = self._oldest = self._started = 0
        """Places. Nobody before the oldest is left; from the started on they wait."""

    def admit(self, at: int, demand: int) -> int:
        sharing = self._sharing
        if not sharing:
            return self._admit_alone(at, demand)
        if self._lone >= 0:
            self._list_alone()
        self._work += (at - self._time) * self._speed // sharing
        self._time = at
        self._arrived.append(at)
        self._demands.append(demand)
        if sharing < self._limit:
            own = self._begin()
            self._share(sharing + 1)
            if self._heap[0] == own:  # Nobody is before it, and whoever comes only delays it.
                speed = self._speed
                soonest = at + (demand * (sharing + 1) + speed - 1) // speed
                self.bound = min(self.bound, soonest)
        return self.bound

    def _admit_alone(self, at: int, demand: int) -> int:
        self._lone = demand
        self._time = at
        self._work = 0
        self._share(1)
        self.bound = at + min(-(-demand // self._speed), self._timeout)
        return self.bound

    def _list_alone(self) -> None:
        """Somebody else comes, or it is looked at closely. It came at the last event."""
        for each in (self._arrived, self._demands, self._heap):
            each.clear()
        self._first = self._oldest = self._started = 0
        self._arrived.append(self._time)
        self._demands.append(self._lone)
        self._lone = NOBODY
        self._begin()

    def leave(self, until: int) -> list[int]:
        if self._lone >= 0:
            if self.bound >= until:
                return []
            leaves, self.bound, self._lone, self._sharing = self.bound, NEVER, NOBODY, 0
            return [min(leaves + self.io, self._time + self._timeout)]
        arrived, heap, io, timeout = self._arrived, self._heap, self.io, self._timeout
        over = []
        self.bound = NEVER
        while sharing := self._sharing:
            place = self._next()
            deadline = arrived[self._oldest] + timeout
            tag, speed = heap[0] >> NUMBER_BITS, self._speed
            leaves = self._time + ((tag - self._work) * sharing + speed - 1) // speed
            late = leaves > deadline
            if late:
                leaves, place = deadline, self._oldest
            if leaves >= until:
                self.bound = leaves
                break
            if late:
                self._work += (leaves - self._time) * speed // sharing
            else:
                self._work = tag
                heappop(heap)
            self._time = leaves
            over.append(min(leaves + io, arrived[place] + timeout))
            arrived[place] = GONE
            if self._started < len(arrived):
                self._begin()
            else:
                self._share(sharing - 1)
        self._trim()
        return over

    def waited(self, since: list[int]) -> None:
        if self._lone >= 0:
            self._list_alone()
        arrived = self._arrived
        for back in range(1, min(len(since), len(arrived)) + 1):
            if arrived[-back] >= 0:
                arrived[-back] = since[-back]

    def resize(self, capacity: int, now: int) -> None:
        if self._lone >= 0:
            self._list_alone()
        if self._sharing:
            work = self._work + (now - self._time) * self._speed // self._sharing
            self._next()
            self._work = min(work, self._heap[0] >> NUMBER_BITS)
        self._time, self._capacity = now, capacity
        self._share(self._sharing)

    def _begin(self) -> int:
        """The first of those who wait gets its share; answers its place in the heap's order."""
        tag = self._work + self._demands[self._started]
        own = (tag << NUMBER_BITS) + self._first + self._started
        heappush(self._heap, own)
        self._started += 1
        return own

    def _share(self, sharing: int) -> None:
        self._sharing = sharing
        if self._ceiling:
            self._speed = min(self._capacity, max(sharing, 1) * self._ceiling)
        else:
            self._speed = self._capacity

    def _next(self) -> int:
        """The place of the one at the top, once those are off it who are gone."""
        arrived, heap, first, oldest = self._arrived, self._heap, self._first, self._oldest
        while arrived[oldest] < 0:
            oldest += 1
        self._oldest = oldest
        while (place := (heap[0] & NUMBER_MASK) - first) < oldest or arrived[place] < 0:
            heappop(heap)
        return place

    def _trim(self) -> None:
        """Forget who is gone, many at a time."""
        if (gone := self._oldest) > MOST_GONE:
            del self._arrived[:gone], self._demands[:gone]
            self._first += gone
            self._started -= gone
            self._oldest = 0
        if len(self._heap) > 2 * self._sharing + MOST_GONE:
            self._heap = [each for each in self._heap if self._is_left(each)]
            heapify(self._heap)

    def _is_left(self, own: int) -> bool:
        place = (own & NUMBER_MASK) - self._first
        return place >= self._oldest and self._arrived[place] >= 0


class LeastConnections:
    """See the module."""

    def __init__(self, service: Service, io: int) -> None:
        self._service = service
        self._io = io
        self._slots: list[RouterSlot] = []
        self._inside: list[int] = []
        self._places: dict[int, int] = {}
        self._bounds: list[tuple[int, int]] = []
        self._waits: list[tuple[int, int]] = []
        self._last = -1

    def fitting(self, room: int, replicas: int) -> int:
        del replicas
        return room

    def refused(self, requests: int) -> None:
        """Nobody was there, so nobody has them."""

    def joined(self, number: int, capacity: int, now: int) -> None:
        kind = InOrderSlot if self._service.in_order else AnyOrderSlot
        self._slots.append(kind(number, self._service, self._io, capacity, now))
        self._inside.append(0)
        self._renumber()

    def waited(self, place: int, since: list[int], now: int) -> None:
        self._slots[place].waited(since)
        self._look(place, now)

    def resumed(self, number: int, residents: list[Resident], waits: list[int], now: int) -> None:
        place = self._places[number]
        slot = self._slots[place]
        for each in residents:
            slot.admit(now, each.left)
        slot.waited([each.arrived for each in residents])
        self._waits = [each for each in self._waits if each[1] != number]
        self._waits += [(instant, number) for instant in waits]
        heapify(self._waits)
        self._inside[place] = len(residents) + len(waits)
        self._look(place, now)

    def parted(self, number: int) -> None:
        place = self._places[number]
        del self._slots[place], self._inside[place]
        if place <= self._last:
            self._last -= 1
        self._renumber()

    def resized(self, number: int, capacity: int, now: int) -> None:
        place = self._places[number]
        self._look(place, now)
        self._slots[place].resize(capacity, now)
        self._look(place, now)

    def divide(self, batch: RequestBatch, replicas: int) -> BatchDivision:
        demands = batch.demands or [self._service.demand] * len(batch.arrivals)
        found = np.array(self._route(batch.arrivals, demands), dtype=np.int64)
        return BatchDivision(found, parts_of(batch, found, replicas))

    def _route(self, arrivals: list[int], demands: list[int]) -> list[int]:
        slots, inside, bounds, waits = self._slots, self._inside, self._bounds, self._waits
        places, last, fewest = [], self._last, min(self._inside)
        for at, demand in zip(arrivals, demands, strict=True):
            if (bounds and bounds[0][0] <= at) or (waits and waits[0][0] <= at):
                fewest = min(fewest, self._catch_up(at))
            while fewest not in inside:
                fewest += 1
            try:
                last = inside.index(fewest, last + 1)
            except ValueError:
                last = inside.index(fewest)
            places.append(last)
            inside[last] += 1
            slot = slots[last]
            before = slot.bound
            if slot.admit(at, demand) < before:
                heappush(bounds, (slot.bound, slot.number))
        self._last = last
        return places

    def _catch_up(self, now: int) -> int:
        """Whoever has left by now: out of the CPU first, then out of the wait.

        Answers how many are inside where somebody left, the least of them.
        """
        bounds, waits, places, inside = self._bounds, self._waits, self._places, self._inside
        fewest = NEVER
        while bounds and bounds[0][0] <= now:
            instant, number = bounds[0]
            place = places.get(number)
            if place is None or self._slots[place].bound != instant:
                heappop(bounds)  # An older bound, or of one that has gone.
                continue
            slot = self._slots[place]
            self._left(place, slot.leave(now + 1))
            if slot.bound < NEVER:
                heapreplace(bounds, (slot.bound, number))
            else:
                heappop(bounds)
            fewest = min(fewest, inside[place])
        while waits and waits[0][0] <= now:
            place = places.get(heappop(waits)[1])
            if place is not None:
                inside[place] -= 1
                fewest = min(fewest, inside[place])
        return fewest

    def _left(self, place: int, over: list[int]) -> None:
        """These have left a CPU and are inside until then."""
        if self._io:
            number = self._slots[place].number
            for instant in over:
                heappush(self._waits, (instant, number))
        else:
            self._inside[place] -= len(over)

    def _look(self, place: int, until: int) -> None:
        """Whoever leaves a CPU before ``until``, and when the next one may."""
        slot = self._slots[place]
        self._left(place, slot.leave(until))
        if slot.bound < NEVER:
            heappush(self._bounds, (slot.bound, slot.number))

    def _renumber(self) -> None:
        self._places = {each.number: place for place, each in enumerate(self._slots)}
