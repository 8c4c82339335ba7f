"""What is remembered of usage: pods, their containers, and the aggregates they feed.

An aggregate is that of all containers of one name in pods of the same labels. CPU samples go there
one by one. Of memory only the peak of each interval counts: a higher sample takes the place of the
peak before it. An out-of-memory kill is a memory sample larger than what the container had.

Checkpoints (VerticalPodAutoscalerCheckpoint, version v3) are histories that outlive the
recommender.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, isfinite
from typing import Any, NamedTuple

import msgspec

from kubescene.api.selectors.label_selectors import LabelSelector
from kubescene.autoscalers.vertical.amounts import amount, scaled
from kubescene.autoscalers.vertical.histograms import (
    YEAR_ONE,
    DecayingHistogram,
    HistogramBuckets,
    checkpoint_weights,
    exponential_buckets,
)
from kubescene.autoscalers.vertical.options import HOUR, RecommenderOptions
from kubescene.clock import format_time, parse_time
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject


class SampleError(ConfigurationError):
    """A sample that means nothing; the message says which one and names its field."""


class UsageSample(msgspec.Struct, frozen=True):
    """What one container used at ``time`` (nanoseconds): ``cpu`` millicores, ``memory`` bytes.

    None: not measured. Fractions are rounded up, as quantities are. With ``oom`` the container was
    killed for lack of memory, and ``memory`` is what it had requested.
    """

    time: int
    cpu: int | float | None = None
    memory: int | float | None = None
    pod: str = "pod"
    container: str = "container"
    oom: bool = False


def checked(samples: Iterable[UsageSample]) -> Iterator[UsageSample]:
    """The samples in whole units; raises `SampleError` at the first that is no sample."""
    last: int | None = None
    for number, sample in enumerate(samples):
        where = f"samples[{number}]"
        if isinstance(sample.time, bool) or not isinstance(sample.time, int):
            raise SampleError(f"{where}.time: {sample.time!r} is no whole number of nanoseconds")
        if last is not None and sample.time < last:
            raise SampleError(f"{where}.time: {sample.time} is before {last}; sort by time")
        last = sample.time
        yield msgspec.structs.replace(
            sample,
            cpu=whole_units(sample.cpu, f"{where}.cpu"),
            memory=whole_units(sample.memory, f"{where}.memory"),
        )


def whole_units(value: Any, where: str) -> int | None:
    """A measured amount in whole units; None stays None, anything that is no amount is refused."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SampleError(f"{where}: {value!r} is no number")
    if not isfinite(value):
        raise SampleError(f"{where}: {value!r}; an amount has to be finite")
    if value < 0:
        raise SampleError(f"{where}: {value!r}; an amount cannot be negative")
    return ceil(value)


MIN_SAMPLE_WEIGHT = 0.1
PEAK_WEIGHT = 1.0
EPSILON = 0.001 * MIN_SAMPLE_WEIGHT
GROWTH = 1.0 + 0.05

CPU_BUCKETS: HistogramBuckets = exponential_buckets(1000.0, 0.01, GROWTH, EPSILON)
"""Cores."""
MEMORY_BUCKETS: HistogramBuckets = exponential_buckets(1e12, 1e7, GROWTH, EPSILON)
"""Bytes."""


class Aggregate:
    """Histograms of CPU usage and of memory peaks.

    ``first``, ``last`` and ``count`` are of CPU samples alone; None: there was none yet.
    """

    __slots__ = ("count", "cpu", "created", "first", "last", "memory")

    def __init__(self, options: RecommenderOptions, created: int) -> None:
        self.cpu = DecayingHistogram(CPU_BUCKETS, options.cpu_histogram_decay_half_life)
        self.memory = DecayingHistogram(MEMORY_BUCKETS, options.memory_histogram_decay_half_life)
        self.first: int | None = None
        self.last: int | None = None
        self.count = 0
        self.created = created

    def add_cpu(self, millicores: int, time: int) -> None:
        self.cpu.add_at(float(millicores) / 1000.0, MIN_SAMPLE_WEIGHT, time)
        if self.last is None or time > self.last:
            self.last = time
        if self.first is None or time < self.first:
            self.first = time
        self.count += 1

    def add_peak(self, size: int, time: int) -> None:
        self.memory.add_at(float(size), PEAK_WEIGHT, time)

    def subtract_peak(self, size: int, time: int) -> None:
        self.memory.subtract_at(float(size), PEAK_WEIGHT, time)

    def merge(self, other: "Aggregate") -> None:
        """Add another. Both move to the later reference time; its meaning does not change."""
        self.cpu.merge(other.cpu)
        self.memory.merge(other.memory)
        if other.first is not None and (self.first is None or other.first < self.first):
            self.first = other.first
        if other.last is not None and (self.last is None or other.last > self.last):
            self.last = other.last
        self.count += other.count

    def is_expired(self, now: int, window: int) -> bool:
        """Whether the last CPU sample, or the beginning if there is none, is too long ago."""
        since = self.created if self.last is None else self.last
        return now - since >= window


