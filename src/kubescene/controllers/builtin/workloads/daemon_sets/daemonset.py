"""The DaemonSet controller: a pod on every node that fits, updated node by node.

A pass makes and removes pods first. Only when there is nothing left of that, a rolling update takes
its next step. Nodes are judged in `places`; here this becomes writes.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import chain, islice

from kubescene.api.kinds import NODE, POD, TEMPLATE_GENERATION
from kubescene.api.options import LASTING, DeleteOptions, WriteOptions
from kubescene.api.records.changes import DELETED, Change
from kubescene.api.records.templates import TargetedBlueprint, targeted
from kubescene.api.records.traits import COMES_OR_GOES, OWNED, RELABELED
from kubescene.api.scheme import GroupVersionKind
from kubescene.api.selectors.daemon_fitness import DaemonNode, daemon_tolerations
from kubescene.client import ObjectRef, Reader
from kubescene.control.loops import ControllerContext
from kubescene.controllers.authoring import controller_of
from kubescene.controllers.builtin.late_pods import LatePodsController
from kubescene.controllers.builtin.workloads.controller_revisions import (
    CONTROLLER_REVISION,
    REVISION_LABEL,
    holds,
    in_order,
    is_stored,
    labels_of,
    new_revision,
    next_number,
    number_of,
    removed,
    renumbered,
)
from kubescene.controllers.builtin.workloads.daemon_sets.places import (
    FIRST_BACK_OFF,
    GENERATION_LABEL,
    Daemon,
    DaemonHistory,
    DaemonPod,
    FailedPodsBackOff,
    Revision,
    daemon_pod,
)
from kubescene.controllers.builtin.workloads.orphans import PodOwners
from kubescene.controllers.reconcile import (
    NOTHING,
    Create,
    Delete,
    ObjectKey,
    Patch,
    Plan,
    Write,
)
from kubescene.errors import ApiError, NotFoundError
from kubescene.recording import NORMAL, WARNING, Notice, regarding
from kubescene.types import JsonObject

DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
REPORTER = "daemonset-controller"
BURST = 250
"""At most this many pods are created, and deleted, in one pass."""


class DaemonSetReconciler:
    """Keys are DaemonSets.

    Between passes it remembers nodes, the pods of each set, pods and revisions that nobody manages,
    and deletions that a refused creation must not prevent.
    """

    name = "daemonset"
    kinds: Sequence[GroupVersionKind] = (DAEMON_SET, CONTROLLER_REVISION)

    def __init__(self) -> None:
        self._daemons = PodOwners(Daemon)
        self._nodes: dict[str, DaemonNode] = {}
        self._deletions: dict[ObjectKey, list[Delete]] = {}
        self._now = 0

    # -- watching --------------------------------------------------------------------------

    @property
    def needs_pods(self) -> bool:
        """Nodes and pods matter as soon as there is a set."""
        return bool(self._daemons.by_uid)

    def observe(self, change: Change) -> Iterable[ObjectKey]:
        match change.record.resource.resource:
            case "pods":
                return self._daemons.observe_pod(change, self._put)
            case "nodes":
                return self._observe_node(change)
            case "daemonsets":
                return self._observe_set(change)
        return self._observe_revision(change)

    def _observe_set(self, change: Change) -> Iterable[ObjectKey]:
        key = self._daemons.observe(change)
        if change.type is DELETED:
            self._deletions.pop(key, None)
        return (key,)

    def _observe_revision(self, change: Change) -> Iterable[ObjectKey]:
        record, previous = change.record, change.previous
        concerned = dict.fromkeys(self._daemons.revisions.observe(change))
        for owner in (record.owner, previous.owner if previous else ""):
            if (daemon := self._daemons.by_uid.get(owner)) is not None:
                daemon.history = None
                concerned.setdefault(daemon.key)
        return concerned

    def _observe_node(self, change: Change) -> Iterable[ObjectKey]:
        """A node wakes those sets that have a pod to make or to remove there, and only these."""
        record, previous = change.record, change.previous
        if change.type is DELETED:
            self._nodes.pop(record.name, None)
            for daemon in self._daemons.by_uid.values():
                daemon.dirty[record.name] = None
            return ()
        # Most changes of nodes are reports of their status.
        if previous is not None and record.labels == previous.labels:
            spec = record.spec_key
            if spec is not None and spec == previous.spec_key:
                return ()
        taints = (change.object.get("spec") or {}).get("taints") or ()
        node, known = DaemonNode(record.name, record.labels, taints), self._nodes.get(record.name)
        self._nodes[record.name] = node
        if node == known:
            return ()
        concerned = []
        for daemon in self._daemons.by_uid.values():
            daemon.dirty[record.name] = None
            if daemon.wakes_for(node):
                concerned.append(daemon.key)
        return concerned

    def _put(self, daemon: Daemon, change: Change) -> bool:
        """Note a pod of a set; whether it means something to the set."""
        record = change.record
        pod = daemon_pod(change, daemon.pods.get(record.name))
        matches = daemon.selector.matches(record.labels)
        means_nothing = matches and daemon.only_binds(pod)
        daemon.put(pod, matches=matches)
        if means_nothing:
            daemon.dirty.clear()
        return not means_nothing

    # -- deciding --------------------------------------------------------------------------

    def reconcile(self, key: ObjectKey, reader: Reader, now: int) -> Plan:
        self._now = now
        daemon_set = reader.find(ObjectRef(DAEMON_SET, key.name, key.namespace))
        daemon = self._daemons.of(daemon_set)
        if daemon_set is None or daemon is None or "deletionTimestamp" in daemon_set["metadata"]:
            return NOTHING
        # What changes brings this key back, and the pass goes on from there.
        if claimed := self._daemons.claims(daemon_set, daemon.strays, reader):
            return Plan(claimed)
        spec = daemon_set["spec"]
        if daemon.history is None or not daemon.history.is_of(spec["template"]):
            daemon.history, writes = found_history(daemon_set, daemon, reader)
            if daemon.history is None:
                return Plan(writes)
        revision = Revision(daemon.history.hash, template_generation(daemon_set))
        daemon.renew(spec, revision, self._nodes)
        notices = self._look(daemon_set, daemon)
        creations, deletions = planned(daemon_set, daemon)
        self._deletions[key] = deletions
        history = surplus_history(daemon_set, daemon, daemon.history.old)
        status = status_writes(daemon_set, daemon)
        again = daemon.due[0][0] - now if daemon.due else None
        return Plan([*creations, *deletions, *history, *status], again, notices)

    def refused(
        self, key: ObjectKey, write: Write, error: ApiError, reader: Reader, now: int
    ) -> Plan:
        """A refused write is told as an event; pods that have to go do so all the same."""
        del now
        daemon_set = reader.find(ObjectRef(DAEMON_SET, key.name, key.namespace))
        daemon = self._daemons.of(daemon_set)
        if daemon_set is None or daemon is None:
            return NOTHING
        creating = isinstance(write, Create)
        if isinstance(error, NotFoundError) and not creating:
            return NOTHING
        if not isinstance(write, Delete) and not is_pod(write):
            return NOTHING  # Tried again later, and not told.
        writes = status_writes(daemon_set, daemon)
        if creating:
            writes = [*self._deletions.pop(key, ()), *writes]
        if error.has_cause("NamespaceTerminating"):
            return Plan(writes)
        reason, what = ("FailedCreate", "creating") if creating else ("FailedDelete", "deleting")
        told = notice(daemon_set, WARNING, reason, f"Error {what}: {error.message}")
        return Plan(writes, notices=(told,))

    def _look(self, daemon_set: JsonObject, daemon: Daemon) -> list[Notice]:
        """Look at the nodes that have changed, or whose time has come; what is said of pods."""
        now = self._now
        while daemon.due and daemon.due[0][0] <= now:
            daemon.dirty[heappop(daemon.due)[1]] = None
        dirty, daemon.dirty = daemon.dirty, {}
        put_off = partial(self._is_put_off, daemon)
        for name in dirty:
            daemon.look(name, self._nodes.get(name), now, put_off)
        doomed = [pod for name in dirty for pod in daemon.surplus.get(name, ())]
        told = [over(daemon_set, daemon, pod) for pod in doomed]
        return [each for each in told if each is not None]

    def _is_put_off(self, daemon: Daemon, pod: str) -> bool:
        """Whether failed pods of this node have to wait; if not, the next one has to for longer."""
        node, now = daemon.pods[pod].node, self._now
        known = daemon.back_offs.get(node)
        if known is not None and not known.is_over(now):
            heappush(daemon.due, (known.since + known.length, node))
            return True
        daemon.back_offs[node] = (
            FailedPodsBackOff(FIRST_BACK_OFF, now) if known is None else known.next(now)
        )
        return False


def found_history(
    daemon_set: JsonObject, daemon: Daemon, reader: Reader
) -> tuple[DaemonHistory | None, list[Write]]:
    """The revisions of a set, or what has to be written before they can be told."""
    template = daemon_set["spec"]["template"]
    owned = in_order(reader.owned(CONTROLLER_REVISION, daemon_set["metadata"]["uid"]))
    if unlabelled := [each for each in owned if REVISION_LABEL not in labels_of(each)]:
        return None, [labelled(each, each["metadata"]["name"]) for each in unlabelled]
    current = [each for each in owned if holds(each, template)]
    old = [each for each in owned if not holds(each, template)]
    number = next_number(old)
    if not current:
        status = daemon_set.get("status") or {}
        before = int(status.get("collisionCount") or 0)
        made, collisions = new_revision(daemon_set, number, before, REVISION_LABEL, reader)
        writes: list[Write] = [] if is_stored(made) else [Create(made)]
        if collisions != before:
            change = {"status": {"collisionCount": collisions}}
            writes.append(Patch(ObjectRef.to(daemon_set), change, subresource="status"))
        return (None, writes) if writes else (DaemonHistory(template, hash_of(made), old), [])
    kept = current[-1]
    if len(current) > 1:
        return None, without_doubles(daemon, kept, current[:-1])
    if number_of(kept) < number:
        return None, [renumbered(kept, number)]
    return DaemonHistory(template, hash_of(kept), old), []


def without_doubles(daemon: Daemon, kept: JsonObject, doubles: list[JsonObject]) -> list[Write]:
    """Of several revisions with one template the newest stays, and all pods are of that."""
    strangers = [pod for pod in daemon.pods.values() if pod.hash != hash_of(kept)]
    refs = [ObjectRef(POD, pod.name, daemon.key.namespace) for pod in strangers]
    change = {"metadata": {"labels": {REVISION_LABEL: hash_of(kept)}}}
    return [*(Patch(ref, change) for ref in refs), *removed(doubles)]


def labelled(revision: JsonObject, value: str) -> Patch:
    return Patch(ObjectRef.to(revision), {"metadata": {"labels": {REVISION_LABEL: value}}})


def hash_of(revision: JsonObject) -> str:
    return str(labels_of(revision).get(REVISION_LABEL, ""))


def surplus_history(daemon_set: JsonObject, daemon: Daemon, old: list[JsonObject]) -> list[Delete]:
    """Revisions that no pod has, beyond those that are kept."""
    too_many = len(old) - int(daemon_set["spec"].get("revisionHistoryLimit", 10))
    unused = [each for each in old if not daemon.hashes[hash_of(each)]]
    return removed(unused[: max(too_many, 0)])


def template_generation(daemon_set: JsonObject) -> str:
    """The number of the template that pods are labelled with; empty if there is none."""
    annotations = daemon_set["metadata"].get("annotations") or {}
    text = str(annotations.get(TEMPLATE_GENERATION, ""))
    return str(int(text)) if text.isdecimal() else ""


# -- pods ------------------------------------------------------------------------------------


def planned(daemon_set: JsonObject, daemon: Daemon) -> tuple[list[Create], list[Delete]]:
    """What is missing and too much, or else the next step of an update."""
    nodes: Iterable[str] = daemon.missing
    pods: Iterable[str] = chain.from_iterable(daemon.surplus.values())
    if not daemon.missing and not daemon.surplus and daemon.limits.rolling:
        nodes, pods = updated(daemon)
    created = [*islice(nodes, BURST)]
    return (
        list(creations(daemon_set, daemon, created)) if created else [],
        [deletion(daemon_set, daemon.pods[name]) for name in islice(pods, BURST)],
    )


def updated(daemon: Daemon) -> tuple[Iterable[str], Iterable[str]]:
    """Nodes that get a new pod beside the old one, and old pods that go, in a rolling update."""
    totals = daemon.totals
    surge, unavailable = daemon.limits.resolved(totals["desired"])
    if surge:
        left = max(surge - totals["surging"], 0)
        return chain(daemon.broken, islice(daemon.old, left)), daemon.outdone.values()
    left = max(unavailable - totals["unavailable"], 0)
    return (), chain(daemon.broken.values(), islice(daemon.old.values(), left))


def creations(daemon_set: JsonObject, daemon: Daemon, nodes: Iterable[str]) -> Iterator[Create]:
    template = daemon_set["spec"]["template"]
    given, spec = template.get("metadata") or {}, template["spec"]
    labels = {**(given.get("labels") or {}), REVISION_LABEL: daemon.revision.hash}
    if daemon.revision.generation:
        labels[GENERATION_LABEL] = daemon.revision.generation
    metadata: JsonObject = {
        "generateName": f"{daemon.key.name}-",
        "namespace": daemon.key.namespace,
        "labels": labels,
        "ownerReferences": [controller_of(daemon_set)],
    }
    for field in ("annotations", "finalizers"):
        if given.get(field):
            metadata[field] = given[field]
    spec = targeted({**spec, "tolerations": daemon_tolerations(spec)}, "")
    body: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    options = WriteOptions(blueprint=TargetedBlueprint(body))
    news = notice(daemon_set, NORMAL, "SuccessfulCreate", "Created pod: {name}")
    for node in nodes:
        yield Create({**body, "spec": targeted(spec, node)}, news, options)


def deletion(daemon_set: JsonObject, pod: DaemonPod) -> Delete:
    ref = ObjectRef(POD, pod.name, daemon_set["metadata"]["namespace"])
    news = notice(daemon_set, NORMAL, "SuccessfulDelete", f"Deleted pod: {pod.name}")
    return Delete(ref, DeleteOptions(uid=pod.uid), news)


def over(daemon_set: JsonObject, daemon: Daemon, name: str) -> Notice | None:
    """What is said of a pod that has ended, though daemon pods never should."""
    pod = daemon.pods[name]
    where = f"daemon pod {daemon.key.namespace}/{name} on node {pod.node}"
    if pod.phase == "Failed":
        told = f"Found failed {where}, will try to kill it"
        return notice(daemon_set, WARNING, "FailedDaemonPod", told)
    if pod.phase == "Succeeded":
        told = f"Found succeeded {where}, will try to delete it"
        return notice(daemon_set, NORMAL, "SucceededDaemonPod", told)
    return None


def is_pod(write: Write) -> bool:
    return isinstance(write, Create) and write.obj["kind"] == POD.kind


def notice(daemon_set: JsonObject, kind: str, reason: str, message: str) -> Notice:
    return Notice(regarding(daemon_set), kind, reason, message, REPORTER)


# -- status ----------------------------------------------------------------------------------


def status_writes(daemon_set: JsonObject, daemon: Daemon) -> list[Write]:
    """The counts, if they have changed."""
    totals, old = daemon.totals, daemon_set.get("status") or {}
    status: JsonObject = {
        "currentNumberScheduled": totals["current"],
        "numberMisscheduled": totals["misscheduled"],
        "desiredNumberScheduled": totals["desired"],
        "numberReady": totals["ready"],
        "observedGeneration": daemon_set["metadata"].get("generation", 1),
    }
    counts = {
        "updatedNumberScheduled": totals["updated"],
        "numberAvailable": totals["available"],
        "numberUnavailable": totals["desired"] - totals["available"],
    }
    status |= {name: count for name, count in counts.items() if count}
    status |= {name: old[name] for name in ("collisionCount", "conditions") if name in old}
    if status == old:
        return []
    gone = {name: None for name in old if name not in status}
    patch = {"status": {**gone, **status}}
    return [Patch(ObjectRef.to(daemon_set), patch, subresource="status", options=LASTING)]


def daemonset(context: ControllerContext) -> LatePodsController:
    """The factory of the controller."""
    traits = COMES_OR_GOES | OWNED | RELABELED
    return LatePodsController(DaemonSetReconciler(), context, traits, before=(NODE,))
