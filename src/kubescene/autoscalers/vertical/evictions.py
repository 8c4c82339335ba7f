"""Whether the updater may take a pod down, or resize it in place, and when it gives up resizing.

Of one controller only so many pods may be taken down in a loop. Mode InPlaceOrRecreate evicts a pod
whose resize does not come about: at once where it is infeasible or failed, after five minutes where
the node has deferred it, after an hour in progress. Mode InPlace never evicts: it remembers what
was infeasible (`ResizeAttempts`), and tries again when less is recommended.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from kubescene.autoscalers.vertical.objects import (
    IN_PLACE,
    IN_PLACE_MODES,
    ContainerRecommendation,
    ResourceList,
    VerticalPodAutoscaler,
)
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.clock import MINUTE
from kubescene.types import JsonObject

Recommended = Sequence[ContainerRecommendation]


@dataclass(slots=True)
class ResizeAttempts:
    """``first_seen``: since when each pod (by name) has been seen with a resize on its way.

    ``infeasible``: what was recommended when a resize (by the pod's uid) turned out not to be
    feasible. Mode InPlace tries again only when something gets lower.
    """

    first_seen: dict[str, int] = field(default_factory=dict)
    infeasible: dict[str, Recommended] = field(default_factory=dict)

    def since(self, pod: JsonObject, now: int) -> int:
        return self.first_seen.setdefault(pod["metadata"]["name"], now)

    def failed_with(self, pod: JsonObject, recommended: Recommended) -> None:
        self.infeasible[uid(pod)] = recommended

    def rules_out(self, pod: JsonObject, recommended: Recommended) -> bool:
        """Whether a resize failed and nothing that is recommended now is lower."""
        tried = self.infeasible.get(uid(pod))
        return tried is not None and not is_lower(recommended, tried)

    def keep_only(self, live: Iterable[JsonObject]) -> None:
        """Forget what was not feasible for pods that are gone."""
        left = {uid(pod) for pod in live}
        self.infeasible = {one: each for one, each in self.infeasible.items() if one in left}


def uid(pod: JsonObject) -> str:
    metadata = pod["metadata"]
    return str(metadata.get("uid") or metadata["name"])


def is_lower(recommended: Recommended, than: Recommended) -> bool:
    """Whether some target of some container is lower than it was."""
    before = {each.container_name: each.target or ResourceList() for each in than}
    return any(
        amount < before[each.container_name][resource]
        for each in recommended
        if each.container_name in before
        for resource, amount in (each.target or {}).items()
        if resource in before[each.container_name]
    )


COUNTED = ("ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet")


@dataclass(slots=True)
class ControllerPods:
    """The pods of one controller. ``configured`` is how many it should have."""

    configured: int
    running: int
    tolerance: int
    is_below_minimum: bool = False
    evicted: int = 0
    resized: int = 0

    @property
    def can_lose_one(self) -> bool:
        """More pods are alive than have to be; or all are, none may be missing, none is yet."""
        alive = self.running - (self.evicted + self.resized)
        untouched = not (self.evicted or self.resized)
        return alive > self.configured - self.tolerance or (
            self.configured == self.running and self.tolerance == 0 and untouched
        )


def controller_of(pod: JsonObject) -> tuple[str, str]:
    """Kind and name of the pod's controller; two empty texts where it has none."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return owner.get("kind", ""), owner.get("name", "")
    return "", ""


def groups(
    live: Iterable[JsonObject],
    replicas: Mapping[str, int],
    vpa: VerticalPodAutoscaler,
    options: UpdaterOptions,
) -> dict[str, ControllerPods]:
    """The group of each pod, by the pod's name; pods that must not be touched have none.

    ``replicas`` says by controller how many pods it should have: ``spec.replicas``, of a DaemonSet
    the number ready. A Job should have the pods that it has, a kind that is not built in none at
    all. The pods of a built-in controller that is not named or should have none are not touched,
    and neither are those of one that has fewer than the minimum.
    """
    by_controller: dict[tuple[str, str], list[JsonObject]] = {}
    for pod in live:
        by_controller.setdefault(controller_of(pod), []).append(pod)
    found: dict[str, ControllerPods] = {}
    for (kind, name), members in by_controller.items():
        configured = len(members) if kind == "Job" else replicas.get(name, 0)
        group = _group(members, configured, vpa, options)
        if group is not None and (configured or kind not in COUNTED):
            found |= {pod["metadata"]["name"]: group for pod in members}
    return found


def is_managed(pod: JsonObject) -> bool:
    """Whether the updater looks at a pod: it has a controller and is not being deleted."""
    return controller_of(pod) != ("", "") and not pod["metadata"].get("deletionTimestamp")


def is_pending(pod: JsonObject) -> bool:
    return (pod.get("status") or {}).get("phase") == "Pending"


def _group(
    members: list[JsonObject], configured: int, vpa: VerticalPodAutoscaler, options: UpdaterOptions
) -> ControllerPods | None:
    policy = vpa.spec.update_policy
    own = policy.min_replicas if policy else None
    required = options.min_replicas if own is None else own
    in_place = vpa.update_mode in IN_PLACE_MODES
    is_below = len(members) < required
    if is_below and not (in_place and options.in_place_skip_disruption_budget):
        return None
    return ControllerPods(
        configured,
        running=len(members) - sum(map(is_pending, members)),
        tolerance=int(float(configured) * options.eviction_tolerance),
        is_below_minimum=is_below,
    )


DEFERRED_TIMEOUT = 5 * MINUTE
IN_PROGRESS_TIMEOUT = 60 * MINUTE

_PENDING = "PodResizePending"
_IN_PROGRESS = "PodResizeInProgress"


class EvictionDecision(Enum):
    """What the updater may do with a pod in place.

    ``INFEASIBLE`` and ``RULED_OUT`` are of mode InPlace: the node refused, so this recommendation
    is the last to be tried; it was tried already.
    """

    APPROVED = "approved"
    DEFERRED = "deferred"
    EVICT = "evict"
    INFEASIBLE = "infeasible"
    RULED_OUT = "ruled out"


def decide_resize(
    pod: JsonObject,
    group: ControllerPods | None,
    vpa: VerticalPodAutoscaler,
    now: int,
    options: UpdaterOptions,
    attempts: ResizeAttempts,
) -> EvictionDecision:
    """Resize now, later, not at all, or evict because a resize does not come about."""
    if group is None or is_pending(pod) or vpa.recommendations is None:
        return EvictionDecision.DEFERRED
    in_place = vpa.update_mode == IN_PLACE
    if in_place and attempts.rules_out(pod, vpa.recommendations):
        return EvictionDecision.RULED_OUT
    if is_resizing(pod):
        return _waiting(pod) if in_place else _giving_up(pod, group, now, attempts)
    if options.in_place_skip_disruption_budget and _restarts_nothing(pod):
        return EvictionDecision.APPROVED
    return EvictionDecision.APPROVED if group.can_lose_one else EvictionDecision.DEFERRED


def is_resizing(pod: JsonObject) -> bool:
    """By the first of the two conditions that the pod has."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") in (_PENDING, _IN_PROGRESS):
            return bool(condition.get("status") == "True")
    return False


def may_evict(pod: JsonObject, group: ControllerPods, now: int, attempts: ResizeAttempts) -> bool:
    """Whether a resize has been waited for long enough and the budget allows an eviction."""
    since = attempts.since(pod, now)
    if not group.can_lose_one:
        return False
    pending = _condition(pod, _PENDING)
    if pending is not None:
        is_deferred = pending.get("reason") == "Deferred"
        return not is_deferred or now - since > DEFERRED_TIMEOUT
    progress = _condition(pod, _IN_PROGRESS)
    if progress is None:
        return False
    goes_on = not progress.get("reason") and not progress.get("message")
    return not goes_on or now - since > IN_PROGRESS_TIMEOUT


def _giving_up(
    pod: JsonObject, group: ControllerPods, now: int, attempts: ResizeAttempts
) -> EvictionDecision:
    return (
        EvictionDecision.EVICT
        if may_evict(pod, group, now, attempts)
        else EvictionDecision.DEFERRED
    )


def _waiting(pod: JsonObject) -> EvictionDecision:
    """Mode InPlace: only what the node calls infeasible, or an error, ends the waiting."""
    pending, progress = _condition(pod, _PENDING), _condition(pod, _IN_PROGRESS)
    if pending is not None:
        failed = pending.get("reason") == "Infeasible"
    else:
        failed = progress is not None and progress.get("reason") == "Error"
    return EvictionDecision.INFEASIBLE if failed else EvictionDecision.DEFERRED


def _condition(pod: JsonObject, kind: str) -> JsonObject | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), None)


def _restarts_nothing(pod: JsonObject) -> bool:
    """Whether no container has a resize policy that restarts it."""
    return all(
        policy.get("restartPolicy") != "RestartContainer"
        for container in (pod.get("spec") or {}).get("containers") or ()
        for policy in container.get("resizePolicy") or ()
    )
