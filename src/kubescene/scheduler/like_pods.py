"""What the lane (`kubescene.lane`) asks of a scheduler: the next pod, its node, that it is placed.

Three questions about the next pod in place of a turn. Whatever they leave out is left out because
nobody is there to see it: no binding waits, nobody is asked, no pod waits for an event.
"""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubescene.actors import Actor
from kubescene.api.records import Record
from kubescene.client.interfaces import Subscription
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pods import PodInfo

if TYPE_CHECKING:
    from kubescene.scheduler.scheduler import Scheduler

BINDER = "DefaultBinder"


class LikePods:
    """The next pods of one scheduler, as long as nothing is special about them."""

    def __init__(self, scheduler: "Scheduler", watch: Subscription) -> None:
        self._scheduler = scheduler
        self._nodes = scheduler.nodes
        self._classes = scheduler._classes
        self._placed = scheduler._placed
        self.watch = watch
        """Through which the scheduler hears of pods."""

    @property
    def actor(self) -> Actor:
        return self._scheduler._client.actor

    def why_not(self) -> str:
        """What keeps the next pods out of the lane, whoever they are; empty if nothing does."""
        scheduler, queue = self._scheduler, self._scheduler.queue
        if queue.is_listening:
            return "a pod waits for something to happen"
        if scheduler._bindings.all or scheduler._asking:
            return "a binding waits"
        if scheduler._deciding is not None:
            return "a decision waits for an extender"
        if scheduler._annotates:
            return "attempts are annotated"
        if scheduler._recorder.on:
            return "Events are written"
        if scheduler.nominations:
            return "a pod is nominated"
        if self._nodes.images.known:
            return "nodes hold images"
        return ""

    def next(self) -> QueuedPod | None:
        """The pod whose turn it is; None if it is the last, or if none is ready."""
        return self._scheduler.queue.first_of_several()

    def cycle_of(self, pod: PodInfo) -> Cycle | None:
        """The cycle of a pod that is bound as soon as it is decided about; None if it is not."""
        scheduler = self._scheduler
        if pod.spec.group or pod.terminating or pod.nominated_node or pod.node:
            return None
        cycle = scheduler._cycles[pod.scheduler_name]
        framework, binders = cycle.framework, cycle.framework.bind
        if not cycle.extenders.is_empty or not binders:
            return None
        return cycle if is_default_binder(framework.plugins[binders[0].name]) else None

    def decide(self, pod: PodInfo, cycle: Cycle) -> Decision | None:
        """Where the pod goes, if it is bound there at once.

        None if that takes a whole turn; nothing has happened then.
        """
        relevant = cycle.framework.relevance.of(pod.signature)
        if relevant.post_bind or not relevant.binds_at_once:
            return None
        return cycle.routines.decide(pod, self._scheduler._wanted())

    def start_time(self, status: bytes) -> str | None:
        """Since when pods with an encoded status run; None if it has to be read first."""
        known = self._classes.status(status)
        return None if known is None or known.resized else known.start_time

    def placed(self, entry: QueuedPod, record: Record, start_time: str) -> None:
        """The pod was decided about and bound, and perhaps runs: its record says where."""
        pod, node = entry.pod, record.node
        labels, signature = pod.labels, pod.signature
        if record.labels is not labels and record.labels != labels:
            labels, signature = record.labels, self._classes.signature(record, pod.spec)
        placed = replace(
            pod,
            record=record,
            labels=labels,
            node=node,
            nominated_node="",
            start_time=start_time,
            signature=signature,
        )
        self._scheduler.queue.placed_first(entry)
        self._placed[pod.uid] = placed
        self._nodes.add_pod(placed, node)


def is_default_binder(plugin: object) -> bool:
    from kubescene.scheduler.plugins.default_binder import DefaultBinder

    return type(plugin) is DefaultBinder
