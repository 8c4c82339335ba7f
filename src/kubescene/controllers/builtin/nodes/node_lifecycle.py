"""The node lifecycle controller: what happens around a node whose conditions say that it fails.

Conditions become taints that keep pods away at once. A node that is not ready or unreachable also
gets the taint that drives its pods away (see `taint_eviction`), one node at a time in each zone
(`Zones`). Pods of a node that nobody reaches are no longer ready. When the node is back,
all of it is taken back.

Whether a node is ready is what its condition says, which the kubelet stand-in writes once and a
scenario may change. A node whose kubelet was stopped is `Unknown` after the grace period of the
node monitor, which counts from that instant: nobody writes heartbeats.

Pods are driven away from one node in ten seconds per zone. When more than half of a zone is down
something else is wrong than its nodes: a large zone goes slower, a small one stops. When every zone
is down altogether, nobody is driven away at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kubescene.api.kinds import NODE, POD
from kubescene.api.objects import Pod
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef, Reader
from kubescene.clock import SECOND, format_time
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.nodes.node_conditions import (
    NO_EXECUTE,
    READY,
    READY_TAINTS,
    UNREACHED,
    Zone,
    has_taint,
    in_step,
    readiness,
    taints_of,
    with_verdict,
    without_verdict,
    zone_of,
)
from kubescene.controllers.builtin.nodes.pods_on_nodes import PODS, PodsOnNodes
from kubescene.controllers.kubelet.heartbeats import (
    GRACE_PERIOD,
    has_stopped,
    is_stopped,
    unknown_conditions,
)
from kubescene.controllers.reconcile import NOTHING, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

JUDGEMENTS_KEPT = 512
REPORTER = "node-controller"
ZONES = ObjectKey("*", "zones")
"""The turn of all nodes that wait for their taint; no namespace is called so."""


class NodeLifecycleReconciler:
    """Keys without a namespace are nodes, keys with one are pods, and there is `ZONES`."""

    name = "node-lifecycle"
    kinds: Sequence[GroupVersionKind] = (NODE,)

    def __init__(self) -> None:
        self._zones = Zones()
        self._pods = PodsOnNodes()
        self._judgements = Judgements()
        self._unreached: set[str] = set()
        self._told: set[str] = set()
        """Nodes whose silence is to be told of."""
        self.needs_pods = False
        self._silent_since: dict[str, int] = {}
        """When the kubelets of nodes were stopped."""

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource == PODS:
            return self._observe_pod(change)
        if change.type is ChangeType.DELETED:
            self._unreached.discard(change.record.name)
            self._zones.remove(change.record.name)
            self._silent_since.pop(change.record.name, None)
            return (ZONES,)
        return [*self._observe_node(change)]

    def _observe_node(self, change: Change) -> Iterator[ObjectKey]:
        name, zones = change.record.name, self._zones
        ready, is_waiting, is_settled = self._judgements.of(change)
        health_changed = zones.put(name, zone_of(change.record.labels), ready)
        if not is_settled or self._is_news(change):
            yield ObjectKey("", name)
        if zones.wait(name, is_waiting=is_waiting) or health_changed:
            yield ZONES
        if ready != UNREACHED:
            self._unreached.discard(name)
        elif name not in self._unreached:
            self._unreached.add(name)
            self._told.add(name)
            self.needs_pods = True
            yield ObjectKey("", name)
            yield from self._pods.on(name)

    def _is_news(self, change: Change) -> bool:
        """Whether the kubelet of a node was stopped, or is back."""
        return has_stopped(change.record) != (change.record.name in self._silent_since)

    def _observe_pod(self, change: Change) -> Iterable[ObjectKey]:
        self._pods.observe(change)
        record = change.record
        if change.type is ChangeType.DELETED or record.node not in self._unreached:
            return ()
        return (ObjectKey(record.namespace, record.name),)

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        if key == ZONES:
            return self._taint_next(reader, now)
        if key.namespace:
            return self._pod(reader.find(ObjectRef(POD, key.name, key.namespace)), now)
        node = reader.find(ObjectRef(NODE, key.name))
        if node is None:
            return NOTHING
        notices = (unreached(node),) if key.name in self._told else ()
        self._told.discard(key.name)
        taints = settled_taints(node, format_time(now))
        writes: list[Write] = [] if taints is None else [tainted(node, taints)]
        wait = self._silence(node, now)
        if wait == 0 and readiness(node) != UNREACHED:
            writes.append(unheard(node, format_time(now)))
        return Plan(writes, wait or None, notices)

    def _silence(self, node: JsonObject, now: int) -> int | None:
        """How long the monitor still waits for a kubelet that was stopped; None: it was not."""
        name = node["metadata"]["name"]
        if not is_stopped(node):
            self._silent_since.pop(name, None)
            return None
        since = self._silent_since.setdefault(name, now)
        return max(since + GRACE_PERIOD - now, 0)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        del key, write, reader, now
        if isinstance(error, NotFoundError):
            return NOTHING
        raise error

    def _taint_next(self, reader: Reader, now: int) -> Plan:
        """Drive the pods of the next nodes away; of none, and of nobody any more, if all fail."""
        zones, writes = self._zones, list[Write]()
        all_down = zones.adjust(now)
        for name in zones.down() if all_down else ():
            if (node := reader.find(ObjectRef(NODE, name))) and verdict_of(node):
                writes.append(tainted(node, without_verdict(taints_of(node))))
        for name in zones.due(now):
            node = reader.find(ObjectRef(NODE, name))
            key = "" if node is None else READY_TAINTS.get(readiness(node), "")
            if node is not None and key:
                taints = with_verdict(taints_of(node), key, format_time(now))
                writes.append(tainted(node, taints))
        next_at = zones.next_at()
        return Plan(writes, None if next_at is None else max(next_at - now, 0))

    def _pod(self, pod: JsonObject | None, now: int) -> Plan:
        """A pod that nobody hears of any more is not ready."""
        if pod is None or pod["spec"].get("nodeName") not in self._unreached:
            return NOTHING
        if not Pod(pod).is_ready:
            return NOTHING
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": format_time(now)}
        patch = {"status": {"conditions": [condition]}}
        notice = Notice(
            regarding(pod), WARNING, "NodeNotReady", "Node is not ready", reporter=REPORTER
        )
        ref = ObjectRef.to(pod)
        return Plan((Patch(ref, patch, PatchType.STRATEGIC, "status", notice=notice),))


class Judgement(NamedTuple):
    """What a node is to this controller."""

    ready: str
    """The status of its condition Ready."""
    is_waiting: bool
    """Whether it lacks the taint that drives pods away."""
    is_settled: bool
    """Whether it has all others that it should have at once."""


class Judgements:
    """Judgements by all that they depend on: spec and status, which alike nodes have in common."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], Judgement] = {}

    def of(self, change: Change) -> Judgement:
        """That of a node that was just written."""
        key = change.record.body_key
        if key is None:
            return judged(change.object)
        judgement = self._known.get(key)
        if judgement is None:
            if len(self._known) >= JUDGEMENTS_KEPT:
                self._known.clear()
            judgement = self._known[key] = judged(change.object)
        return judgement


