"""Nodes, pods on them, and the two plugins that count by topology domain. Nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kubescene.api.records import Record, make_record
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupResource, GroupVersionKind
from kubescene.clock import Streams, VirtualClock
from kubescene.scheduler.framework.cycle_state import CycleState
from kubescene.scheduler.framework.informers import Informer
from kubescene.scheduler.framework.interfaces import ClusterEvent
from kubescene.scheduler.framework.status import Code
from kubescene.scheduler.plugins import inter_pod_affinity, pod_topology_spread
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.store import Store
from kubescene.testing.builders import ObjectBuilder, merged
from kubescene.types import JsonObject
from scheduler.plain_topology import PlainCluster, PlainNode

NODES, PODS = GroupResource("", "nodes"), GroupResource("", "pods")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
SERVICE = GroupVersionKind("", "v1", "Service")


class Objects:
    """Objects of other kinds, in real informers that are fed by hand."""

    def __init__(self) -> None:
        self.informers: dict[GroupVersionKind, Informer] = {}
        self.written: dict[tuple[str, str, str], Record] = {}

    def lister(self, gvk: GroupVersionKind) -> Informer:
        return self.informers.setdefault(gvk, Informer(gvk, self.notify))

    def notify(self, event: ClusterEvent, change: Change) -> None:
        raise AssertionError(f"{event}: nobody waits")

    def put(self, gvk: GroupVersionKind, obj: JsonObject) -> None:
        metadata = obj["metadata"]
        key = (gvk.kind, metadata.get("namespace", ""), metadata["name"])
        record = make_record(GroupResource(gvk.group, f"{gvk.kind.lower()}s"), obj, 1)
        before, self.written[key] = self.written.get(key), record
        kind = ChangeType.ADDED if before is None else ChangeType.MODIFIED
        self.lister(gvk).changed(Change(kind, record, before, Store()))


class Neighbourhood:
    """The plugins over one node table, and the same world in plain objects."""

    def __init__(
        self,
        *nodes: ObjectBuilder,
        spread: Mapping[str, Any] | None = None,
        affinity: Mapping[str, Any] | None = None,
    ) -> None:
        self.table = NodeTable()
        self.classes = PodClasses()
        self.objects = Objects()
        self.nodes: dict[str, JsonObject] = {}
        self.placed: dict[str, tuple[str, PodInfo]] = {}
        self.services: dict[tuple[str, str], tuple[str, Mapping[str, str]]] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.spread_arguments, self.affinity_arguments = spread or {}, affinity or {}
        nobody: Any = None
        informers: Any = self.objects
        self.handle = SchedulerHandle(
            "default-scheduler",
            nobody,
            VirtualClock(),
            Streams().stream("test"),
            nodes=self.table,
            nominations=Nominations(),
            waiting_pods=nobody,
            informers=informers,
            events=nobody,
        )
        self.spread: Any = pod_topology_spread.make(self.spread_arguments, self.handle)
        self.affinity: Any = inter_pod_affinity.make(self.affinity_arguments, self.handle)
        for node in nodes:
            self.set_node(node)
        self.table.refresh()

    # -- changes ---------------------------------------------------------------------------

    def set_node(self, node: ObjectBuilder) -> None:
        obj = node.build()
        self.nodes[obj["metadata"]["name"]] = obj
        self.table.set_node(make_record(NODES, obj, 1), obj)

    def remove_node(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self.table.remove_node(name)

    def add(self, pod: ObjectBuilder | JsonObject, node: str) -> None:
        info = self.pod(pod)
        if info.key in self.placed:
            self.remove(info.key)
        self.placed[info.key] = (node, info)
        self.table.add_pod(info, node)

    def remove(self, key: str) -> None:
        if (found := self.placed.pop(key, None)) is not None:
            self.table.remove_pod(found[1], found[0])

    def update(self, key: str, change: JsonObject) -> None:
        if (found := self.placed.get(key)) is not None:
            node, old = found
            new = self.pod(merged(old.object, change))
            self.placed[key] = (node, new)
            self.table.update_pod(old, new, node)

    def service(self, name: str, namespace: str, selector: Mapping[str, str]) -> None:
        obj = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
        self.services[namespace, name] = (namespace, selector)
        self.objects.put(SERVICE, obj)

    def namespace(self, name: str, labels: Mapping[str, str]) -> None:
        self.namespaces[name] = labels
        self.objects.put(NAMESPACE, {"metadata": {"name": name, "labels": labels}})

    # -- questions -------------------------------------------------------------------------

    def pod(self, pod: ObjectBuilder | JsonObject) -> PodInfo:
        obj = pod if isinstance(pod, dict) else pod.build()
        metadata = obj["metadata"]
        obj = merged(obj, {"metadata": {"uid": f"{metadata['namespace']}/{metadata['name']}"}})
        return PodInfo.read(make_record(PODS, obj, 1), obj, self.classes)

    def plain(self) -> PlainCluster:
        """The same world as plain objects."""
        self.table.refresh()
        pods: dict[str, list[JsonObject]] = {name: [] for name in self.table.names}
        for node, pod in self.placed.values():
            if node in pods:
                pods[node].append(pod.object)
        made = [PlainNode(name, self.nodes[name], pods[name]) for name in self.table.names]
        cluster = PlainCluster(made, self.namespaces, [*self.services.values()])
        if self.spread_arguments.get("defaultingType") == "List":
            cluster.default_constraints = self.spread_arguments.get("defaultConstraints") or []
            cluster.is_system_defaulted = False
        cluster.hard_weight = self.affinity_arguments.get("hardPodAffinityWeight", 1)
        ignored = self.affinity_arguments.get("ignorePreferredTermsOfExistingPods", False)
        cluster.ignore_preferred = ignored
        return cluster

    def begin(self, plugin: Any, pod: PodInfo) -> CycleState | None:
        """The state after PreFilter; None if the plugin skips, as it must if it is unconcerned."""
        self.table.refresh()
        state, version = CycleState(), plugin.concern_version
        status, _ = plugin.pre_filter(state, pod, self.table)
        assert plugin.concerns(pod.signature) or status.code is Code.SKIP
        assert plugin.concern_version == version
        return None if status.code is Code.SKIP else state

    def filter(self, plugin: Any, pod: PodInfo) -> list[str] | None:
        """Reasons by row, from the whole-cluster form; the per-node form says the same."""
        state = self.begin(plugin, pod)
        return None if state is None else self.judged(plugin, state, pod)

    def judged(self, plugin: Any, state: CycleState, pod: PodInfo) -> list[str]:
        rows = np.arange(len(self.table), dtype=np.intp)
        codes = plugin.filter_nodes(state, pod, self.table, rows).tolist()
        found = ["" if not code else plugin.describe(state, pod, code).message for code in codes]
        assert [plugin.filter(state, pod, info).message for info in self.table.infos] == found
        return found

    def scores(
        self, plugin: Any, pod: PodInfo, feasible: Sequence[int]
    ) -> tuple[list[int], list[int]] | None:
        """Raw and normalised scores of some rows; None if the plugin skips."""
        self.table.refresh()
        state, rows = CycleState(), np.array(feasible, dtype=np.intp)
        status = plugin.pre_score(state, pod, self.table, rows)
        assert plugin.concerns_scoring(pod.signature) or status.code is Code.SKIP
        if status.code is Code.SKIP:
            return None
        raw = plugin.score_nodes(state, pod, self.table, rows)
        assert [plugin.score(state, pod, self.table.infos[at]) for at in feasible] == raw.tolist()
        return raw.tolist(), plugin.normalize(state, pod, raw).tolist()
