"""The scheduler as a controller: follows nodes and pods, and places one pod per loop.

`Scheduler.run_once` is one pop from the queue and all that follows from it without waiting: a
cycle decides (`cycle`), the pod is assumed on its node, reserved, permitted and bound
(`binding`); or the failed attempt is written into its ``PodScheduled`` condition and the pod goes
back into the queue. A binding that has to wait is parked, and goes on in a loop of its own when the
wait is over; until then the pod is *assumed*, that is, counted on its node already. A cycle that
waits for an extender keeps its turn: no other pod is decided about meanwhile.

What the scheduler knows comes through its watches alone (`watching`). A pod that it bound is
confirmed by the watch; until then, too, it is assumed.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from kubescene.api.kinds import POD_GROUP
from kubescene.api.options import NO_OPTIONS
from kubescene.api.patches import PatchType
from kubescene.api.records import Record
from kubescene.client.interfaces import ObjectRef
from kubescene.clock import Scheduled, format_time
from kubescene.control.loops import IDLE, ControllerContext, Progress
from kubescene.errors import ApiError, ConfigurationError, PluginError
from kubescene.scheduler import notices
from kubescene.scheduler.annotating import annotated
from kubescene.scheduler.binding import Binding
from kubescene.scheduler.cluster_events import Hints
from kubescene.scheduler.config import Profile
from kubescene.scheduler.cycle import Cycle, Deciding
from kubescene.scheduler.cycle_state import CycleState
from kubescene.scheduler.decisions import Decision
from kubescene.scheduler.evictions import Evictions
from kubescene.scheduler.extenders import EXTENDER, Extenders
from kubescene.scheduler.failures import StatusNotes, failure_patch, refuse
from kubescene.scheduler.group_conditions import group_condition
from kubescene.scheduler.group_trials import GroupTrial, GroupVerdict, Member, final_decision
from kubescene.scheduler.guarding import PluginErrors, traceback_of
from kubescene.scheduler.handles import SchedulerHandle
from kubescene.scheduler.informers import NODE, POD, Informers
from kubescene.scheduler.nodes import NodeTable
from kubescene.scheduler.nominations import Nominations
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.parking import Parked
from kubescene.scheduler.pod_groups import PodGroups
from kubescene.scheduler.pods import PodClasses, PodInfo
from kubescene.scheduler.queue import SchedulingQueue
from kubescene.scheduler.runtime import EVERY_EVENT, Extension, Framework
from kubescene.scheduler.search import StartIndex
from kubescene.scheduler.status import SUCCESS, Status
from kubescene.scheduler.waiting import WaitingRoom
from kubescene.scheduler.waiting_places import Place, QueuedPod
from kubescene.scheduler.watching import Watching
from kubescene.timeline.attempts import Explanation, SchedulingAttempt
from kubescene.timeline.explanations import Explain
from kubescene.types import JsonObject

NAME = "kube-scheduler"

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Scheduler(Watching):
    """All profiles of one scheduler over one queue and one node table."""

    name = NAME

    def __init__(self, context: ControllerContext, options: SchedulerOptions) -> None:
        self._client = context.client
        self._clock = context.clock
        self._timers = context.timers
        self._wake_up = context.wake
        self._instruments = context.instruments
        self._recorder = context.recorder
        self._explain = options.explain or Explain.AUTO
        self._plugin_errors = options.plugin_errors
        self._steps = 0
        self._annotates = options.annotations
        self.nodes = NodeTable()
        self.nominations = Nominations()
        self.start_index = StartIndex()
        self.waiting_pods = WaitingRoom(context.wake)
        self._informers = Informers(context.client, self._notify)
        self._extenders = Extenders(options.extenders, options.extender_caller, context.wake)
        self._evictions = Evictions(
            context.client,
            context.clock,
            context.recorder,
            context.instruments,
            nodes=self.nodes,
            nominations=self.nominations,
            waiting_pods=self.waiting_pods,
        )
        self._notes = StatusNotes()
        self._gates = options.feature_gates
        self._is_ganging = self._gates.gang_scheduling
        self.pod_groups = PodGroups([each.scheduler_name for each in options.profiles])
        self._classes = PodClasses()
        self._placed: dict[str, PodInfo] = {}
        self._bindings = Parked()
        self._asking: list[Binding] = []
        self._deciding: tuple[QueuedPod, Deciding | GroupTrial] | None = None
        self._timer: Scheduled | None = None
        self._cycles: dict[str, Cycle] = {}
        self._handles: list[SchedulerHandle] = []
        for profile in options.profiles:
            self._cycles[profile.scheduler_name] = self._make_cycle(profile, options, context)
        self.queue = self._make_queue(options)
        self._client.watch(NODE, self._node_changed)
        if self._gates.generic_workload:
            self._informers.lister(POD_GROUP)
            self._client.watch(POD, self.pod_groups.changed, quiet=True)
        self._client.watch(POD, self._pod_changed)

    def _make_cycle(
        self, profile: Profile, options: SchedulerOptions, context: ControllerContext
    ) -> Cycle:
        name = profile.scheduler_name
        if name in self._cycles:
            raise ConfigurationError(f"two scheduler profiles have the name {name!r}")
        handle = SchedulerHandle(
            name,
            self._client,
            self._clock,
            context.streams.stream(f"scheduler/{name}"),
            nodes=self.nodes,
            nominations=self.nominations,
            waiting_pods=self.waiting_pods,
            informers=self._informers,
            events=context.recorder,
            extenders=self._extenders,
            evictions=self._evictions,
            pod_groups=self.pod_groups,
            feature_gates=options.feature_gates,
        )
        cycle = Cycle(
            Framework(profile, options.registry(), handle),
            self.nodes,
            self.nominations,
            self.start_index,
            extenders=self._extenders,
            random=context.streams.stream(f"scheduler/{name}/ties"),
            informers=self._informers,
            clock=self._clock,
        )
        handle.connect(cycle=cycle)
        self._handles.append(handle)
        return cycle

    def cycle_of(self, scheduler_name: str) -> Cycle:
        """The cycle of one profile, for those who want a decision without its effects."""
        return self._cycles[scheduler_name]

    def _make_queue(self, options: SchedulerOptions) -> SchedulingQueue:
        frameworks = {name: cycle.framework for name, cycle in self._cycles.items()}
        sort = frameworks[options.profiles[0].scheduler_name].queue_sort.call
        others = {EXTENDER: EVERY_EVENT} if options.extenders else {}
        hints = {
            name: Hints({**framework.events(), **others}) for name, framework in frameworks.items()
        }
        queue = SchedulingQueue(
            self._clock, sort, self._pre_enqueue, hints, options.backoff, gates=self._gates
        )
        for handle in self._handles:
            handle.connect(queue=queue)
        for each in hints.values():
            for resource in each.resources():
                self._informers.follow(resource)
        return queue

    def _pre_enqueue(self, pod: PodInfo) -> Status:
        """What the PreEnqueue plugins of the pod's profile say."""
        for extension in self._cycles[pod.scheduler_name].framework.pre_enqueue:
            try:
                status: Status = extension.call(pod)
            except PluginError as error:
                status = self._kept_out(extension, pod, error)
            if status is not SUCCESS and not status.ok:
                return status.by(extension.name)
        return SUCCESS

    def _kept_out(self, extension: Extension, pod: PodInfo, error: PluginError) -> Status:
        """A plugin that cannot say lets nobody in."""
        self._stop_at(error)
        _log.warning("%s keeps %s out of the queue: %s", extension.name, pod.key, error)
        return Status.error(str(error))

    # -- the loop --------------------------------------------------------------------------

    def run_once(self) -> Progress:
        """Attempt one pod, or go on with one whose wait is over.

        ``more`` is true while a pod is ready, or was rejected a moment ago and something has
        happened since that may help it: an idle scheduler does not wait for the end of a backoff.
        Pods that ran into an error do not count: they wait for the clock or for `begin_step`. Nor
        do pods that wait for a plugin or an extender, until it has spoken.
        """
        wrote = self._work()
        if wrote is None:
            self._set_timer()
            return IDLE
        more = self._has_work
        if not more:
            self._set_timer()
        return Progress(wrote, more)

    def begin_step(self) -> None:
        """A new step of the scenario begins: pods whose last attempt ended in an error are due
        again.

        Time stands still within a step, so their backoff would never end there, and retrying them
        at once would never end either. They get one attempt per step.
        """
        self._steps += 1
        self.queue.retry_failed()

    @property
    def _has_work(self) -> bool:
        if self._bindings.all and (
            self.waiting_pods.has_ready or self._next_answered() is not None
        ):
            return True
        if self._deciding is not None:
            return not self._deciding[1].is_waiting
        return self.queue.has_work

    def attempt(self, uid: str) -> bool | None:
        """Attempt one pod now, whoever else is ready; None if it does not wait for an attempt.

        For those who look at one pod at a time. A binding that has to wait goes on by `resume`.
        """
        entry = self.queue.take(uid)
        return None if entry is None else self._safely(entry, self._attempt, entry)

    def _work(self) -> bool | None:
        """One piece of work: whether it wrote, or None if there was none."""
        wrote = self.resume()
        if wrote is not None or self._deciding is not None:
            return wrote
        entry = self.queue.pop()
        return None if entry is None else self._safely(entry, self._attempt, entry)

    def resume(self) -> bool | None:
        """Go on with a pod whose wait is over; None if there is none."""
        if self._bindings.all and self.waiting_pods.has_ready:
            binding = self._bindings.get(self.waiting_pods.next_ready())
            return binding is not None and self._safely(binding.entry, self._bind, binding)
        if self._asking and (answered := self._next_answered()) is not None:
            self._asking.remove(answered)
            return self._safely(answered.entry, self._bind, answered)
        if self._deciding is not None:
            if self._deciding[1].is_waiting:
                return None
            (waiting, deciding), self._deciding = self._deciding, None
            return self._safely(waiting, self._resume, waiting, deciding)
        return None

    def _safely(self, entry: QueuedPod, work: Callable[..., bool], *arguments: Any) -> bool:
        """Do a piece of work about a pod; if it raises, the pod is not lost."""
        try:
            return work(*arguments)
        except Exception:
            self._recover(entry)
            raise

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

    def _attempt(self, entry: QueuedPod) -> bool:
        pod = entry.pod
        if pod.group and self._gates.generic_workload:
            return self._attempt_group(entry)
        if self._is_skipped(entry):
            return False
        cycle, explain = self._cycles[pod.scheduler_name], self._wanted()
        decision = cycle.routines.decide(pod, explain)
        if decision is not None:
            return self._place(entry, decision)
        return self._decide(entry, cycle.begin(pod, explain, self.queue.cycle))

    def _is_skipped(self, entry: QueuedPod) -> bool:
        """Whether a pod needs no attempt any more; then it is done with. [Q-19]"""
        pod = entry.pod
        if not pod.terminating and pod.uid not in self._placed:
            return False
        if pod.terminating and self._recorder.on:
            self._recorder.tell(notices.skipped(pod))
        self.queue.done(entry)
        return True

    def _wanted(self) -> Explain | None:
        """Nobody listens, nobody explains; somebody may come at any time."""
        if self._annotates:
            return Explain.FULL
        return self._explain if self._instruments.pod_attempted else None

    def _next_answered(self) -> Binding | None:
        """The first binding whose extender has answered."""
        return next((each for each in self._asking if not each.is_waiting()), None)

    def _resume(self, entry: QueuedPod, deciding: Deciding | GroupTrial) -> bool:
        """Go on with a decision, unless the pod has gone or found a node in the meantime."""
        if isinstance(deciding, GroupTrial):
            return self._try_group(deciding)
        if self.queue.get(entry.pod.uid) is entry:
            return self._decide(entry, deciding)
        self.queue.done(entry)
        return False

    def _decide(self, entry: QueuedPod, deciding: Deciding) -> bool:
        try:
            if not deciding.run():
                self._deciding = (entry, deciding)
                return False
        except PluginError as error:
            return self._failed(entry, self._blamed(deciding.decision, error))
        decision = deciding.decision
        return self._place(entry, decision) if decision.node else self._failed(entry, decision)

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

    # -- pod groups ------------------------------------------------------------------------

    def _attempt_group(self, entry: QueuedPod) -> bool:
        """Attempt all waiting pods of a group; the one that was popped brings the others along."""
        entries = [each for each in self._gathered(entry) if not self._is_skipped(each)]
        if not entries:
            return False
        name = entries[0].pod.scheduler_name
        for each in entries:
            if each.pod.scheduler_name != name:
                return self._refuse_group(entries, name, each.pod.scheduler_name)
        trial = GroupTrial(
            entries,
            self._cycles[name],
            self.pod_groups,
            self._make_binding,
            self._bear,
            explain=self._wanted(),
            number=self.queue.cycle,
        )
        return self._try_group(trial)

    def _gathered(self, entry: QueuedPod) -> list[QueuedPod]:
        """The more important first, then in the order in which they first became ready."""
        mates = self.pod_groups.get(entry.pod.namespace, entry.pod.group).unscheduled()
        taken = [self.queue.take(mate.uid) for mate in mates if mate.uid != entry.pod.uid]
        return sorted([entry, *(each for each in taken if each)], key=_order_in_group)

    def _refuse_group(self, entries: list[QueuedPod], name: str, other: str) -> bool:
        text = (
            "all pods in a single pod group should have the same .spec.schedulerName set, got: "
            f'"{other}" and "{name}"'
        )
        wrote = [self._failed(each, Decision(CycleState()).fail(text)) for each in entries]
        return any(wrote)

    def _try_group(self, trial: GroupTrial) -> bool:
        try:
            done = trial.run()
        except Exception:
            with suppress(PluginError):
                trial.revert()
            for member in trial.members:
                self._recover(member.entry)
            raise
        if not done:
            self._deciding = (trial.entry, trial)
            return False
        return self._submit_group(trial)

    def _submit_group(self, trial: GroupTrial) -> bool:
        """The group is decided about: put its pods back, or place them all and then bind them."""
        bindings: list[Binding] = []
        try:
            wrote = [self._submit(member, trial.verdict, bindings) for member in trial.members]
            for binding in bindings:
                self.waiting_pods.withdraw(binding.pod.uid)
                wrote.append(self._bind(binding))
        except Exception:
            self._abandon_group(trial, bindings)
            raise
        return self._tell_group(trial) or any(wrote)

    def _submit(self, member: Member, verdict: GroupVerdict, bindings: list[Binding]) -> bool:
        """Put one pod back, or prepare its binding."""
        entry, decision = member.entry, final_decision(member, verdict)
        if not decision.node or self.queue.get(entry.pod.uid) is not entry:
            return self._failed(entry, decision)
        binding = self._assume(entry, decision)
        bindings.append(binding)
        status = self._prepared(binding)
        return False if status.ok else self._undo(bindings.pop(), status)

    def _prepared(self, binding: Binding) -> Status:
        try:
            return binding.prepare()
        except PluginError as error:
            self._blamed(binding.decision, error)
            return Status.error(str(error))

    def _abandon_group(self, trial: GroupTrial, bindings: list[Binding]) -> None:
        """An exception came between: who is neither bound nor put back nor waits is tried again."""
        for binding in bindings:
            if self._is_lost(binding.entry):
                self._recover(binding.entry)
                with suppress(PluginError):
                    binding.undo()
        for member in trial.members:
            if self._is_lost(member.entry):
                self._recover(member.entry)

    def _is_lost(self, entry: QueuedPod) -> bool:
        uid = entry.pod.uid
        held = self.queue.get(uid) is entry and entry.place is Place.IN_FLIGHT
        return held and uid not in self._bindings

    def _tell_group(self, trial: GroupTrial) -> bool:
        """Write the condition of the group, if the verdict is news."""
        pod = trial.entry.pod
        group = self._informers.lister(POD_GROUP).get(pod.group, pod.namespace)
        if group is None:
            return False
        condition = group_condition(group, trial.verdict, format_time(self._clock.now()))
        if condition is None:
            return False
        ref = ObjectRef(POD_GROUP, pod.group, pod.namespace)
        return self._patch(ref, {"conditions": [condition]}) is not None

    # -- success ---------------------------------------------------------------------------

    def _place(self, entry: QueuedPod, decision: Decision) -> bool:
        """Assume the pod on its node and begin to bind it."""
        return self._bind(self._assume(entry, decision))

    def _assume(self, entry: QueuedPod, decision: Decision) -> Binding:
        pod = entry.pod
        assumed = pod.assumed(decision.node)  # N-8
        self._placed[pod.uid] = assumed
        self.nodes.add_pod(assumed, decision.node)
        if pod.group:
            self.nominations.remove(pod)
            self.pod_groups.assume(pod.namespace, pod.group, pod.uid)
        return self._make_binding(entry, decision, assumed)

    def _make_binding(self, entry: QueuedPod, decision: Decision, assumed: PodInfo) -> Binding:
        return Binding(
            entry,
            decision,
            assumed,
            self._cycles[assumed.scheduler_name].framework,
            room=self.waiting_pods,
            timers=self._timers,
            extenders=self._extenders,
            annotate=self._annotations_of if self._annotates else None,
        )

    def _annotations_of(self, binding: Binding) -> dict[str, str]:
        return annotated(binding.entry.pod, binding.framework, binding.decision, binding)

    def _bind(self, binding: Binding) -> bool:
        """Go on with a binding; what goes wrong turns the decision into a failure."""
        try:
            status = self._run_binding(binding)
        except Exception:
            self._recover(binding.entry)
            binding.undo()
            raise
        if status is None:
            return self._park(binding)
        if self._bindings.all:
            self._bindings.remove(binding.pod.uid)
        if binding.bound_by_extender and self._placed.get(binding.pod.uid) is binding.pod:
            # It says so, but no binding came through the API: it is written on its behalf.
            status = binding.bind_by_plugin()
        if not status.ok:
            return self._undo(binding, status)
        entry, decision = binding.entry, binding.decision
        self.queue.done(entry)
        self._post_bind(binding)
        if self._recorder.on:
            self._recorder.tell(notices.scheduled(entry.pod, decision.node))
        if self._annotates and (decision.state.annotations or binding.bound_by_extender):
            self._annotate_later(binding)
        placed = self._placed.get(binding.pod.uid, binding.pod)
        self._report(entry.pod, decision, placed.record)
        return True

    def _annotate_later(self, binding: Binding) -> None:
        """Somebody else than our binder has bound the pod: annotations are a write of their own."""
        pod, annotations = binding.entry.pod, self._annotations_of(binding)
        ref = ObjectRef(POD, pod.name, pod.namespace)
        try:
            self._client.patch(ref, {"metadata": {"annotations": annotations}})
        except ApiError:
            # As with conditions: the pod may have gone in the meantime.
            return

    def _run_binding(self, binding: Binding) -> Status | None:
        try:
            return binding.run()
        except PluginError as error:
            self._blamed(binding.decision, error)
            return Status.error(str(error))

    def _post_bind(self, binding: Binding) -> None:
        """What goes wrong here changes nothing: the pod is bound."""
        try:
            binding.post_bind()
        except PluginError as error:
            binding.decision.traceback = self._bear(error)

    def _park(self, binding: Binding) -> bool:
        """A binding waits: others are told which node the pod is about to get."""
        known = binding.pod.uid in self._bindings
        self._bindings.add(binding)
        if binding.awaits_extender:
            self._asking.append(binding)
        if known or binding.entry.pod.nominated_node == binding.decision.node:
            return False
        patch = {"nominatedNodeName": binding.decision.node}
        return self._patch_status(binding.pod, patch) is not None

    def _undo(self, binding: Binding, status: Status) -> bool:
        """Give back what the pod held, and put it back into the queue."""
        assumed = binding.pod
        try:
            binding.undo()
        except PluginError as error:
            binding.decision.traceback += self._bear(error)
        held = self._forget(assumed)
        refuse(binding.decision, status)
        own = status.code.is_rejection
        if held and binding.held_room and not own:
            self._room_was_made(assumed)
        wrote = self._failed(binding.entry, binding.decision, binding)
        if held and binding.held_room and own:
            self._room_was_made(assumed, except_uid=assumed.uid)
        return wrote

    # -- failure ---------------------------------------------------------------------------

    def _failed(self, entry: QueuedPod, decision: Decision, binding: Binding | None = None) -> bool:
        pod = entry.pod
        still_pending = self.queue.get(pod.uid) is entry
        acts = still_pending and decision.effect is not None
        if acts and decision.effect is not None:
            decision.effect()
        self.queue.put_back(entry, decision.plugins, decision.pending_plugins)
        record: Record | None = None
        if still_pending:
            if decision.nominated is not None:  # PR-12, PR-15
                self.nominations.add(entry.pod, decision.nominated)
            if self._recorder.on:
                self._recorder.tell(notices.failed(pod, decision.message))
            record = self._tell_status(entry, decision, binding)
        self._report(pod, decision, record or entry.pod.record)
        evicts = still_pending and bool(decision.victims)
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
            self._timer = self._timers.at(due, self._wake, name=f"{NAME} flush")

    def _wake(self) -> None:
        self.queue.flush()
        self._set_timer()


def _order_in_group(entry: QueuedPod) -> tuple[int, int]:
    return -entry.pod.priority, entry.entered


def kube_scheduler(
    context: ControllerContext, options: SchedulerOptions | None = None
) -> Scheduler:
    """Start a scheduler; without options, one with the default profile."""
    return Scheduler(context, options or SchedulerOptions())
