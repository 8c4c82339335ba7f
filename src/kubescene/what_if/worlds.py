"""What questions ask of a world: who waits and why, who is ready, what nodes hold."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubescene.api.resource_requests import CPU, MEMORY, node_allocatable, pod_requests
from kubescene.api.resource_requests import PODS as POD_COUNT
from kubescene.api.scheme import GroupResource
from kubescene.cluster import ClusterWorld
from kubescene.types import JsonObject

PODS = GroupResource("", "pods")
FINISHED = ("Succeeded", "Failed")
SHOWN = 20
"""So many rows of a table are shown where there may be thousands."""
MADE_AGAIN = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"}
    | {"CronJob"}
)
"""Kinds of owners that make a pod again."""


class TopmostOwner(NamedTuple):
    """Who keeps pods: the topmost owner that is known."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name} ({self.kind})"


def key_of(obj: JsonObject) -> str:
    metadata = obj["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def is_live(pod: JsonObject) -> bool:
    """Whether it has not ended, and nobody has asked it to."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in FINISHED and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: JsonObject) -> bool:
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each.get("type") == "Ready":
            return bool(each.get("status") == "True")
    return False


def node_of(pod: JsonObject) -> str:
    return str(pod["spec"].get("nodeName") or "")


def is_daemon(pod: JsonObject) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner.get("kind") in ("DaemonSet", "Node")


def controller_of(obj: JsonObject) -> JsonObject | None:
    references = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


def why_waiting(pod: JsonObject) -> str:
    """The scheduler's last message; empty if it has not said anything."""
    if gates := pod["spec"].get("schedulingGates"):
        return f"it waits for its scheduling gates: {', '.join(each['name'] for each in gates)}"
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each.get("type") == "PodScheduled":
            return str(each.get("message") or "")
    return ""


def pods_in(world: ClusterWorld) -> Iterator[JsonObject]:
    """All pods by namespace and name, as they are kept: nobody may change them."""
    store = world.store
    return (store.decoded(record) for record in store.list(PODS))


def waiting_pods(world: ClusterWorld) -> dict[str, JsonObject]:
    """Live pods without a node, by ``NAMESPACE/NAME``."""
    return {
        f"{record.namespace}/{record.name}": world.store.decoded(record)
        for record in world.store.list(PODS)
        if not record.node and not record.deleting and record.phase not in FINISHED
    }


class TopmostOwners:
    """The topmost owner of each pod."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._above: dict[str, JsonObject] = {}
        self._seen: set[str] = set()
        self._read()

    def _read(self) -> None:
        for kind in ("replicasets", "jobs"):
            for obj in self._world.list(kind):
                self._seen.add(obj["metadata"]["uid"])
                if (owner := controller_of(obj)) is not None:
                    self._above[obj["metadata"]["uid"]] = owner

    def of(self, pod: JsonObject) -> TopmostOwner:
        """A pod that nobody keeps is its own."""
        namespace, owner = pod["metadata"].get("namespace", ""), controller_of(pod)
        if owner is None:
            return TopmostOwner(namespace, "Pod", pod["metadata"]["name"])
        uid = str(owner.get("uid"))
        if uid not in self._seen and owner.get("kind") in ("ReplicaSet", "Job"):
            self._seen.add(uid)
            self._read()  # it is new, or was never there
        top = self._above.get(uid, owner)
        return TopmostOwner(namespace, str(top.get("kind")), str(top.get("name")))


class ReadyCounts:
    """How many pods of each workload are ready; of pods that have not changed that is known."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._owners = TopmostOwners(world)
        self._known: dict[str, tuple[int, TopmostOwner | None]] = {}

    def look(self) -> Counter[TopmostOwner]:
        """As it is now."""
        store, found, known = self._world.store, Counter[TopmostOwner](), self._known
        self._known = {}
        for record in store.list(PODS):
            before = known.get(record.uid)
            if before is None or before[0] != record.revision:
                pod = store.decoded(record)
                is_one = is_live(pod) and is_ready(pod)
                before = record.revision, self._owners.of(pod) if is_one else None
            self._known[record.uid] = before
            if before[1] is not None:
                found[before[1]] += 1
        return found


def ready_by_workload(world: ClusterWorld) -> Counter[TopmostOwner]:
    """How many pods of each are ready."""
    return ReadyCounts(world).look()


class NodeLoad(NamedTuple):
    """What a node offers and what its pods ask for."""

    name: str
    offered: Mapping[str, int]
    asked: Mapping[str, int]

    def share(self, resource: str) -> float:
        offered = self.offered.get(resource, 0)
        return self.asked.get(resource, 0) / offered if offered else 0.0

    @property
    def fullest(self) -> float:
        return max(self.share(CPU), self.share(MEMORY))


class NodeLoads:
    """What pods ask of nodes; of pods that have not changed that is known."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._known: dict[str, tuple[int, str, Mapping[str, int]]] = {}

    def look(self) -> dict[str, NodeLoad]:
        """As it is now: by name, in the order of the nodes."""
        store, known = self._world.store, self._known
        asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._known = {}
        for record in store.list(PODS):
            before = known.get(record.uid)
            if before is None or before[0] != record.revision:
                asks: Mapping[str, int] = {}
                if record.node and record.phase not in FINISHED:
                    asks = {**pod_requests(store.decoded(record)), POD_COUNT: 1}
                before = record.revision, record.node, asks
            self._known[record.uid] = before
            if before[2]:
                asked[before[1]].update(before[2])
        return {
            node["metadata"]["name"]: NodeLoad(
                node["metadata"]["name"], node_allocatable(node), asked[node["metadata"]["name"]]
            )
            for node in self._world.list("nodes")
        }


def node_uses(world: ClusterWorld) -> dict[str, NodeLoad]:
    """By name, in the order of the nodes."""
    return NodeLoads(world).look()


def total_share(uses: Iterable[NodeLoad], resource: str) -> float:
    """What is asked for of what is offered, by all of them together."""
    listed = list(uses)
    offered = sum(each.offered.get(resource, 0) for each in listed)
    return sum(each.asked.get(resource, 0) for each in listed) / offered if offered else 0.0


def percent(share: float) -> str:
    return f"{share:.0%}"


def instants(world: ClusterWorld, deadline: int) -> Iterator[int]:
    """Let time pass until then, from one instant at which something is due to the next.

    Yields after each, at rest; the last is the deadline.
    """
    world.settle()
    yield world.clock.now()
    while (due := world.event_queue.peek()) is not None and due < deadline:
        world.advance_until(max(due, world.clock.now()))
        yield world.clock.now()
    world.advance_until(deadline)
    yield deadline


def shortened(names: Iterable[str], most: int = 5) -> str:
    """Some names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}"


def counted(number: int, what: str) -> str:
    """``1 pod``, ``2,000 pods``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def placements(world: ClusterWorld) -> dict[str, str]:
    """The node of each pod that has not ended, empty if it waits."""
    return {key_of(pod): node_of(pod) for pod in pods_in(world)}


HOSTNAME = "kubernetes.io/hostname"
OF_A_MACHINE = ("nodeInfo", "addresses", "volumesInUse", "volumesAttached", "config")


def twin_of(node: JsonObject, name: str) -> JsonObject:
    """A new node like another: ready, not cordoned, with its labels, own taints and room."""
    metadata = {k: node["metadata"][k] for k in ("labels", "annotations") if k in node["metadata"]}
    metadata["labels"] = {**(metadata.get("labels") or {}), HOSTNAME: name}
    taints = [
        each
        for each in (node.get("spec") or {}).get("taints") or ()
        if not str(each.get("key")).startswith("node.kubernetes.io/")
    ]
    status = {k: v for k, v in (node.get("status") or {}).items() if k not in OF_A_MACHINE}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {**metadata, "name": name},
        "spec": {"taints": taints} if taints else {},
        "status": {**status, "conditions": [{"type": "Ready", "status": "True"}]},
    }
