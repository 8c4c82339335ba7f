"""The scheduler as a controller: follows nodes and pods, and places one pod per loop.

`Scheduler.run_once` is one pop from the queue and all that follows from it without waiting: a
cycle decides (`routine`, `cycle`), the pod is assumed on its node (`placing`), reserved, permitted
and bound (`binding`); or the failed attempt is written into its ``PodScheduled`` condition and the
pod goes back into the queue (`attempt_ends`). A binding that has to wait is put by and goes on in a
loop of its own when the wait is over; until then the pod is *assumed*, that is, counted on its node
already. A cycle that waits for an extender keeps its turn: no other pod is decided about meanwhile.

What the scheduler knows comes through its watches alone (`watcher`). A pod that it bound is
confirmed by the watch; until then, too, it is assumed.
"""

import logging
from collections.abc import Callable
from typing import Any

from kubescene.api.kinds import POD_GROUP
from kubescene.clock import Scheduled
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.errors import ConfigurationError, PluginError
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.evictions import Evictions
from kubescene.scheduler.binding.waiting_bindings import WaitingBindings
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.deciding import Deciding
from kubescene.scheduler.cycle.decisions import Decided
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.extenders.extenders import EXTENDER, Extenders
from kubescene.scheduler.framework.informers import NODE, POD, Informers
from kubescene.scheduler.framework.profile import Profile
from kubescene.scheduler.framework.runtime import EVERY_EVENT, Extension, Framework
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.groups.attempts import GroupAttempts
from kubescene.scheduler.groups.trials import GroupTrial
from kubescene.scheduler.like_pods import LikePods
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.queue.cluster_events import Hints
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.scheduler.telling.failures import StatusNotes
from kubescene.timeline.explanations import Explain

NAME = "kube-scheduler"

_log = logging.getLogger(__name__)


class Scheduler(GroupAttempts):
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
        self._bindings = WaitingBindings()
        self._asking: list[Binding] = []
        self._deciding: tuple[QueuedPod, Deciding | Decided | GroupTrial] | None = None
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
        self.like_pods = LikePods(self, self._client.watch(POD, self._pod_changed))

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
            tell=context.tell,
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
        return went(wrote=wrote, more=more)

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

    def _attempt(self, entry: QueuedPod) -> bool:
        pod = entry.pod
        if pod.spec.group and self._gates.generic_workload:
            return self._attempt_group(entry)
        if self._is_skipped(entry):
            return False
        cycle, explain = self._cycles[pod.scheduler_name], self._wanted()
        decision = cycle.routines.decide(pod, explain)
        if decision is not None:
            return self._place(entry, decision)
        return self._decide(entry, cycle.begin(pod, explain, self.queue.cycle))

    def _next_answered(self) -> Binding | None:
        """The first binding whose extender has answered."""
        return next((each for each in self._asking if not each.is_waiting()), None)

    def _resume(self, entry: QueuedPod, deciding: Deciding | Decided | GroupTrial) -> bool:
        """Go on with a decision, unless the pod has gone or found a node in the meantime."""
        if isinstance(deciding, GroupTrial):
            return self._try_group(deciding)
        if self.queue.get(entry.pod.uid) is entry:
            return self._decide(entry, deciding)
        self.queue.done(entry)
        return False

    def _decide(self, entry: QueuedPod, deciding: Deciding | Decided) -> bool:
        try:
            if not deciding.run():
                self._deciding = (entry, deciding)
                return False
        except PluginError as error:
            return self._failed(entry, self._blamed(deciding.decision, error))
        decision = deciding.decision
        return self._place(entry, decision) if decision.node else self._failed(entry, decision)


def kube_scheduler(
    context: ControllerContext, options: SchedulerOptions | None = None
) -> Scheduler:
    """Start a scheduler; without options, one with the default profile."""
    return Scheduler(context, options or SchedulerOptions())
