"""The short account of a run: steps, placements, node use, and who is still waiting and why."""

from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from kubescene.api.resource_requests import node_allocatable, pod_requests
from kubescene.results.reading import Event, Object, PodResult, read_events
from kubescene.version import __version__

PLACEMENTS_KEPT = 1000
"""The newest are kept; the timeline has them all."""

PodKey = tuple[str, str]


@dataclass(slots=True)
class StepSummary:
    """One major step."""

    major: int
    minor_steps: int = 0
    operations: int = 0
    controller_writes: int = 0
    scheduled: int = 0
    failed_attempts: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """One pod on its node: the winning score, and the best of the others."""

    pod: str
    step: str
    node: str
    candidates: int
    feasible: int
    score: int | None = None
    runner_up: str = ""
    runner_up_score: int | None = None


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that no node took, with the message of its last attempt."""

    pod: str
    attempts: int
    message: str


@dataclass(slots=True)
class NodeUse:
    """What a node offers and what the pods on it ask for, at the end."""

    name: str
    pods: int = 0
    allocatable: dict[str, int] = field(default_factory=dict)
    requested: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Summary:
    """Everything the terminal and ``summary.json`` show. Holds no wall-clock time."""

    scenario: str = ""
    phase: str = ""
    message: str = ""
    version: str = __version__
    started: str = ""
    ended: str = ""
    events: int = 0
    steps: list[StepSummary] = field(default_factory=list)
    nodes: list[NodeUse] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    placements_total: int = 0
    pending: list[PendingPod] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarize(lines: Iterable[bytes], *, scenario: str, phase: str, message: str) -> Summary:
    """Fold the encoded timeline into its summary."""
    fold = _Fold()
    for event in read_events(lines):
        fold.add(event)
    summary = fold.finish()
    summary.scenario, summary.phase, summary.message = scenario, phase, message
    return summary


class _Fold:
    """The state of the world as far as the summary needs it, event by event."""

    def __init__(self) -> None:
        self._summary = Summary()
        self._steps: dict[int, StepSummary] = {}
        self._nodes: dict[str, Object] = {}
        self._bound: dict[PodKey, tuple[str, dict[str, int]]] = {}
        self._waiting: dict[PodKey, PendingPod] = {}
        self._placements: deque[Placement] = deque(maxlen=PLACEMENTS_KEPT)

    def add(self, event: Event) -> None:
        summary = self._summary
        summary.events += 1
        summary.started = summary.started or event.time
        summary.ended = event.time
        major = event.step.major
        step = self._steps.get(major) or self._steps.setdefault(major, StepSummary(major))
        step.minor_steps = max(step.minor_steps, event.step.minor)
        self._count(event, step)
        if event.scheduled is not None:
            self._scheduled(event, event.scheduled)
        elif event.unscheduled is not None:
            self._unscheduled(event.unscheduled)
        elif event.delete is not None:
            target = event.delete.operation
            self._gone(target.type_meta.kind, target.object_meta.namespace, target.object_meta.name)
        elif (changed := event.create or event.patch) is not None:
            self._changed(changed.result)

    def finish(self) -> Summary:
        summary = self._summary
        summary.steps = [self._steps[major] for major in sorted(self._steps)]
        uses = {
            name: NodeUse(
                name, allocatable=known_resources(node_allocatable({"status": node.status}))
            )
            for name, node in self._nodes.items()
        }
        for node, requests in self._bound.values():
            if (use := uses.get(node)) is not None:
                use.pods += 1
                for resource, amount in requests.items():
                    use.requested[resource] = use.requested.get(resource, 0) + amount
        summary.placements = list(self._placements)
        summary.nodes = [uses[name] for name in sorted(uses)]
        summary.pending = [self._waiting[key] for key in sorted(self._waiting)]
        return summary

    def _count(self, event: Event, step: StepSummary) -> None:
        if event.scheduled is not None:
            step.scheduled += 1
        elif event.unscheduled is not None:
            step.failed_attempts += 1
        elif event.actor == "scenario-engine":
            step.operations += 1
        else:
            step.controller_writes += 1
        step.deleted += event.delete is not None

    def _scheduled(self, event: Event, result: PodResult) -> None:
        key = pod_key(result.pod)
        self._waiting.pop(key, None)
        self._assigned(result.pod, result.bound_to)
        self._summary.placements_total += 1
        self._placements.append(placement(event, result))

    def _unscheduled(self, result: PodResult) -> None:
        key = pod_key(result.pod)
        attempts = self._waiting[key].attempts if key in self._waiting else 0
        self._waiting[key] = PendingPod("/".join(key), attempts + 1, result.message)

    def _gone(self, kind: str, namespace: str, name: str) -> None:
        if kind == "Node":
            self._nodes.pop(name, None)
        elif kind == "Pod":
            key = (namespace or "default", name)
            self._bound.pop(key, None)
            self._waiting.pop(key, None)

    def _changed(self, result: Object) -> None:
        if result.kind == "Node":
            self._nodes[result.metadata.name] = result
        elif result.kind == "Pod" and not result.metadata.deleted and result.spec.get("nodeName"):
            self._assigned(result, result.spec["nodeName"])

    def _assigned(self, pod: Object, node: str) -> None:
        key = pod_key(pod)
        if key not in self._bound:
            requests = known_resources(pod_requests({"spec": pod.spec}))
            self._bound[key] = (node, requests)


def pod_key(pod: Object) -> PodKey:
    return (pod.metadata.namespace, pod.metadata.name)


def known_resources(amounts: Any) -> dict[str, int]:
    return {name: int(amount) for name, amount in sorted(amounts.items()) if amount}


def placement(event: Event, result: PodResult) -> Placement:
    """The last attempt of a pod that was bound, with the two best totals if it was explained."""
    last = result.schedule_result[-1]
    totals = {
        node: sum(score.final for score in plugins.values())
        for node, plugins in last.plugins.score.items()
    }
    others = [(total, node) for node, total in totals.items() if node != result.bound_to]
    best = max(others, key=lambda pair: pair[0], default=None)
    cut = last.cut
    return Placement(
        pod="/".join(pod_key(result.pod)),
        step=str(event.step),
        node=result.bound_to,
        candidates=cut.candidate_nodes if cut else len(last.candidates),
        feasible=cut.feasible_nodes if cut else len(last.feasible),
        score=totals.get(result.bound_to),
        runner_up=best[1] if best else "",
        runner_up_score=best[0] if best else None,
    )
