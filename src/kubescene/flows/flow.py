"""The flow of requests through the active replicas, batch by batch.

Nothing happens until somebody needs to know: `advance` takes all arrivals before an instant, lets
the router divide them, serves each replica's part in one go and writes down who left and when.
Since processors do not notice where they are cut, it does not matter how often that is called.

After its CPU part a request waits ``io`` nanoseconds without using CPU. It is done when both are
over, and failed when its timeout comes first.
"""

from bisect import bisect_left
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np

from kubescene.clock import MILLISECOND, Stream
from kubescene.clock.batches import Integers, scaled_exponentials, unit_exponentials
from kubescene.flows.arrivals import REQUESTS_AT_ONCE, Arrivals
from kubescene.flows.kernels import (
    NEVER,
    LeastLeftFirst,
    OldestFirst,
    Processor,
    Served,
    Service,
)
from kubescene.flows.node_kernel import SharedProcessor
from kubescene.flows.records import NO_REPLICA, RequestColumns, RequestOutcome
from kubescene.flows.routing import Part, RequestBatch, Router
from kubescene.flows.sampling import MetricsTimes, ReplicaMeter, ReplicaSample
from kubescene.flows.waiting import ActivatorQueue

MEAN_BITS = 45
"""Means of exponentials that are drawn by the thousand are shorter; longer ones are rounded."""
LOOK_AGAIN = 100 * MILLISECOND
STATIONS_AT_ONCE = 256
"""After so many of a batch a run may be stopped: with 20,000 of them one takes a second."""
_OK, _TIMEOUT = np.uint8(RequestOutcome.OK), np.uint8(RequestOutcome.TIMEOUT)


class Station:
    """A replica as far as requests see it: a processor, and a meter if somebody wants samples."""

    __slots__ = ("_waits", "last_end", "meter", "number", "processor", "room")

    def __init__(self, number: int, processor: Processor, meter: ReplicaMeter | None) -> None:
        self.number = number
        self.processor = processor
        self.meter = meter
        self.last_end = 0
        self.room = NEVER
        """So many requests it can hold; one more and it is out of memory."""
        self._waits: list[int] = []

    def waits_until(self, ends: list[int]) -> None:
        """These have left the CPU and are inside until then."""
        self._waits += ends

    def inside(self, now: int) -> int:
        """How many are in the CPU, or wait after it. Kept only where there is a bound."""
        self._waits = [end for end in self._waits if end >= now]
        return self.processor.held + len(self._waits)


class DrainedReplica(NamedTuple):
    """When the last request of a leaving replica was gone, and how many were killed then."""

    drained_at: int
    killed: int


class _Leaving(NamedTuple):
    """A replica that leaves with requests inside, as it was then, and all it will have used."""

    station: Station
    processor: Processor
    until: int
    used: int

    def left_to_do(self, now: int) -> int:
        """What of it comes after ``now``; only a run that ends before its time needs to know."""
        if self.until <= now:
            return 0
        return self.used - self.at(now).used(now)

    def at(self, now: int) -> Processor:
        """As it is now, if nobody disturbs it."""
        processor = deepcopy(self.processor)
        processor.serve([], (), None, now)
        return processor


class _Batch(NamedTuple):
    """What is collected while a batch is served: who left, and each station's share of it."""

    served: Served
    shares: list[tuple[Station, int, int]]
    cuts: list[tuple[ReplicaMeter, int]]