def judged(node: JsonObject) -> Judgement:
    ready = readiness(node)
    is_waiting = ready in READY_TAINTS and verdict_of(node) == ""
    return Judgement(ready, is_waiting, settled_taints(node, "") is None)


def verdict_of(node: JsonObject) -> str:
    """The key of the taint that drives pods away from a node that is not ready, if it has one."""
    if not taints_of(node):
        return ""
    keys = READY_TAINTS.values()
    return next((key for key in keys if has_taint(node, key, NO_EXECUTE)), "")


def settled_taints(node: JsonObject, now: str) -> list[JsonObject] | None:
    """The taints that a node should have at once; None if it has them."""
    before, taints = taints_of(node), in_step(node, now)
    if not taints and not before:
        return None
    ready = readiness(node)
    if ready == READY:
        taints = without_verdict(taints)
    elif (verdict := verdict_of(node)) and ready in READY_TAINTS and verdict != READY_TAINTS[ready]:
        taints = with_verdict(taints, READY_TAINTS[ready], now)
    return None if taints == before else taints


def tainted(node: JsonObject, taints: list[JsonObject]) -> Patch:
    return Patch(ObjectRef.to(node), {"spec": {"taints": taints or None}})


def unheard(node: JsonObject, now: str) -> Patch:
    status = {"conditions": unknown_conditions(node, now)}
    return Patch(ObjectRef.to(node), {"status": status}, subresource="status")


def unreached(node: JsonObject) -> Notice:
    name = node["metadata"]["name"]
    message = f"Node {name} status is now: NodeNotReady"
    return Notice(regarding(node), NORMAL, "NodeNotReady", message, REPORTER)


