"""The world in faithful mode."""

from typing import Any

from kubescene.autoscalers import MetricType, Stat, VerticalRecommendationResponse
from kubescene.autoscalers.dispatcher import Partition
from kubescene.clock import MILLISECOND, Streams
from kubescene.flows.arrivals import REQUESTS_AT_ONCE, Arrivals
from kubescene.flows.records import RequestColumns, RequestOutcome
from kubescene.traffic.faithful.queueing import CpuRules
from kubescene.traffic.faithful.replicas import (
    FaithfulReplica,
    FaithfulReplicaSource,
    MetricsSink,
    MetricsTicks,
    ReplicasActive,
)
from kubescene.traffic.faithful.requests import (
    EndStock,
    FaithfulRequest,
    RequestDemand,
    RequestLog,
    RequestsProcessing,
    TrafficSource,
)
from kubescene.traffic.spec.fields import TrafficSpec
from kubescene.traffic.world.decisions import resource
from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.environment import ShiftingSchedule
from kubescene.traffic.world.movements import MOVEMENT_KINDS, Movement, MovementKind
from kubescene.traffic.world.stocks import ArrayStock, Stock, WatchedStock
from kubescene.traffic.world.worlds import (
    ROUTING_STOCK,
    Replaced,
    ReplicaCount,
    ReplicaRecord,
    TrafficWorld,
    Utilization,
    metrics_times,
    next_tick,
)

COUNTED = frozenset(
    MOVEMENT_KINDS.index(kind)
    for kind in (
        MovementKind.START_INITIAL_REPLICA,
        MovementKind.INCREASE_DESIRED,
        MovementKind.REDUCE_DESIRED,
        MovementKind.BEGIN_LAUNCH,
        MovementKind.FINISH_LAUNCHING,
        MovementKind.TERMINATE_LAUNCH,
        MovementKind.TERMINATE_ACTIVE,
        MovementKind.FINISH_TERMINATING,
        MovementKind.CREATE_UPDATED_REPLICA,
        MovementKind.EVICT_REPLICA,
    )
)
"""Movements after which there are other numbers of replicas."""


