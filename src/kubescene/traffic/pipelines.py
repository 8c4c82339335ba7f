"""Samples on their way to autoscalers: told some time after they were taken, in order."""

from collections import deque
from collections.abc import Callable

from kubescene.autoscalers import MetricType, Stat
from kubescene.autoscalers.dispatcher import Partition
from kubescene.traffic.entities import Kind, entity_name
from kubescene.traffic.flow import Flow
from kubescene.traffic.memory import MemoryRules
from kubescene.traffic.sampling import Sample
from kubescene.traffic.worlds import ROUTING_STOCK

CONCURRENCY, CPU = MetricType.CONCURRENT_REQUESTS_MILLIS, MetricType.CPU_MILLIS


class MetricsPipeline:
    """From the flow of requests to the autoscalers of a run; ``lag`` is how long it takes."""

    def __init__(
        self,
        flow: Flow,
        partition: Partition,
        memory: MemoryRules,
        lag: int,
        check: Callable[[], None],
    ) -> None:
        self._check = check
        self._flow = flow
        self._partition = partition
        self._memory = memory
        self._lag = lag
        self._samples: deque[Sample] = deque()
        self._refused = self._refused_told = 0

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
            self._partition.stat(now, (Stat(now, ROUTING_STOCK, CONCURRENCY, refused * 1000),))
        self._refused_told = refused

    def _stats(self, sample: Sample) -> tuple[Stat, ...]:
        at, replica, cpu_millis, concurrent_millis, held = sample
        name = entity_name(Kind.REPLICA, replica)
        stats = (Stat(at, name, CONCURRENCY, concurrent_millis), Stat(at, name, CPU, cpu_millis))
        if not self._memory.modelled:
            return stats
        return (*stats, Stat(at, name, MetricType.MEMORY_BYTES, self._memory.used(held)))
