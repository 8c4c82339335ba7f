"""Replicas in faithful mode: launched and terminated by whoever comes first, not by name."""

from collections.abc import Callable

from kubescene.autoscalers import EventType, MetricType, Pod, PodState, Stat
from kubescene.autoscalers.dispatcher import Partition
from kubescene.flows.sampling import MetricsTimes
from kubescene.traffic.faithful.requests import RequestsProcessing
from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.environment import Environment
from kubescene.traffic.world.movements import Movement, MovementKind
from kubescene.traffic.world.stocks import ArrayStock, Stock, Ticktock


class FaithfulReplica(Entity):
    """A replica with the requests that it processes."""

    __slots__ = (
        "activated_at",
        "deactivated_at",
        "launched_at",
        "processing",
        "terminated_at",
    )

    def __init__(self, number: int, processing: RequestsProcessing, now: int) -> None:
        super().__init__(EntityKind.REPLICA, number)
        self.processing = processing
        self.launched_at = now
        self.activated_at = self.deactivated_at = self.terminated_at = -1

    @property
    def cpu(self) -> int:
        return int(self.processing.total)


MakeReplica = Callable[[int], FaithfulReplica]
"""A new replica of so many millicores."""


class FaithfulReplicaSource(Stock[FaithfulReplica]):
    __slots__ = ("_cpu", "_make")

    def __init__(self, make: MakeReplica, cpu: int) -> None:
        super().__init__("ReplicaSource", EntityKind.REPLICA)
        self._make = make
        self._cpu = cpu

    def remove(self, entity: FaithfulReplica | None = None) -> FaithfulReplica:
        return self._make(self._cpu) if entity is None else entity


class FaithfulMetrics(Entity):
    """A sample on its way to autoscalers."""

    __slots__ = ("stats",)

    def __init__(self, number: int, stats: tuple[Stat, ...]) -> None:
        super().__init__(EntityKind.METRICS, number)
        self.stats = stats


class FaithfulMetricsSource(Stock[FaithfulMetrics]):
    """Whoever takes from here gets a sample of this instant."""

    __slots__ = ("_environment", "_numbers", "_replica")

    def __init__(
        self, environment: Environment, replica: FaithfulReplica, numbers: list[int]
    ) -> None:
        super().__init__("MetricsSource", EntityKind.METRICS)
        self._environment = environment
        self._replica = replica
        self._numbers = numbers

    def remove(self, entity: FaithfulMetrics | None = None) -> FaithfulMetrics:
        del entity
        self._numbers[0] += 1
        now, replica = self._environment.now, self._replica
        inside, occupied = replica.processing.count, int(replica.processing.occupied)
        return FaithfulMetrics(
            self._numbers[0],
            (
                Stat(now, replica.name, MetricType.CONCURRENT_REQUESTS_MILLIS, inside * 1000),
                Stat(now, replica.name, MetricType.CPU_MILLIS, occupied),
            ),
        )


class FaithfulMetricsPipeline(ArrayStock[FaithfulMetrics]):
    __slots__ = ("_environment", "_lag", "_sink")

    def __init__(self, environment: Environment, sink: "MetricsSink", lag: int) -> None:
        super().__init__("MetricsPipeline", EntityKind.METRICS)
        self._environment = environment
        self._sink = sink
        self._lag = lag

    def add(self, entity: FaithfulMetrics) -> None:
        at = self._environment.now + self._lag
        kind = MovementKind.SEND_METRICS_TO_SINK
        self._environment.add_to_schedule(Movement(kind, at, self, self._sink, entity))
        super().add(entity)


class MetricsSink(Stock[FaithfulMetrics]):
    """Autoscalers get what arrives here; it is not kept."""

    __slots__ = ("_environment", "_partition")

    def __init__(self, environment: Environment, partition: Partition) -> None:
        super().__init__("MetricsSink", EntityKind.METRICS)
        self._environment = environment
        self._partition = partition

    def add(self, entity: FaithfulMetrics) -> None:
        self.check(entity)
        self._partition.stat(self._environment.now, entity.stats)


class MetricsTicks:
    """The samples of one replica: at even intervals from its activation to the end of the run."""

    def __init__(
        self,
        environment: Environment,
        replica: FaithfulReplica,
        sink: MetricsSink,
        times: MetricsTimes,
        numbers: list[int],
    ) -> None:
        self._environment = environment
        self._interval = times.interval
        self._source = FaithfulMetricsSource(environment, replica, numbers)
        self._pipeline = FaithfulMetricsPipeline(environment, sink, times.lag)
        self._ticktock = Ticktock("Metrics Ticktock", replica, self._ticked)
        self._tick_at(environment.now + times.first)

    def _tick_at(self, instant: int) -> None:
        ticktock, kind = self._ticktock, MovementKind.METRICS_TICK
        movement = Movement(kind, instant, ticktock, ticktock, ticktock.entity)
        self._environment.add_to_schedule(movement)

    def _ticked(self, replica: FaithfulReplica) -> None:
        del replica
        now, kind = self._environment.now, MovementKind.SEND_METRICS_TO_PIPELINE
        self._environment.add_to_schedule(Movement(kind, now + 1, self._source, self._pipeline))
        self._tick_at(now + self._interval)


class ReplicasActive(ArrayStock[FaithfulReplica]):
    """Autoscalers know of replicas while they are here."""

    __slots__ = ("_environment", "_partition", "_start_metrics")

    def __init__(
        self,
        environment: Environment,
        partition: Partition,
        start_metrics: Callable[[FaithfulReplica], object],
    ) -> None:
        super().__init__("ReplicasActive", EntityKind.REPLICA)
        self._environment = environment
        self._partition = partition
        self._start_metrics = start_metrics

    def add(self, entity: FaithfulReplica) -> None:
        self.check(entity)
        now = entity.activated_at = self._environment.now
        pod = Pod(entity.name, PodState.ACTIVE.value, now, entity.cpu)
        self._partition.pod(now, EventType.CREATE, pod)
        self._start_metrics(entity)
        super().add(entity)

    def remove(self, entity: FaithfulReplica | None = None) -> FaithfulReplica | None:
        removed = super().remove(entity)
        if removed is not None:
            now = removed.deactivated_at = self._environment.now
            self._partition.pod(now, EventType.DELETE, Pod(removed.name))
        return removed
