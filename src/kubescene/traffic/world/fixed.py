"""The world in fixed mode: replicas move one by one, requests flow in batches.

What Skenario got wrong is mended: the replicas that a run begins with are desired, launches and
terminations are bound to their replicas, zero delays are legal, CPU is shared and none is wasted,
samples are means over windows, replicas drain by what is in them, and those that are gone
are silent. Requests and samples are no movements of their own: there would be millions.
"""

from collections import deque
from collections.abc import Callable

from kubescene.autoscalers import (
    Capability,
    EventType,
    MetricType,
    Pod,
    PodState,
    Stat,
    VerticalRecommendationResponse,
)
from kubescene.autoscalers.dispatcher import Partition
from kubescene.clock import SECOND, Streams
from kubescene.flows.arrivals import Arrivals
from kubescene.flows.connections import LeastConnections
from kubescene.flows.fields import CpuDemand
from kubescene.flows.flow import Flow, Station
from kubescene.flows.kernels import NEVER, Service
from kubescene.flows.records import RequestColumns
from kubescene.flows.routing import RandomRouting, RoundRobin, Router, Routing
from kubescene.flows.sampling import ReplicaSample
from kubescene.flows.waiting import WhenNone
from kubescene.traffic.spec.fields import TrafficSpec
from kubescene.traffic.spec.objects import autoscaler_of, goes_by_rates, goes_by_service
from kubescene.traffic.world.entities import Entity, EntityKind, entity_name
from kubescene.traffic.world.environment import OrderedSchedule
from kubescene.traffic.world.in_memory_replicas import InMemoryReplicas, ReplicaTimes
from kubescene.traffic.world.replicas import Replica, ReplicaSize
from kubescene.traffic.world.service_metrics import ServiceSampling
from kubescene.traffic.world.sizing import MemoryRules, Sizing
from kubescene.traffic.world.worlds import (
    ROUTING_STOCK,
    CpuUse,
    Replaced,
    ReplicaCount,
    ReplicaRecord,
    TrafficWorld,
    Utilization,
    metrics_times,
    next_tick,
)

CONCURRENCY, CPU = MetricType.CONCURRENT_REQUESTS_MILLIS, MetricType.CPU_MILLIS
RATE = MetricType.REQUESTS_PER_SECOND_MILLIS


