"""Random clusters in which a plugin is asked: the same number, the same cluster.

Nodes have zones, racks, taints and different sizes; pods have labels, requests and host ports, and
stand on nodes. The pods that are asked about belong to no scheduler: nobody places them in between.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from kubescene.api.kinds import NODE, POD
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import Change
from kubescene.client.interfaces import ObjectRef
from kubescene.client.verbs import AnyObject, plain
from kubescene.clock import Stream, Streams
from kubescene.cluster import SCHEDULER, ClusterOptions, ClusterWorld
from kubescene.scheduler import (
    NodeTable,
    PodInfo,
    Scheduler,
    SchedulerOptions,
)
from kubescene.scheduler.configuration.added_plugins import plugin_name, with_plugin
from kubescene.scheduler.plugins import BUILT_IN
from kubescene.scheduler.state.pod_kinds import DEFAULT_SCHEDULER
from kubescene.scheduler.state.pods import PodClasses
from kubescene.testing.builders import merged
from kubescene.types import JsonObject

NODES, PLACED = 7, 9
NOBODY = "nobody"

_AT_ONCE = DeleteOptions(grace_period_s=0)


@dataclass(frozen=True, slots=True)
class Subject:
    """A plugin to look at, and what its clusters have beside the usual."""

    plugin: type
    arguments: Mapping[str, Any] = field(default_factory=dict)
    pods: Sequence[AnyObject] = ()
    nodes: Sequence[AnyObject] = ()
    objects: Sequence[AnyObject] = ()

    @property
    def name(self) -> str:
        return plugin_name(self.plugin)

    def scheduler(self) -> SchedulerOptions:
        options = SchedulerOptions()
        if self.plugin not in [each.plugin for each in BUILT_IN.values()]:
            options = with_plugin(options, self.plugin)
        profiles = tuple(
            replace(each, arguments={**each.arguments, self.name: dict(self.arguments)})
            for each in options.profiles
        )
        return replace(options, profiles=profiles)


class PluginWorld:
    """One cluster, the plugin in its scheduler, and the pods it is asked about."""

    def __init__(self, subject: Subject, number: int) -> None:
        self.subject = subject
        self.cluster = ClusterWorld(ClusterOptions(seed=number, scheduler=subject.scheduler()))
        self.changes: list[Change] = []
        self._classes = PodClasses()
        self._chance: Stream = Streams(number).stream("conformance")
        self._made = 0
        self.cluster.start((SCHEDULER,))
        self._client = self.cluster.client(self.cluster.actor)
        for obj in subject.objects:
            self._client.create(plain(obj))
        for _ in range(NODES):
            self.add_node()
        for _ in range(PLACED):
            self.add_pod()
        self.candidates = self._candidates()

    # -- asking ----------------------------------------------------------------------------

    @property
    def scheduler(self) -> Scheduler:
        found = self.cluster.slots[0].controller
        assert isinstance(found, Scheduler)
        return found

    @property
    def plugin(self) -> Any:
        return self.scheduler.cycle_of(DEFAULT_SCHEDULER).framework.plugins[self.subject.name]

    @property
    def nodes(self) -> NodeTable:
        self.scheduler.nodes.refresh()
        return self.scheduler.nodes

    def fork(self) -> "PluginWorld":
        return deepcopy(self)

    def afresh(self) -> "PluginWorld":
        """The same cluster with a scheduler, and so a plugin, that has just begun to look."""
        copy = deepcopy(self)
        copy.cluster.stop()
        copy.cluster.start((SCHEDULER,))
        return copy

    # -- letting something happen ------------------------------------------------------------

    def change(self) -> Change:
        """One more thing happens, by chance."""
        deeds = (self.add_pod, self.remove_pod, self.relabel_pod, self.relabel_node, self.add_node)
        return deeds[self._chance.below(len(deeds))]()

    def change_elsewhere(self, node: str) -> Change:
        """Something happens that has nothing to do with one node."""
        others = [each for each in self.nodes.names if each != node]
        if self._chance.below(2):
            return self.relabel_node(self._one_of(others))
        return self.add_pod(self._one_of(others))

    def add_node(self) -> Change:
        return self._create(self._named(self._node(), "node"))

    def add_pod(self, node: str = "") -> Change:
        """A pod that runs on a node."""
        pod = self._named(self._pod(), "pod")
        pod["spec"]["nodeName"] = node or self._one_of(self._node_names())
        return self._create(pod)

    def remove_pod(self) -> Change:
        placed = [each for each in self.cluster.list("pods") if "nodeName" in each["spec"]]
        if not placed:
            return self.add_pod()
        ref = ObjectRef.to(self._one_of(placed))
        return self._seen(lambda: self._client.delete(ref, options=_AT_ONCE), POD)

    def relabel_pod(self) -> Change:
        placed = [each for each in self.cluster.list("pods") if "nodeName" in each["spec"]]
        if not placed:
            return self.add_pod()
        labels = {"app": self._one_of(("web", "db", "cache")), "round": str(self._next())}
        patch = {"metadata": {"labels": labels}}
        ref = ObjectRef.to(self._one_of(placed))
        return self._seen(lambda: self._client.patch(ref, patch), POD)

    def relabel_node(self, name: str = "") -> Change:
        ref = ObjectRef(NODE, name or self._one_of(self._node_names()))
        labels = {"rack": f"r{self._next()}", "disk": self._one_of(("ssd", "hdd"))}
        return self._seen(lambda: self._client.patch(ref, {"metadata": {"labels": labels}}), NODE)

    # -- making ------------------------------------------------------------------------------

    def _candidates(self) -> list[PodInfo]:
        """Two pods of each kind: alike in all but their names, one more with other labels."""
        found = []
        for _ in range(4):
            body = self._pod()
            for labels in ({}, {}, {"other": "label"}):
                pod = self._named(merged(body, {"metadata": {"labels": labels}}), "asked")
                pod["spec"]["schedulerName"] = NOBODY
                record = self._client.create(pod)
                found.append(PodInfo.read(record, record.decode(), self._classes))
        return found

    def _create(self, obj: JsonObject) -> Change:
        gvk = NODE if obj["kind"] == "Node" else POD
        return self._seen(lambda: self._client.create(obj), gvk)

    def _seen(self, act: Any, gvk: Any) -> Change:
        """Do something, and what a watch says of it."""
        client = self.cluster.client(self.cluster.actor)
        seen: list[Change] = []
        client.watch(gvk, seen.append, quiet=True)
        seen.clear()
        act()
        client.close()
        self.changes.append(seen[-1])
        return seen[-1]

    def _node(self) -> JsonObject:
        if self.subject.nodes and self._chance.below(2):
            return plain(self._one_of(self.subject.nodes))
        labels = {"topology.kubernetes.io/zone": self._one_of("abc"), "disk": "ssd"}
        spec: JsonObject = {}
        if not self._chance.below(4):
            spec["taints"] = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
        amounts = {"cpu": str(1 + self._chance.below(8)), "memory": "16Gi", "pods": "20"}
        status = {"capacity": amounts, "allocatable": amounts}
        kind = {"apiVersion": "v1", "kind": "Node"}
        return {**kind, "metadata": {"labels": labels}, "spec": spec, "status": status}

    def _pod(self) -> JsonObject:
        if self.subject.pods and self._chance.below(2):
            return plain(self._one_of(self.subject.pods))
        requests = {"cpu": f"{100 * (1 + self._chance.below(30))}m", "memory": "64Mi"}
        container: JsonObject = {"name": "c", "image": "app", "resources": {"requests": requests}}
        spec: JsonObject = {"containers": [container]}
        if not self._chance.below(3):
            spec["tolerations"] = [{"operator": "Exists"}]
        labels = {"app": self._one_of(("web", "db"))}
        kind = {"apiVersion": "v1", "kind": "Pod"}
        return {**kind, "metadata": {"labels": labels, "namespace": "default"}, "spec": spec}

    def _named(self, obj: JsonObject, prefix: str) -> JsonObject:
        metadata = {**(obj.get("metadata") or {}), "name": f"{prefix}-{self._next()}"}
        return {**obj, "metadata": metadata, "spec": {**(obj.get("spec") or {})}}

    def _node_names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.cluster.list("nodes")]

    def _one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self._chance.below(len(choices))]

    def _next(self) -> int:
        self._made += 1
        return self._made
