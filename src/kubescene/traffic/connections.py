"""Routing to whoever has the fewest requests inside, those that only wait included.

Who that is depends on what has left by the instant of each arrival, which ties all replicas
together: batches cannot be divided first and served afterwards. So the router keeps processors of
its own, a copy of the replicas', and plays every arrival through them; what it finds out are
places, and the replicas serve their parts as with any other router.

Arrivals only ever delay others under processor sharing, so for each busy replica one lower bound of
its next departure is enough; it is looked at again when its time has come. Among equals the next
one after the last target is taken.

`LeastConnections` does that for every kind of service. `EqualConnections` is the same for equal
demands without limits, where the oldest always leaves first: one loop without calls, three times as
fast.
"""

from heapq import heappop, heappush

import numpy as np

from kubescene.traffic.kernels import NEVER, Processor, Served, Service
from kubescene.traffic.routing import Batch, Division, parts_of


def least_connections(service: Service, io: int) -> "LeastConnections | EqualConnections":
    """The router for such requests."""
    plain = service.plain and not service.drawn
    return EqualConnections(service, io) if plain else LeastConnections(service, io)


class _Slot:
    __slots__ = ("arrived", "bound", "number", "processor")

    def __init__(self, number: int, processor: Processor) -> None:
        self.number = number
        self.processor = processor
        self.bound = NEVER
        self.arrived: dict[int, int] = {}
        """When those inside arrived, by their rows: their waits end at their deadlines."""


class LeastConnections:
    """See the module. Rows of requests are their numbers."""

    def __init__(self, service: Service, io: int) -> None:
        self._service = service
        self._io = io
        self._slots: list[_Slot] = []
        self._inside: list[int] = []
        self._bounds: list[tuple[int, int]] = []
        self._waits: list[tuple[int, int]] = []
        self._places: dict[int, int] = {}
        self._last = -1

    def joined(self, number: int, capacity: int, now: int) -> None:
        self._slots.append(_Slot(number, Processor(self._service, capacity, now)))
        self._inside.append(0)
        self._renumber()

    def parted(self, number: int) -> None:
        place = self._places[number]
        del self._slots[place], self._inside[place]
        if place <= self._last:
            self._last -= 1
        self._renumber()

    def resized(self, number: int, capacity: int, now: int) -> None:
        slot = self._slots[self._places[number]]
        self._left(slot, slot.processor.serve([], (), None, now))
        slot.processor.resize(capacity, now)
        self._bind(slot)

    def divide(self, batch: Batch, replicas: int) -> Division:
        arrivals, first, demands = batch
        places = [
            self._route(at, first + index, None if demands is None else demands[index])
            for index, at in enumerate(arrivals)
        ]
        found = np.array(places, dtype=np.int64)
        return Division(found, parts_of(batch, found, replicas))

    def _route(self, at: int, row: int, demand: int | None) -> int:
        self._catch_up(at)
        inside = self._inside
        fewest = min(inside)
        try:
            place = inside.index(fewest, self._last + 1)
        except ValueError:
            place = inside.index(fewest)
        self._last = place
        slot = self._slots[place]
        inside[place] += 1
        if self._io:
            slot.arrived[row] = at
        demands = None if demand is None else [demand]
        self._left(slot, slot.processor.serve([at], (row,), demands, at + 1))
        self._bind(slot)
        return place

    def _catch_up(self, now: int) -> None:
        """Whoever has left by now: out of the CPU first, then out of the wait."""
        bounds, waits = self._bounds, self._waits
        while bounds and bounds[0][0] <= now:
            instant, number = heappop(bounds)
            place = self._places.get(number)
            if place is not None and (slot := self._slots[place]).bound == instant:
                slot.bound = NEVER
                self._left(slot, slot.processor.serve([], (), None, now + 1))
                self._bind(slot)
        while waits and waits[0][0] <= now:
            place = self._places.get(heappop(waits)[1])
            if place is not None:
                self._inside[place] -= 1

    def _left(self, slot: _Slot, served: Served) -> None:
        if not self._io:
            self._inside[self._places[slot.number]] -= len(served.rows)
            return
        for row, end in zip(served.rows, served.instants, strict=True):
            deadline = slot.arrived.pop(row) + self._service.timeout
            heappush(self._waits, (min(end + self._io, deadline), slot.number))

    def _bind(self, slot: _Slot) -> None:
        end = slot.processor.next_end()
        if end < slot.bound:
            slot.bound = end
            heappush(self._bounds, (end, slot.number))

    def _renumber(self) -> None:
        self._places = {each.number: place for place, each in enumerate(self._slots)}


