"""What the next node of a group will be like: labels, room, and the pods that every node has."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kubescene.api.records import make_record
from kubescene.api.scheme import GroupResource
from kubescene.api.selectors.daemon_fitness import DaemonFitness, DaemonNode, daemon_tolerations
from kubescene.durations import MINUTE
from kubescene.node_autoscaling.nodes import TEMPLATE_NODE, TO_BE_DELETED, SeenNode, TaintKinds
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.node_autoscaling.provider import NodeGroup, Provider
from kubescene.node_autoscaling.snapshot import ClusterSnapshot
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.types import JsonObject

STABLE = MINUTE
"""A node is a good example once it has been ready for longer than this."""
PODS = GroupResource("", "pods")
MOST_IMPORTANT = "system-node-critical"
_OLD_LABELS = {
    "node.kubernetes.io/instance-type": "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
}


class NodeTemplate(Struct, frozen=True):
    """A node that does not exist, and what runs on it from the start."""

    node: SeenNode
    pods: tuple[SeenPod, ...] = ()

    def another(self, suffix: str) -> "NodeTemplate":
        """A fresh node like this one."""
        node = self.node.renamed(f"{self.node.name}-{suffix}")
        return NodeTemplate(node, tuple(each.copied(node.name) for each in self.pods))


class NodeTemplates:
    """The template of each group; remembers real nodes that were good examples."""

    def __init__(self, taints: TaintKinds, *, force_daemons: bool, kept_for: int) -> None:
        self._taints = taints
        self._force_daemons = force_daemons
        self._kept_for = kept_for
        self._examples: dict[str, tuple[NodeTemplate, int]] = {}
        self._classes = PodClasses()
        self._made = 0

    def recompute(
        self,
        snapshot: ClusterSnapshot,
        nodes: Sequence[SeenNode],
        provider: Provider,
        daemon_sets: Sequence[JsonObject],
        now: int,
    ) -> dict[str, NodeTemplate]:
        """A good node of the group, else the last one, else what the provider says, else any."""
        good = [each for each in nodes if _is_good(each, now)]
        found = self._from(good, snapshot, provider, daemon_sets)
        self._examples |= {group: (each, now) for group, each in found.items()}
        groups = provider.groups()
        for group in groups:
            if group.id not in found:
                other = self._known(group.id, now) or self._told(group, daemon_sets)
                if other is not None:
                    found[group.id] = other
        self._forget(group.id for group in groups)
        bad = [each for each in nodes if not _is_good(each, now)]
        return self._from(bad, snapshot, provider, daemon_sets) | found

    def _from(
        self,
        nodes: Iterable[SeenNode],
        snapshot: ClusterSnapshot,
        provider: Provider,
        daemon_sets: Sequence[JsonObject],
    ) -> dict[str, NodeTemplate]:
        """The first of these nodes in each group."""
        found: dict[str, NodeTemplate] = {}
        for node in nodes:
            group = provider.group_of(node.provider_id, node.name)
            if group is not None and group.id not in found:
                pods = snapshot.pods_on(node.name)
                found[group.id] = self._of(
                    node, pods, group.id, daemon_sets, every=self._force_daemons
                )
        return found

    def _known(self, group: str, now: int) -> NodeTemplate | None:
        if group not in self._examples:
            return None
        example, since = self._examples[group]
        if now - since > self._kept_for:
            del self._examples[group]
            return None
        return example

    def _told(self, group: NodeGroup, daemon_sets: Sequence[JsonObject]) -> NodeTemplate | None:
        told = group.template()
        if told is None:
            return None
        template = self._of(SeenNode(told), (), group.id, daemon_sets, every=True)
        labels = template.node.labels
        labels |= {old: labels[new] for new, old in _OLD_LABELS.items() if new in labels}
        return template

    def _forget(self, groups: Iterable[str]) -> None:
        there = set(groups)
        for gone in [each for each in self._examples if each not in there]:
            del self._examples[gone]

    def _of(
        self,
        example: SeenNode,
        pods: Iterable[SeenPod],
        group: str,
        daemon_sets: Sequence[JsonObject],
        *,
        every: bool,
    ) -> NodeTemplate:
        """``every``: all daemon sets that match, not only the most important ones."""
        self._made += 1
        name = f"template-node-for-{group}-{self._made}"
        taints = [each for each in example.taints if self._taints.stays(each["key"])]
        node = SeenNode(_marked(example.tainted(taints).renamed(name).object))
        staying = [pod for pod in pods if pod.deleted is None]
        kept = [pod.unbound() for pod in staying if pod.is_mirror or pod.is_daemon]
        owners = (pod.controller for pod in staying)
        running = {it.uid for it in owners if it is not None and it.kind == "DaemonSet"}
        missing = [
            self._daemon_pod(each)
            for each in daemon_sets
            if each["metadata"]["uid"] not in running
            and (every or _preempts(each["spec"]["template"]["spec"]))
            and _belongs(each, node)
        ]
        return NodeTemplate(node, (*kept, *missing))

    def _daemon_pod(self, daemon_set: JsonObject) -> SeenPod:
        metadata, template = daemon_set["metadata"], daemon_set["spec"]["template"]
        labels: Mapping[str, str] = template.get("metadata", {}).get("labels") or {}
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        pod = {
            "metadata": {
                "name": f"{metadata['name']}-pod",
                "namespace": metadata["namespace"],
                "uid": f"{metadata['uid']}-pod",
                "labels": dict(labels),
                "annotations": template.get("metadata", {}).get("annotations") or {},
                "ownerReferences": [owner],
            },
            "spec": {**template["spec"], "tolerations": daemon_tolerations(template["spec"])},
        }
        return SeenPod(PodInfo.read(make_record(PODS, pod, 1), pod, self._classes), pod)


def _marked(node: JsonObject) -> JsonObject:
    """No machine stands behind it."""
    node["metadata"]["labels"][TEMPLATE_NODE] = "true"
    node["spec"].pop("providerID", None)
    return node


def _belongs(daemon_set: JsonObject, node: SeenNode) -> bool:
    fitness = DaemonFitness(daemon_set["spec"]["template"]["spec"])
    return fitness.of(DaemonNode(node.name, node.labels, node.taints))[0]


def _preempts(spec: JsonObject) -> bool:
    if spec.get("priorityClassName") != MOST_IMPORTANT:
        return False
    return spec.get("preemptionPolicy") in (None, "PreemptLowerPriority")


def _is_good(node: SeenNode, now: int) -> bool:
    since = node.readiness_since
    is_stable = since is None or since + STABLE < now
    is_open = not node.is_cordoned and not node.has_taint(TO_BE_DELETED)
    return node.is_ready and is_stable and is_open