class FixedWorld(TrafficWorld):
    """Environment, replicas, flow of requests and autoscalers of one run."""

    def __init__(
        self, spec: TrafficSpec, partition: Partition, arrivals: Arrivals, streams: Streams
    ) -> None:
        super().__init__(spec, partition, OrderedSchedule())
        wanted = partition.wants(Capability.STAT)
        self.flow = Flow(
            arrivals,
            router_of(spec, streams),
            service_of(spec),
            io=int(spec.request.io_time),
            demand_stream=streams.stream("traffic/demands"),
            times=metrics_times(spec) if wanted else None,
            halt=int(spec.duration),
            waits=waits(spec),
        )
        self._memory = MemoryRules(spec.replicas.memory)
        self._pipeline: MetricsPipeline | None = None
        if wanted:
            lag = int(spec.metrics.lag)
            self._pipeline = MetricsPipeline(
                self.flow,
                partition,
                self._memory,
                lag,
                self.environment.check,
                rates=any(map(goes_by_rates, spec.autoscalers)),
            )
        self._service: ServiceSampling | None = None
        if wanted and any(map(goes_by_service, spec.autoscalers)):
            self._service = ServiceSampling(self.flow, partition, spec)
        self.backend = InMemoryReplicas(
            self.environment,
            ReplicaSize(int(spec.replicas.cpu), self._memory.request),
            ReplicaTimes(int(spec.replicas.launch_delay), int(spec.replicas.terminate_delay)),
            spec.replicas.victims,
            self,
        )
        self._sizing = Sizing(self.backend, self._memory, spec.replicas.replacement)
        self._tick = next_tick(spec)
        self._stations: dict[int, Station] = {}
        self._known: set[int] = set()
        self._read: dict[int, tuple[int, int]] = {}
        self._use_read = 0, 0

    def run_until(self, instant: int) -> int:
        environment, flow, played = self.environment, self.flow, 0
        limited, check = self._memory.limited, environment.check
        while (due := environment.peek()) is not None and due <= instant:
            service = self._service
            until = due if service is None else min(due, service.next_mark)
            # Who is killed, and when, is known only after requests have come.
            if limited and (full := flow.until_full(until, check)) is not None:
                self._kill(full)
                continue
            # Whoever stops a run stops it here, between two batches, and not in a movement.
            flow.advance(until, check)
            if service is not None and service.next_mark <= due:
                service.read(check)
                continue
            environment.step()
            played += 1
        return played

    def stop(self) -> int:
        self.environment.now = max(self.now, self.flow.now)
        return super().stop()

    def begin(self) -> None:
        self.partition.begin(0)
        self.backend.begin(self.spec.replicas.initial)
        self.counted()
        self._schedule_next_tick()

    def finish(self, end: int) -> None:
        self.flow.halt = end
        if not self.is_stopped:  # then nobody asks autoscalers any more
            self._deliver(end)
        self.flow.advance(end)
        self.columns.close(end)

    def close(self) -> None:
        vars(self.backend).clear()
        super().close()

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

    def _deliver(self, now: int) -> None:
        if self._pipeline is not None:
            self._pipeline.deliver(now)

    def _kill(self, full: Station) -> None:
        """A station got one request more than it has memory for; the next instant it is gone."""
        [replica] = [each for each in self.backend.active if each.number == full.number]
        instant = self.flow.now
        delay = self._memory.backoff(replica.number, instant - replica.activated_at)
        self.backend.restart(replica, instant, delay)

    # -- the tick ------------------------------------------------------------------------------

    def ticked(self, entity: Entity) -> None:
        del entity
        tick = self._tick
        assert tick is not None
        self._tick = next_tick(self.spec, tick.instant)
        self._deliver(tick.instant)
        if self._pipeline is not None:
            self._pipeline.tell_of_refused(tick.instant)
            self._pipeline.tell_of_waiting(tick.instant)
        if self._service is not None:
            self._service.tell(tick.instant)
        # First of all: whoever is resized had another size until now.
        self._read_utilization(tick.instant)
        self.ask(tick, tick.instant)
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
        return self._sizing.replace(answer)

    def _read_utilization(self, now: int) -> None:
        """The mean over active replicas of the share of their CPU used since the last tick."""
        self.flow.advance(now)
        shares = []
        for replica in self.backend.active:
            self.environment.check()
            processor = self._stations[replica.number].processor
            used = processor.used(now)
            since, before = self._read.get(replica.number, (replica.activated_at, 0))
            self._read[replica.number] = now, used
            if now > since:
                shares.append(100 * (used - before) / (processor.capacity * (now - since)))
        self._read_use(now)
        if shares:
            self.utilizations.append(Utilization(now, sum(shares) / len(shares)))

    def _read_use(self, now: int) -> None:
        since, before = self._use_read
        used = self.flow.used(now)
        self._use_read = now, used
        if now > since:
            self.cpu_used.append(CpuUse(now, (used - before) // (now - since)))


def service_of(spec: TrafficSpec) -> Service:
    """What requests need."""
    request = spec.request
    return Service(
        demand=request.cpu_time * 1000,
        timeout=NEVER if request.timeout < 0 else int(request.timeout),
        drawn=request.demand is CpuDemand.EXPONENTIAL,
        limit=spec.replicas.limit,
        ceiling=int(spec.replicas.request_cpu),
    )


def router_of(spec: TrafficSpec, streams: Streams) -> Router:
    """Who gets them."""
    if spec.routing is Routing.RANDOM:
        return RandomRouting(streams.stream("traffic/routing"))
    if spec.routing is Routing.LEAST_CONNECTIONS:
        return LeastConnections(service_of(spec), int(spec.request.io_time))
    return RoundRobin()


def waits(spec: TrafficSpec) -> bool:
    """Whether requests wait while there is no replica."""
    if spec.when_none is not WhenNone.AUTO:
        return spec.when_none is WhenNone.WAIT
    return any(autoscaler_of(each).type.startswith("concurrency.") for each in spec.autoscalers)


class MetricsPipeline:
    """From the flow of requests to the autoscalers of a run; ``lag`` is how long it takes.

    With ``rates``, requests per second are told, too.
    """

    def __init__(
        self,
        flow: Flow,
        partition: Partition,
        memory: MemoryRules,
        lag: int,
        check: Callable[[], None],
        *,
        rates: bool = False,
    ) -> None:
        self._check = check
        self._rates = rates
        self._flow = flow
        self._partition = partition
        self._memory = memory
        self._lag = lag
        self._samples: deque[ReplicaSample] = deque()
        self._refused = self._refused_told = self._refused_told_at = 0
        self._waited = self._came = self._waiting_told = self._waiting_told_at = 0

    def deliver(self, now: int) -> None:
        """All samples that have come through by now."""
        self._flow.advance(now)
        samples, lag, tell, check = self._samples, self._lag, self._partition.stat, self._check
        samples += self._flow.samples()
        while samples and samples[0].instant + lag <= now:
            check()
            sample = samples.popleft()
            tell(sample.instant + lag, self._stats(sample))

    def tell_of_refused(self, now: int) -> None:
        """Requests that found no replica since the last tick, under the router's name."""
        total = self._flow.refused
        refused, self._refused = total - self._refused, total
        if refused or self._refused_told:
            stats: tuple[Stat, ...] = (Stat(now, ROUTING_STOCK, CONCURRENCY, refused * 1000),)
            if self._rates:
                rate = refused * 1000 * SECOND // max(now - self._refused_told_at, 1)
                stats = (*stats, Stat(now, ROUTING_STOCK, RATE, rate))
            self._partition.stat(now, stats)
        self._refused_told, self._refused_told_at = refused, now

    def tell_of_waiting(self, now: int) -> None:
        """Requests that wait for a replica, in the mean since the last tick, as an activator."""
        waiting = self._flow.waiting
        if waiting is None:
            return
        width = max(now - self._waiting_told_at, 1)
        waited, came = waiting.waited(now), waiting.came
        told = (waited - self._waited) * 1000 // width
        if waited > self._waited:
            told = max(told, 1)  # however short: somebody is there
        if told or self._waiting_told:
            stats: tuple[Stat, ...] = (Stat(now, ROUTING_STOCK, CONCURRENCY, told),)
            if self._rates:
                rate = (came - self._came) * 1000 * SECOND // width
                stats = (*stats, Stat(now, ROUTING_STOCK, RATE, rate))
            self._partition.stat(now, stats)
        self._waited, self._came = waited, came
        self._waiting_told, self._waiting_told_at = told, now

    def _stats(self, sample: ReplicaSample) -> tuple[Stat, ...]:
        at, replica, cpu_millis, concurrent_millis, held, arrived_millis = sample
        name = entity_name(EntityKind.REPLICA, replica)
        stats: tuple[Stat, ...] = (
            Stat(at, name, CONCURRENCY, concurrent_millis),
            Stat(at, name, CPU, cpu_millis),
        )
        if self._rates:
            stats = (*stats, Stat(at, name, RATE, arrived_millis))
        if not self._memory.modelled:
            return stats
        return (*stats, Stat(at, name, MetricType.MEMORY_BYTES, self._memory.used(held)))
