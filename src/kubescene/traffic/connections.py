"""Routing to whoever has the fewest requests inside, those that only wait included.

Who that is depends on what has left by the instant of each arrival, which ties all replicas
together: batches cannot be divided first and served afterwards. So the router keeps processors of
its own, a copy of the replicas', and plays every arrival through them; what it finds out are
places, and the replicas serve their parts as with any other router. A request costs several times
as much as with the others.

Arrivals only ever delay others under processor sharing, so for each busy replica one lower bound of
its next departure is enough; it is looked at again when its time has come. Among equals the next
one after the last target is taken.
"""

from heapq import heappop, heappush

import numpy as np

from kubescene.traffic.kernels import NEVER, Processor, Served, Service
from kubescene.traffic.routing import Batch, Division, Part


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
        parts = [Part(place, [], [], None if demands is None else []) for place in range(replicas)]
        for index, place in enumerate(places):
            part = parts[place]
            part.arrivals.append(arrivals[index])
            part.rows.append(first + index)  # type: ignore[attr-defined]  # a list, above
            if part.demands is not None and demands is not None:
                part.demands.append(demands[index])
        return Division(np.array(places, dtype=np.int64), parts)

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