class Flow:
    """All requests of a run."""

    def __init__(
        self,
        arrivals: Arrivals,
        router: Router,
        service: Service,
        *,
        io: int,
        demand_stream: Stream,
        times: MetricsTimes | None,
        halt: int,
        waits: bool = False,
    ) -> None:
        """With ``waits``, requests wait while there is no station; otherwise they are refused."""
        self.halt = halt
        self.columns = RequestColumns(arrivals.expected)
        self.waiting = ActivatorQueue(self.columns, service.timeout) if waits else None
        self.stations: list[Station] = []
        self._numbers: Integers | None = None
        """Of the stations; none since one of them came or went."""
        self.used_before = 0
        """Work of stations that have left, up to their ends."""
        self._leaving: list[_Leaving] = []
        self.refused = 0
        """How many requests found no station."""
        self._arrivals = arrivals
        self._router = router
        self._service = service
        self._io = io
        self._demand_stream = demand_stream
        self._times = times
        self._now = 0
        self.together: Callable[[int], None] | None = None
        """Where nodes are shared with other flows, all go on at once."""
        self._draining: dict[int, Station] = {}
        """Those that leave and share a node, by number."""
        self._samples: list[ReplicaSample] = []
        self._settled = 0, 0
        """A row, and when all requests before it had ended."""

    def advance(self, now: int, check: Callable[[], None] | None = None) -> None:
        """All that happens before ``now``; ``check`` is called before each batch, and may raise."""
        if self.together is not None and now > self._now:
            self.together(now)
        while self._now < now:
            if check is not None:
                check()
            self._release()
            arrived = self._arrivals.take(now, REQUESTS_AT_ONCE)
            full = len(arrived) == REQUESTS_AT_ONCE
            until = int(arrived[-1]) + 1 if full else now
            self._serve(arrived, until, check)
            self._now = until

    def until_full(self, now: int, check: Callable[[], None]) -> Station | None:
        """The same, but stop at the first station that gets more than it can hold.

        That is at an arrival, so no more are taken at once than all stations have room for.
        """
        while self._now < now:
            check()
            if self._release() and (full := self._overfull()) is not None:
                return full
            room = min(
                (each.room - each.inside(self._now) for each in self.stations), default=NEVER
            )
            fitting = self._router.fitting(room, max(len(self.stations), 1))
            most = max(min(fitting, REQUESTS_AT_ONCE), 1)
            arrived = self._arrivals.take(now, most)
            until = int(arrived[-1]) + 1 if len(arrived) == most else now
            self._serve(arrived, until)
            self._now = until
            if room < 1 and (full := self._overfull()) is not None:
                return full
        return None

    def _overfull(self) -> Station | None:
        return next(iter(self.overfull()), None)

    def overfull(self) -> list[Station]:
        """Those that have more inside than they can hold."""
        return [each for each in self.stations if each.inside(self._now) > each.room]

    def next_doubt(self, until: int) -> int | None:
        """When the first of them may be overfull, by who comes before ``until``; none before."""
        now = self._now
        room = min((each.room - each.inside(now) for each in self.stations), default=NEVER)
        if room >= NEVER >> 1:
            return None
        if self.waiting:
            return now + 1
        fitting = max(self._router.fitting(room, max(len(self.stations), 1)), 0)
        due = self._arrivals.due(fitting, until)
        return None if due is None else due + 1

    def next_arrival(self, until: int) -> int | None:
        """When the next request comes, if that is before ``until``."""
        return self._arrivals.due(0, until)

    def load(self, begin: int, end: int) -> tuple[int, int]:
        """Between two instants that are over: request-nanoseconds inside or waiting, arrivals."""
        columns = self.columns
        came, until = columns.arrived.searchsorted([begin, end]).tolist()
        rows = slice(self._settled_before(begin), until)
        ends = np.where(columns.outcome[rows] == RequestOutcome.OPEN, end, columns.completed[rows])
        spans = np.minimum(ends, end) - np.maximum(columns.arrived[rows], begin)
        return int(np.maximum(spans, 0).sum()), until - came

    def _settled_before(self, begin: int) -> int:
        """Requests of rows before this one had all ended by then."""
        columns = self.columns
        if self._service.timeout < NEVER:
            return int(columns.arrived.searchsorted(begin - self._service.timeout))
        row, since = self._settled if self._settled[1] <= begin else (0, 0)
        ends = columns.completed[row:]
        inside = (columns.outcome[row:] == RequestOutcome.OPEN) | (ends > begin)
        row += int(inside.argmax()) if inside.any() else len(ends)
        self._settled = row, max(begin, since)
        return row

    @property
    def now(self) -> int:
        """All that happens before has happened."""
        return self._now

    def samples(self) -> list[ReplicaSample]:
        """What was measured since the last call, in order of instant and replica."""
        found, self._samples = sorted(self._samples), []
        return found

    def replace_arrivals(self, arrivals: Arrivals) -> None:
        """Other requests come from now on."""
        self._arrivals = arrivals

    def join(
        self, number: int, capacity: int, now: int, processor: Processor | None = None
    ) -> Station:
        """Requests from ``now`` on reach this replica, too, which may have a CPU of its own."""
        self.advance(now)
        if processor is None:
            processor = processor_of(self._service, capacity, now)
        meter = None if self._times is None else ReplicaMeter(number, now, self._times, 0)
        station = Station(number, processor, meter)
        self.stations.append(station)
        self._numbers = None
        self._router.joined(number, capacity, now)
        return station

    def marks(self, since: int, until: int) -> range:
        """When all replicas are measured that have the same marks, between two instants."""
        times = self._times
        assert times is not None
        return range(times.first_mark(since), until, times.interval)

    def offer(self, now: int) -> None:
        """The same for all but those who share nodes: these are told who comes before ``now``."""
        self._release()
        arrived = self._arrivals.take(now, NEVER)
        self._serve(arrived, now)

    def collect(self, now: int) -> None:
        """The nodes have been played up to ``now``: who has left them, and what was used."""
        batch = _Batch(Served([], [], []), [], [])
        for station in (*self.stations, *self._draining.values()):
            processor, meter = station.processor, station.meter
            if not isinstance(processor, SharedProcessor):
                continue
            start = len(batch.served.rows)
            _collect(processor.taken(), batch.served)
            if len(batch.served.rows) > start:
                batch.shares.append((station, start, len(batch.served.rows)))
            if meter is not None and meter.next_mark <= now:
                batch.cuts.append((meter, processor.used(now)))
        self._finish(batch)
        self._now = now

    def share(self, station: Station, processor: SharedProcessor, now: int) -> None:
        """Let a replica share a node from now on, with all who are inside, also if it leaves."""
        self.advance(now)
        if is_leaving := station not in self.stations:
            self._recall(station, now)
        before = station.processor
        processor.adopt(before.residents(now), before.used(now), now)
        station.processor = processor
        if is_leaving:
            station.meter = None
            self._draining[station.number] = station

    def resize(
        self, station: Station, capacity: int, now: int, service: Service | None = None
    ) -> None:
        """Another capacity, and what may go with it: whether a request may use all of that."""
        self.advance(now)
        before = station.processor
        service = service or before.service
        if service != before.service and not isinstance(before, SharedProcessor):
            station.processor = processor_of(service, capacity, now)
            station.processor.adopt(before.residents(now), before.used(now), now)
        else:
            before.service = service
            before.resize(capacity, now)
        self._router.resized(station.number, capacity, now)

    def rejoin(self, station: Station, capacity: int, now: int) -> None:
        """Requests reach a replica again that was to leave; who is inside has stayed."""
        self.advance(now)
        if self._draining.pop(station.number, None) is None:
            self._recall(station, now)
        cpu = station.processor
        if self._times is not None:
            station.meter = ReplicaMeter(station.number, now, self._times, cpu.used(now))
        self.stations.append(station)
        self._numbers = None
        self._router.joined(station.number, capacity, now)
        ends = self._ends(station)
        waits = ends[ends > now].tolist()
        residents = cpu.residents(now)
        self._router.resumed(station.number, residents, waits, now)
        if station.meter is not None:
            station.meter.resume(len(residents), waits)

    def works(self, station: Station, now: int) -> bool:
        """Whether a replica that leaves is not done with its CPU yet."""
        self.advance(now)
        found = (each for each in self._leaving if each.station is station and each.until > now)
        return any(each.at(now).held for each in found)

    def _recall(self, station: Station, now: int) -> None:
        """What was written of a replica that leaves, from now on, has not happened."""
        leaving = next((each for each in self._leaving if each.station is station), None)
        self._leaving = [each for each in self._leaving if each is not leaving]
        if leaving is None or leaving.until <= now:
            self.used_before -= station.processor.used(now)
            return
        self.used_before -= leaving.used
        station.processor = leaving.at(now)
        rows = station.processor.left()
        self.columns.outcome[rows] = RequestOutcome.OPEN
        station.last_end = int(self._ends(station).max(initial=0))

    def _ends(self, station: Station) -> Integers:
        """When those of a replica have left, or will, that are done with its CPU."""
        columns = self.columns
        here = columns.replica == station.number
        ends: Integers = columns.completed[here & (columns.outcome != RequestOutcome.OPEN)]
        return ends

    def part(self, station: Station, now: int, deadline: int) -> DrainedReplica:
        """No request reaches it from ``now`` on; what is inside at ``deadline`` is killed.

        Nobody can disturb it any more, so all that is left to happen there happens at once.
        """
        self.advance(now)
        self.stations.remove(station)
        self._numbers = None
        self._router.parted(station.number)
        if isinstance(station.processor, SharedProcessor):
            station.meter = None
            self._draining[station.number] = station
            return DrainedReplica(self.drained_at(station, now, deadline), 0)
        cpu, end = station.processor, min(deadline, self.halt)
        before = deepcopy(cpu) if cpu.held and end > now else None
        served = cpu.serve([], (), None, end)
        if served.rows:
            completed = self._write(served)
            station.last_end = max(station.last_end, int(completed.max()))
        used = cpu.used(end)
        self.used_before += used
        if before is not None:
            self._leaving = [each for each in self._leaving if each.until > now]
            self._leaving.append(_Leaving(station, before, end, used))
        inside = cpu.left()
        if not inside and station.last_end < end:
            return DrainedReplica(max(station.last_end, now), 0)
        if deadline > self.halt:
            return DrainedReplica(self.halt, 0)
        return DrainedReplica(deadline, self._kill(station, inside, deadline))

    def drained_at(self, station: Station, now: int, deadline: int) -> int:
        """When the last request of a leaving replica that shares a node is gone.

        Others decide how fast it goes there: while somebody is inside, it is when to ask again.
        """
        self.advance(now)
        if station.processor.held:
            return min(now + LOOK_AGAIN, deadline)
        return min(station.last_end, deadline)

    def end(self, number: int, now: int) -> int:
        """Whoever is inside a replica that has left is killed now; how many they are."""
        if (station := self._draining.pop(number, None)) is not None:
            return self._end_shared(station, now)
        for leaving in self._leaving:
            if leaving.station.number == number:
                self.used_before -= leaving.left_to_do(now)
        self._leaving = [each for each in self._leaving if each.station.number != number]
        columns = self.columns
        inside = (columns.replica == number) & (columns.outcome != RequestOutcome.OPEN)
        rows = np.flatnonzero(inside & (columns.completed >= now))
        columns.completed[rows] = now
        columns.outcome[rows] = RequestOutcome.KILLED
        return len(rows)

    def _end_shared(self, station: Station, now: int) -> int:
        cpu = station.processor
        assert isinstance(cpu, SharedProcessor)
        self.used_before += cpu.used(now)
        killed = self._kill(station, cpu.left(), now)
        cpu.node.leave(cpu, now)
        return killed

    def used(self, now: int) -> int:
        """Work done by all stations, those that left included, before ``now``."""
        self.advance(now)
        done = self.used_before - sum(each.left_to_do(now) for each in self._leaving)
        inside = (*self.stations, *self._draining.values())
        return done + sum(each.processor.used(now) for each in inside)

    # -- one batch -----------------------------------------------------------------------------

    def _serve(
        self, arrived: Integers, until: int, check: Callable[[], None] | None = None
    ) -> None:
        rows = self.columns.append(arrived)
        if not self.stations:
            self._find_nobody(rows, until)
            return
        demands = self._demands(len(rows))
        division = self._router.divide(
            RequestBatch(arrived.tolist(), rows.start, demands), len(self.stations)
        )
        if self._numbers is None:
            self._numbers = np.array([each.number for each in self.stations], dtype=np.int32)
        self.columns.replica[rows.start :] = self._numbers[division.places]
        batch = _Batch(Served([], [], []), [], [])
        is_shared = self.together is not None
        for part in division.parts:
            if check is not None and not part.place % STATIONS_AT_ONCE:
                self._check(check, rows.start)
            station = self.stations[part.place]
            meter = station.meter
            if is_shared and isinstance(station.processor, SharedProcessor):
                _offer(station.processor, meter, part)
            elif part.arrivals or station.processor.held:
                self._serve_part(station, part, until, batch)
            elif meter is not None and meter.next_mark <= until:
                self._cut(station, until, batch)
        self._finish(batch)

    def _check(self, check: Callable[[], None], count: int) -> None:
        """A run that is stopped within a batch ends before it."""
        try:
            check()
        except BaseException:
            self.columns.count = count
            raise

    def _find_nobody(self, rows: range, until: int) -> None:
        if self.waiting is None:
            self._refuse(rows)
            return
        if rows:
            self.waiting.enter(rows, self._demands(len(rows)))
        self._router.refused(self.waiting.expire(until))

    def _release(self) -> bool:
        """Whoever waits goes to the stations that are there now; whether somebody did."""
        waiting, now = self.waiting, self._now
        if not waiting or not self.stations:
            return False
        # At one instant deadlines come before whatever begins.
        self._router.refused(waiting.expire(now + 1))
        if not waiting:
            return False
        rows, demands, since = waiting.leave(now)
        division = self._router.divide(
            RequestBatch([now] * len(rows), rows.start, demands), len(self.stations)
        )
        numbers = np.array([each.number for each in self.stations], dtype=np.int32)
        self.columns.replica[rows.start : rows.stop] = numbers[division.places]
        batch = _Batch(Served([], [], []), [], [])
        for part in division.parts:
            if part.arrivals:
                own = [since[row - rows.start] for row in part.rows]
                self._router.waited(part.place, own, now)
                self._admit(self.stations[part.place], part, own, batch)
        self._finish(batch)
        return True

    def _admit(self, station: Station, part: Part, since: list[int], batch: _Batch) -> None:
        start = len(batch.served.rows)
        if station.meter is not None:
            station.meter.arrive(part.arrivals)
        before, now = station.processor, self._now
        if before.held and not isinstance(before, SharedProcessor):
            # Those that it had not done with when nobody reached it any more.
            own = before.waiting(part.rows, part.demands, since)
            station.processor = processor_of(before.service, before.capacity, now)
            station.processor.adopt([*before.residents(now), *own], before.used(now), now)
            return
        served = before.admit(part.rows, part.demands, since, now)
        _collect(served, batch.served)
        if len(batch.served.rows) > start:
            batch.shares.append((station, start, len(batch.served.rows)))

    def _refuse(self, rows: range) -> None:
        self.refused += len(rows)
        here = slice(rows.start, rows.stop)
        self.columns.replica[here] = NO_REPLICA
        self.columns.completed[here] = self.columns.arrived[here]
        self.columns.outcome[here] = RequestOutcome.REFUSED
        self._router.refused(len(rows))
        self._demands(len(rows))

    def _demands(self, count: int) -> list[int] | None:
        """One draw for each request, by its number, whoever gets it."""
        if not self._service.drawn:
            return None
        units = unit_exponentials(self._demand_stream.next_u64s(count))
        mean = self._service.demand
        coarse = max(mean.bit_length() - MEAN_BITS, 0)
        drawn: list[int] = (scaled_exponentials(units, mean >> coarse) << coarse).tolist()
        return drawn

    def _serve_part(self, station: Station, part: Part, until: int, batch: _Batch) -> None:
        start = len(batch.served.rows)
        meter, processor = station.meter, station.processor
        arrivals, rows, demands = part.arrivals, part.rows, part.demands
        if meter is not None:
            meter.arrive(arrivals)
            mark = meter.next_mark
            if mark <= until:
                rows = list(rows)
                while mark <= until:
                    count = bisect_left(arrivals, mark)
                    wanted = None if demands is None else demands[:count]
                    _collect(
                        processor.serve(arrivals[:count], rows[:count], wanted, mark), batch.served
                    )
                    batch.cuts.append((meter, processor.used(mark)))
                    arrivals, rows = arrivals[count:], rows[count:]
                    demands = None if demands is None else demands[count:]
                    mark += meter.interval
        _collect(processor.serve(arrivals, rows, demands, until), batch.served)
        end = len(batch.served.rows)
        if end > start:
            batch.shares.append((station, start, end))

    def _cut(self, station: Station, until: int, batch: _Batch) -> None:
        """An idle station is measured, too."""
        meter = station.meter
        assert meter is not None
        mark = meter.next_mark
        while mark <= until:
            batch.cuts.append((meter, station.processor.used(mark)))
            mark += meter.interval

    def _finish(self, batch: _Batch) -> None:
        if batch.served.rows:
            completed = self._write(batch.served)
            if self._io:
                starts = [start for _, start, _ in batch.shares]
                lasts = np.maximum.reduceat(completed, starts).tolist()
                for (station, start, end), last in zip(batch.shares, lasts, strict=True):
                    station.last_end = max(station.last_end, last)
                    if station.room < NEVER:
                        station.waits_until(completed[start:end].tolist())
            else:
                for station, _, end in batch.shares:
                    station.last_end = batch.served.instants[end - 1]
            if self._times is not None:
                ends = completed.tolist() if self._io else batch.served.instants
                for station, start, end in batch.shares:
                    if station.meter is not None:
                        station.meter.leave(ends[start:end])
        self._samples += [meter.sample(used) for meter, used in batch.cuts]

    def _write(self, served: Served) -> Integers:
        """Who left the CPU when becomes who is completed when, and how."""
        rows = np.array(served.rows, dtype=np.int64)
        completed = np.array(served.instants, dtype=np.int64)
        if self._io:
            deadlines = self.columns.arrived[rows] + self._service.timeout
            # Who was cancelled left at its deadline: with the wait it is past it, too.
            completed += self._io
            outcome = np.where(completed > deadlines, _TIMEOUT, _OK)
            np.minimum(completed, deadlines, out=completed)
        else:
            outcome = np.full(len(rows), _OK)
            outcome[served.cancelled] = _TIMEOUT
        self.columns.completed[rows] = completed
        self.columns.outcome[rows] = outcome
        return completed

    def _kill(self, station: Station, inside: list[int], deadline: int) -> int:
        columns = self.columns
        rows = np.array(inside, dtype=np.int64)
        if station.last_end >= deadline:
            first = 0
            if self._service.timeout < NEVER:
                first = int(np.searchsorted(columns.arrived, deadline - self._service.timeout))
            late = columns.completed[first:] >= deadline
            late &= columns.replica[first:] == station.number
            late &= columns.outcome[first:] != RequestOutcome.OPEN
            rows = np.concatenate((rows, np.flatnonzero(late) + first))
        columns.completed[rows] = deadline
        columns.outcome[rows] = RequestOutcome.KILLED
        return len(rows)


def _offer(processor: SharedProcessor, meter: ReplicaMeter | None, part: Part) -> None:
    if part.arrivals:
        if meter is not None:
            meter.arrive(part.arrivals)
        processor.offer(part.arrivals, part.rows, part.demands)


def _collect(served: Served, into: Served) -> None:
    offset = len(into.rows)
    into.rows.extend(served.rows)
    into.instants.extend(served.instants)
    if served.cancelled:
        into.cancelled.extend([offset + each for each in served.cancelled])


def processor_of(service: Service, capacity: int, now: int) -> Processor:
    """The CPU of a replica for such requests."""
    kind = OldestFirst if service.in_order else LeastLeftFirst
    return kind(service, capacity, now)
