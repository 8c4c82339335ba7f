"""The taint eviction controller: taints with the effect NoExecute drive pods away from their node.

A pod that does not tolerate them all is deleted at once. One that tolerates them for a while is
deleted when the shortest of the tolerations that it needs is over, counted from the moment at which
that was found out; if the taints go before, it stays. Disruption budgets are not asked.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kubescene.api.kinds import NODE, POD
from kubescene.api.options import DeleteOptions
from kubescene.api.patching.patches import PatchType
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors.tolerations import tolerates
from kubescene.client import ObjectRef, Reader
from kubescene.clock import go_seconds
from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.nodes.node_conditions import NO_EXECUTE, taints_of
from kubescene.controllers.builtin.nodes.pods_on_nodes import PODS, PodsOnNodes, disruption
from kubescene.controllers.reconcile import NOTHING, Delete, ObjectKey, Patch, Plan, Write
from kubescene.errors import ApiError, ConflictError, NotFoundError
from kubescene.recording import NORMAL, Notice, regarding
from kubescene.types import JsonObject

REPORTER = "taint-eviction-controller"
EVENT = "TaintManagerEviction"
MESSAGE = "Taint manager: deleting due to NoExecute taint"
MENTION = b'"NoExecute"'


class DueEviction(Struct, frozen=True):
    """When a pod goes, and when that was decided."""

    uid: str
    since: int
    at: int


class TaintEvictionReconciler:
    """Keys with a namespace are pods; one without only says that pods have begun to matter."""

    name = "taint-eviction"
    kinds: Sequence[GroupVersionKind] = (NODE,)

    def __init__(self) -> None:
        self._tainted: dict[str, list[JsonObject]] = {}
        self._pods = PodsOnNodes()
        self._due: dict[ObjectKey, DueEviction] = {}
        self._evicted: dict[ObjectKey, str] = {}
        self.needs_pods = False

    # -- watching --------------------------------------------------------------------------

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        if change.record.resource == PODS:
            return self._observe_pod(change)
        name = change.record.name
        if change.type is ChangeType.DELETED:
            # Who was to go still goes: nobody has taken the taint away.
            self._tainted.pop(name, None)
            return ()
        taints: list[JsonObject] = []
        if change.record.members_mention(MENTION):
            taints = [each for each in taints_of(change.object) if each["effect"] == NO_EXECUTE]
        if taints == self._tainted.get(name, []):
            return ()
        return self._taint(name, taints)

    def _taint(self, name: str, taints: list[JsonObject]) -> Iterable[ObjectKey]:
        if taints:
            self._tainted[name] = taints
        else:
            del self._tainted[name]
        if not self.needs_pods:
            self.needs_pods = True
            return (ObjectKey("", name),)
        return self._pods.on(name)

    def _observe_pod(self, change: Change) -> Iterable[ObjectKey]:
        self._pods.observe(change)
        record = change.record
        key = ObjectKey(record.namespace, record.name)
        if change.type is ChangeType.DELETED:
            self._evicted.pop(key, None)
            return (key,) if key in self._due else ()
        if record.node not in self._tainted or not may_matter(change):
            return ()
        return (key,)

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        if not key.namespace:
            return NOTHING
        pod = reader.find(ObjectRef(POD, key.name, key.namespace))
        due = self._due_of(key, pod)
        if pod is None or self._evicted.get(key) == pod["metadata"]["uid"]:
            return NOTHING
        if due is not None and due.at <= now:
            return self._evict(key, pod, now)
        taints = self._tainted.get(pod["spec"].get("nodeName", ""))
        seconds = None if taints is None else time_left(pod, taints)
        if seconds is None:
            return Plan(notices=self._cancelled(key, pod))
        if seconds <= 0:
            notices = self._cancelled(key, pod)
            plan = self._evict(key, pod, now)
            return Plan(plan.writes, notices=(*notices, *plan.notices))
        if due is not None and due.since < now:
            return NOTHING  # What was decided first holds, whatever other taints have come.
        wait = go_seconds(seconds)
        self._due[key] = DueEviction(pod["metadata"]["uid"], now, now + wait)
        return Plan(requeue_after=wait)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """It is gone, or another has its name."""
        del key, write, reader, now
        if isinstance(error, NotFoundError | ConflictError):
            return NOTHING
        raise error

    def _due_of(self, key: ObjectKey, pod: JsonObject | None) -> DueEviction | None:
        """What was decided about this pod; what concerned one of its name is forgotten."""
        due = self._due.get(key)
        if due is None or (pod is not None and pod["metadata"]["uid"] == due.uid):
            return due
        del self._due[key]
        return None

    def _evict(self, key: ObjectKey, pod: JsonObject, now: int) -> Plan:
        self._due.pop(key, None)
        uid = self._evicted[key] = pod["metadata"]["uid"]
        ref = ObjectRef.to(pod)
        condition = disruption(pod, "DeletionByTaintManager", MESSAGE, now)
        patch = {"status": {"conditions": [condition]}}
        marked = Patch(ref, patch, PatchType.STRATEGIC, "status")
        told = notice(pod, "Marking for deletion Pod")
        return Plan((marked, Delete(ref, DeleteOptions(uid=uid))), notices=(told,))

    def _cancelled(self, key: ObjectKey, pod: JsonObject) -> tuple[Notice, ...]:
        if self._due.pop(key, None) is None:
            return ()
        return (notice(pod, "Cancelling deletion of Pod"),)


def may_matter(change: Change) -> bool:
    """Whether a pod has come to its node, or tolerates other taints than before."""
    previous = change.previous
    if previous is None or previous.node != change.record.node:
        return True
    before = change.previous_object
    return before is None or tolerations_of(before) != tolerations_of(change.object)


def time_left(pod: JsonObject, taints: Sequence[JsonObject]) -> int | None:
    """For how many seconds a pod puts up with taints; None: for ever."""
    lasting: list[int] = []
    for taint in taints:
        matching = next((it for it in tolerations_of(pod) if tolerates(it, taint)), None)
        if matching is None:
            return 0
        if matching.get("tolerationSeconds") is not None:
            lasting.append(int(matching["tolerationSeconds"]))
    return min(lasting, default=None)


def tolerations_of(pod: JsonObject) -> list[JsonObject]:
    tolerations: list[JsonObject] = pod["spec"].get("tolerations") or []
    return tolerations


def notice(pod: JsonObject, what: str) -> Notice:
    metadata = pod["metadata"]
    text = f"{what} {metadata['namespace']}/{metadata['name']}"
    return Notice(regarding(pod), NORMAL, EVENT, text, REPORTER)


def taint_eviction(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    return LatePodsController(TaintEvictionReconciler(), context)
