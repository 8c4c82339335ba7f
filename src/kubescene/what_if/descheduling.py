"""Which pods a descheduler would evict: its policies, over one look at a cluster.

A node's load is what its pods ask for of what it offers: cpu, memory, and pods. Whom the default
evictor never touches is never named: pods of DaemonSets, static ones, those that nobody makes
again, with data on their node, or critical to the system.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias

from kubescene.api.resource_requests import CPU, MEMORY, PODS, pod_requests, qos_class
from kubescene.api.selectors import find_untolerated, node_selector
from kubescene.errors import ConfigurationError
from kubescene.types import JsonObject
from kubescene.what_if.selecting import labels_of
from kubescene.what_if.worlds import NodeLoad, controller_of, is_daemon, is_live, key_of, node_of

COUNTED = (CPU, MEMORY, PODS)
SYSTEM_CRITICAL = 2_000_000_000
MIRROR = "kubernetes.io/config.mirror"
EVICTABLE = "descheduler.alpha.kubernetes.io/evict"
QOS = ("BestEffort", "Burstable", "Guaranteed")


class Thresholds(NamedTuple):
    """A node with less than ``low`` of everything is underused, one with more than ``high`` of
    anything overused."""

    low: float = 0.2
    high: float = 0.5


class Sight(NamedTuple):
    """A cluster as a policy looks at it."""

    nodes: Mapping[str, JsonObject]
    loads: Mapping[str, NodeLoad]
    pods: Mapping[str, Sequence[JsonObject]]
    """Live pods by node."""
    thresholds: Thresholds

    def is_open(self, name: str) -> bool:
        """Whether the scheduler may put pods there."""
        return not (self.nodes[name].get("spec") or {}).get("unschedulable")


class ChosenPod(NamedTuple):
    """A pod that is to go."""

    pod: JsonObject
    why: str


Policy: TypeAlias = Callable[[Sight], Iterator[ChosenPod]]


def is_evictable(pod: JsonObject) -> bool:
    """As the default evictor has it."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    if not is_live(pod) or is_daemon(pod) or MIRROR in annotations:
        return False
    if EVICTABLE in annotations:
        return True
    if controller_of(pod) is None or int(spec.get("priority") or 0) >= SYSTEM_CRITICAL:
        return False
    return not any("emptyDir" in each or "hostPath" in each for each in spec.get("volumes") or ())


def spread(sight: Sight) -> Iterator[ChosenPod]:
    """LowNodeUtilization: from overused nodes, while there is room on underused ones."""
    low, high = sight.thresholds
    under = [n for n, load in sight.loads.items() if sight.is_open(n) and is_below(load, low)]
    over = [name for name, load in sight.loads.items() if is_above(load, high)]
    if not under or not over or len(under) == len(sight.loads):
        return
    room = room_of([sight.loads[name] for name in under], high)
    over.sort(key=lambda name: (-sum(sight.loads[name].asked.values()), name))
    for name in over:
        load = sight.loads[name]
        asked = dict(load.asked)
        for pod in _in_order(sight.pods.get(name, ())):
            left = NodeLoad(name, load.offered, asked)
            if not is_above(left, high) or is_used_up(room):
                break
            yield ChosenPod(pod, f"{name} is over {high:.0%} of {_fullest(left)}")
            for each, amount in _asked(pod).items():
                asked[each] = asked.get(each, 0) - amount
                room[each] = room.get(each, 0) - amount


def pack(sight: Sight) -> Iterator[ChosenPod]:
    """HighNodeUtilization: from underused nodes, while there is room on all others."""
    low = sight.thresholds.low
    under = [name for name, load in sight.loads.items() if is_below(load, low)]
    others = [n for n, load in sight.loads.items() if sight.is_open(n) and not is_below(load, low)]
    if not under or not others:
        return
    room = room_of([sight.loads[name] for name in others], 1.0)
    under.sort(key=lambda name: (sum(sight.loads[name].asked.values()), name))
    for name in under:
        for pod in _in_order(sight.pods.get(name, ())):
            if is_used_up(room):
                return
            yield ChosenPod(pod, f"{name} is under {low:.0%} of everything")
            for each, amount in _asked(pod).items():
                room[each] = room.get(each, 0) - amount


def duplicates(sight: Sight) -> Iterator[ChosenPod]:
    """RemoveDuplicates: more pods of one owner on a node than an even share."""
    owned: defaultdict[tuple[str, ...], defaultdict[str, list[JsonObject]]]
    owned = defaultdict(lambda: defaultdict(list))
    for name, pods in sight.pods.items():
        for pod in filter(is_evictable, pods):
            owner = controller_of(pod)
            if owner is not None:
                images = sorted(str(each.get("image")) for each in pod["spec"]["containers"])
                key = pod["metadata"]["namespace"], owner["kind"], owner["name"], *images
                owned[key][name].append(pod)
    for on in owned.values():
        first = next(iter(on.values()))[0]
        feasible = [name for name, node in sight.nodes.items() if _fits_node(first, node)]
        if len(feasible) < 2:
            continue
        share = ceil(sum(map(len, on.values())) / len(feasible))
        for name, pods in on.items():
            for pod in pods[share:]:
                yield ChosenPod(pod, f"{len(pods)} of its kind on {name}, {share} would be even")