class _Queue:
    """The requests in the CPU of one replica, oldest first; all of them want the same."""

    __slots__ = ("arrived", "bound", "capacity", "head", "number", "tags", "time", "work")

    def __init__(self, number: int, capacity: int, now: int) -> None:
        self.number = number
        self.capacity = capacity
        self.time = now
        self.work = 0
        self.tags: list[int] = []
        self.arrived: list[int] = []
        self.head = 0
        self.bound = NEVER


class EqualConnections:
    """Least connections for equal demands without limits."""

    def __init__(self, service: Service, io: int) -> None:
        self._service = service
        self._io = io
        self._queues: list[_Queue] = []
        self._inside: list[int] = []
        self._bounds: list[tuple[int, int]] = []
        self._waits: list[tuple[int, int]] = []
        self._places: dict[int, int] = {}
        self._last = -1

    def joined(self, number: int, capacity: int, now: int) -> None:
        self._queues.append(_Queue(number, capacity, now))
        self._inside.append(0)
        self._renumber()

    def parted(self, number: int) -> None:
        place = self._places[number]
        del self._queues[place], self._inside[place]
        if place <= self._last:
            self._last -= 1
        self._renumber()

    def resized(self, number: int, capacity: int, now: int) -> None:
        queue = self._queues[self._places[number]]
        self._leave(queue, now - 1)
        if sharing := len(queue.tags) - queue.head:
            queue.work += (now - queue.time) * queue.capacity // sharing
        queue.time, queue.capacity, queue.bound = now, capacity, NEVER
        self._leave(queue, now - 1)

    def divide(self, batch: Batch, replicas: int) -> Division:
        found = np.array(self._route(batch.arrivals), dtype=np.int64)
        for queue in self._queues:
            del queue.tags[: queue.head], queue.arrived[: queue.head]
            queue.head = 0
        return Division(found, parts_of(batch, found, replicas))

    def _route(self, arrivals: list[int]) -> list[int]:
        queues, inside, bounds, waits = self._queues, self._inside, self._bounds, self._waits
        places, numbers, last = [], self._places, self._last
        demand, timeout = self._service.demand, self._service.timeout
        fewest = min(inside)
        for at in arrivals:
            while bounds and bounds[0][0] <= at:
                instant, number = heappop(bounds)
                place = numbers.get(number, -1)
                if place >= 0 and queues[place].bound == instant:
                    self._leave(queues[place], at)
                    fewest = min(fewest, inside[place])
            while waits and waits[0][0] <= at:
                place = numbers.get(heappop(waits)[1], -1)
                if place >= 0:
                    inside[place] -= 1
                    fewest = min(fewest, inside[place])
            # The fewest are a lower bound here: all may have got more since.
            while fewest not in inside:
                fewest += 1
            try:
                last = inside.index(fewest, last + 1)
            except ValueError:
                last = inside.index(fewest)
            places.append(last)
            inside[last] += 1
            queue = queues[last]
            tags = queue.tags
            if sharing := len(tags) - queue.head:
                queue.work += (at - queue.time) * queue.capacity // sharing
                tags.append(queue.work + demand)
            else:
                # Alone it is the next to leave; one more only delays the others.
                queue.work = 0
                tags.append(demand)
                queue.bound = min(at - (-demand // queue.capacity), at + timeout)
                heappush(bounds, (queue.bound, queue.number))
            queue.time = at
            queue.arrived.append(at)
        self._last = last
        return places

    def _leave(self, queue: _Queue, until: int) -> None:
        """Whoever leaves the CPU up to ``until``, and when the next one may."""
        tags, arrived, head, t, work = queue.tags, queue.arrived, queue.head, queue.time, queue.work
        capacity, timeout, io = queue.capacity, self._service.timeout, self._io
        first, sharing = head, len(tags) - head
        queue.bound = NEVER
        while sharing:
            deadline = arrived[head] + timeout
            end = t - (work - tags[head]) * sharing // capacity
            if (leaves := min(end, deadline)) > until:
                queue.bound = leaves
                heappush(self._bounds, (leaves, queue.number))
                break
            work = tags[head] if end <= deadline else work + (leaves - t) * capacity // sharing
            if io:
                heappush(self._waits, (min(leaves + io, deadline), queue.number))
            head += 1
            sharing -= 1
            t = leaves
        queue.head, queue.time, queue.work = head, t, work
        if not io:
            self._inside[self._places[queue.number]] -= head - first

    def _renumber(self) -> None:
        self._places = {each.number: place for place, each in enumerate(self._queues)}
