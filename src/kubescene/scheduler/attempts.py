"""One attempt at one pod, from the queue to its end: the main story of a scheduler.

A pod that needs an attempt is decided about by the cycle of its profile. *A node was found*: the
pod is assumed there, reserved, permitted and bound, or its binding is undone. *None was found, or
something failed*: victims leave, the failure is written into the pod's ``PodScheduled`` condition,
and the pod goes back into the queue. Either way the attempt is told.

A cycle that waits for an extender keeps its turn (`Attempts.undecided`): no other pod is decided
about meanwhile. A binding that waits for a plugin or an extender (`WaitingBindings`) holds up
nobody, and goes on in a loop of its own when the wait is over. Errors of plugins fail the attempt
or end the run, as configured.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kubescene.api.records import Record, make_record
from kubescene.api.records.changes import DELETED, Change
from kubescene.control.timers import Timers
from kubescene.errors import PluginError
from kubescene.recording import Recorder
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.waiting_bindings import WaitingBindings
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.deciding import Deciding
from kubescene.scheduler.cycle.decisions import Decided, Decision
from kubescene.scheduler.extenders.extenders import Extenders
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.framework.status import Status
from kubescene.scheduler.preemption.evictions import VictimEvictions
from kubescene.scheduler.queue.cluster_events import POD_DELETED
from kubescene.scheduler.queue.flush_timer import FlushTimer
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.queue.waiting_places import Place, QueuedPod
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.placed_pods import PlacedPods
from kubescene.scheduler.state.pod_kinds import PodSignature
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.telling import notices
from kubescene.scheduler.telling.attempt_reports import AttemptReports
from kubescene.scheduler.telling.statuses import StatusWriter
from kubescene.types import JsonObject


class Undecided(Protocol):
    """A decision, about a pod or a whole group, that may wait for an extender."""

    @property
    def is_waiting(self) -> bool: ...


class Attempts:
    """The attempts of one scheduler, at pods of all its profiles."""

    def __init__(
        self,
        cycles: Mapping[str, Cycle],
        queue: SchedulingQueue,
        flush_timer: FlushTimer,
        *,
        placed: PlacedPods,
        nominations: Nominations,
        waiting_pods: WaitingRoom,
        waiting_bindings: WaitingBindings,
        evictions: VictimEvictions,
        extenders: Extenders,
        timers: Timers,
        recorder: Recorder,
        statuses: StatusWriter,
        reports: AttemptReports,
        plugin_errors: PluginErrors,
    ) -> None:
        self.undecided: tuple[QueuedPod, Undecided] | None = None
        """The decision that waits for an extender."""
        self.busy_kind: PodSignature | None = None
        """That of the last pod whose attempt was more than a decision and Bind: it failed, made
        others leave, or plugins had something to do. Until one has an attempt that was not more.
        """
        self._asking: list[Binding] = []
        self._cycles = cycles
        self._queue = queue
        self._flush_timer = flush_timer
        self._placed = placed
        self._nominations = nominations
        self._waiting_pods = waiting_pods
        self._waiting_bindings = waiting_bindings
        self._evictions = evictions
        self._extenders = extenders
        self._timers = timers
        self._recorder = recorder
        self._statuses = statuses
        self._reports = reports
        self._plugin_errors = plugin_errors

    # -- the attempt -----------------------------------------------------------------------

    def attempt(self, entry: QueuedPod) -> bool:
        """Attempt a pod that was taken from the queue; returns whether anything was written."""
        if self.is_skipped(entry):
            return False
        pod, explain = entry.pod, self._reports.wanted
        cycle = self._cycles[pod.scheduler_name]
        decision = cycle.fast.decide(pod, explain)
        if decision is not None:
            return self.bind(self.assume(entry, decision))
        return self._decide(entry, cycle.begin(pod, explain, self._queue.cycle))

    def is_skipped(self, entry: QueuedPod) -> bool:
        """Whether a pod needs no attempt any more; then it is done with. [Q-19]"""
        pod = entry.pod
        if not pod.terminating and pod.uid not in self._placed.by_uid:
            return False
        if pod.terminating:
            self._nominations.leave(pod)
            if self._recorder.on:
                self._recorder.tell(notices.skipped(pod))
        self._queue.done(entry)
        return True

    def go_on(self, entry: QueuedPod, deciding: Deciding | Decided) -> bool:
        """Go on with a decision, unless the pod has gone or found a node in the meantime."""
        if self._queue.get(entry.pod.uid) is entry:
            return self._decide(entry, deciding)
        self._queue.done(entry)
        return False

    def _decide(self, entry: QueuedPod, deciding: Deciding | Decided) -> bool:
        try:
            if not deciding.run():
                self.undecided = (entry, deciding)
                return False
        except PluginError as error:
            return self.failed(entry, self.blamed(deciding.decision, error))
        decision = deciding.decision
        if not decision.node:
            return self.failed(entry, decision)
        return self.bind(self.assume(entry, decision))

    # -- a node was found ------------------------------------------------------------------

    def assume(self, entry: QueuedPod, decision: Decision) -> Binding:
        """Count the pod on its node from now on; its binding can begin."""
        assumed = self._placed.assume(entry.pod, decision.node)
        if entry.pod.spec.group:
            self._nominations.remove(entry.pod)
        return self.make_binding(entry, decision, assumed)

    def make_binding(self, entry: QueuedPod, decision: Decision, assumed: PodInfo) -> Binding:
        return Binding(
            entry,
            decision,
            assumed,
            self._cycles[assumed.scheduler_name].framework,
            room=self._waiting_pods,
            timers=self._timers,
            extenders=self._extenders,
            annotate=self._statuses.annotations if self._statuses.annotates else None,
        )

    def bind(self, binding: Binding) -> bool:
        """Go on with a binding; what goes wrong turns the decision into a failure."""
        try:
            status = self._run_binding(binding)
        except Exception:
            self.recover(binding.entry)
            binding.undo()
            raise
        if status is None:
            return self._let_wait(binding)
        if self._waiting_bindings.all:
            self._waiting_bindings.remove(binding.pod.uid)
        if binding.bound_by_extender and self._placed.by_uid.get(binding.pod.uid) is binding.pod:
            # It says so, but no binding came through the API: it is written on its behalf.
            status = binding.bind_by_plugin()
        if not status.ok:
            return self.undo(binding, status)
        self._bound(binding)
        return True

    def _run_binding(self, binding: Binding) -> Status | None:
        try:
            return binding.run()
        except PluginError as error:
            self.blamed(binding.decision, error)
            return Status.error(str(error))

    def _let_wait(self, binding: Binding) -> bool:
        """A binding waits: others are told which node the pod is about to get."""
        known = binding.pod.uid in self._waiting_bindings
        self._waiting_bindings.add(binding)
        if binding.awaits_extender:
            self._asking.append(binding)
        if known or binding.entry.pod.nominated_node == binding.decision.node:
            return False
        return self._statuses.nominate(binding.pod, binding.decision.node) is not None

    def _bound(self, binding: Binding) -> None:
        """The pod is bound: PostBind, and telling of it."""
        entry, decision = binding.entry, binding.decision
        if not entry.pod.nominated_node and decision.binds_alone(entry.pod):
            self.busy_kind = None
        self._queue.done(entry)
        try:
            binding.post_bind()
        except PluginError as error:
            # What goes wrong here changes nothing: the pod is bound.
            decision.traceback = self._plugin_errors.bear(error)
        if self._recorder.on:
            self._recorder.tell(notices.scheduled(entry.pod, decision.node))
        annotates = self._statuses.annotates
        if annotates and (decision.state.annotations or binding.bound_by_extender):
            self._statuses.annotate(binding)
        placed = self._placed.by_uid.get(binding.pod.uid, binding.pod)
        self._reports.tell(entry.pod, decision, placed.record)

    def undo(self, binding: Binding, status: Status) -> bool:
        """Give back what the pod held, and put it back into the queue."""
        assumed, decision = binding.pod, binding.decision
        try:
            binding.undo()
        except PluginError as error:
            decision.traceback += self._plugin_errors.bear(error)
        held = self._placed.forget(assumed)
        decision.refuse(status)
        own = status.code.is_rejection
        if held and binding.held_room and not own:
            self._room_was_made(assumed)
        wrote = self.failed(binding.entry, decision, binding)
        if held and binding.held_room and own:
            self._room_was_made(assumed, except_uid=assumed.uid)
        return wrote

    def _room_was_made(self, assumed: PodInfo, *, except_uid: str = "") -> None:
        """To others, a pod that gives up its node is as good as deleted."""
        if self._queue.is_listening:
            obj = assumed.object
            obj["spec"] = {**obj["spec"], "nodeName": assumed.node}
            record = make_record(assumed.record.resource, obj, assumed.record.revision)
            change = Change(DELETED, record, None, Decoding())
            self._queue.notify(POD_DELETED, change, except_uid=except_uid)

    # -- there is no node, or something failed ---------------------------------------------

    def failed(self, entry: QueuedPod, decision: Decision, binding: Binding | None = None) -> bool:
        """Write and tell a failure, and put the pod back; returns whether anything was written."""
        pod = entry.pod
        self.busy_kind = pod.signature.kind
        still_pending = self._queue.get(pod.uid) is entry
        acts = still_pending and decision.effect is not None
        if acts and decision.effect is not None:
            decision.effect()
        evicts = still_pending and bool(decision.victims)
        if evicts:
            self._evictions.announce(pod, decision.victims)
        self._queue.put_back(entry, decision.plugins, decision.pending_plugins)
        record: Record | None = None
        if still_pending:
            if decision.nominated is not None:  # PR-12, PR-15
                self._nominations.add(entry.pod, decision.nominated)
            if self._recorder.on:
                self._recorder.tell(notices.failed(pod, decision.message))
            framework = self._cycles[pod.scheduler_name].framework
            record = self._statuses.failed(entry, decision, framework, binding)
        self._reports.tell(pod, decision, record or entry.pod.record)
        if evicts:
            self._evict(entry.pod, decision)
        return acts or evicts or record is not None

    def _evict(self, preemptor: PodInfo, decision: Decision) -> None:
        """The victims go; if one of them cannot, the preemptor has to think again. [PR-14]"""
        record = decision.preemption
        node = decision.nominated or "" if record is None else record.node
        if not self._evictions.run(preemptor, node, decision.victims):
            self._queue.activate([preemptor])

    def blamed(self, decision: Decision, error: PluginError) -> Decision:
        """What the error of a plugin makes of an attempt, unless it has to end the run."""
        decision.traceback = self._plugin_errors.bear(error)
        return decision.fail(str(error))

    def recover(self, entry: QueuedPod) -> None:
        """An exception ended an attempt: that is an error, and the pod waits for the next one."""
        uid = entry.pod.uid
        if self._queue.get(uid) is not entry:
            self._queue.done(entry)
        elif entry.place is Place.IN_FLIGHT:
            self._waiting_bindings.remove(uid)
            if (assumed := self._placed.by_uid.get(uid)) is not None:
                self._placed.forget(assumed)
            self._queue.put_back(entry, ())
        self._flush_timer.set()

    def safely(self, entry: QueuedPod, work: Callable[..., bool], *arguments: Any) -> bool:
        """Do a piece of work about a pod; if it raises, the pod is not lost."""
        try:
            return work(*arguments)
        except Exception:
            self.recover(entry)
            raise

    # -- bindings that wait ----------------------------------------------------------------

    @property
    def has_bindings(self) -> bool:
        """Whether a binding waits, or an extender was asked to bind."""
        return bool(self._waiting_bindings.all or self._asking)

    @property
    def can_resume(self) -> bool:
        """Whether a binding's wait is over."""
        return bool(self._waiting_bindings.all) and (
            self._waiting_pods.has_ready or self._answered() is not None
        )

    def resume(self) -> bool | None:
        """Go on with a binding whose wait is over; None if there is none."""
        if self._waiting_bindings.all and self._waiting_pods.has_ready:
            binding = self._waiting_bindings.get(self._waiting_pods.next_ready())
            return binding is not None and self.safely(binding.entry, self.bind, binding)
        if self._asking and (answered := self._answered()) is not None:
            self._asking.remove(answered)
            return self.safely(answered.entry, self.bind, answered)
        return None

    def _answered(self) -> Binding | None:
        """The first binding whose extender has answered."""
        return next((each for each in self._asking if not each.is_waiting()), None)


class Decoding:
    """Decodes records that no store knows."""

    def decoded(self, record: Record) -> JsonObject:
        return record.decode()
