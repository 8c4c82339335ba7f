"""How attempts end: they are told, and those that failed are put back into the queue.

A failure is written into the ``PodScheduled`` condition of its pod, with the node that the pod is
nominated to if it made room there. Errors of plugins fail the attempt or end the run, as
configured.
"""

from collections.abc import Mapping
from typing import TypeVar

from kubescene.api.options import NO_OPTIONS
from kubescene.api.patching.patches import PatchType
from kubescene.api.records import Record
from kubescene.client.interfaces import Client, ObjectRef
from kubescene.clock import Scheduled, format_time
from kubescene.control.timers import Timers
from kubescene.errors import ApiError, PluginError
from kubescene.instruments import Instruments
from kubescene.instruments.attempts import Explanation, SchedulingAttempt
from kubescene.recording import Recorder
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.evictions import Evictions
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.framework.guarded_calls import PluginErrors, traceback_of
from kubescene.scheduler.framework.informers import POD
from kubescene.scheduler.queue.waiting_places import Place, QueuedPod
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling import notices
from kubescene.scheduler.telling.annotations import annotated
from kubescene.scheduler.telling.failures import StatusNotes, failure_patch
from kubescene.scheduler.watcher import Watching
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject

T = TypeVar("T")


class AttemptEnds(Watching):
    """The part of a scheduler that ends attempts. What is said here is made by the others."""

    name: str
    _client: Client
    _cycles: Mapping[str, Cycle]
    _evictions: Evictions
    _explain: Explain
    _instruments: Instruments
    _notes: StatusNotes
    _plugin_errors: PluginErrors
    _recorder: Recorder
    _timer: Scheduled | None
    _timers: Timers

    def _is_skipped(self, entry: QueuedPod) -> bool:
        """Whether a pod needs no attempt any more; then it is done with. [Q-19]"""
        pod = entry.pod
        if not pod.terminating and pod.uid not in self._placed:
            return False
        if pod.terminating:
            self.nominations.leave(pod)
            if self._recorder.on:
                self._recorder.tell(notices.skipped(pod))
        self.queue.done(entry)
        return True

    def _wanted(self) -> Explain | None:
        """Nobody listens, nobody explains; somebody may come at any time."""
        if self._annotates:
            return Explain.FULL
        return self._explain if self._instruments.pod_attempted else None

    # -- errors ----------------------------------------------------------------------------

    def _recover(self, entry: QueuedPod) -> None:
        """An exception ended an attempt: that is an error, and the pod waits for the next one."""
        uid = entry.pod.uid
        if self.queue.get(uid) is not entry:
            self.queue.done(entry)
        elif entry.place is Place.IN_FLIGHT:
            self._bindings.remove(uid)
            if (assumed := self._placed.get(uid)) is not None:
                self._forget(assumed)
            self.queue.put_back(entry, ())
        self._set_timer()

    def _blamed(self, decision: Decision, error: PluginError) -> Decision:
        """What the error of a plugin makes of an attempt, unless it has to end the run."""
        decision.traceback = self._bear(error)
        return decision.fail(str(error))

    def _bear(self, error: PluginError) -> str:
        """Where an error of a plugin happened, unless it has to end the run."""
        self._stop_at(error)
        return traceback_of(error)

    def _stop_at(self, error: PluginError) -> None:
        if self._plugin_errors is PluginErrors.STOP:
            raise error

    # -- failure ---------------------------------------------------------------------------

    def _failed(self, entry: QueuedPod, decision: Decision, binding: Binding | None = None) -> bool:
        pod = entry.pod
        still_pending = self.queue.get(pod.uid) is entry
        acts = still_pending and decision.effect is not None
        if acts and decision.effect is not None:
            decision.effect()
        evicts = still_pending and bool(decision.victims)
        if evicts:
            self._evictions.announce(pod, decision.victims)
        self.queue.put_back(entry, decision.plugins, decision.pending_plugins)
        record: Record | None = None
        if still_pending:
            if decision.nominated is not None:  # PR-12, PR-15
                self.nominations.add(entry.pod, decision.nominated)
            if self._recorder.on:
                self._recorder.tell(notices.failed(pod, decision.message))
            record = self._tell_status(entry, decision, binding)
        self._report(pod, decision, record or entry.pod.record)
        if evicts:
            self._evict(entry.pod, decision)
        return acts or evicts or record is not None

    def _evict(self, preemptor: PodInfo, decision: Decision) -> None:
        """The victims go; if one of them cannot, the preemptor has to think again. [PR-14]"""
        record = decision.preemption
        node = decision.nominated or "" if record is None else record.node
        if not self._evictions.run(preemptor, node, decision.victims):
            self.queue.activate([preemptor])

    def _tell_status(
        self, entry: QueuedPod, decision: Decision, binding: Binding | None
    ) -> Record | None:
        """Write a failure into the pod, unless it stands there already; results always do."""
        pod, told = entry.pod, (decision.message, decision.reason)
        if self._annotates:
            framework = self._cycles[pod.scheduler_name].framework
            annotations = annotated(pod, framework, decision, binding)
            patch = failure_patch(pod, decision, format_time(self._clock.now()))
            return self._patch_status(pod, patch or {}, annotations)
        stays = decision.nominated is None or decision.nominated == pod.nominated_node
        if stays and entry.told == told and entry.told_in is pod.record:
            return None
        patch = failure_patch(pod, decision, format_time(self._clock.now()))
        record = None if patch is None else self._patch_status(pod, patch)
        entry.told, entry.told_in = told, record or pod.record
        return record

    def _patch_status(
        self, pod: PodInfo, patch: JsonObject, annotations: dict[str, str] | None = None
    ) -> Record | None:
        return self._patch(ObjectRef(POD, pod.name, pod.namespace), patch, annotations)

    def _patch(
        self, ref: ObjectRef, patch: JsonObject, annotations: dict[str, str] | None = None
    ) -> Record | None:
        body, options = self._notes.of(patch)
        if annotations:
            body, options = {**body, "metadata": {"annotations": annotations}}, NO_OPTIONS
        try:
            return self._client.patch(
                ref, body, patch_type=PatchType.STRATEGIC, subresource="status", options=options
            )
        except ApiError:
            # As upstream: the attempt stands, the object may have gone in the meantime.
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
            explanation=decision.explanation and self._told_explanation(decision),
            victims=tuple([victim.record for victim in decision.victims]),
            preemption=decision.preemption,
            traceback=decision.traceback,
            extenders=self._told(decision, decision.extenders) if decision.extenders else (),
            waits=self._told(decision, decision.waits) if decision.waits else (),
        )
        for hook in hooks:
            hook(attempt)

    def _told_explanation(self, decision: Decision) -> Explanation | None:
        """Annotations explain every attempt to themselves; to others only what they want."""
        if not self._annotates:
            return decision.explanation
        wanted = self._explain.wanted(failed=not decision.node, nodes=len(self.nodes))
        return decision.explanation if wanted else None

    def _told(self, decision: Decision, records: list[T]) -> tuple[T, ...]:
        """What is told beside the nodes: with the failures, or where successes are explained."""
        wanted = self._explain.wanted(failed=not decision.node, nodes=len(self.nodes))
        return tuple(records) if wanted else ()

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
            self._timer = self._timers.at(due, self._wake, name=f"{self.name} flush")

    def _wake(self) -> None:
        self.queue.flush()
        self._set_timer()