class FaithfulWorld(TrafficWorld):
    """Environment, cluster, traffic and autoscaler ticks of one run."""

    def __init__(
        self, spec: TrafficSpec, partition: Partition, arrivals: Arrivals, streams: Streams
    ) -> None:
        super().__init__(spec, partition, ShiftingSchedule())
        environment = self.environment
        self.requests = RequestLog()
        self._arrivals = arrivals
        self._demand = demand_of(spec, streams)
        self._times = metrics_times(spec)
        self._everybody: list[FaithfulReplica] = []
        self._metrics = [0]
        self._ticks: list[MetricsTicks] = []
        self._columns: RequestColumns | None = None
        # Ticks never overtake each other, though one may be put off by some nanoseconds.
        self._tick = next_tick(spec)
        self.source = FaithfulReplicaSource(self._make, int(spec.replicas.cpu))
        self.launching: ArrayStock[FaithfulReplica] = ArrayStock(
            "ReplicasLaunching", EntityKind.REPLICA
        )
        self.active = ReplicasActive(environment, partition, self._start_metrics)
        self.terminating: WatchedStock[FaithfulReplica] = WatchedStock(
            "ReplicasTerminating", EntityKind.REPLICA, added=self._terminate
        )
        self.terminated: WatchedStock[FaithfulReplica] = WatchedStock(
            "ReplicasTerminated", EntityKind.REPLICA, added=self._end
        )
        self.desired_stock: WatchedStock[Entity] = WatchedStock(
            "ReplicasDesired", EntityKind.DESIRED, added=self._increased, removed=self._reduced
        )
        self.desired_source: ArrayStock[Entity] = ArrayStock("DesiredSource", EntityKind.DESIRED)
        self.desired_sink: ArrayStock[Entity] = ArrayStock("DesiredSink", EntityKind.DESIRED)
        self.traffic = TrafficSource(environment, self.requests)
        self.routing: WatchedStock[FaithfulRequest] = WatchedStock(
            "RequestsRouting", EntityKind.REQUEST, added=self._route
        )
        name = "RequestsFailed"
        self._refused = EndStock(name, environment, self.requests, RequestOutcome.REFUSED)
        self._failed = EndStock(name, environment, self.requests, RequestOutcome.TIMEOUT)
        self._routed = 0

    def begin(self) -> None:
        self.partition.begin(0)
        for _ in range(self.spec.replicas.initial):
            replica = self.source.remove()
            self.launching.add(replica)
            kind = MovementKind.START_INITIAL_REPLICA
            self._move(kind, 1, self.launching, self.active, replica)
        tick = self._tick
        while tick is not None:
            if tick.instant + 1 < self.environment.halt:
                self.schedule_tick(tick.instant + 1)
            tick = next_tick(self.spec, tick.instant)
        self._schedule_arrivals()
        self._count()

    def run_until(self, instant: int) -> int:
        environment, kinds, played = self.environment, self.log.kinds, 0
        while (due := environment.peek()) is not None and due <= instant:
            environment.step()
            played += 1
            if kinds and kinds[-1] in COUNTED:
                self._count()
        return played

    def finish(self, end: int) -> None:
        columns = self.requests.columns()
        columns.close(end)
        self._columns = columns

    def close(self) -> None:
        for each in self._ticks:
            vars(each).clear()
        super().close()

    @property
    def columns(self) -> RequestColumns:
        return self.requests.columns() if self._columns is None else self._columns

    @property
    def used(self) -> int:
        """CPU time of the requests that succeeded: the model knows no other work."""
        done = int((self.columns.outcome == RequestOutcome.OK).sum())
        return done * self.spec.request.cpu_time * 1000

    def replicas(self) -> list[ReplicaRecord]:
        return [
            ReplicaRecord(
                name=each.name,
                cpu=each.cpu,
                launched_at=each.launched_at,
                activated_at=each.activated_at,
                deactivated_at=each.deactivated_at,
                terminated_at=each.terminated_at,
            )
            for each in self._everybody
        ]

    # -- replicas ------------------------------------------------------------------------------

    def _make(self, cpu: int) -> FaithfulReplica:
        number = len(self._everybody) + 1
        processing = RequestsProcessing(
            number, cpu, self.environment, self._demand, self.requests, self._failed
        )
        replica = FaithfulReplica(number, processing, self.now)
        self._everybody.append(replica)
        return replica

    def _start_metrics(self, replica: FaithfulReplica) -> None:
        sink = MetricsSink(self.environment, self.partition)
        ticks = MetricsTicks(self.environment, replica, sink, self._times, self._metrics)
        self._ticks.append(ticks)

    def _increased(self, wish: Entity) -> None:
        del wish
        self._move(MovementKind.BEGIN_LAUNCH, 1, self.source, self.launching)
        delay = int(self.spec.replicas.launch_delay)
        self._move(MovementKind.FINISH_LAUNCHING, delay, self.launching, self.active)

    def _reduced(self, wish: Entity) -> None:
        del wish
        if self.launching.count:
            self._move(MovementKind.TERMINATE_LAUNCH, 1, self.launching, self.terminating)
        else:
            self._move(MovementKind.TERMINATE_ACTIVE, 1, self.active, self.terminating)

    def _terminate(self, replica: FaithfulReplica) -> None:
        drain = replica.processing.count * self.spec.faithful.drain_per_request
        delay = drain + self.spec.replicas.terminate_delay
        kind = MovementKind.FINISH_TERMINATING
        self._move(kind, delay, self.terminating, self.terminated, replica)

    def _end(self, replica: FaithfulReplica) -> None:
        replica.terminated_at = self.now

    def _count(self) -> None:
        self.count(
            ReplicaCount(
                self.now,
                self.desired,
                self.launching.count,
                self.active.count,
                self.terminating.count,
            )
        )

    # -- requests ------------------------------------------------------------------------------

    def _schedule_arrivals(self) -> None:
        kind, halt = MovementKind.ARRIVE_AT_ROUTING_STOCK, self.environment.halt
        while len(arrived := self._arrivals.take(halt, REQUESTS_AT_ONCE)):
            for instant in arrived.tolist():
                self.environment.add_to_schedule(
                    Movement(kind, instant, self.traffic, self.routing)
                )

    def _route(self, request: FaithfulRequest) -> None:
        self._routed += 1
        replicas = self.active.entities
        if replicas:
            target = replicas[self._routed % len(replicas)].processing
            self._move(MovementKind.SEND_TO_REPLICA, 1, self.routing, target, request)
        else:
            self._move(MovementKind.REQUEST_FAILED, 1, self.routing, self._refused, request)

    # -- the tick ------------------------------------------------------------------------------

    def ticked(self, entity: Entity) -> None:
        del entity
        now = self.now
        tick = self._tick
        assert tick is not None
        self._tick = next_tick(self.spec, tick.instant)
        waiting = self.routing.count * 1000
        stat = Stat(now, ROUTING_STOCK, MetricType.CONCURRENT_REQUESTS_MILLIS, waiting)
        self.partition.stat(now, (stat,))
        self.ask(tick, now)
        self._read_utilization(now)

    @property
    def desired(self) -> int:
        return self.desired_stock.count

    def desire(self, replicas: int) -> None:
        before = self.desired
        for _ in range(replicas - before):
            wish = Entity(EntityKind.DESIRED)
            self.desired_source.add(wish)
            kind = MovementKind.INCREASE_DESIRED
            self._move(kind, 1, self.desired_source, self.desired_stock, wish)
        for _ in range(before - replicas):
            self._move(MovementKind.REDUCE_DESIRED, 1, self.desired_stock, self.desired_sink)

    def replace(self, answer: VerticalRecommendationResponse) -> Replaced | None:
        cpu = resource(answer, "cpu")
        if cpu is None:
            return None
        outside = [
            each
            for each in self.active.entities
            if not cpu.lower_bound <= each.cpu <= cpu.upper_bound
        ]
        delay = int(self.spec.replicas.launch_delay)
        for old in outside:
            new = self._make(cpu.target)
            self.launching.add(new)
            kind = MovementKind.CREATE_UPDATED_REPLICA
            self._move(kind, delay, self.launching, self.active, new)
            self._move(MovementKind.EVICT_REPLICA, delay + 1, self.active, self.terminating, old)
        return Replaced(tuple(each.name for each in outside))

    def _read_utilization(self, now: int) -> None:
        replicas = [each.processing for each in self.active.entities]
        shares = [each.occupied * 100 / each.total for each in replicas]
        if shares:
            self.utilizations.append(Utilization(now, sum(shares) / len(shares)))

    def _move(
        self,
        kind: MovementKind,
        delay: int,
        source: Stock[Any],
        target: Stock[Any],
        entity: Entity | None = None,
    ) -> None:
        self.environment.add_to_schedule(Movement(kind, self.now + delay, source, target, entity))


def demand_of(spec: TrafficSpec, streams: Streams) -> RequestDemand:
    request, rules = spec.request, spec.faithful
    return RequestDemand(
        request.cpu_time / MILLISECOND,
        request.io_time / MILLISECOND,
        int(request.timeout),
        CpuRules(rules.queue_servers, rules.saturation, rules.epsilon),
        streams.stream("traffic/delays"),
    )
