"""Who gets which request. A router divides a batch of arrivals among the active replicas.

Requests count from 0 over the whole run. ``roundRobin`` gives request i to the replica at place
``i mod n`` of those that are active, in order of activation: when one leaves, those
behind it move up. ``random`` draws for every request, also where there is but one replica or none,
so that the number of replicas never shifts what others draw. ``leastConnections`` is in
`connections`.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from kubescene.clock import Stream
from kubescene.clock.batches import Integers
from kubescene.flows.kernels import Resident


class Routing(StrEnum):
    ROUND_ROBIN = "roundRobin"
    RANDOM = "random"
    LEAST_CONNECTIONS = "leastConnections"


class RequestBatch(NamedTuple):
    """Arrivals in order, the row of the first of them, and what they demand, if that differs."""

    arrivals: list[int]
    first: int
    demands: list[int] | None


class Part(NamedTuple):
    """What one replica gets of a batch."""

    place: int
    arrivals: list[int]
    rows: Iterable[int]
    demands: list[int] | None


class BatchDivision(NamedTuple):
    """The place of the replica for each request, and the parts, one for every replica."""

    places: Integers
    parts: Iterable[Part]


class Router(Protocol):
    def divide(self, batch: RequestBatch, replicas: int) -> BatchDivision:
        """A part for every replica, also for those that get nothing."""
        ...

    def fitting(self, room: int, replicas: int) -> int:
        """So many can be divided, and surely no replica gets more than ``room``."""
        ...

    def refused(self, requests: int) -> None:
        """So many came while there was nobody to divide them among."""
        ...

    def waited(self, place: int, since: list[int], now: int) -> None:
        """What the replica at a place got last had waited since then for one to come."""
        ...

    def joined(self, number: int, capacity: int, now: int) -> None: ...

    def resumed(self, number: int, residents: list[Resident], waits: list[int], now: int) -> None:
        """Who joined has these in its CPU, and others that only wait, until then."""
        ...

    def parted(self, number: int) -> None: ...

    def resized(self, number: int, capacity: int, now: int) -> None: ...


class PlainRouter:
    """A router that does not care who the replicas are."""

    def fitting(self, room: int, replicas: int) -> int:
        del replicas
        return room

    def refused(self, requests: int) -> None:
        """Nothing that matters to others."""

    def waited(self, place: int, since: list[int], now: int) -> None:
        """Nothing that matters to others."""

    def joined(self, number: int, capacity: int, now: int) -> None:
        """A replica became active, at the last place."""

    def resumed(self, number: int, residents: list[Resident], waits: list[int], now: int) -> None:
        """Nothing that matters to others."""

    def parted(self, number: int) -> None:
        """A replica left."""

    def resized(self, number: int, capacity: int, now: int) -> None:
        """A replica has another capacity from now on."""


class RoundRobin(PlainRouter):
    def __init__(self) -> None:
        self._replicas = 0
        self._round: Integers = np.empty(0, dtype=np.int64)
        """Places of requests in their order, for so many replicas, from the first place on."""

    def fitting(self, room: int, replicas: int) -> int:
        return room * replicas

    def divide(self, batch: RequestBatch, replicas: int) -> BatchDivision:
        start = batch.first % replicas
        end = start + len(batch.arrivals)
        if replicas != self._replicas or end > len(self._round):
            self._replicas = replicas
            self._round = np.arange(end, dtype=np.int64) % replicas
        return BatchDivision(self._round[start:end], self._parts(batch, replicas))

    def _parts(self, batch: RequestBatch, replicas: int) -> Iterator[Part]:
        arrivals, first, demands = batch
        end = first + len(arrivals)
        for place in range(replicas):
            offset = (place - first) % replicas
            yield Part(
                place,
                arrivals[offset::replicas],
                range(first + offset, end, replicas),
                None if demands is None else demands[offset::replicas],
            )


class RandomRouting(PlainRouter):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def divide(self, batch: RequestBatch, replicas: int) -> BatchDivision:
        draws = (self._stream.next_u64s(len(batch.arrivals)) >> np.uint64(32)).astype(np.int64)
        places: Integers = draws * replicas >> 32
        return BatchDivision(places, parts_of(batch, places, replicas))

    def refused(self, requests: int) -> None:
        self._stream.next_u64s(requests)


def parts_of(batch: RequestBatch, places: Integers, replicas: int) -> Iterator[Part]:
    """What each replica gets, if every request has its place."""
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=replicas)).tolist()
    arrivals = np.array(batch.arrivals, dtype=np.int64)[order].tolist()
    demands = None
    if batch.demands is not None:
        demands = np.array(batch.demands, dtype=np.int64)[order].tolist()
    rows = (order + batch.first).tolist()
    start = 0
    for place, end in enumerate(ends):
        part = None if demands is None else demands[start:end]
        yield Part(place, arrivals[start:end], rows[start:end], part)
        start = end
