"""The scheduler as a controller: follows nodes and pods, and places one pod per loop.

`Scheduler.run_once` is one pop from the queue and all that follows from it without waiting: a
cycle decides (`cycle`), the pod is assumed on its node, reserved, permitted and bound; or the
failed attempt is written into its ``PodScheduled`` condition and the pod goes back into the
queue.

What the scheduler knows comes through its watches alone. A pod that it bound is confirmed by the
watch; until then it is *assumed*, that is, counted on its node already.
"""

from collections.abc import Sequence

from kubescene.api.changes import Change, ChangeType
from kubescene.api.patches import PatchType
from kubescene.api.records import Record
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Scheduled, format_time
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.errors import ApiError, ConfigurationError
from kubescene.scheduler import notices
from kubescene.scheduler.cluster_events import (
    NODE_ADDED,
    NODE_DELETED,
    POD_ADDED,
    POD_DELETED,
    Hints,
    node_events,
    pod_events,
)
from kubescene.scheduler.config import Profile, default_profile
from kubescene.scheduler.cycle import UNSCHEDULABLE, Cycle, Decision, StartIndex
from kubescene.scheduler.interfaces import Handle
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.nominations import Nominations
from kubescene.scheduler.pods import PodClasses, PodInfo
from kubescene.scheduler.queue import QueuedPod, SchedulingQueue
from kubescene.scheduler.registry import PluginRegistry, default_registry
from kubescene.scheduler.runtime import Extension, Framework
from kubescene.scheduler.status import SUCCESS, Code, Status
from kubescene.timeline.attempts import SchedulingAttempt
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject

NAME = "kube-scheduler"
POD = GroupVersionKind("", "v1", "Pod")
NODE = GroupVersionKind("", "v1", "Node")

_ENDED = frozenset({"Succeeded", "Failed"})


