"""What Karpenter sees of a world of objects, and how it writes there."""

from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from kubescene.api.disruption_budgets import BUDGET
from kubescene.api.kinds import NODE, POD
from kubescene.api.options import DeleteOptions
from kubescene.api.own_kinds import own_kind
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.control.loops import ControllerContext
from kubescene.errors import ApiError, NotFoundError
from kubescene.karpenter.budgets import EvictionBudgets
from kubescene.karpenter.disruption import ClusterView
from kubescene.karpenter.flags import KarpenterFlags
from kubescene.karpenter.kinds import (
    CATALOGUE_KIND,
    DEFINITIONS,
    NODE_CLAIM_KIND,
    NODE_POOL_KIND,
)
from kubescene.karpenter.nodepools import NodePool
from kubescene.karpenter.nodes import KarpenterNode
from kubescene.karpenter.offers import CloudOffers
from kubescene.karpenter.pods import PodSeen, daemon_pod
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject, ReadOnlyObject

DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
INSTANCE = own_kind("Instance")
NODE_GROUP = own_kind("NodeGroup")
REPORTER = "karpenter"
_ENDED = ("Succeeded", "Failed")


class KarpenterWorld:
    """Objects by their watches; what is asked for seldom is read when it is."""

    def __init__(self, context: ControllerContext, flags: KarpenterFlags) -> None:
        self.client = context.client
        self.recorder = context.recorder
        self.flags = flags
        self.offers = CloudOffers(context.streams)
        self.pools: dict[str, NodePool] = {}
        self.claims: dict[str, ReadOnlyObject] = {}
        self.nodes: dict[str, ReadOnlyObject] = {}
        self.instances: dict[str, ReadOnlyObject] = {}
        self._pods: dict[str, Change] = {}
        self._seen: dict[str, PodSeen] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._unbound: dict[str, None] = {}
        self._registered: dict[str, str] = {}
        self._sizes: Counter[str] = Counter()
        self.asking: dict[str, bool] = {}
        """Uids of pods that wait, or no longer do, since somebody has looked."""
        self.claim_changes = 0
        self.state = 0
        """Counts what may change a decision about giving nodes up."""
        self.wrote = False
        self.touched: dict[str, None] = {}
        """Claims about which something has changed."""
        self.pod_events: dict[str, None] = {}
        """Nodes to which pods have come, or from which they have gone."""
        self.waiting: dict[str, str] = {}
        """Uids of pods for which the scheduler found no node, by key."""
        self._define(context)
        for kind, handler in (
            (NODE_POOL_KIND, self._pool_changed),
            (CATALOGUE_KIND, self._catalogue_changed),
            (NODE_CLAIM_KIND, self._claim_changed),
            (INSTANCE, self._instance_changed),
            (NODE, self._node_changed),
            (POD, self._pod_changed),
        ):
            self.client.watch(kind, handler)

    def _define(self, context: ControllerContext) -> None:
        """Definitions of its kinds, as its installation would bring them."""
        for each, kind in zip(
            DEFINITIONS, (NODE_POOL_KIND, NODE_CLAIM_KIND, CATALOGUE_KIND), strict=True
        ):
            if kind not in context.scheme:
                self.create(deepcopy(each))

    # -- watches ---------------------------------------------------------------------------

    def _pool_changed(self, change: Change) -> None:
        name = change.record.name
        before = self.pools.get(name)
        if change.type is ChangeType.DELETED:
            self.pools.pop(name, None)
        else:
            self.pools[name] = NodePool(change.object)
        self.touched.update(dict.fromkeys(self.claims))
        gone = change.type is ChangeType.DELETED
        if gone or before is None or not _is_decided_alike(before.object, change.object):
            self.state += 1

    def _catalogue_changed(self, change: Change) -> None:
        self.state += 1
        gone = change.type is ChangeType.DELETED
        self.offers.put(change.record.name, None if gone else change.object)

    def _claim_changed(self, change: Change) -> None:
        name = change.record.name
        self.state += 1
        self.claim_changes += 1
        if change.type is ChangeType.DELETED:
            self.claims.pop(name, None)
        else:
            self.claims[name] = change.object
        self._recount(name)
        self.touched[name] = None

    def _instance_changed(self, change: Change) -> None:
        name = change.record.name
        if change.type is ChangeType.DELETED:
            self.instances.pop(name, None)
        else:
            self.instances[name] = change.object
        self.touched[name] = None

    def _node_changed(self, change: Change) -> None:
        name = change.record.name
        self.state += 1
        if change.type is ChangeType.DELETED:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = change.object
        self._recount(name)
        self.touched[name] = None

    def _recount(self, name: str) -> None:
        """Whether the machine of a claim is a node of its pool."""
        claim = self.claims.get(name) if name in self.nodes else None
        pool = "" if claim is None else _pool_of(claim)
        before = self._registered.pop(name, "")
        if before:
            self._sizes[before] -= 1
        if pool:
            self._registered[name] = pool
            self._sizes[pool] += 1

    def size_of(self, pool: str) -> int:
        """How many nodes a pool has."""
        return self._sizes[pool]

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        key = f"{record.namespace}/{record.name}"
        before = self._pods.get(key)
        self._seen.pop(key, None)
        self._unbound.pop(key, None)
        if (waited := self.waiting.pop(key, None)) is not None:
            self.asking[waited] = False
        was_on = before.record.node if before is not None else ""
        if was_on and was_on != record.node:
            self._leave(key, was_on)
        if change.type is ChangeType.DELETED:
            self._pods.pop(key, None)
            self._leave(key, record.node)
            self.state += 1
            return
        self._pods[key] = change
        if not record.node:
            self._unbound[key] = None
            if self.pod(key).is_provisionable:
                self.waiting[key] = record.uid
                self.asking[record.uid] = True
            return
        self._on_node.setdefault(record.node, {})[key] = None
        ended = record.phase in _ENDED
        moved = before is None or not was_on
        going = record.deleting and not (before is not None and before.record.deleting)
        over = ended and not (before is not None and before.record.phase in _ENDED)
        if moved or going or over:
            self.state += 1
            self.pod_events[record.node] = None
            self.touched[record.node] = None

    def _leave(self, key: str, node: str) -> None:
        if node:
            self._on_node.get(node, {}).pop(key, None)
            self.touched[node] = None

    # -- what is seen ----------------------------------------------------------------------

    def pod(self, key: str) -> PodSeen:
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = PodSeen(self._pods[key].object)
        return found

    def pods_on(self, node: str) -> list[PodSeen]:
        return [self.pod(key) for key in self._on_node.get(node, ())]

    def node(self, name: str, marked: Mapping[str, Any] | None = None) -> KarpenterNode:
        """The machine of a claim."""
        is_marked = bool(marked) and name in (marked or {})
        node = self.nodes.get(name)
        pods = self.pods_on(name) if node is not None else ()
        return KarpenterNode(node, self.claims[name], pods, is_marked=is_marked)

    def view(self, now: int, marked: Mapping[str, Any], nominated: frozenset[str]) -> ClusterView:
        nodes = [
            self.node(name, marked)
            for name, claim in self.claims.items()
            if (claim.get("status") or {}).get("providerID")
        ]
        nodes += [
            KarpenterNode(node, None, self.pods_on(name))
            for name, node in self.nodes.items()
            if name not in self.claims
        ]
        return ClusterView(
            nodes,
            [self.pod(key) for key in sorted(self._pods)],
            [each for each in self.pools.values() if not self.fault_of(each)],
            self.offers.at(now),
            EvictionBudgets(self.client.list(BUDGET)),
            [daemon_pod(each) for each in self.client.list(DAEMON_SET)],
            {
                each["metadata"]["name"]: each["metadata"].get("labels") or {}
                for each in self.client.list(NAMESPACE)
            },
            now,
            self.flags,
            nominated,
        )

    def fault_of(self, pool: NodePool) -> str:
        """Why nothing is ordered for a pool; empty if something may be."""
        if pool.object["metadata"].get("deletionTimestamp"):
            return "it is being deleted"
        if fault := pool.fault:
            return fault
        if self.client.find(ObjectRef(NODE_GROUP, pool.name)) is not None:
            return f"there is a NodeGroup {pool.name}, too: machines could not be told apart"
        if self.offers.is_empty:
            return "there is no InstanceCatalogue that offers anything"
        return ""

    def claims_of(self, pool: str) -> Iterator[ReadOnlyObject]:
        for each in self.claims.values():
            if _pool_of(each) == pool:
                yield each

    # -- what is written -------------------------------------------------------------------

    def create(self, obj: JsonObject) -> str:
        record = self.client.create(obj)
        self.client.wait_seen(record.revision)
        self.wrote = True
        return record.name

    def patch(self, ref: ObjectRef, body: JsonObject, *, status: bool = False) -> bool:
        """False if the object is gone."""
        try:
            record = self.client.patch(ref, body, subresource="status" if status else "")
        except NotFoundError:
            return False
        self.client.wait_seen(record.revision)
        self.wrote = True
        return True

    def delete(self, ref: ObjectRef, grace: int | None = None) -> None:
        options = DeleteOptions(grace_period_s=grace)
        try:
            record = self.client.delete(ref, options=options)
        except NotFoundError:
            return
        if record is not None:
            self.client.wait_seen(record.revision)
        self.wrote = True

    def evict(self, pod: PodSeen) -> str:
        """Why it may not be evicted; empty if it goes."""
        try:
            self.client.evict(ObjectRef(POD, pod.name, pod.namespace))
        except NotFoundError:
            return ""
        except ApiError as error:
            return error.message
        self.wrote = True
        return ""

    def tell(self, obj: ReadOnlyObject, reason: str, message: str, *, warns: bool = False) -> None:
        """An Event, in worlds that have them."""
        if self.recorder.on:
            kind = WARNING if warns else NORMAL
            self.recorder.tell(Notice(regarding(dict(obj)), kind, reason, message, REPORTER))


def _pool_of(claim: ReadOnlyObject) -> str:
    return str((claim["metadata"].get("labels") or {}).get("karpenter.sh/nodepool") or "")


def _is_decided_alike(before: ReadOnlyObject, after: ReadOnlyObject) -> bool:
    """Whether nothing has changed that anybody decides by."""
    one, other = before["metadata"], after["metadata"]
    decisive = ("uid", "generation", "labels", "annotations", "deletionTimestamp")
    return all(one.get(each) == other.get(each) for each in decisive)
