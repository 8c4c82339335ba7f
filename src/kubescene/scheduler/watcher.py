"""What a scheduler knows of nodes and pods, and whom it tells when they change.

Everything comes through its watches. Nodes and the pods on them stand in the node table, pods that
wait in the queue; each change becomes the cluster events that may help those (`cluster_events`). A
pod that was bound is confirmed by the watch; until then it is assumed on its node.
"""

from collections.abc import Container, Sequence

from kubescene.api.records import Record, make_record
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
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.pod_groups import PodGroups
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.scheduler.telling.annotation_texts import only_results_differ
from kubescene.types import JsonObject

NOTES_AT_ONCE = 10
"""How often a note on a pod brings it back before time goes on."""

_UPDATED = [POD_UPDATED]
_ENDED = frozenset({"Succeeded", "Failed"})  # S-6: as good as deleted


class Watching:
    """The part of a scheduler that follows the world. What is said here is made by the others."""

    nodes: NodeTable
    nominations: Nominations
    pod_groups: PodGroups
    queue: SchedulingQueue
    _annotates: bool
    _bindings: WaitingBindings
    _classes: PodClasses
    _clock: Clock
    _cycles: Container[str]
    _is_ganging: bool
    _placed: dict[str, PodInfo]
    _steps: int

    def _node_changed(self, change: Change) -> None:
        if change.type is DELETED:
            self._notify(NODE_DELETED, change)
            self.nodes.remove_node(change.record.name)
            return
        self.nodes.set_node(change.record, change.object)
        if not self.queue.is_listening:
            return
        before = change.previous_object
        events = [NODE_ADDED] if before is None else node_events(before, change.object)
        for event in events:
            self._notify(event, change)

    def _pod_changed(self, change: Change) -> None:
        record = change.record
        placed = self._placed.get(record.uid)
        if change.type is DELETED or record.phase in _ENDED:
            self._pod_gone(change, placed)
        elif record.node:
            self._pod_placed(change, placed)
        else:
            self._pod_pending(change)

    def _pod_gone(self, change: Change, placed: PodInfo | None) -> None:
        if placed is not None:
            del self._placed[placed.uid]
            self.nodes.remove_pod(placed, placed.node)
            self._notify(POD_DELETED, change)
        self._abandon(change.record.uid, "removed")
        entry, left = self.queue.delete(change.record.uid), self.nominations.gone(change.record.uid)
        if entry is not None:
            self._end_nomination(entry.pod, change)
        elif left is not None:  # whoever it had kept out may not have been tried since.
            self.queue.notify(POD_DELETED, change, highest_priority=left.priority)

    def _abandon(self, uid: str, message: str) -> None:
        """A pod that waits has no use any more for the node it was promised."""
        if (binding := self._bindings.get(uid)) is not None:
            binding.abandon(message)

    def _pod_placed(self, change: Change, placed: PodInfo | None) -> None:
        record = change.record
        before = change.previous
        if before is None or not before.node:
            self._pod_bound(change, placed)
            return
        pod = None if placed is None else placed.restated(record, self._classes)
        if pod is None:
            pod = PodInfo.of(change, self._classes, placed)
        self._placed[record.uid] = pod
        if placed is None:
            self.nodes.add_pod(pod, pod.node)
        else:
            self.nodes.update_pod(placed, pod, pod.node)
        if not self.queue.is_listening:
            return
        if is_plain_update(change):
            self._notify(POD_UPDATED, change)
        elif (before_object := change.previous_object) is not None:
            for event in pod_events(before_object, change.object):
                self._notify(event, change)

    def _pod_bound(self, change: Change, placed: PodInfo | None) -> None:
        """A pod got its node: we had assumed it there, or somebody else decided."""
        record = change.record
        if placed is not None and placed.node == record.node:
            pod = self._placed[record.uid] = placed.confirmed(record, self._classes)
            self.nodes.update_pod(placed, pod, pod.node)
        else:
            if placed is not None:
                self._forget(placed)
            self._abandon(record.uid, "bound by somebody else")
            pod = self._placed[record.uid] = PodInfo.of(change, self._classes)
            self.nodes.add_pod(pod, pod.node)
        self._notify(POD_ADDED, change)
        entry = self.queue.get(record.uid)
        if entry is not None:
            self.nominations.remove(entry.pod)
            self.queue.delete(record.uid)

    def _pod_pending(self, change: Change) -> None:
        pod = PodInfo.of(change, self._classes)
        if pod.scheduler_name not in self._cycles:
            return
        if pod.uid in self._placed:
            self.queue.renew(pod)
            return
        before = change.previous
        if before is None:
            ready = self.queue.add(pod)
            # C-11: a pod that is gated holds no node before it is next changed.
            if ready and pod.nominated_node:
                self.nominations.add(pod, pod.nominated_node)
            if self._is_ganging:
                self._notify(POD_ADDED, change)
            return
        self._renominate(pod, change)
        events, noted = self._update_events(change)
        if noted and not self._is_news(pod.uid):
            events = []
        self.queue.update(pod, change, events)

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
        entry = self.queue.get(uid)
        if entry is None:
            return True
        now = (self._clock.now(), self._steps)
        entry.notes = entry.notes + 1 if entry.noted == now else 1
        entry.noted = now
        return entry.notes <= NOTES_AT_ONCE

    def _renominate(self, pod: PodInfo, change: Change) -> None:
        was = nomination_before(change)
        if was == pod.nominated_node:
            if node := was or self.nominations.node_of(pod):
                self.nominations.add(pod, node)
            return
        self.nominations.add(pod, pod.nominated_node)
        if was:
            self.queue.notify(POD_DELETED, change, highest_priority=pod.priority)

    def _end_nomination(self, pod: PodInfo, change: Change) -> None:
        if self.nominations.node_of(pod):
            self.nominations.remove(pod)
            self.queue.notify(POD_DELETED, change, highest_priority=pod.priority)

    def _notify(self, event: ClusterEvent, change: Change) -> None:
        """Something happened: tell the queue, and the bindings that wait for it."""
        self.queue.notify(event, change)
        if self._bindings.all:
            for binding in self._bindings.awaiting(event, change):
                binding.ask_again(binding.waits_for)
            for binding in self._bindings.others():
                self._ask_again(binding, event)

    def _ask_again(self, binding: Binding, event: ClusterEvent) -> None:
        plugin = binding.waits_for
        interested = self.queue.interested(binding.pod.scheduler_name, event)
        if plugin and any(each.plugin == plugin for each in interested):
            binding.ask_again(plugin)

    def _forget(self, assumed: PodInfo) -> bool:
        """Take an assumed pod off its node; False if it is not there any more."""
        if self._placed.get(assumed.uid) is not assumed:
            return False
        del self._placed[assumed.uid]
        self.nodes.remove_pod(assumed, assumed.node)
        if assumed.group:
            self.pod_groups.forget(assumed.namespace, assumed.group, assumed.uid)
        return True

    def _room_was_made(self, assumed: PodInfo, *, except_uid: str = "") -> None:
        """To others, a pod that gives up its node is as good as deleted."""
        if self.queue.is_listening:
            obj = assumed.object
            obj["spec"] = {**obj["spec"], "nodeName": assumed.node}
            record = make_record(assumed.record.resource, obj, assumed.record.revision)
            change = Change(DELETED, record, None, Decoding())
            self.queue.notify(POD_DELETED, change, except_uid=except_uid)


class Decoding:
    """Decodes records that no store knows."""

    def decoded(self, record: Record) -> JsonObject:
        return record.decode()