def node_lifecycle(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(NodeLifecycleReconciler(), context)


INTERVAL = 10 * SECOND
SLOW_INTERVAL = 100 * SECOND
LARGE_ZONE = 50
LEAST_DOWN = 3
SHARE_DOWN = (55, 100)

HEALTHY, PARTIALLY_DOWN, DOWN = "normal", "partial disruption", "full disruption"


class ZoneHealth:
    """The nodes of one zone, those that wait to be tainted, and when the next one may be."""

    def __init__(self) -> None:
        self.nodes: dict[str, bool] = {}
        """By name, whether a node is up."""
        self.down = 0
        self.waiting: dict[str, None] = {}
        self.interval: int | None = INTERVAL
        """Nanoseconds between two nodes; None: nobody is tainted."""
        self.next_at = 0

    def put(self, node: str, *, is_up: bool) -> None:
        self.remove(node)
        self.nodes[node] = is_up
        self.down += not is_up

    def remove(self, node: str) -> None:
        is_up = self.nodes.pop(node, None)
        self.down -= is_up is False

    @property
    def state(self) -> str:
        size, (share, of) = len(self.nodes), SHARE_DOWN
        if self.down == size:
            return DOWN if size else HEALTHY
        if self.down >= LEAST_DOWN and self.down * of >= size * share:
            return PARTIALLY_DOWN
        return HEALTHY

    @property
    def pace(self) -> int | None:
        """How fast this zone should go by itself. One that is down altogether goes on as ever."""
        if self.state != PARTIALLY_DOWN:
            return INTERVAL
        return SLOW_INTERVAL if len(self.nodes) > LARGE_ZONE else None

    def swap_interval(self, interval: int | None, now: int) -> None:
        """Another pace: whoever had to wait at the old one waits a whole turn at the new one."""
        if interval == self.interval:
            return
        if interval is not None and (self.interval is None or now < self.next_at):
            self.next_at = now + interval
        self.interval = interval

    def take(self, now: int) -> str | None:
        """The next node to be tainted, if one may be now."""
        if self.interval is None or now < self.next_at or not self.waiting:
            return None
        node = next(iter(self.waiting))
        del self.waiting[node]
        self.next_at = now + self.interval
        return node


class Zones:
    """All zones, and whether everything is down."""

    def __init__(self) -> None:
        self._zones: dict[Zone, ZoneHealth] = {}
        self._of_node: dict[str, Zone] = {}
        self.all_down = False

    def __getitem__(self, zone: Zone) -> ZoneHealth:
        health = self._zones.get(zone)
        if health is None:
            health = self._zones[zone] = ZoneHealth()
        return health

    def put(self, node: str, zone: Zone, ready: str) -> bool:
        """Note how a node is: one of which nobody has said anything is no sign of trouble.

        Returns whether that may change the pace of its zone, or of all.
        """
        has_moved = self._of_node.get(node, zone) != zone
        if has_moved:
            self.remove(node)
        self._of_node[node] = zone
        health, is_up = self[zone], ready in ("", READY)
        is_news = health.nodes.get(node) is not is_up
        if is_news:
            health.put(node, is_up=is_up)
        # A healthy world takes no notice of one more healthy node.
        return is_news and bool(has_moved or self.all_down or health.down)

    def remove(self, node: str) -> None:
        zone = self._of_node.pop(node, None)
        if zone is not None:
            self[zone].remove(node)
            self[zone].waiting.pop(node, None)
            if not self[zone].nodes:
                del self._zones[zone]

    def wait(self, node: str, *, is_waiting: bool) -> bool:
        """Line a node up to be tainted, or take it out; whether that is news."""
        waiting = self[self._of_node[node]].waiting
        if is_waiting == (node in waiting):
            return False
        if is_waiting:
            waiting[node] = None
        else:
            del waiting[node]
        return True

    def adjust(self, now: int) -> bool:
        """Set every zone's pace by its state; whether everything is down only now."""
        states = [zone.state for zone in self._zones.values()]
        was_all_down, self.all_down = self.all_down, bool(states) and set(states) == {DOWN}
        for zone in self._zones.values():
            zone.swap_interval(None if self.all_down else zone.pace, now)
        return self.all_down and not was_all_down

    def due(self, now: int) -> list[str]:
        """The nodes to be tainted now, at most one of each zone."""
        taken = [zone.take(now) for zone in self._zones.values()]
        return [node for node in taken if node is not None]

    def next_at(self) -> int | None:
        """When the next node may be tainted, if one waits for that."""
        zones = [zone for zone in self._zones.values() if zone.waiting]
        return min((zone.next_at for zone in zones if zone.interval is not None), default=None)

    def down(self) -> list[str]:
        """All nodes that are down."""
        zones = self._zones.values()
        return [name for zone in zones for name, is_up in zone.nodes.items() if not is_up]
