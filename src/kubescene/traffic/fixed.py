"""The world in fixed mode: replicas move one by one, requests flow in batches.

What Skenario got wrong is mended: the replicas that a run begins with are desired, launches and
terminations are bound to their replicas, zero delays are legal, CPU is shared and none is wasted,
samples are means over windows, replicas drain by what is in them, and those that are gone
are silent. Requests and samples are no movements of their own: there would be millions.
"""

from collections import deque
from collections.abc import Sequence

from kubescene.autoscalers import (
    Capability,
    EventType,
    MetricType,
    Pod,
    PodState,
    RecommendedPodResources,
    Stat,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.dispatcher import Partition
from kubescene.clock import Streams
from kubescene.traffic.arrivals import Arrivals
from kubescene.traffic.connections import LeastConnections
from kubescene.traffic.decisions import resource
from kubescene.traffic.entities import Entity, Kind, entity_name
from kubescene.traffic.environment import OrderedSchedule
from kubescene.traffic.flow import Flow, Station
from kubescene.traffic.kernels import NEVER, Service
from kubescene.traffic.memory import MemoryRules
from kubescene.traffic.records import RequestColumns
from kubescene.traffic.replicas import InMemoryReplicas, Replica, ReplicaTimes, Size
from kubescene.traffic.routing import RandomRouting, RoundRobin, Router, Routing
from kubescene.traffic.sampling import Sample
from kubescene.traffic.spec import Demand, Replacement, TrafficSpec
from kubescene.traffic.worlds import (
    ROUTING_STOCK,
    Replaced,
    ReplicaCount,
    ReplicaRecord,
    Utilization,
    World,
    metrics_times,
    next_tick,
)


class FixedWorld(World):
    """Environment, replicas, flow of requests and autoscalers of one run."""

    def __init__(
        self, spec: TrafficSpec, partition: Partition, arrivals: Arrivals, streams: Streams
    ) -> None:
        super().__init__(spec, partition, OrderedSchedule())
        self._stats = partition.wants(Capability.STAT)
        times = metrics_times(spec)
        self.flow = Flow(
            arrivals,
            router_of(spec, streams),
            service_of(spec),
            io=int(spec.request.io_time),
            demand_stream=streams.stream("traffic/demands"),
            times=times if self._stats else None,
            halt=int(spec.duration),
        )
        self._memory = MemoryRules(spec.replicas.memory)
        self.backend = InMemoryReplicas(
            self.environment,
            Size(int(spec.replicas.cpu), self._memory.request),
            ReplicaTimes(int(spec.replicas.launch_delay), int(spec.replicas.terminate_delay)),
            spec.replicas.victims,
            self,
        )
        self._tick = next_tick(spec)
        self._stations: dict[int, Station] = {}
        self._known: set[int] = set()
        self._samples: deque[Sample] = deque()
        self._read: dict[int, tuple[int, int]] = {}
        self._refused = self._refused_told = 0

    def run_until(self, instant: int) -> int:
        if not self._memory.limited:
            return super().run_until(instant)
        environment, played = self.environment, 0
        while (due := environment.peek()) is not None and due <= instant:
            # Who is killed, and when, is known only after requests have come.
            if (full := self.flow.until_full(due)) is not None:
                self._kill(full)
            else:
                environment.step()
                played += 1
        return played

    def begin(self) -> None:
        self.partition.begin(0)
        self.backend.begin(self.spec.replicas.initial)
        self.counted()
        self._schedule_next_tick()

    def finish(self, end: int) -> None:
        self.flow.halt = end
        self._deliver(end)
        self.flow.advance(end)
        self.columns.close(end)

    @property
    def columns(self) -> RequestColumns:
        return self.flow.columns

    @property
    def used(self) -> int:
        return self.flow.used(self.now)

    def replicas(self) -> list[ReplicaRecord]:
        return [
            ReplicaRecord(
                name=each.name,
                cpu=each.size.cpu,
                memory=each.size.memory,
                launched_at=each.launched_at,
                activated_at=each.activated_at,
                deactivated_at=each.deactivated_at,
                terminated_at=each.terminated_at,
                resized_at=each.resized_at if each.resized_at > each.launched_at else -1,
                cpu_before=each.cpu_before,
                restarts=each.restarts,
            )
            for each in self.backend.everybody
        ]

    # -- what replicas tell --------------------------------------------------------------------

    def launched(self, replica: Replica) -> None:
        # A replacement counts for the one that it replaces until it takes its place.
        if replica.replaces is None:
            self._tell(EventType.CREATE, replica, PodState.LAUNCHING)

    def activated(self, replica: Replica) -> None:
        station = self.flow.join(replica.number, replica.size.cpu, self.now)
        station.room = self._memory.room(replica.size.memory)
        self._stations[replica.number] = station
        known = replica.number in self._known
        self._tell(EventType.UPDATE if known else EventType.CREATE, replica, PodState.ACTIVE)

    def deactivated(self, replica: Replica) -> int:
        station = self._stations.pop(replica.number)
        self._read.pop(replica.number, None)
        grace = int(self.spec.replicas.grace_period)
        drain = self.flow.part(station, self.now, self.now + grace)
        self._forget(replica)
        return drain.drained_at

    def cancelled(self, replica: Replica) -> None:
        self._forget(replica)

    def killed(self, replica: Replica) -> None:
        station = self._stations.pop(replica.number)
        self._read.pop(replica.number, None)
        self.flow.part(station, self.now, self.now)
        self._tell(EventType.UPDATE, replica, PodState.OOM_KILLED)

    def resized(self, replica: Replica) -> None:
        station = self._stations[replica.number]
        self.flow.resize(station, replica.size.cpu, self.now)
        station.room = self._memory.room(replica.size.memory)
        self._tell(EventType.UPDATE, replica, PodState.ACTIVE)

    def counted(self) -> None:
        backend = self.backend
        self.count(
            ReplicaCount(
                self.now,
                backend.desired,
                backend.launching.count,
                backend.active_stock.count,
                backend.terminating.count,
            )
        )

    def _tell(self, event: EventType, replica: Replica, state: PodState) -> None:
        self._deliver(self.now)
        self._known.add(replica.number)
        since = replica.launched_at if state is PodState.LAUNCHING else replica.activated_at
        if state is PodState.OOM_KILLED:
            since = self.now
        pod = Pod(replica.name, state.value, since, replica.size.cpu, replica.size.memory)
        self.partition.pod(self.now, event, pod)

    def _forget(self, replica: Replica) -> None:
        if replica.number in self._known:
            self._deliver(self.now)
            self._known.discard(replica.number)
            self.partition.pod(self.now, EventType.DELETE, Pod(replica.name))

    def _kill(self, full: Station) -> None:
        """A station got one request more than it has memory for; the next instant it is gone."""
        [replica] = [each for each in self.backend.active if each.number == full.number]
        instant = self.flow.now
        delay = self._memory.backoff(replica.number, instant - replica.activated_at)
        self.backend.restart(replica, instant, delay)

    # -- what autoscalers get ------------------------------------------------------------------

    def _deliver(self, now: int) -> None:
        """Samples that have reached autoscalers by now, in order."""
        if not self._stats:
            return
        self.flow.advance(now)
        self._samples += self.flow.samples()
        lag = int(self.spec.metrics.lag)
        while self._samples and self._samples[0].instant + lag <= now:
            sample = self._samples.popleft()
            self.partition.stat(sample.instant + lag, self._stats_of(sample))

    def _stats_of(self, sample: Sample) -> tuple[Stat, ...]:
        name, at = entity_name(Kind.REPLICA, sample.replica), sample.instant
        stats = (
            Stat(at, name, MetricType.CONCURRENT_REQUESTS_MILLIS, sample.concurrent_millis),
            Stat(at, name, MetricType.CPU_MILLIS, sample.cpu_millis),
        )
        if not self._memory.modelled:
            return stats
        used = self._memory.used(sample.held)
        return (*stats, Stat(at, name, MetricType.MEMORY_BYTES, used))

    def _tell_of_refused(self, now: int) -> None:
        """Requests that found no replica since the last tick, under the router's name."""
        if not self._stats:
            return
        total = self.flow.refused
        refused, self._refused = total - self._refused, total
        if refused or self._refused_told:
            kind = MetricType.CONCURRENT_REQUESTS_MILLIS
            self.partition.stat(now, (Stat(now, ROUTING_STOCK, kind, refused * 1000),))
        self._refused_told = refused

    # -- the tick ------------------------------------------------------------------------------

    def ticked(self, entity: Entity) -> None:
        del entity
        tick = self._tick
        assert tick is not None
        self._tick = next_tick(self.spec, tick.instant)
        self._deliver(tick.instant)
        self._tell_of_refused(tick.instant)
        self.ask(tick, tick.instant)
        self._read_utilization(tick.instant)
        self._schedule_next_tick()

    def _schedule_next_tick(self) -> None:
        if self._tick is not None:
            self.schedule_tick(self._tick.instant)

    @property
    def desired(self) -> int:
        return self.backend.desired

    def desire(self, replicas: int) -> None:
        self.backend.scale(replicas)

    def replace(self, answer: VerticalRecommendationResponse) -> Replaced | None:
        size = self._target(answer)
        if size is None:
            return None
        evicted, resized = self._misfits(answer), self._named(answer.resize)
        admitted = self.backend.source.size
        # Whoever is replaced gets the target in any case, others only if they are to.
        self.backend.admit(size)
        surge = answer.evict is None
        if self.spec.replicas.replacement is not Replacement.AUTO:
            surge = self.spec.replicas.replacement is Replacement.SURGE
        self.backend.evict(evicted, surge=surge)
        self.backend.resize(resized, size)
        if not answer.admit:
            self.backend.admit(admitted)
        return Replaced(tuple(each.name for each in evicted), tuple(each.name for each in resized))

    def _target(self, answer: VerticalRecommendationResponse) -> Size | None:
        cpu, memory = resource(answer, "cpu"), self._memory_of(answer)
        if cpu is None and memory is None:
            return None
        now = self.backend.source.size
        return Size(
            now.cpu if cpu is None else cpu.target,
            now.memory if memory is None else memory.target,
        )

    def _memory_of(self, answer: VerticalRecommendationResponse) -> RecommendedPodResources | None:
        return resource(answer, "memory") if self._memory.modelled else None

    def _misfits(self, answer: VerticalRecommendationResponse) -> list[Replica]:
        """Who is to be replaced: as the autoscaler says, or whoever is outside the bounds."""
        if answer.evict is not None:
            found = self._named(answer.evict)
        else:
            found = [each for each in self.backend.active if self._is_outside(each, answer)]
        return [each for each in found if not each.doomed and each.replacement is None]

    def _is_outside(self, replica: Replica, answer: VerticalRecommendationResponse) -> bool:
        cpu, memory = resource(answer, "cpu"), self._memory_of(answer)
        if cpu is not None and not cpu.lower_bound <= replica.size.cpu <= cpu.upper_bound:
            return True
        if memory is None:
            return False
        return not memory.lower_bound <= replica.size.memory <= memory.upper_bound

    def _named(self, names: Sequence[str]) -> list[Replica]:
        wanted = {name: place for place, name in enumerate(names)}
        found = [each for each in self.backend.active if each.name in wanted]
        return sorted(found, key=lambda each: wanted[each.name])

    def _read_utilization(self, now: int) -> None:
        """The mean over active replicas of the share of their CPU used since the last tick."""
        self.flow.advance(now)
        shares = []
        for replica in self.backend.active:
            processor = self._stations[replica.number].processor
            used = processor.used(now)
            since, before = self._read.get(replica.number, (replica.activated_at, 0))
            self._read[replica.number] = now, used
            if now > since:
                shares.append(100 * (used - before) / (processor.capacity * (now - since)))
        if shares:
            self.utilizations.append(Utilization(now, sum(shares) / len(shares)))


def service_of(spec: TrafficSpec) -> Service:
    """What requests need, in the units of the kernels."""
    request = spec.request
    return Service(
        demand=request.cpu_time * 1000,
        timeout=NEVER if request.timeout < 0 else int(request.timeout),
        drawn=request.demand is Demand.EXPONENTIAL,
        limit=spec.replicas.limit,
        ceiling=int(spec.replicas.request_cpu),
    )


def router_of(spec: TrafficSpec, streams: Streams) -> Router:
    if spec.routing is Routing.RANDOM:
        return RandomRouting(streams.stream("traffic/routing"))
    if spec.routing is Routing.LEAST_CONNECTIONS:
        return LeastConnections(service_of(spec), int(spec.request.io_time))
    return RoundRobin()