def align(aggregates: Sequence[Aggregate]) -> None:
    """Move histograms that are merged together to the youngest reference time among them.

    Upstream merges in the random order of a map, and merging moves whoever is older; so after a few
    rounds all of them have moved, in whatever order. Here they do at once.
    """
    for histograms in ([each.cpu for each in aggregates], [each.memory for each in aggregates]):
        youngest = max(each.reference for each in histograms)
        for each in histograms:
            each.move_to(youngest)


class ContainerUsage:
    """The state of one container. ``window_end`` is where the interval of its peak ends.

    ``pinned`` is set once the labels of the pod changed: from then on the container feeds this very
    aggregate, also after that was garbage-collected, and what it feeds then is lost (upstream does
    so).
    """

    __slots__ = ("last_cpu", "last_memory", "oom_peak", "peak", "pinned", "window_end")

    def __init__(self) -> None:
        self.last_cpu: int | None = None
        self.last_memory: int | None = None
        self.window_end: int | None = None
        self.peak = 0
        self.oom_peak = 0
        self.pinned: Aggregate | None = None

    @property
    def highest(self) -> int:
        """The peak of the running interval, kills included."""
        return max(self.peak, self.oom_peak)

    def accepts_cpu(self, millicores: int, time: int) -> bool:
        """Whether a CPU sample is neither negative nor as old as the last."""
        return millicores >= 0 and (self.last_cpu is None or time > self.last_cpu)

    def accepts_memory(self, size: int, time: int) -> bool:
        """Whether a memory sample is neither negative nor older than the last."""
        return size >= 0 and (self.last_memory is None or time >= self.last_memory)

    def add_cpu(self, aggregate: Aggregate, millicores: int, time: int) -> bool:
        """Take a CPU sample in; False if it is not accepted."""
        if not self.accepts_cpu(millicores, time):
            return False
        aggregate.add_cpu(millicores, time)
        self.last_cpu = time
        return True

    def add_memory(self, aggregate: Aggregate, size: int, time: int, interval: int) -> bool:
        """Take a memory sample in; False if it is not accepted."""
        if not self.accepts_memory(size, time):
            return False
        self._add_memory(aggregate, size, time, interval, is_oom=False)
        return True

    def add_oom(
        self, aggregate: Aggregate, requested: int, time: int, options: RecommenderOptions
    ) -> bool:
        """Take a kill in; False if it is older than the running interval.

        The peaks of earlier kills do not count here: a container that is killed over and over would
        run away.
        """
        interval = options.memory_aggregation_interval
        if self.window_end is not None and time < self.window_end - interval:
            return False
        used = max(requested, self.peak)
        needed = max(
            used + amount(options.oom_min_bump_up_bytes), scaled(used, options.oom_bump_up_ratio)
        )
        if needed < 0:
            return False
        self._add_memory(aggregate, needed, time, interval, is_oom=True)
        return True

    def _add_memory(
        self, aggregate: Aggregate, size: int, time: int, interval: int, *, is_oom: bool
    ) -> None:
        self.last_memory = time
        if self._becomes_peak(aggregate, size, time, interval):
            assert self.window_end is not None
            aggregate.add_peak(size, self.window_end)
            if is_oom:
                self.oom_peak = size
            else:
                self.peak = size

    def _becomes_peak(self, aggregate: Aggregate, size: int, time: int, interval: int) -> bool:
        """Whether a sample is the peak now; the one it replaces is taken back."""
        end = time if self.window_end is None else self.window_end
        if time >= end:
            self.window_end = end + (time - end) // interval * interval + interval
            self.peak = self.oom_peak = 0
            return True
        # A peak of 0 bytes is never replaced within its interval (upstream takes it for none).
        if not 0 != self.highest < size:
            return False
        aggregate.subtract_peak(self.highest, end)
        return True


COLLECTION_INTERVAL = HOUR
ENDED = ("Succeeded", "Failed")


class AggregateKey(NamedTuple):
    """Containers of one name in pods with exactly these labels (sorted, as text)."""

    container: str
    labels: str


