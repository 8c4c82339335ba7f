"""All usage that the recommender knows of: pods, their containers, and the aggregates they feed."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubescene.api.selectors.label_selectors import LabelSelector
from kubescene.autoscalers.vertical.aggregates import Aggregate
from kubescene.autoscalers.vertical.options import HOUR, RecommenderOptions
from kubescene.autoscalers.vertical.peaks import ContainerUsage

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
