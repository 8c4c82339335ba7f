"""The world that a workload is replayed in, and its time.

As in scheduler_perf nobody plays the kubelet: bound pods stay pending, and one that is deleted with
a grace period stays. Only the scheduler and the controllers that scheduler_perf runs as well are
here.

Time is virtual, and deciding takes none. So where something goes on in the background
(`Background`: churn, slow deletions), the creation of pods is spread over time, `CREATED_PER_S` of
them in a second: about what a real scheduler keeps up with.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from kubescene.actors import Actor
from kubescene.api.kinds import POD
from kubescene.api.options import DeleteOptions, WriteOptions
from kubescene.api.records import Record
from kubescene.api.records.templates import Blueprint
from kubescene.api.scheme import GroupResource
from kubescene.api.selectors import LabelSelector
from kubescene.benchmarks.measurements import Measurement, begin
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import MINUTE, SECOND
from kubescene.cluster import SCHEDULER, ClusterOptions, ClusterWorld
from kubescene.errors import ConflictError, NotFoundError, WorkloadError
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler import SchedulerOptions
from kubescene.timeline import Instrument, TimelineLog, TimelineRecorder
from kubescene.types import JsonObject

CONTROLLERS = (
    "namespace",
    "persistentvolume-binder",
    "resourceclaim",
    "garbage-collector",
    SCHEDULER,
)
CREATED_PER_S = 500
LONGEST_WAIT = 10 * MINUTE
"""In virtual time: how long scheduler_perf waits for pods."""

PODS = GroupResource("", "pods")
NODES = GroupResource("", "nodes")
_USER = Actor("scheduler-perf")
_AT_ONCE = DeleteOptions(grace_period_s=0)


class Background(Protocol):
    """Something that goes on beside the operations; ``due`` is when it acts next."""

    due: int

    def act(self) -> bool:
        """Do what is due and set ``due`` anew; False if that was the last time."""
        ...


class Collecting(Instrument):
    """Counts the pods that get a node while somebody measures."""

    def __init__(
        self, name: str, namespaces: tuple[str, ...], labels: LabelSelector | None
    ) -> None:
        self.name = name
        self.pods = 0
        self._namespaces = frozenset(namespaces)
        self._labels = labels
        self._watch = begin()

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        pod = attempt.pod
        if attempt.node and pod.namespace in self._namespaces:
            self.pods += self._labels is None or self._labels.matches(pod.labels)

    def finish(self) -> Measurement:
        wall_s, cpu_s = self._watch.read()
        return Measurement(self.name, self.pods, wall_s, cpu_s)


class ReplayStage:
    """A cluster, what goes on in its background, and what is measured."""

    def __init__(self, scheduler: SchedulerOptions, *onlookers: Instrument) -> None:
        self.cluster = ClusterWorld(ClusterOptions(scheduler=scheduler))
        self.client = self.cluster.client(_USER)
        self.log = TimelineLog()
        self.cluster.observe(TimelineRecorder(self.cluster.clock, self.log), *onlookers)
        self.cluster.start(CONTROLLERS)
        self.collecting: Collecting | None = None
        self.measurements: list[Measurement] = []
        self.remembered: Counter[str] = Counter()
        """Pods by namespace that a barrier has to wait for."""
        self.next_node = 0
        self._named: Counter[tuple[str, str]] = Counter()
        self._backgrounds: list[Background] = []
        self._priorities: set[int] = set()

    # -- objects ---------------------------------------------------------------------------

    def create(self, obj: JsonObject, blueprint: Blueprint | None = None) -> Record:
        return self.client.create(obj, options=WriteOptions(blueprint=blueprint))

    def ensure_namespace(self, name: str) -> None:
        if self.cluster.store.get(GroupResource("", "namespaces"), "", name) is None:
            metadata = {"name": name}
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def name_for(self, metadata: JsonObject, default: str, namespace: str = "") -> str:
        """The name of a new object: its own, or one made of its prefix and a number."""
        if metadata.get("name"):
            return str(metadata["name"])
        prefix = str(metadata.get("generateName") or default)
        self._named[namespace, prefix] += 1
        return f"{prefix}{self._named[namespace, prefix]:05}"

    def priority_class(self, priority: int) -> str:
        """The class that stands for a bare priority: here, pods get theirs from a class."""
        name = f"scheduler-perf-{priority}".replace("--", "-minus-")
        if priority not in self._priorities:
            self._priorities.add(priority)
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
            self.create({**kind, "metadata": {"name": name}, "value": priority})
        return name

    def delete_pod(self, record: Record, *, at_once: bool = False) -> None:
        ref = ObjectRef(POD, record.name, record.namespace)
        options = _AT_ONCE if at_once else DeleteOptions()
        try:
            self.client.delete(ref, options=options)
        except (NotFoundError, ConflictError):
            return

    def pods(self, namespace: str, labels: LabelSelector | None = None) -> list[Record]:
        found = self.cluster.store.list(PODS, namespace)
        return [each for each in found if labels is None or labels.matches(each.labels)]

    # -- time ------------------------------------------------------------------------------

    @property
    def now(self) -> int:
        return self.cluster.clock.now()

    @property
    def is_busy(self) -> bool:
        """Whether something goes on in the background."""
        return bool(self._backgrounds)

    def add(self, background: Background) -> None:
        self._backgrounds.append(background)

    def settle(self) -> None:
        self.cluster.settle()

    def advance(self, duration: int) -> None:
        """Let time pass, and the backgrounds act when they are due."""
        end = self.now + duration
        while self._backgrounds and (first := min(self._backgrounds, key=_due)).due <= end:
            self.cluster.advance_until(max(self.now, first.due))
            if not first.act():
                self._backgrounds.remove(first)
            self.settle()
        self.cluster.advance_until(end)

    def wait(self, is_done: Callable[[], bool], what: Callable[[], str]) -> None:
        """Let time pass until something is so; a `WorkloadError` if that takes too long."""
        self.settle()
        end = self.now + LONGEST_WAIT
        while not is_done():
            if self.now >= end:
                raise WorkloadError(f"{what()} after 10 minutes (virtual time)")
            self.advance(SECOND)

    # -- measuring -------------------------------------------------------------------------

    def start_collecting(
        self, name: str, namespaces: tuple[str, ...], labels: LabelSelector | None = None
    ) -> None:
        if self.collecting is not None:
            raise WorkloadError(f"metrics are collected already, as {self.collecting.name!r}")
        self.collecting = Collecting(name, namespaces, labels)
        self.cluster.observe(self.collecting)

    def stop_collecting(self) -> None:
        if self.collecting is None:
            raise WorkloadError("no metrics are collected: startCollectingMetrics comes first")
        self.measurements.append(self.collecting.finish())
        self.cluster.instruments.detach(self.collecting)
        self.collecting = None


def _due(background: Background) -> int:
    return background.due
