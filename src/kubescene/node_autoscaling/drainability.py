"""Whether the pods of a node may be moved: rules, budgets, and what a drain comes to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from kubescene.api.disruption_budgets import budget_selector
from kubescene.api.selectors import LabelSelector
from kubescene.node_autoscaling.flags import Flags
from kubescene.node_autoscaling.pods import PodController, SeenPod
from kubescene.types import JsonObject

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SYSTEM = "kube-system"
REPLICATED = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})

FindController: TypeAlias = Callable[[str, str, str], JsonObject | None]
"""The object of a kind, namespace and name, if it exists."""


class _Budget(Struct):
    """How many pods may be disrupted."""

    namespace: str
    selector: LabelSelector
    allowed: int

    def covers(self, pod: SeenPod) -> bool:
        return pod.namespace == self.namespace and self.selector.matches(pod.info.labels)


class Budgets:
    """What is left of PodDisruptionBudgets while removals are planned."""

    def __init__(self, budgets: Iterable[JsonObject] = ()) -> None:
        self._budgets = [
            _Budget(
                each["metadata"]["namespace"],
                budget_selector(each),
                int((each.get("status") or {}).get("disruptionsAllowed", 0)),
            )
            for each in budgets
        ]

    def covering(self, pod: SeenPod) -> list[int]:
        """How much is left in each budget that covers a pod."""
        return [each.allowed for each in self._budgets if each.covers(pod)]

    def allow(self, pods: Sequence[SeenPod]) -> bool:
        """Whether all of these may go at once, beside what is planned already."""
        for each in self._budgets:
            count = sum(each.covers(pod) for pod in pods)
            if count and each.allowed < count:
                return False
        return True

    def take(self, pods: Sequence[SeenPod]) -> None:
        for each in self._budgets:
            each.allowed -= sum(each.covers(pod) for pod in pods)


class BlockingPod(NamedTuple):
    """A pod that must stay, why, and the same in words."""

    pod: SeenPod
    reason: str
    message: str


class Drainability(Struct):
    """What has to become of the pods of a node before it can go."""

    moved: list[SeenPod] = field(default_factory=list)
    daemons: list[SeenPod] = field(default_factory=list)
    awaited: list[SeenPod] = field(default_factory=list)
    """Pods that are left to complete."""
    blocking: BlockingPod | None = None


class _Outcome(Enum):
    UNDECIDED = auto()
    OK = auto()
    SKIP = auto()
    WAIT = auto()


class _Blocked(NamedTuple):
    reason: str
    message: str


_Verdict: TypeAlias = _Outcome | _Blocked


class DrainRules(Struct):
    """The rules in order; the first that decides, decides.

    Without ``controllers``, nobody asks whether those of the pods exist.
    """

    flags: Flags
    budgets: Budgets
    controllers: FindController | None
    now: int

    def drain(self, pods: Iterable[SeenPod]) -> Drainability:
        found = Drainability()
        for pod in pods:
            verdict = self._verdict(pod)
            if isinstance(verdict, _Blocked):
                found.blocking = BlockingPod(pod, verdict.reason, verdict.message)
                return found
            if verdict is _Outcome.WAIT:
                found.awaited.append(pod)
            elif verdict is not _Outcome.SKIP:
                (found.daemons if pod.is_daemon else found.moved).append(pod)
        return found

    def _verdict(self, pod: SeenPod) -> _Verdict:
        rules = (
            self._gone_anyway,
            self._controller,
            self._declared,
            self._replicated,
            self._system,
            self._kept,
            self._budget,
        )
        for rule in rules:
            verdict = rule(pod)
            if verdict is not _Outcome.UNDECIDED:
                return verdict
        return _Outcome.UNDECIDED

    def _gone_anyway(self, pod: SeenPod) -> _Verdict:
        if pod.is_mirror or pod.has_lingered(self.now):
            return _Outcome.SKIP
        return _Outcome.UNDECIDED

    def _controller(self, pod: SeenPod) -> _Verdict:
        owner = pod.controller
        if owner is None or self.controllers is None:
            return _Outcome.UNDECIDED
        if not self.flags.skip_nodes_with_custom_controller_pods:
            return _Outcome.UNDECIDED
        if not _is_looked_up(owner, pod):
            return _Outcome.UNDECIDED
        found = self.controllers(owner.kind, pod.namespace, owner.name)
        is_counted = owner.kind in ("ReplicaSet", "ReplicationController")
        name = "replication controller" if is_counted else owner.kind.lower()
        if found is None:
            return _Blocked("ControllerNotFound", f"{name} for {pod.key} is not available")
        replicas = (found.get("spec") or {}).get("replicas")
        if is_counted and replicas is not None and replicas < self.flags.min_replica_count:
            least = f"{replicas} min: {self.flags.min_replica_count}"
            message = f"{name} for {pod.key} has too few replicas spec: {least}"
            return _Blocked("MinReplicasReached", message)
        return _Outcome.UNDECIDED

    def _declared(self, pod: SeenPod) -> _Verdict:
        """Daemon pods, finished ones, and those whose author says so."""
        if pod.is_daemon or pod.annotations.get(SAFE_TO_EVICT) == "true" or _is_finished(pod):
            return _Outcome.OK
        if pod.annotations.get(SAFE_TO_EVICT) == "on-completion":
            return _Outcome.WAIT
        return _Outcome.UNDECIDED

    def _replicated(self, pod: SeenPod) -> _Verdict:
        owner = pod.controller
        strict = self.flags.skip_nodes_with_custom_controller_pods
        if owner is None or (strict and owner.kind not in REPLICATED):
            return _Blocked("NotReplicated", f"{pod.key} is not replicated")
        return _Outcome.UNDECIDED

    def _system(self, pod: SeenPod) -> _Verdict:
        if not self.flags.skip_nodes_with_system_pods or pod.namespace != SYSTEM:
            return _Outcome.UNDECIDED
        if self.budgets.covering(pod):
            return _Outcome.UNDECIDED
        timeout = self.flags.blocking_system_pod_distruption_timeout
        if pod.created and self.now > pod.created + timeout:
            return _Outcome.OK
        message = "non-daemonset, non-mirrored, non-pdb-assigned kube-system pod present"
        return _Blocked("UnmovableKubeSystemPod", f"{message}: {pod.name}")

    def _kept(self, pod: SeenPod) -> _Verdict:
        if pod.annotations.get(SAFE_TO_EVICT) == "false":
            message = f"pod annotated as not safe to evict present: {pod.name}"
            return _Blocked("NotSafeToEvictAnnotation", message)
        if self.flags.skip_nodes_with_local_storage and _has_local_storage(pod):
            message = f"pod with local storage present: {pod.name}"
            return _Blocked("LocalStorageRequested", message)
        return _Outcome.UNDECIDED

    def _budget(self, pod: SeenPod) -> _Verdict:
        if any(left < 1 for left in self.budgets.covering(pod)):
            message = f"not enough pod disruption budget to move {pod.key}"
            return _Blocked("NotEnoughPdb", message)
        return _Outcome.UNDECIDED


def _is_looked_up(owner: PodController, pod: SeenPod) -> bool:
    if pod.is_daemon:
        return owner.kind == "DaemonSet" and owner.api_version.startswith("apps/")
    if owner.kind == "StatefulSet":
        return owner.api_version.startswith("apps/")
    return owner.kind in REPLICATED


def _is_finished(pod: SeenPod) -> bool:
    phase = (pod.object.get("status") or {}).get("phase")
    policy = pod.object["spec"].get("restartPolicy")
    return phase == "Failed" or (phase == "Succeeded" and policy in ("Never", "OnFailure"))


def _has_local_storage(pod: SeenPod) -> bool:
    safe = set((pod.annotations.get(SAFE_VOLUMES) or "").split(","))
    volumes: Sequence[Mapping[str, JsonObject]] = pod.object["spec"].get("volumes") or ()
    return any(_is_local(each) and each["name"] not in safe for each in volumes)


def _is_local(volume: Mapping[str, JsonObject]) -> bool:
    if volume.get("hostPath") is not None:
        return True
    return volume.get("emptyDir") is not None and volume["emptyDir"].get("medium") != "Memory"
