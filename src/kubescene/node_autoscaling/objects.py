"""What the autoscaler sees of a world of objects, and how it writes there."""

from collections.abc import Callable, Iterable, Sequence

from kubescene.api.disruption_budgets import BUDGET
from kubescene.api.kinds import JOB, NODE, POD, REPLICA_SET, REPLICATION_CONTROLLER
from kubescene.api.options import DeleteOptions
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.client import ObjectRef
from kubescene.control.loops import ControllerContext
from kubescene.errors import ApiError, NotFoundError
from kubescene.node_autoscaling.actuation import WriteRefusedError
from kubescene.node_autoscaling.nodes import SeenNode
from kubescene.node_autoscaling.pods import SeenPod
from kubescene.recording import NORMAL, WARNING, Notice, regarding, regarding_record
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.types import JsonObject

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
NAMESPACE = "kube-system"
REPORTER = "cluster-autoscaler"
_ENDED = ("Succeeded", "Failed")
_OWNERS = {
    "DaemonSet": DAEMON_SET,
    "Job": JOB,
    "ReplicaSet": REPLICA_SET,
    "ReplicationController": REPLICATION_CONTROLLER,
    "StatefulSet": STATEFUL_SET,
}
_KINDS = {"Normal": NORMAL, "Warning": WARNING}


class ObjectWorld:
    """Nodes and pods by their watches; what is asked for seldom is read when it is."""

    def __init__(self, context: ControllerContext, status_name: str) -> None:
        self._client = context.client
        self._streams = context.streams
        self._recorder = context.recorder
        self._status_name = status_name
        self._classes = PodClasses()
        self._nodes: dict[str, SeenNode] = {}
        self._pods: dict[str, SeenPod] = {}
        self._owners: dict[tuple[str, str, str], JsonObject | None] = {}
        self.changed = False
        self._waiting: set[str] = set()
        """Keys of pods for which the scheduler found no node."""
        self._loop_at = 0
        self.failed_pods = False
        """Whether it found none for a pod, or a node changed while one waits, since set back."""
        self.wrote = False
        for kind, handler in ((NODE, self._node_changed), (POD, self._pod_changed)):
            self._client.watch(kind, handler, quiet=True)

    def begin_loop(self, now: int) -> None:
        """What was read before may be out of date."""
        self._loop_at = now
        self._owners.clear()
        self.changed = False

    # -- watches ---------------------------------------------------------------------------

    def _node_changed(self, change: Change) -> None:
        self.changed = True
        name = change.record.name
        if change.type is ChangeType.DELETED:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = SeenNode(change.object)
        self.failed_pods = self.failed_pods or bool(self._waiting)

    def _pod_changed(self, change: Change) -> None:
        self.changed = True
        record = change.record
        key = f"{record.namespace}/{record.name}"
        known = self._pods.get(key)
        self._waiting.discard(key)
        if change.type is ChangeType.DELETED or record.phase in _ENDED:
            self._pods.pop(key, None)
            return
        before = known.info if known is not None and known.uid == record.uid else None
        pod = self._pods[key] = SeenPod(PodInfo.of(change, self._classes, before))
        if not record.node and pod.is_unschedulable:
            self._waiting.add(key)
            self.failed_pods = True

    # -- what is seen ----------------------------------------------------------------------

    def nodes(self) -> Sequence[SeenNode]:
        return [*self._nodes.values()]

    def pods(self) -> Sequence[SeenPod]:
        """Those without a node come last, in an order that is drawn anew for each loop.

        The real one reads them from a map of Go, which has no order, and packs them as they come:
        which of them fit on nodes that are on their way is chance in every loop.
        """
        pods = [*self._pods.values()]
        waiting = [each for each in pods if not each.info.node]
        if len(waiting) < 2:
            return pods
        stream = self._streams.single(f"cluster-autoscaler/pods/{self._loop_at}")
        for at in range(len(waiting) - 1, 0, -1):
            other = stream.below(at + 1)
            waiting[at], waiting[other] = waiting[other], waiting[at]
        return [*(each for each in pods if each.info.node), *waiting]

    def budgets(self) -> Iterable[JsonObject]:
        return self._client.list(BUDGET)

    def daemon_sets(self) -> Sequence[JsonObject]:
        return self._client.list(DAEMON_SET)

    def controller(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        key = kind, namespace, name
        if key not in self._owners:
            ref = ObjectRef(_OWNERS[kind], name, namespace)
            self._owners[key] = self._client.find(ref)
        return self._owners[key]

    def config_map(self, name: str) -> JsonObject | None:
        return self._client.find(ObjectRef(CONFIG_MAP, name, NAMESPACE))

    def node_of(self, pod: SeenPod) -> str | None:
        found = self._client.find(ObjectRef(POD, pod.name, pod.namespace))
        return None if found is None else str(found["spec"].get("nodeName") or "")

    # -- what is written -------------------------------------------------------------------

    def change_node(self, name: str, change: Callable[[JsonObject], JsonObject | None]) -> bool:
        try:
            changed = change(self._client.get(ObjectRef(NODE, name)))
            if changed is None:
                return False
            self._client.update(changed)
        except ApiError as error:
            raise WriteRefusedError(error.message) from error
        self.wrote = True
        return True

    def evict(self, pod: SeenPod, grace: int) -> None:
        ref = ObjectRef(POD, pod.name, pod.namespace)
        try:
            self._client.evict(ref, options=DeleteOptions(grace_period_s=grace))
        except NotFoundError:
            return
        except ApiError as error:
            raise WriteRefusedError(error.message) from error
        self.wrote = True

    def write_status(self, text: str, now: str) -> None:
        """Keep the ConfigMap with the status."""
        ref = ObjectRef(CONFIG_MAP, self._status_name, NAMESPACE)
        annotations = {"cluster-autoscaler.kubernetes.io/last-updated": now}
        fields = {"metadata": {"annotations": annotations}, "data": {"status": text}}
        try:
            if self._client.find(ref) is None:
                metadata = {"name": ref.name, "namespace": NAMESPACE, "annotations": annotations}
                obj = {"apiVersion": "v1", "kind": "ConfigMap", **fields, "metadata": metadata}
                self._client.create(obj)
            else:
                self._client.patch(ref, fields)
        except ApiError as error:
            # Somebody refuses it; the real autoscaler goes on without.
            self.about_status("Warning", "FailedToWriteStatus", error.message)
            return
        self.wrote = True

    # -- what is told ----------------------------------------------------------------------

    def about_status(self, kind: str, reason: str, message: str) -> None:
        self._about_config_map(self._status_name, kind, reason, message)

    def warn(self, config_map: str, reason: str, message: str) -> None:
        self._about_config_map(config_map, "Warning", reason, message)

    def _about_config_map(self, name: str, kind: str, reason: str, message: str) -> None:
        about = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": NAMESPACE, "name": name}
        self._tell(about, kind, reason, message)

    def about_node(self, node: str, kind: str, reason: str, message: str) -> None:
        if self._recorder.on and node in self._nodes:
            self._tell(regarding(self._nodes[node].object), kind, reason, message)

    def about_pod(self, pod: SeenPod, kind: str, reason: str, message: str) -> None:
        self._tell(regarding_record(pod.info.record, POD), kind, reason, message)

    def _tell(self, about: JsonObject, kind: str, reason: str, message: str) -> None:
        if self._recorder.on:
            self._recorder.tell(Notice(about, _KINDS[kind], reason, message, REPORTER))
