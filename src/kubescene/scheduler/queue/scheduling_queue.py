"""Where pending pods wait, and who is next.

Three places, as in kube-scheduler (Q-3). The *active* heap holds pods that are ready. The *backoff*
heaps hold pods that failed a moment ago: one for those that plugins rejected, one for those that
ran into an error. The *unschedulable* set holds the rest: pods that wait for an event which a
plugin that rejected them registered, and pods that PreEnqueue keeps out.

A scheduler with nothing better to do takes rejected pods out of their backoff early (Q-9), so
backoff delays nobody in a quiet cluster. Pods that ran into an error are never taken early.

Events that arrive while a pod is in flight (popped, its fate not yet known) are remembered and held
against the plugins that rejected it when it comes back: one list of events for all, and a position
in it for each pod.

Pods that wait for an event stand in groups of those that were rejected by the same plugins and are
alike in all that a hint may look at. An event is put to each group once.

Time is virtual and often stands still, so each enqueue takes a timestamp of its own, at least one
nanosecond after the last: order never depends on anything but arrival (Q-2).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubescene.api.records.changes import Change
from kubescene.bounded import BoundedDict
from kubescene.clock import MINUTE, SECOND, Clock
from kubescene.errors import PluginError
from kubescene.scheduler.framework.extensions import Extension
from kubescene.scheduler.framework.feature_gates import DEFAULT_GATES, FeatureGates
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.framework.interfaces import ClusterEvent, Hint
from kubescene.scheduler.framework.profile import Backoff
from kubescene.scheduler.framework.runtime import Framework
from kubescene.scheduler.framework.status import SUCCESS, Status
from kubescene.scheduler.queue.cluster_events import POD_ADDED, POD_UPDATED, Hints, Interest
from kubescene.scheduler.queue.waiting_places import (
    ACTIVE,
    BACKOFF,
    ERROR_BACKOFF,
    IN_FLIGHT,
    UNSCHEDULABLE,
    Heap,
    InFlight,
    Place,
    QueuedPod,
    Rejection,
    Strategy,
    Tickets,
    Unschedulable,
    WaitingGroup,
)
from kubescene.scheduler.state.pods import Identified, PodInfo

_log = logging.getLogger(__name__)

UNSCHEDULABLE_LIMIT = 5 * MINUTE
LEFTOVER_PERIOD = 30 * SECOND

PreEnqueue = Callable[[PodInfo], Status]
"""The PreEnqueue plugins of the pod's profile: success, or the status of the plugin that gates it.
"""


class SchedulingQueue:
    """All pending pods of one scheduler, over all its profiles."""

    def __init__(
        self,
        clock: Clock,
        sort_key: Callable[[PodInfo, int], tuple[Any, ...]],
        pre_enqueue: PreEnqueue,
        hints: Mapping[str, Hints],
        backoff: Backoff | None = None,
        *,
        gates: FeatureGates = DEFAULT_GATES,
        unschedulable_limit: int = UNSCHEDULABLE_LIMIT,
        leftover_period: int = LEFTOVER_PERIOD,
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self._pre_enqueue = pre_enqueue
        self._hints = hints
        self._backoff = backoff or Backoff()
        self._pops_early = gates.pop_from_backoff
        self._has_groups = gates.generic_workload
        self.unschedulable_limit = unschedulable_limit
        self.leftover_period = leftover_period
        self._last_timestamp = 0
        self._entries = Tickets()
        tickets = Tickets()
        self._active = Heap(ACTIVE, tickets)
        self._rejected = Heap(BACKOFF, tickets)
        self._failed = Heap(ERROR_BACKOFF, tickets)
        self._heaps = {heap.place: heap for heap in (self._active, self._rejected, self._failed)}
        self._unschedulable = Unschedulable()
        self._in_flight = InFlight()
        self._pods: dict[str, QueuedPod] = {}
        self._wanted: dict[ClusterEvent, bool] = {}
        self._asking: BoundedDict[tuple[Rejection, ClusterEvent], list[Interest]] = BoundedDict()
        self.cycle = 0

    def release(self) -> None:
        """The scheduler is let go: forget all pods, which know the groups that they wait in."""
        for entry in self._pods.values():
            entry.group = None
        self._pods.clear()
        self._unschedulable, self._in_flight = Unschedulable(), InFlight()
        for heap in self._heaps.values():
            heap.clear()

    # -- asking ----------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether `pop` would return a pod now."""
        return self._active.size > 0 or (self._pops_early and self._rejected.size > 0)

    @property
    def hears_of_pods(self) -> bool:
        """Whether there is a pod that may be helped by another one that gets a node, or runs."""
        if not self._unschedulable.entries:
            return False
        rejections = self._unschedulable.rejections()
        return any(
            self._asked(each, event) for event in (POD_ADDED, POD_UPDATED) for each in rejections
        )

    @property
    def is_listening(self) -> bool:
        """Whether there is a pod that an event could help."""
        return bool(self._unschedulable.entries or self._in_flight.positions)

    def __len__(self) -> int:
        return len(self._pods)

    def interested(self, scheduler_name: str, event: ClusterEvent) -> tuple[Interest, ...]:
        """The plugins of a profile that registered for an event."""
        return self._hints[scheduler_name].interested(event)

    def get(self, uid: str) -> QueuedPod | None:
        return self._pods.get(uid)

    def waiting(self, place: Place) -> list[PodInfo]:
        """The pods in one place, in order of arrival in the queue."""
        return [each.pod for each in self._pods.values() if each.place is place]

    def next_flush(self) -> int | None:
        """When `flush` may next have something to do; None if nobody waits for time to pass."""
        waiting = (self._failed,) if self._pops_early else (self._failed, self._rejected)
        instants = [
            (self.backoff_expiry(first) // SECOND + 1) * SECOND
            for first in (heap.peek() for heap in waiting)
            if first is not None
        ]
        if (oldest := self._unschedulable.oldest()) is not None:
            instants.append(self._leftover_at(oldest))
        return min(instants, default=None)

    def _leftover_at(self, since: int) -> int:
        """The first boundary of a period at which a pod has waited for longer than the limit."""
        limit = since + self.unschedulable_limit
        return (limit // self.leftover_period + 1) * self.leftover_period

    def backoff_expiry(self, entry: QueuedPod) -> int:
        """The end of the pod's backoff, in whole seconds if pods may be taken early. [Q-5]"""
        failures = entry.consecutive_errors or entry.unschedulable_count
        return self._aligned(entry.timestamp + self._backoff.seconds(failures) * SECOND)

    def _aligned(self, instant: int) -> int:
        return instant // SECOND * SECOND if self._pops_early else instant

    def is_backing_off(self, entry: QueuedPod) -> bool:
        if not (entry.consecutive_errors or entry.unschedulable_count):
            return False
        return self.backoff_expiry(entry) >= self._aligned(self._clock.now())

    # -- pods come, change and go ----------------------------------------------------------

    def add(self, pod: PodInfo) -> bool:
        """A pending pod was created; whether it is ready, so that nothing gates it."""
        entry = self._pods[pod.uid] = QueuedPod(pod, self._timestamp())
        return self._activate(entry)

    def update(self, pod: PodInfo, change: Change, events: Iterable[ClusterEvent]) -> None:
        """A pending pod was changed; ``events`` say how. [Q-14]"""
        entry = self._pods.get(pod.uid)
        if entry is None:
            self.add(pod)
            return
        entry.pod = pod
        if entry.place is IN_FLIGHT:
            for event in events:
                self._in_flight.record(event, change)
        elif entry.place is UNSCHEDULABLE:
            if entry.group is None or entry.group.signature is not pod.signature:
                self._unschedulable.add(entry)
            for event in events:
                if self._requeue(entry, self._strategy(entry, event, change)):
                    return

    def renew(self, pod: PodInfo) -> None:
        """A pod that has a node, but is not yet bound, was changed: for its next attempt."""
        if (entry := self._pods.get(pod.uid)) is not None:
            entry.pod = pod

    def delete(self, uid: str) -> QueuedPod | None:
        """A pending pod is gone, or was bound by someone else."""
        entry = self._pods.pop(uid, None)
        if entry is None:
            return None
        if entry.place is UNSCHEDULABLE:
            self._unschedulable.remove(entry)
        elif entry.place is not IN_FLIGHT:
            self._heaps[entry.place].discard(entry)
        return entry

    # -- attempts --------------------------------------------------------------------------

    def pop(self) -> QueuedPod | None:
        """Take the next pod: an active one, or else the first to end its backoff."""
        entry = self._active.pop() or (self._rejected.pop() if self._pops_early else None)
        return None if entry is None else self._begin(entry)

    def first_of_several(self) -> QueuedPod | None:
        """The pod that `pop` would return, if it is active and so is another one."""
        return self._active.peek() if self._active.size > 1 else None

    def placed_first(self, entry: QueuedPod) -> None:
        """The pod of `first_of_several` had its attempt, and needs no other one."""
        self._active.pop()
        self.cycle += 1
        del self._pods[entry.pod.uid]

    def take(self, uid: str) -> QueuedPod | None:
        """Take one pod, wherever it waits; None if it waits nowhere or something gates it."""
        entry = self._pods.get(uid)
        if entry is None or entry.place is IN_FLIGHT:
            return None
        if entry.place is not ACTIVE and not self._wake(entry):
            return None
        self._active.discard(entry)
        return self._begin(entry)

    def _begin(self, entry: QueuedPod) -> QueuedPod:
        """Every attempt counts, and so does every cycle. [Q-18]"""
        self.cycle += 1
        entry.attempts += 1
        entry.place = IN_FLIGHT
        self._in_flight.begin(entry.pod.uid)
        return entry

    def done(self, entry: QueuedPod) -> None:
        """The attempt is over and the pod needs no other one."""
        uid = entry.pod.uid
        self._in_flight.end(uid)
        if self._pods.get(uid) is entry:
            del self._pods[uid]

    def put_back(
        self, entry: QueuedPod, plugins: Iterable[str], pending: Iterable[str] = ()
    ) -> None:
        """The attempt failed: plugins rejected the pod, or something went wrong. [Q-8]"""
        uid = entry.pod.uid
        arrived = self._in_flight.end(uid)
        if self._pods.get(uid) is not entry:
            return
        entry.unschedulable_plugins = frozenset(plugins)
        entry.pending_plugins = frozenset(pending)
        if entry.rejected:
            entry.unschedulable_count += 1
            entry.consecutive_errors = 0
        else:
            entry.consecutive_errors += 1
        entry.timestamp = self._timestamp()
        entry.flushed_at = 0
        if not self._requeue(entry, self._replay(entry, arrived)):
            self._set_aside(entry)

    def _replay(self, entry: QueuedPod, arrived: list[tuple[ClusterEvent, Change]]) -> Strategy:
        """What the events since the pod was popped mean for it. [Q-10]"""
        if not entry.rejected:
            return Strategy.AFTER_BACKOFF
        if self._is_grouped(entry):
            # What helps one pod may not help its group: upstream does not tell, and tries again.
            return Strategy.AFTER_BACKOFF
        strategies = (self._strategy(entry, event, change) for event, change in arrived)
        return max(strategies, key=_strength, default=Strategy.SKIP)

    # -- events ----------------------------------------------------------------------------

    def notify(
        self,
        event: ClusterEvent,
        change: Change,
        *,
        highest_priority: int | None = None,
        except_uid: str = "",
    ) -> None:
        """Something happened: bring back the pods that it may help. [Q-11]

        With ``highest_priority``, pods of a higher priority are not considered (Q-17); nor is the
        one of ``except_uid``.
        """
        waiting, in_flight = self._unschedulable.entries, self._in_flight
        if not (waiting or in_flight.positions) or not self._is_of_interest(event):
            return
        in_flight.record(event, change)
        if not waiting:
            return
        moves: list[tuple[QueuedPod, Strategy]] = []
        for rejection in self._unschedulable.rejections():
            if asked := self._asked(rejection, event):
                moves.extend(self._helped_of(rejection, asked, change, highest_priority))
        for entry, strategy in sorted(moves, key=_order_of_move):
            if entry.pod.uid != except_uid and self._hears(entry, event):
                self._requeue(entry, strategy)

    def activate(self, pods: Iterable[Identified]) -> int:
        """Pods are to be tried at once, whatever they wait for; returns how many moved."""
        moved = 0
        for pod in pods:
            entry = self._pods.get(pod.uid)
            if entry is not None and entry.place not in (ACTIVE, IN_FLIGHT):
                moved += self._wake(entry)
        return moved

    def _wake(self, entry: QueuedPod) -> bool:
        """Make a pod ready that waits elsewhere, unless something gates it."""
        if entry.place not in self._heaps:
            return self._activate(entry)
        self._heaps[entry.place].discard(entry)
        return self._end_backoff(entry)

    def retry_failed(self) -> int:
        """Make pods that wait after an error ready at once; returns how many."""
        moved = 0
        while (entry := self._failed.pop()) is not None:
            self._end_backoff(entry)
            moved += 1
        return moved

    def flush(self) -> None:
        """Time has passed: end backoffs, and try pods again that have waited for too long. [Q-7]

        Upstream looks for the latter every 30 seconds. Here a boundary of these periods counts as
        soon as it has passed, since a clock of the machine never stands on one.
        """
        now = self._clock.now()
        for heap in (self._rejected, self._failed):
            while (entry := heap.peek()) is not None and not self.is_backing_off(entry):
                heap.pop()
                self._end_backoff(entry)
        oldest = self._unschedulable.oldest()
        if oldest is not None and self._leftover_at(oldest) <= now:
            self._flush_leftovers(now)

    def _flush_leftovers(self, now: int) -> None:
        for entry in self._unschedulable.in_order():
            if self._leftover_at(entry.waiting_since) <= now:
                entry.flushed_at = now
                if entry.gated_by:
                    self._set_aside(entry)
                else:
                    self._requeue(entry, Strategy.AFTER_BACKOFF)

    def _hears(self, entry: QueuedPod, event: ClusterEvent) -> bool:
        """A pod that is gated hears only of the events of the plugin that gates it. [Q-13]"""
        if not entry.gated_by:
            return True
        interested = self._hints[entry.pod.scheduler_name].interested(event)
        return any(each.plugin == entry.gated_by for each in interested)

    def _is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin has registered for an event."""
        known = self._wanted.get(event)
        if known is None:
            wanted = any(hints.interested(event) for hints in self._hints.values())
            known = self._wanted[event] = wanted
        return known

    def _asked(self, rejection: Rejection, event: ClusterEvent) -> list[Interest]:
        """Those who turned pods away and want to hear of an event."""
        found = self._asking.get((rejection, event))
        if found is None:
            plugins = rejection.unschedulable_plugins | rejection.pending_plugins
            interested = self._hints[rejection.scheduler_name].interested(event)
            found = [each for each in interested if each.plugin in plugins]
            self._asking[rejection, event] = found
        return found

    def _helped_of(
        self,
        rejection: Rejection,
        asked: list[Interest],
        change: Change,
        highest_priority: int | None,
    ) -> Iterator[tuple[QueuedPod, Strategy]]:
        """The pods that some plugins turned away and an event may help, and how."""
        named = self._named(rejection, asked, change)
        if named is not None:
            yield from ((entry, _strategy(entry, asked, change)) for entry in named)
            return
        for group in self._unschedulable.groups_of(rejection):
            if highest_priority is None or group.signature.priority <= highest_priority:
                yield from self._helped(group, asked, change)

    def _named(
        self, rejection: Rejection, asked: list[Interest], change: Change
    ) -> list[QueuedPod] | None:
        """The only pods that an event can help, if all who are asked about it know them."""
        uids: dict[str, None] = {}
        for interest in asked:
            pods = None if interest.pods is None else interest.pods(change)
            if pods is None:
                return None
            uids.update(dict.fromkeys(pods))
        found = [self._pods[uid] for uid in uids if uid in self._pods]
        return [each for each in found if each.group and each.group.rejection == rejection]

    def _helped(
        self, group: WaitingGroup, asked: list[Interest], change: Change
    ) -> Iterable[tuple[QueuedPod, Strategy]]:
        """The pods of a group that an event may help, and how."""
        entries = group.entries
        if not all(each.by_signature or each.hint is None for each in asked):
            return [(entry, _strategy(entry, asked, change)) for entry in entries.values()]
        own = entries.get(change.record.uid)
        others = (entry for entry in entries.values() if entry is not own)
        first = next(others, None)
        moves = [] if own is None else [(own, _strategy(own, asked, change))]
        if first is None:
            return moves
        strategy = _strategy(first, asked, change)
        if strategy is Strategy.SKIP:
            return moves
        return [*moves, (first, strategy), *((entry, strategy) for entry in others)]

    def _strategy(self, entry: QueuedPod, event: ClusterEvent, change: Change) -> Strategy:
        """What an event means for one pod."""
        rejectors = entry.unschedulable_plugins | entry.pending_plugins
        interested = self._hints[entry.pod.scheduler_name].interested(event)
        return _strategy(entry, [each for each in interested if each.plugin in rejectors], change)

    # -- moving ----------------------------------------------------------------------------

    def _requeue(self, entry: QueuedPod, strategy: Strategy) -> bool:
        """Move a pod out of the unschedulable set, if it is worth it and nothing gates it."""
        if strategy is Strategy.SKIP:
            return False
        if strategy is Strategy.AFTER_BACKOFF and self.is_backing_off(entry):
            return self._back_off(entry)
        return self._activate(entry)

    def _activate(self, entry: QueuedPod) -> bool:
        if self._gate(entry):
            return False
        self._make_active(entry)
        return True

    def _end_backoff(self, entry: QueuedPod) -> bool:
        """PreEnqueue is asked before a backoff if it may end early, and otherwise after it."""
        if not self._pops_early:
            return self._activate(entry)
        self._make_active(entry)
        return True

    def _make_active(self, entry: QueuedPod) -> None:
        if entry.group is not None:
            self._unschedulable.remove(entry)
        entry.entered = entry.entered or self._entries.draw()
        self._active.push(entry, self._sort_key(entry.pod, entry.timestamp))

    def _back_off(self, entry: QueuedPod) -> bool:
        """Let a pod wait, in order of the end of its backoff and then of the active queue. [Q-6]"""
        if self._pops_early and self._gate(entry):
            return False
        self._unschedulable.remove(entry)
        expiry = self.backoff_expiry(entry)
        if not entry.rejected or self._is_grouped(entry):
            self._failed.push(entry, expiry)
        elif self._pops_early:
            self._rejected.push(entry, (expiry, self._sort_key(entry.pod, entry.timestamp)))
        else:
            self._rejected.push(entry, (expiry,))
        return True

    def _is_grouped(self, entry: QueuedPod) -> bool:
        """Whether a pod comes back after every failure, with its group: if an idle scheduler took
        it out of its backoff, and time stands still, that would never end.
        """
        return self._has_groups and bool(entry.pod.group)

    def _gate(self, entry: QueuedPod) -> bool:
        """Ask PreEnqueue; who is kept out waits for an event of the plugin that does it. [Q-13]"""
        status = self._pre_enqueue(entry.pod)
        if status.ok:
            entry.gated_by = ""
            return False
        entry.gated_by = status.plugin
        entry.unschedulable_plugins |= {status.plugin}
        self._set_aside(entry)
        return True

    def _set_aside(self, entry: QueuedPod) -> None:
        entry.place = UNSCHEDULABLE
        self._unschedulable.add(entry)

    def _timestamp(self) -> int:
        self._last_timestamp = max(self._last_timestamp + 1, self._clock.now())
        return self._last_timestamp


def _strategy(entry: QueuedPod, asked: Iterable[Interest], change: Change) -> Strategy:
    """What the plugins that rejected a pod make of a change."""
    strategy = Strategy.SKIP
    for plugin, hint, *_ in asked:
        if hint is not None and hint(entry.pod, change) is Hint.SKIP:
            continue
        if plugin in entry.pending_plugins:
            return Strategy.IMMEDIATELY
        strategy = Strategy.AFTER_BACKOFF
    return strategy


def _strength(strategy: Strategy) -> int:
    return strategy.value


def _order_of_move(move: tuple[QueuedPod, Strategy]) -> int:
    return move[0].set_aside


class PreEnqueueChecks:
    """Asks the PreEnqueue plugins of a pod's profile."""

    def __init__(self, frameworks: Mapping[str, Framework], plugin_errors: PluginErrors) -> None:
        self._frameworks = frameworks
        self._plugin_errors = plugin_errors

    def __call__(self, pod: PodInfo) -> Status:
        for extension in self._frameworks[pod.scheduler_name].pre_enqueue:
            try:
                status: Status = extension.call(pod)
            except PluginError as error:
                status = self._kept_out(extension, pod, error)
            if status is not SUCCESS and not status.ok:
                return status.by(extension.name)
        return SUCCESS

    def _kept_out(self, extension: Extension, pod: PodInfo, error: PluginError) -> Status:
        """A plugin that cannot say lets nobody in."""
        self._plugin_errors.bear(error)
        _log.warning("%s keeps %s out of the queue: %s", extension.name, pod.key, error)
        return Status.error(str(error))
