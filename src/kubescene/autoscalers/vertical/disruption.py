"""How many pods of one controller the updater may take down in a loop."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubescene.autoscalers.vertical.objects import IN_PLACE_MODES, VerticalPodAutoscaler
from kubescene.autoscalers.vertical.options import UpdaterOptions
from kubescene.types import JsonObject

COUNTED = ("ReplicationController", "ReplicaSet", "StatefulSet", "DaemonSet")


@dataclass(slots=True)
class Group:
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
) -> dict[str, Group]:
    """The group of each pod, by the pod's name; pods that must not be touched have none.

    ``replicas`` says by controller how many pods it should have: ``spec.replicas``, of a DaemonSet
    the number ready. A Job should have the pods that it has, a kind that is not built in none at
    all. The pods of a built-in controller that is not named or should have none are not touched,
    and neither are those of one that has fewer than the minimum.
    """
    by_controller: dict[tuple[str, str], list[JsonObject]] = {}
    for pod in live:
        by_controller.setdefault(controller_of(pod), []).append(pod)
    found: dict[str, Group] = {}
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
) -> Group | None:
    policy = vpa.spec.update_policy
    own = policy.min_replicas if policy else None
    required = options.min_replicas if own is None else own
    in_place = vpa.update_mode in IN_PLACE_MODES
    is_below = len(members) < required
    if is_below and not (in_place and options.in_place_skip_disruption_budget):
        return None
    return Group(
        configured,
        running=len(members) - sum(map(is_pending, members)),
        tolerance=int(float(configured) * options.eviction_tolerance),
        is_below_minimum=is_below,
    )
