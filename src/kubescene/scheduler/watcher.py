"""What a scheduler knows of nodes and pods, and whom it tells when they change.

Everything comes through its watches. Nodes and the pods on them stand in the node table, pods that
wait in the queue; each change becomes the cluster events that may help those (`cluster_events`). A
pod that was bound is confirmed by the watch; until then it is assumed on its node.
"""

from collections.abc import Container, Sequence

from kubescene.api.records.changes import DELETED, Change
from kubescene.clock import Clock
from kubescene.scheduler.binding.binding import Binding
from kubescene.scheduler.binding.waiting_bindings import WaitingBindings
from kubescene.scheduler.framework.interfaces import ClusterEvent
from kubescene.scheduler.queue.cluster_events import (
    NODE_ADDED,
    NODE_DELETED,
    POD_ADDED,
    POD_DELETED,
    POD_UPDATED,
    is_note,
    is_plain_note,
    is_plain_update,
    node_events,
    nomination_before,
    pod_events,
)
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.placed_pods import PlacedPods
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.scheduler.telling.annotation_texts import only_results_differ

NOTES_AT_ONCE = 10
"""How often a note on a pod brings it back before time goes on."""

_UPDATED = [POD_UPDATED]
_ENDED = frozenset({"Succeeded", "Failed"})  # S-6: as good as deleted