class Scheduler:
    """All profiles of one scheduler over one queue and one node table."""

    name = NAME

    def __init__(
        self,
        context: ControllerContext,
        profiles: Sequence[Profile],
        registry: PluginRegistry,
        explain: Explain = Explain.AUTO,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._timers = context.timers
        self._instruments = context.instruments
        self._recorder = context.recorder
        self._explain = explain
        self.nodes = NodeTable()
        self.nominations = Nominations()
        self.start_index = StartIndex()
        self._classes = PodClasses()
        self._placed: dict[str, PodInfo] = {}
        self._timer: Scheduled | None = None
        self._cycles: dict[str, Cycle] = {}
        for profile in profiles:
            self._cycles[profile.scheduler_name] = self._make_cycle(profile, registry, context)
        self.queue = self._make_queue(profiles)
        self._client.watch(NODE, self._node_changed)
        self._client.watch(POD, self._pod_changed)

    def _make_cycle(
        self, profile: Profile, registry: PluginRegistry, context: ControllerContext
    ) -> Cycle:
        name = profile.scheduler_name
        if name in self._cycles:
            raise ConfigurationError(f"two scheduler profiles have the name {name!r}")
        random = context.streams.stream(f"scheduler/{name}")
        handle = Handle(self._client, self.nodes, self._clock, random, name)
        framework = Framework(profile, registry, handle)
        return Cycle(framework, self.nodes, self.nominations, self.start_index)

    def cycle_of(self, scheduler_name: str) -> Cycle:
        """The cycle of one profile, for those who want a decision without its effects."""
        return self._cycles[scheduler_name]

    def _make_queue(self, profiles: Sequence[Profile]) -> SchedulingQueue:
        frameworks = {name: cycle.framework for name, cycle in self._cycles.items()}
        sort = frameworks[profiles[0].scheduler_name].queue_sort.call
        hints = {name: Hints(framework.events()) for name, framework in frameworks.items()}

        def pre_enqueue(pod: PodInfo) -> Status:
            for extension in frameworks[pod.scheduler_name].pre_enqueue:
                status: Status = extension.call(pod)
                if not status.ok:
                    return status.by(extension.name)
            return SUCCESS

        return SchedulingQueue(self._clock, sort, pre_enqueue, hints)

    # -- the loop --------------------------------------------------------------------------

    def run_once(self) -> Progress:
        """Attempt one pod.

        ``more`` is true while a pod is ready, or was rejected a moment ago and something has
        happened since that may help it: an idle scheduler does not wait for the end of a backoff.
        Pods that ran into an error do not count: they wait for the clock or for `begin_step`.
        """
        entry = self.queue.pop()
        if entry is None:
            self._set_timer()
            return IDLE
        wrote = self._attempt(entry)
        more = self.queue.has_work
        if not more:
            self._set_timer()
        return Progress(wrote, more)

    def begin_step(self) -> None:
        """A new step of the scenario begins: pods whose last attempt ended in an error are due
        again.

        Time stands still within a step, so their backoff would never end there, and retrying them
        at once would never end either. They get one attempt per step.
        """
        self.queue.retry_failed()

    def _attempt(self, entry: QueuedPod) -> bool:
        pod = entry.pod
        if pod.terminating or pod.uid in self._placed:
            if pod.terminating and self._recorder.on:
                self._recorder.tell(notices.skipped(pod))
            self.queue.done(entry)
            return False
        # Nobody listens, nobody explains; somebody may come at any time.
        explain = self._explain if self._instruments.pod_attempted else None
        decision = self._cycles[pod.scheduler_name].decide(pod, explain=explain)
        if decision.node:
            self._place(entry, decision)
        if decision.node:
            return True
        return self._failed(entry, decision)

    # -- success ---------------------------------------------------------------------------

    def _place(self, entry: QueuedPod, decision: Decision) -> None:
        """Assume, reserve, permit and bind; what goes wrong turns the decision into a failure."""
        pod, node = entry.pod, decision.node
        framework = self._cycles[pod.scheduler_name].framework
        assumed = pod.assumed(node)
        self._placed[pod.uid] = assumed
        self.nodes.add_pod(assumed, node)
        status = self._binding(framework, decision, assumed)
        if status.ok:
            self.queue.done(entry)
            for extension in framework.post_bind:
                extension.call(decision.state, assumed, node)
            if self._recorder.on:
                self._recorder.tell(notices.scheduled(pod, node))
            self._report(pod, decision, self._placed[pod.uid].record)
            return
        for extension in reversed(framework.reserve):
            if extension.undo is not None:
                extension.undo(decision.state, assumed, node)
        self._forget(assumed)
        _refuse(decision, status)

    def _binding(self, framework: Framework, decision: Decision, pod: PodInfo) -> Status:
        state, node = decision.state, decision.node
        for extension in framework.reserve:
            status: Status = extension.call(state, pod, node)
            if not status.ok:
                return _named(status, extension, "Reserve")
        for extension in framework.permit:
            status, _ = extension.call(state, pod, node)
            if not status.ok:
                return _named(status, extension, "Permit")
        for extension in framework.pre_bind:
            status = extension.call(state, pod, node)
            if status.code not in (Code.SUCCESS, Code.SKIP):
                return _named(status, extension, "PreBind")
        for extension in framework.bind:
            status = extension.call(state, pod, node)
            if status.code is not Code.SKIP:
                return status if status.ok else _named(status, extension, "Bind")
        return Status.error("no Bind plugin took the pod")

    def _forget(self, assumed: PodInfo) -> None:
        if self._placed.get(assumed.uid) is assumed:
            del self._placed[assumed.uid]
            self.nodes.remove_pod(assumed, assumed.node)

    # -- failure ---------------------------------------------------------------------------

    def _failed(self, entry: QueuedPod, decision: Decision) -> bool:
        pod = entry.pod
        still_pending = self.queue.get(pod.uid) is entry
        self.queue.put_back(entry, decision.plugins, decision.pending_plugins)
        record: Record | None = None
        if still_pending:
            if decision.nominated is not None:
                self.nominations.add(entry.pod, decision.nominated)
            if self._recorder.on:
                self._recorder.tell(notices.failed(pod, decision.message))
            record = self._write_failure(entry.pod, decision)
        self._report(pod, decision, record or entry.pod.record)
        return record is not None

    def _write_failure(self, pod: PodInfo, decision: Decision) -> Record | None:
        """Patch condition and nomination; None if both are what they were."""
        patch = failure_patch(pod, decision, format_time(self._clock.now()))
        if patch is None:
            return None
        ref = ObjectRef(POD, pod.name, pod.namespace)
        try:
            return self._client.patch(
                ref, {"status": patch}, patch_type=PatchType.STRATEGIC, subresource="status"
            )
        except ApiError:
            # As upstream: the attempt stands, the pod may have gone in the meantime.
            return None

    def _report(self, pod: PodInfo, decision: Decision, record: Record) -> None:
        hooks = self._instruments.pod_attempted
        if not hooks:
            return
        attempt = SchedulingAttempt(
            actor=self._client.actor,
            pod=record,
            profile=pod.scheduler_name,
            node=decision.node,
            message=decision.message,
            reason=decision.reason,
            nominated=decision.nominated or "",
            plugins=decision.plugins,
            evaluated=decision.evaluated,
            feasible=decision.feasible,
            explanation=decision.explanation,
        )
        for hook in hooks:
            hook(attempt)

    # -- time ------------------------------------------------------------------------------

    def _set_timer(self) -> None:
        """Ask to be woken when the queue has something to flush; nobody waits, no timer."""
        due = self.queue.next_flush()
        timer = self._timer
        if timer is not None and timer.pending:
            if timer.instant == due:
                return
            timer.cancel()
        self._timer = None
        if due is not None:
            self._timer = self._timers.at(due, self._wake, name=f"{NAME} flush")

    def _wake(self) -> None:
        self.queue.flush()
        self._set_timer()

    # -- watching --------------------------------------------------------------------------

    def _node_changed(self, change: Change) -> None:
        if change.type is ChangeType.DELETED:
            self.queue.notify(NODE_DELETED, change)
            self.nodes.remove_node(change.record.name)
            return
        self.nodes.set_node(change.record, change.object)
        if not self.queue.is_listening:
            return
        before = change.previous_object
        events = [NODE_ADDED] if before is None else node_events(before, change.object)
        for event in events:
            self.queue.notify(event, change)

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        placed = self._placed.get(record.uid)
        if change.type is ChangeType.DELETED or record.phase in _ENDED:
            self._pod_gone(change, placed)
        elif record.node:
            self._pod_placed(change, placed)
        else:
            self._pod_pending(change)

    def _pod_gone(self, change: Change, placed: PodInfo | None) -> None:
        if placed is not None:
            del self._placed[placed.uid]
            self.nodes.remove_pod(placed, placed.node)
            self.queue.notify(POD_DELETED, change)
        entry = self.queue.delete(change.record.uid)
        if entry is not None:
            self._end_nomination(entry.pod, change)

    def _pod_placed(self, change: Change, placed: PodInfo | None) -> None:
        record = change.record
        before = change.previous
        if before is None or not before.node:
            self._pod_bound(change, placed)
            return
        pod = PodInfo(record, change.object, self._classes)
        self._placed[record.uid] = pod
        if placed is None:
            self.nodes.add_pod(pod, pod.node)
        else:
            self.nodes.update_pod(placed, pod, pod.node)
        if self.queue.is_listening and (before_object := change.previous_object) is not None:
            for event in pod_events(before_object, change.object):
                self.queue.notify(event, change)

    def _pod_bound(self, change: Change, placed: PodInfo | None) -> None:
        """A pod got its node: we had assumed it there, or somebody else decided."""
        record = change.record
        if placed is not None and placed.node == record.node:
            self.nodes.confirm_pod(placed, record)
        else:
            if placed is not None:
                self._forget(placed)
            pod = self._placed[record.uid] = PodInfo(record, change.object, self._classes)
            self.nodes.add_pod(pod, pod.node)
        self.queue.notify(POD_ADDED, change)
        entry = self.queue.get(record.uid)
        if entry is not None:
            self.nominations.remove(entry.pod)
            self.queue.delete(record.uid)

    def _pod_pending(self, change: Change) -> None:
        pod = PodInfo(change.record, change.object, self._classes)
        if pod.scheduler_name not in self._cycles:
            return
        before = change.previous_object
        if before is None:
            self.nominations.add(pod, pod.nominated_node)
            self.queue.add(pod)
            return
        self._renominate(pod, before, change)
        self.queue.update(pod, change, pod_events(before, change.object))

    def _renominate(self, pod: PodInfo, before: JsonObject, change: Change) -> None:
        was = (before.get("status") or {}).get("nominatedNodeName") or ""
        if was == pod.nominated_node:
            if node := self.nominations.node_of(pod):
                self.nominations.add(pod, node)
            return
        self.nominations.add(pod, pod.nominated_node)
        if was:
            self.queue.notify(POD_DELETED, change, highest_priority=pod.priority)

    def _end_nomination(self, pod: PodInfo, change: Change) -> None:
        if self.nominations.node_of(pod):
            self.nominations.remove(pod)
            self.queue.notify(POD_DELETED, change, highest_priority=pod.priority)


def failure_patch(pod: PodInfo, decision: Decision, now: str) -> JsonObject | None:
    """The change of status that a failed attempt asks for; None if there is none."""
    status = pod.object.get("status") or {}
    patch: JsonObject = {}
    held: JsonObject = next(
        (each for each in status.get("conditions") or () if each.get("type") == "PodScheduled"), {}
    )
    condition: JsonObject = {
        "type": "PodScheduled",
        "status": "False",
        "reason": decision.reason,
        "message": decision.message,
    }
    if pod.generation:
        condition["observedGeneration"] = pod.generation
    if any(held.get(field) != value for field, value in condition.items()):
        changed = held.get("status") != "False"
        moment = now if changed else held.get("lastTransitionTime", now)
        patch["conditions"] = [condition | {"lastProbeTime": None, "lastTransitionTime": moment}]
    nominated = decision.nominated
    if nominated is not None and nominated != (status.get("nominatedNodeName") or ""):
        patch["nominatedNodeName"] = nominated or None
    return patch or None


def _named(status: Status, extension: Extension, point: str) -> Status:
    """A refusal by a plugin; an error carries the names of plugin and point in its text."""
    if status.code.is_rejection:
        return status.by(extension.name)
    if status.code is Code.WAIT:
        return Status.error(
            f'plugin "{extension.name}" asks to wait at {point}, which no plugin can do yet'
        )
    return Status.error(f'running {point} plugin "{extension.name}": {status.message}')


def _refuse(decision: Decision, status: Status) -> None:
    """The chosen node did not work out."""
    if status.code.is_rejection:
        decision.plugins = (status.plugin,) if status.code is not Code.PENDING else ()
        decision.pending_plugins = (status.plugin,) if status.code is Code.PENDING else ()
        reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
        decision.fail(f"0/1 nodes are available: {reasons}.", UNSCHEDULABLE)
    else:
        decision.fail(status.message)


def kube_scheduler(
    context: ControllerContext,
    profiles: Sequence[Profile] = (),
    explain: Explain = Explain.AUTO,
    registry: PluginRegistry | None = None,
) -> Scheduler:
    """Start a scheduler; without profiles, the default one."""
    return Scheduler(
        context, profiles or [default_profile()], registry or default_registry(), explain
    )