def tainted(sight: Sight) -> Iterator[ChosenPod]:
    """RemovePodsViolatingNodeTaints: taints that came after the pod, and that keep it off now."""
    for name, pods in sight.pods.items():
        taints = (sight.nodes[name].get("spec") or {}).get("taints") or ()
        for pod in filter(is_evictable, pods):
            taint = find_untolerated(taints, pod["spec"].get("tolerations") or (), ("NoSchedule",))
            if taint is not None:
                yield ChosenPod(pod, f"it does not tolerate {taint.get('key')} of {name}")


def misplaced(sight: Sight) -> Iterator[ChosenPod]:
    """RemovePodsViolatingNodeAffinity: labels of nodes have changed, and another node would fit."""
    for name, pods in sight.pods.items():
        for pod in filter(is_evictable, pods):
            node = sight.nodes[name]
            if not _wants(pod, node) and any(
                _fits_node(pod, other) for other in sight.nodes.values() if other is not node
            ):
                yield ChosenPod(pod, f"{name} is not what it asks for any more")


POLICIES: Mapping[str, Policy] = {
    "LowNodeUtilization": spread,
    "HighNodeUtilization": pack,
    "RemoveDuplicates": duplicates,
    "RemovePodsViolatingNodeTaints": tainted,
    "RemovePodsViolatingNodeAffinity": misplaced,
}
OTHERS = (
    *("PodLifeTime", "RemoveFailedPods", "RemovePodsHavingTooManyRestarts"),
    *("RemovePodsViolatingInterPodAntiAffinity", "RemovePodsViolatingTopologySpreadConstraint"),
)
"""Policies of the real one that are not simulated."""


def policy_of(name: str) -> Policy:
    """Raises `ConfigurationError` for one that is not there."""
    if name in OTHERS:
        raise ConfigurationError(
            f"the descheduler has {name}, but it is not simulated; there are: {', '.join(POLICIES)}"
        )
    if name not in POLICIES:
        raise ConfigurationError(f"there is no policy {name!r}; there are: {', '.join(POLICIES)}")
    return POLICIES[name]


# -- loads ---------------------------------------------------------------------------------------


def is_below(load: NodeLoad, share: float) -> bool:
    return all(load.share(each) <= share for each in COUNTED)


def is_above(load: NodeLoad, share: float) -> bool:
    return any(load.share(each) > share for each in COUNTED)


def room_of(loads: Sequence[NodeLoad], share: float) -> dict[str, float]:
    """What may still be asked of these nodes until they are so full."""
    return {
        each: sum(load.offered.get(each, 0) * share - load.asked.get(each, 0) for load in loads)
        for each in COUNTED
    }


def is_used_up(room: Mapping[str, float]) -> bool:
    return any(room[each] <= 0 for each in COUNTED)


def _fullest(load: NodeLoad) -> str:
    return max(COUNTED, key=load.share)


def _asked(pod: JsonObject) -> dict[str, int]:
    return {**pod_requests(pod), PODS: 1}


# -- pods ----------------------------------------------------------------------------------------


def _in_order(pods: Sequence[JsonObject]) -> list[JsonObject]:
    """The least important first, those that ask for nothing before others."""
    return sorted(filter(is_evictable, pods), key=_importance)


def _importance(pod: JsonObject) -> tuple[int, int, str]:
    return int(pod["spec"].get("priority") or 0), QOS.index(qos_class(pod["spec"])), key_of(pod)


def _fits_node(pod: JsonObject, node: JsonObject) -> bool:
    tolerations = pod["spec"].get("tolerations") or ()
    return (
        not (node.get("spec") or {}).get("unschedulable")
        and find_untolerated((node.get("spec") or {}).get("taints") or (), tolerations) is None
        and _wants(pod, node)
    )


def _wants(pod: JsonObject, node: JsonObject) -> bool:
    """Whether the node is of those that the pod's selector and required affinity allow."""
    labels = labels_of(node)
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or node_selector(required).matches(labels, node["metadata"]["name"])


def by_node(pods: Sequence[JsonObject]) -> dict[str, list[JsonObject]]:
    """Live pods by their node, in the order of their names."""
    found: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for pod in sorted(pods, key=key_of):
        if node_of(pod) and is_live(pod):
            found[node_of(pod)].append(pod)
    return dict(found)
