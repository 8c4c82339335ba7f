"""Routing to whoever has the fewest requests inside, those that only wait included.

Who that is depends on what has left by the instant of each arrival, which ties all replicas
together: batches cannot be divided first and served afterwards. So the router keeps replicas of its
own (`slots`) and plays every arrival through them; what it finds out are places, and the replicas
serve their parts as with any other router.

Arrivals only ever delay others under processor sharing. So a slot is looked at only when the
earliest instant has come at which somebody may leave it. Among equals the next one after the last
target is taken.
"""

from heapq import heappop, heappush, heapreplace

import numpy as np

from kubescene.traffic.flow.kernels import NEVER, Service
from kubescene.traffic.flow.routing import BatchDivision, RequestBatch, parts_of
from kubescene.traffic.flow.slots import AnyOrderSlot, InOrderSlot, RouterSlot


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