class PodUsage:
    """A pod as the recommender knows it."""

    __slots__ = ("containers", "labels", "labels_text", "phase")

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.containers: dict[str, ContainerUsage] = {}
        self.phase = "Running"
        self.relabel(labels)

    def relabel(self, labels: Mapping[str, str]) -> None:
        self.labels = dict(labels)
        self.labels_text = labels_text(labels)


def labels_text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels))


class Usage:
    """Pods and aggregates of one namespace. A plain value: no clock, nothing shared outside."""

    __slots__ = ("_label_sets", "_last_collection", "aggregates", "options", "pods")

    def __init__(self, options: RecommenderOptions) -> None:
        self.options = options
        self.pods: dict[str, PodUsage] = {}
        self.aggregates: dict[AggregateKey, Aggregate] = {}
        self._label_sets: dict[str, dict[str, str]] = {}
        self._last_collection = 0

    def set_pod(
        self,
        name: str,
        *,
        labels: Mapping[str, str],
        containers: Iterable[str],
        now: int,
        phase: str = "Running",
    ) -> None:
        """A pod came or changed. Containers that it had before stay known."""
        pod = self.pods.get(name)
        if pod is None:
            pod = self.pods[name] = PodUsage(labels)
        elif pod.labels != dict(labels):
            self._relabel(pod, labels, now)
        pod.phase = phase
        for container in containers:
            if container not in pod.containers:
                pod.containers[container] = ContainerUsage()
                self._aggregate(pod, container, now)

    def delete_pod(self, name: str) -> None:
        """A pod is gone; what its samples added stays."""
        self.pods.pop(name, None)

    def add_cpu(self, pod: str, container: str, millicores: int, time: int) -> bool:
        """Take a CPU sample in; False if it is refused: unknown container, negative, not newer."""
        found = self._find(pod, container)
        # Asked first: a sample that is refused does not revive what was garbage-collected.
        if found is None or not found[0].accepts_cpu(millicores, time):
            return False
        usage, of = found
        return usage.add_cpu(usage.pinned or self._aggregate(of, container, time), millicores, time)

    def add_memory(self, pod: str, container: str, size: int, time: int) -> bool:
        """Take a memory sample in; False if it is refused: unknown container, negative, older."""
        found = self._find(pod, container)
        if found is None or not found[0].accepts_memory(size, time):
            return False
        usage, of = found
        aggregate = usage.pinned or self._aggregate(of, container, time)
        return usage.add_memory(aggregate, size, time, self.options.memory_aggregation_interval)

    def add_oom(self, pod: str, container: str, requested: int, time: int) -> bool:
        """Take an out-of-memory kill in; False if it is refused: unknown container, too old."""
        found = self._find(pod, container)
        if found is None:
            return False
        usage, of = found
        # Also a kill that is refused revives an aggregate that was garbage-collected (upstream
        # asks it for its interval).
        aggregate = usage.pinned or self._aggregate(of, container, time)
        return usage.add_oom(aggregate, requested, time, self.options)

    def collect_garbage(self, now: int, *, has_controller: bool = False) -> None:
        """Drop aggregates that are expired, or empty and fed by nobody. At most hourly.

        ``has_controller``: whether the workload that the pods belong to still exists, which keeps
        those of pods that ended, too.
        """
        if now - self._last_collection < COLLECTION_INTERVAL:
            return
        self._last_collection = now
        fed = set(self._fed(has_controller))
        window = self.options.memory_window
        for key, aggregate in list(self.aggregates.items()):
            unused = aggregate.count == 0 and key not in fed
            if unused or aggregate.is_expired(now, window):
                del self.aggregates[key]
        used = {key.labels for key in self.aggregates}
        self._label_sets = {text: each for text, each in self._label_sets.items() if text in used}

    def matching(self, selector: LabelSelector) -> Iterator[tuple[AggregateKey, Aggregate]]:
        """The aggregates of pods that a selector picks, oldest first."""
        verdicts: dict[str, bool] = {}
        for key, aggregate in self.aggregates.items():
            verdict = verdicts.get(key.labels)
            if verdict is None:
                verdict = verdicts[key.labels] = selector.matches(self._label_sets[key.labels])
            if verdict:
                yield key, aggregate

    def count_pods(self, selector: LabelSelector) -> int:
        return sum(selector.matches(pod.labels) for pod in self.pods.values())

    def _find(self, pod: str, container: str) -> tuple[ContainerUsage, PodUsage] | None:
        known = self.pods.get(pod)
        usage = known.containers.get(container) if known else None
        return (usage, known) if usage is not None and known is not None else None

    def _aggregate(self, pod: PodUsage, container: str, now: int) -> Aggregate:
        key = AggregateKey(container, pod.labels_text)
        aggregate = self.aggregates.get(key)
        if aggregate is None:
            aggregate = self.aggregates[key] = Aggregate(self.options, now)
            self._label_sets[pod.labels_text] = pod.labels
        return aggregate

    def _relabel(self, pod: PodUsage, labels: Mapping[str, str], now: int) -> None:
        pod.relabel(labels)
        for name, container in pod.containers.items():
            container.pinned = self._aggregate(pod, name, now)

    def _fed(self, has_controller: bool) -> Iterator[AggregateKey]:
        for pod in self.pods.values():
            if has_controller or pod.phase not in ENDED:
                for container in pod.containers:
                    yield AggregateKey(container, pod.labels_text)


