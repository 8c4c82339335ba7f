"""Which nodes the pods of a DaemonSet belong to."""

from collections.abc import Sequence

from msgspec import Struct

from kubescene.api.selectors.node_selectors import NodeSelector, node_selector
from kubescene.api.selectors.tolerations import find_untolerated
from kubescene.types import JsonObject

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_BY_HOST = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class DaemonNode(Struct, frozen=True):
    """What matters of a node."""

    name: str
    labels: dict[str, str]
    taints: Sequence[JsonObject]

    def __deepcopy__(self, memo: object) -> "DaemonNode":
        return self  # nothing of it ever changes


def daemon_tolerations(spec: JsonObject) -> list[JsonObject]:
    """The tolerations of a daemon pod: those of its template, and of what it can live with."""
    tolerations = list(spec.get("tolerations") or ())
    wanted = (*_TOLERATED, _TOLERATED_BY_HOST) if spec.get("hostNetwork") else _TOLERATED
    for key, effect in wanted:
        new = {"key": key, "operator": "Exists", "effect": effect}
        like = [
            at
            for at, each in enumerate(tolerations)
            if all((each.get(name) or "") == value for name, value in new.items())
            and not each.get("value")
        ]
        if like:
            tolerations[like[0]] = new
        else:
            tolerations.append(new)
    return tolerations


class DaemonFitness:
    """Which nodes the pods of a template belong to."""

    def __init__(self, spec: JsonObject) -> None:
        self._node: str = spec.get("nodeName") or ""
        self._labels: dict[str, str] = spec.get("nodeSelector") or {}
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        required = affinity.get(REQUIRED)
        self._required: NodeSelector | None = None if required is None else node_selector(required)
        self._tolerations = daemon_tolerations(spec)

    def of(self, node: DaemonNode | None) -> tuple[bool, bool]:
        """Whether a pod should run on a node, and whether one that does may go on."""
        if node is None or (self._node and self._node != node.name):
            return False, False
        if not self._labels.items() <= node.labels.items():
            return False, False
        if self._required is not None and not self._required.matches(node.labels, node.name):
            return False, False
        if not node.taints or find_untolerated(node.taints, self._tolerations) is None:
            return True, True
        driven_out = find_untolerated(node.taints, self._tolerations, ("NoExecute",))
        return False, driven_out is None
