"""The scheduler as a controller: made of its parts, and placing one pod per loop.

`Scheduler.run_once` is one pop from the queue and all that follows from it without waiting
(`attempts`, or `groups` for pods that are placed together), or one step of a pod whose wait is
over. What the scheduler knows comes through its watches alone (`watcher`).
"""

from collections.abc import Callable
from typing import NamedTuple

from kubescene.api.kinds import POD_GROUP
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.errors import ConfigurationError
from kubescene.scheduler.attempts import Attempts
from kubescene.scheduler.binding.waiting_bindings import WaitingBindings
from kubescene.scheduler.binding.waiting_pods import WaitingRoom
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.search import StartIndex
from kubescene.scheduler.extenders.extenders import EXTENDER, Extenders
from kubescene.scheduler.fast.decisions import FastDecisions
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.informers import NODE, POD, Informers
from kubescene.scheduler.framework.profile import Profile
from kubescene.scheduler.framework.runtime import EVERY_EVENT, Framework
from kubescene.scheduler.groups.attempts import GroupAttempts
from kubescene.scheduler.groups.trials import GroupTrial
from kubescene.scheduler.like_pods import LikePods
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.preemption.evictions import VictimEvictions
from kubescene.scheduler.queue.cluster_events import Hints
from kubescene.scheduler.queue.flush_timer import FlushTimer
from kubescene.scheduler.queue.scheduling_queue import PreEnqueueChecks, SchedulingQueue
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.scheduler_handle import SchedulerHandle
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.placed_pods import PlacedPods
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.telling.attempt_reports import AttemptReports
from kubescene.scheduler.telling.statuses import StatusWriter
from kubescene.scheduler.watcher import ClusterWatcher

NAME = "kube-scheduler"


class PartMakers(NamedTuple):
    """What makes the parts of a scheduler, for those who want to watch over one of them."""

    reports: Callable[..., AttemptReports] = AttemptReports
    attempts: Callable[..., Attempts] = Attempts
    groups: Callable[..., GroupAttempts] = GroupAttempts


PARTS = PartMakers()