class ClusterWatcher:
    """Follows the world for one scheduler, and says what happened to those who wait."""

    def __init__(
        self,
        placed: PlacedPods,
        nominations: Nominations,
        queue: SchedulingQueue,
        waiting_bindings: WaitingBindings,
        *,
        clock: Clock,
        profiles: Container[str],
        annotates: bool,
        is_ganging: bool,
        rereads: bool,
        nodes_in_steps: bool = False,
    ) -> None:
        self.classes = PodClasses(rereads=rereads)
        self._nodes = placed.nodes
        self._placed = placed
        self._nominations = nominations
        self._queue = queue
        self._waiting_bindings = waiting_bindings
        self._clock = clock
        self._profiles = profiles
        self._annotates = annotates
        self._is_ganging = is_ganging
        self._nodes_in_steps = nodes_in_steps
        self._steps = 0

    def begin_step(self) -> None:
        """Time stands still within a step of a scenario; another one begins."""
        self._steps += 1

    def node_changed(self, change: Change) -> None:
        if change.type is DELETED:
            self.notify(NODE_DELETED, change)
            self._nodes.remove_node(change.record.name)
            return
        self._nodes.set_node(change.record, change.object)
        if self._nodes_in_steps and change.previous is None:
            self._queue.retry_failed()
        if not self._queue.is_listening:
            return
        before = change.previous_object
        events = [NODE_ADDED] if before is None else node_events(before, change.object)
        for event in events:
            self.notify(event, change)

    def pod_changed(self, change: Change) -> None:
        record = change.record
        placed = self._placed.by_uid.get(record.uid)
        if change.type is DELETED or record.phase in _ENDED:
            self._pod_gone(change, placed)
        elif record.node:
            self._pod_placed(change, placed)
        else:
            self._pod_pending(change)

    def _pod_gone(self, change: Change, placed: PodInfo | None) -> None:
        if placed is not None:
            self._placed.remove(placed)
            self.notify(POD_DELETED, change)
        self._abandon(change.record.uid, "removed")
        entry, left = (
            self._queue.delete(change.record.uid),
            self._nominations.gone(change.record.uid),
        )
        if entry is not None:
            self._end_nomination(entry.pod, change)
        elif left is not None:  # whoever it had kept out may not have been tried since.
            self._queue.notify(POD_DELETED, change, highest_priority=left.priority)

    def _abandon(self, uid: str, message: str) -> None:
        """A pod that waits has no use any more for the node it was promised."""
        if (binding := self._waiting_bindings.get(uid)) is not None:
            binding.abandon(message)

    def _pod_placed(self, change: Change, placed: PodInfo | None) -> None:
        record = change.record
        before = change.previous
        if before is None or not before.node:
            self._pod_bound(change, placed)
            return
        pod = None if placed is None else placed.restated(record, self.classes)
        if pod is None:
            pod = PodInfo.of(change, self.classes, placed)
        self._placed.put(pod, placed)
        if not self._queue.is_listening:
            return
        if is_plain_update(change):
            self.notify(POD_UPDATED, change)
        elif (before_object := change.previous_object) is not None:
            for event in pod_events(before_object, change.object):
                self.notify(event, change)

    def _pod_bound(self, change: Change, placed: PodInfo | None) -> None:
        """A pod got its node: we had assumed it there, or somebody else decided."""
        record = change.record
        if placed is not None and placed.node == record.node:
            self._placed.put(placed.confirmed(record, self.classes), placed)
        else:
            if placed is not None:
                self._placed.forget(placed)
            self._abandon(record.uid, "bound by somebody else")
            self._placed.put(PodInfo.of(change, self.classes))
        self.notify(POD_ADDED, change)
        entry = self._queue.get(record.uid)
        if entry is not None:
            self._nominations.remove(entry.pod)
            self._queue.delete(record.uid)

    def _pod_pending(self, change: Change) -> None:
        pod = PodInfo.of(change, self.classes)
        if pod.scheduler_name not in self._profiles:
            return
        if pod.uid in self._placed.by_uid:
            self._queue.renew(pod)
            return
        before = change.previous
        if before is None:
            ready = self._queue.add(pod)
            # C-11: a pod that is gated holds no node before it is next changed.
            if ready and pod.nominated_node:
                self._nominations.add(pod, pod.nominated_node)
            if self._is_ganging:
                self.notify(POD_ADDED, change)
            return
        self._renominate(pod, change)
        events, noted = self._update_events(change)
        if noted and not self._is_news(pod.uid):
            events = []
        self._queue.update(pod, change, events)

    def _update_events(self, change: Change) -> tuple[Sequence[ClusterEvent], bool]:
        """What an update of a pending pod means, and whether it may be no more than a note."""
        if not self._annotates and is_plain_note(change):
            return _UPDATED, True
        before, after = change.previous_object, change.object
        assert before is not None
        events = pod_events(before, after)
        if self._annotates and events == _UPDATED and only_results_differ(before, after):
            return (), False  # Every attempt changes them: it would never end.
        return events, is_note(before, after)

    def _is_news(self, uid: str) -> bool:
        """Whether a note on a pod may bring it back.

        It does if a plugin, or an extender, waits for every event, and usually the next attempt has
        nothing new to note. A plugin that gives another reason every time would be asked for ever
        while time stands still.
        """
        entry = self._queue.get(uid)
        if entry is None:
            return True
        now = (self._clock.now(), self._steps)
        entry.notes = entry.notes + 1 if entry.noted == now else 1
        entry.noted = now
        return entry.notes <= NOTES_AT_ONCE

    def _renominate(self, pod: PodInfo, change: Change) -> None:
        was = nomination_before(change)
        if was == pod.nominated_node:
            if node := was or self._nominations.node_of(pod):
                self._nominations.add(pod, node)
            return
        self._nominations.add(pod, pod.nominated_node)
        if was:
            self._queue.notify(POD_DELETED, change, highest_priority=pod.priority)

    def _end_nomination(self, pod: PodInfo, change: Change) -> None:
        if self._nominations.node_of(pod):
            self._nominations.remove(pod)
            self._queue.notify(POD_DELETED, change, highest_priority=pod.priority)

    def notify(self, event: ClusterEvent, change: Change) -> None:
        """Something happened: tell the queue, and the bindings that wait for it."""
        self._queue.notify(event, change)
        if self._waiting_bindings.all:
            for binding in self._waiting_bindings.awaiting(event, change):
                binding.ask_again(binding.waits_for)
            for binding in self._waiting_bindings.others():
                self._ask_again(binding, event)

    def _ask_again(self, binding: Binding, event: ClusterEvent) -> None:
        plugin = binding.waits_for
        interested = self._queue.interested(binding.pod.scheduler_name, event)
        if plugin and any(each.plugin == plugin for each in interested):
            binding.ask_again(plugin)
