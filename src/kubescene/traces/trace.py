"""What a trace holds, and what it asks of its nodes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kubescene.durations import go_duration

CPU, MEMORY, GPU = "cpu", "memory", "nvidia.com/gpu"
NEVER_RAN = "it never got a place there: nothing says how long it would have run"


@dataclass(frozen=True, slots=True)
class TracedPod:
    """A pod that came at an instant of the trace and ran for so long, in nanoseconds."""

    at: int
    run_time: int
    cpu: int
    memory: int
    group: str
    """The first part of its name. Pods of a group are alike but for the members above."""
    others: tuple[tuple[str, int], ...] = ()
    """What else it asks for, by resource."""
    node_labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels that its node must have, each with one of these values."""

    @property
    def asks(self) -> dict[str, int]:
        return {CPU: self.cpu, MEMORY: self.memory, **dict(self.others)}


@dataclass(frozen=True, slots=True)
class TracedNodes:
    """So many nodes that are alike; ``name`` is the first part of theirs."""

    name: str
    number: int
    offers: Mapping[str, int]
    """By resource: CPU in thousandths, memory in bytes, others in whole numbers."""
    labels: Mapping[str, str] = field(default_factory=dict)

    def can_hold(self, pod: TracedPod) -> bool:
        """Whether the pod finds a place on one of them while nobody else is there."""
        return all(
            amount <= self.offers.get(resource, 0) for resource, amount in pod.asks.items()
        ) and all(self.labels.get(label) in values for label, values in pod.node_labels)


@dataclass(slots=True)
class WorkloadTrace:
    """Pods in the order of their coming, and the nodes if the trace has some.

    ``left_out`` counts what is not in it, by reason; ``remarks`` say what it does not tell.
    """

    pods: Sequence[TracedPod]
    nodes: Sequence[TracedNodes] = ()
    left_out: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)

    @property
    def end(self) -> int:
        """When the last pod ends if all find a place at once."""
        return max(pod.at + pod.run_time for pod in self.pods)


# -- what it asks of its nodes -------------------------------------------------------------------


def offered_load(trace: WorkloadTrace) -> Iterator[str]:
    """What the pods ask of all nodes together if each finds a place at once, in sentences."""
    capacity: Counter[str] = Counter()
    for nodes in trace.nodes:
        for resource, amount in nodes.offers.items():
            capacity[resource] += amount * nodes.number
    begin = min(pod.at for pod in trace.pods)
    span = trace.end - begin
    asked = dict.fromkeys(resource for pod in trace.pods for resource in pod.asks)
    for resource in asked:
        room = capacity[resource]
        mean, peak = _mean_and_peak(trace.pods, resource, span)
        if room and peak:
            yield (
                f"offered load of {resource}: {_percent(mean, room)} of the nodes in the mean of "
                f"{go_duration(span)}, {_percent(peak, room)} at the most"
            )
    kinds = Counter(
        (pod.cpu, pod.memory, pod.others, pod.node_labels)
        for pod in trace.pods
        if not any(nodes.can_hold(pod) for nodes in trace.nodes)
    )
    if kinds:
        yield f"{kinds.total()} pods of {len(kinds)} sizes fit on none of these nodes: they wait"


def _mean_and_peak(pods: Sequence[TracedPod], resource: str, span: int) -> tuple[int, int]:
    """Where one ends as another begins, the first one makes room."""
    changes: Counter[int] = Counter()
    area = 0
    for pod in pods:
        amount = pod.asks.get(resource, 0)
        area += amount * pod.run_time
        if pod.run_time:
            changes[pod.at] += amount
            changes[pod.at + pod.run_time] -= amount
    level = peak = 0
    for instant in sorted(changes):
        level += changes[instant]
        peak = max(peak, level)
    return (area // span if span else peak), peak


def _percent(amount: int, room: int) -> str:
    tenths = amount * 1000 // room
    return f"{tenths // 10}.{tenths % 10} %"