class Scheduler:
    """All profiles of one scheduler over one queue and one node table."""

    name = NAME

    def __init__(
        self, context: ControllerContext, options: SchedulerOptions, parts: PartMakers = PARTS
    ) -> None:
        self.nodes = NodeTable()
        self.nominations = Nominations()
        self.start_index = StartIndex()
        self.waiting_pods = WaitingRoom(context.wake)
        self.waiting_bindings = WaitingBindings()
        self.pod_groups = PodGroups([each.scheduler_name for each in options.profiles])
        self.placed = PlacedPods(self.nodes, self.pod_groups)
        self.informers = Informers(context.client)
        self.extenders = Extenders(options.extenders, options.extender_caller, context.wake)
        evictions = self._make_evictions(context)
        self.handles: dict[str, SchedulerHandle] = {}
        self.cycles: dict[str, Cycle] = {}
        for profile in options.profiles:
            self._add_profile(profile, options, context, evictions)
        self.queue = self._make_queue(options, context)
        self._flush_timer = FlushTimer(self.queue, context.timers, self.name)
        reports = parts.reports(
            context.client,
            context.instruments,
            options.explain or Explain.AUTO,
            self.nodes,
            annotates=options.annotations,
        )
        statuses = StatusWriter(context.client, context.clock, annotates=options.annotations)
        self.attempts = parts.attempts(
            self.cycles,
            self.queue,
            self._flush_timer,
            placed=self.placed,
            nominations=self.nominations,
            waiting_pods=self.waiting_pods,
            waiting_bindings=self.waiting_bindings,
            evictions=evictions,
            extenders=self.extenders,
            timers=context.timers,
            recorder=context.recorder,
            statuses=statuses,
            reports=reports,
            plugin_errors=options.plugin_errors,
        )
        self._groups = parts.groups(
            self.attempts,
            self.cycles,
            self.queue,
            self.pod_groups,
            waiting_pods=self.waiting_pods,
            waiting_bindings=self.waiting_bindings,
            informers=self.informers,
            clock=context.clock,
            statuses=statuses,
            reports=reports,
            plugin_errors=options.plugin_errors,
        )
        self._watch(options, context, reports)

    def _make_evictions(self, context: ControllerContext) -> VictimEvictions:
        return VictimEvictions(
            context.client,
            context.clock,
            context.recorder,
            context.instruments,
            nodes=self.nodes,
            nominations=self.nominations,
            waiting_pods=self.waiting_pods,
        )

    def _add_profile(
        self,
        profile: Profile,
        options: SchedulerOptions,
        context: ControllerContext,
        evictions: VictimEvictions,
    ) -> None:
        name = profile.scheduler_name
        if name in self.cycles:
            raise ConfigurationError(f"two scheduler profiles have the name {name!r}")
        handle = self.handles[name] = SchedulerHandle(
            name,
            context.client,
            context.clock,
            context.streams.stream(f"scheduler/{name}"),
            nodes=self.nodes,
            nominations=self.nominations,
            waiting_pods=self.waiting_pods,
            informers=self.informers,
            events=context.recorder,
            tell=context.tell,
            extenders=self.extenders,
            evictions=evictions,
            pod_groups=self.pod_groups,
            feature_gates=options.feature_gates,
        )
        cycle = self.cycles[name] = Cycle(
            Framework(profile, options.registry(), handle),
            self.nodes,
            self.nominations,
            self.start_index,
            extenders=self.extenders,
            random=context.streams.stream(f"scheduler/{name}/ties"),
            informers=self.informers,
            clock=context.clock,
            fast=FastDecisions if options.shortcuts.kept_rows else None,
        )
        handle.connect(cycle=cycle)

    def _make_queue(self, options: SchedulerOptions, context: ControllerContext) -> SchedulingQueue:
        frameworks = {name: cycle.framework for name, cycle in self.cycles.items()}
        others = {EXTENDER: EVERY_EVENT} if options.extenders else {}
        hints = {
            name: Hints({**framework.events(), **others}) for name, framework in frameworks.items()
        }
        queue = SchedulingQueue(
            context.clock,
            frameworks[options.profiles[0].scheduler_name].queue_sort.call,
            PreEnqueueChecks(frameworks, options.plugin_errors),
            hints,
            options.backoff,
            gates=options.feature_gates,
        )
        for handle in self.handles.values():
            handle.connect(queue=queue)
        for each in hints.values():
            for resource in each.resources():
                self.informers.follow(resource)
        return queue

    def _watch(
        self, options: SchedulerOptions, context: ControllerContext, reports: AttemptReports
    ) -> None:
        """Follow the world; the parts that live by what is seen of pods."""
        client, gates = context.client, options.feature_gates
        self.watcher = ClusterWatcher(
            self.placed,
            self.nominations,
            self.queue,
            self.waiting_bindings,
            clock=context.clock,
            profiles=self.cycles,
            annotates=options.annotations,
            is_ganging=gates.gang_scheduling,
            rereads=not options.shortcuts.pod_readings,
            nodes_in_steps=options.nodes_in_steps,
        )
        self._has_groups = gates.generic_workload
        self.informers.listen(self.watcher.notify)
        client.watch(NODE, self.watcher.node_changed)
        if self._has_groups:
            self.informers.lister(POD_GROUP)
            client.watch(POD, self.pod_groups.changed, quiet=True)
        self.like_pods = LikePods(
            client.watch(POD, self.watcher.pod_changed),
            self.attempts,
            self.cycles,
            self.queue,
            placed=self.placed,
            nominations=self.nominations,
            classes=self.watcher.classes,
            recorder=context.recorder,
            reports=reports,
            actor=client.actor,
            annotates=options.annotations,
        )

    def cycle_of(self, scheduler_name: str) -> Cycle:
        """The cycle of one profile, for those who want a decision without its effects."""
        return self.cycles[scheduler_name]

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
            self._flush_timer.set()
            return IDLE
        more = self._has_work
        if not more:
            self._flush_timer.set()
        return went(wrote=wrote, more=more)

    def begin_step(self) -> None:
        """A new step of the scenario begins: pods whose last attempt ended in an error are due
        again.

        Time stands still within a step, so their backoff would never end there, and retrying them
        at once would never end either. They get one attempt per step.
        """
        self.watcher.begin_step()
        self.queue.retry_failed()

    def release(self) -> None:
        """The scheduler is let go: all that it knows of nodes and pods goes at once."""
        self.placed.by_uid.clear()
        self.nodes.release()
        self.queue.release()

    @property
    def _has_work(self) -> bool:
        if self.attempts.can_resume:
            return True
        if (undecided := self.attempts.undecided) is not None:
            return not undecided[1].is_waiting
        return self.queue.has_work

    def _work(self) -> bool | None:
        """One piece of work: whether it wrote, or None if there was none."""
        wrote = self.resume()
        if wrote is not None or self.attempts.undecided is not None:
            return wrote
        entry = self.queue.pop()
        return None if entry is None else self._attempt(entry)

    def attempt(self, uid: str) -> bool | None:
        """Attempt one pod now, whoever else is ready; None if it does not wait for an attempt.

        For those who look at one pod at a time. A binding that has to wait goes on by `resume`.
        """
        entry = self.queue.take(uid)
        return None if entry is None else self._attempt(entry)

    def _attempt(self, entry: QueuedPod) -> bool:
        alone = not (self._has_groups and entry.pod.spec.group)
        attempt = self.attempts.attempt if alone else self._groups.attempt
        return self.attempts.safely(entry, attempt, entry)

    def resume(self) -> bool | None:
        """Go on with a pod whose wait is over; None if there is none."""
        attempts = self.attempts
        if (wrote := attempts.resume()) is not None or attempts.undecided is None:
            return wrote
        entry, undecided = attempts.undecided
        if undecided.is_waiting:
            return None
        attempts.undecided = None
        if isinstance(undecided, GroupTrial):
            return attempts.safely(entry, self._groups.go_on, undecided)
        return attempts.safely(entry, attempts.go_on, entry, undecided)


def kube_scheduler(
    context: ControllerContext, options: SchedulerOptions | None = None
) -> Scheduler:
    """Start a scheduler; without options, one with the default profile."""
    return Scheduler(context, options or SchedulerOptions())