VERSION = "v3"


class CheckpointError(ConfigurationError):
    """A checkpoint that cannot be loaded; the message names the field."""


def save_checkpoint(aggregate: Aggregate, now: int) -> JsonObject:
    """The status of a checkpoint. Times are whole seconds, zeros are left out, as in the API."""
    status: JsonObject = {
        "lastUpdateTime": format_time(now),
        "version": VERSION,
        "cpuHistogram": _saved(aggregate.cpu),
        "memoryHistogram": _saved(aggregate.memory),
        "firstSampleStart": _saved_time(aggregate.first),
        "lastSampleStart": _saved_time(aggregate.last),
    }
    if aggregate.count:
        status["totalSamplesCount"] = aggregate.count
    return status


def load_checkpoint(status: JsonObject, options: RecommenderOptions, now: int) -> Aggregate:
    """The aggregate that was saved; raises `CheckpointError` where it is none."""
    if status.get("version") != VERSION:
        raise CheckpointError(
            f"version: {status.get('version')!r} is not supported, only {VERSION}"
        )
    aggregate = Aggregate(options, now)
    aggregate.count = _count(status.get("totalSamplesCount", 0))
    aggregate.first = _time(status.get("firstSampleStart"), "firstSampleStart")
    aggregate.last = _time(status.get("lastSampleStart"), "lastSampleStart")
    _restore(aggregate.memory, status.get("memoryHistogram") or {}, "memoryHistogram")
    _restore(aggregate.cpu, status.get("cpuHistogram") or {}, "cpuHistogram")
    return aggregate


def checkpoint_object(vpa: str, container: str, status: JsonObject) -> JsonObject:
    """The API object that holds the history of one container."""
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": f"{vpa}-{container}"},
        "spec": {"vpaObjectName": vpa, "containerName": container},
        "status": status,
    }


def _saved(histogram: DecayingHistogram) -> JsonObject:
    weights = checkpoint_weights(histogram)
    reference = histogram.reference
    saved: JsonObject = {
        "referenceTimestamp": None if reference == YEAR_ONE else format_time(reference)
    }
    if weights:
        saved["bucketWeights"] = {str(bucket): weight for bucket, weight in weights.items()}
    if histogram.total:
        saved["totalWeight"] = histogram.total
    return saved


def _saved_time(time: int | None) -> str | None:
    return None if time is None else format_time(time)


def _restore(histogram: DecayingHistogram, saved: JsonObject, path: str) -> None:
    total = saved.get("totalWeight", 0.0)
    if isinstance(total, bool) or not isinstance(total, int | float) or not total >= 0:
        raise CheckpointError(f"{path}.totalWeight: {total!r} is negative or no number")
    weights = dict(
        _weight(bucket, weight, histogram.buckets.count, f"{path}.bucketWeights")
        for bucket, weight in (saved.get("bucketWeights") or {}).items()
    )
    reference = _time(saved.get("referenceTimestamp"), f"{path}.referenceTimestamp")
    histogram.restore(weights, float(total), YEAR_ONE if reference is None else reference)


def _weight(bucket: Any, weight: Any, buckets: int, path: str) -> tuple[int, int]:
    try:
        number = int(bucket)
    except (TypeError, ValueError):
        number = -1
    if not 0 <= number < buckets:
        raise CheckpointError(f"{path}: bucket {bucket!r} is not one of 0 to {buckets - 1}")
    if isinstance(weight, bool) or not isinstance(weight, int) or weight < 0:
        raise CheckpointError(f"{path}[{bucket}]: {weight!r} is no weight")
    return number, weight


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CheckpointError(f"totalSamplesCount: {value!r} is no count")
    return value


def _time(text: Any, path: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error
