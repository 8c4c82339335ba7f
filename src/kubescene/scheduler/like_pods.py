"""What the lane (`kubescene.lane`) asks of a scheduler: the next pod, its node, that it is placed.

Three questions about the next pod in place of a turn. Whatever they leave out is left out because
nobody is there to see it: no binding waits, nobody is asked, no pod waits for an event.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kubescene.actors import Actor
from kubescene.api.records import Record
from kubescene.client.interfaces import ClientSubscription
from kubescene.errors import PluginError
from kubescene.recording import Recorder
from kubescene.scheduler.attempts import Attempts
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decided, Decision
from kubescene.scheduler.cycle.fast_path import NextDecision
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.queue.scheduling_queue import SchedulingQueue
from kubescene.scheduler.queue.waiting_places import IN_FLIGHT, QueuedPod
from kubescene.scheduler.state.nominations import Nominations
from kubescene.scheduler.state.placed_pods import PlacedPods
from kubescene.scheduler.state.pods import PodClasses, PodInfo
from kubescene.scheduler.telling import notices
from kubescene.scheduler.telling.attempt_reports import AttemptReports


class LikePods:
    """The next pods of one scheduler, as long as nothing is special about them."""

    def __init__(
        self,
        watch: ClientSubscription,
        attempts: Attempts,
        cycles: Mapping[str, Cycle],
        queue: SchedulingQueue,
        *,
        placed: PlacedPods,
        nominations: Nominations,
        classes: PodClasses,
        recorder: Recorder,
        reports: AttemptReports,
        actor: Actor,
        annotates: bool,
    ) -> None:
        self.watch = watch
        """Through which the scheduler hears of pods."""
        self.actor = actor
        self._attempts = attempts
        self._cycles = cycles
        self._queue = queue
        self._nodes = placed.nodes
        self._placed = placed.by_uid
        self._nominations = nominations
        self._classes = classes
        self._recorder = recorder
        self._reports = reports
        self._annotates = annotates

    def why_not(self) -> str:
        """What keeps the next pod out of the lane, whatever others do; empty if nothing does."""
        if self._attempts.has_bindings:
            return "a binding waits"
        if self._attempts.undecided is not None:
            return "a decision waits"
        if self._annotates:
            return "attempts are annotated"
        entry = self.next()
        if entry is None:
            return "the last pod"
        pod = entry.pod
        if pod.signature.kind is self._attempts.busy_kind:
            return "those like it take more than a binding"
        cycle = self._cycles[pod.scheduler_name]
        if pod.spec.claims or asked_before_binding(pod, cycle) is None:
            return "more than a binding"
        return ""

    @property
    def is_watching(self) -> bool:
        """Whether a change of a pod may mean something to it, beside that one is placed.

        Then it has to be told of each: the lane says `assume`, and `done` once the pod is bound.
        """
        return self._queue.hears_of_pods or bool(self._nodes.images.known)

    def next(self) -> QueuedPod | None:
        """The pod whose turn it is; None if it is the last, or if none is ready."""
        return self._queue.first_of_several()

    def cycle_of(self, pod: PodInfo) -> Cycle | None:
        """The cycle of a pod that is bound as soon as it is decided about; None if it is not."""
        if pod.spec.group or pod.terminating or pod.nominated_node or pod.node:
            return None
        cycle = self._cycles[pod.scheduler_name]
        framework, binders = cycle.framework, cycle.framework.bind
        if not cycle.extenders.is_empty or not binders:
            return None
        return cycle if is_default_binder(framework.plugins[binders[0].name]) else None

    def decide(
        self, entry: QueuedPod, cycle: Cycle, *, follows: bool, counted: bool
    ) -> Decision | NextDecision | None:
        """Where the pod goes, if it is bound there at once.

        ``follows`` says that nothing has happened since the pod before was placed, but that its
        owners may have ``counted`` it. None if there is more to it: then its next turn goes on from
        here.
        """
        if follows and (found := cycle.fast.decide_next(entry.pod, counted=counted)) is not None:
            return found
        pod, nominations = entry.pod, self._nominations
        if nominations and nominations.node_of(pod):
            return None
        explain = self._reports.wanted
        known = cycle.fast.decide(pod, explain, binds_at_once=True)
        if known is not None or asked_before_binding(pod, cycle) is None:
            return known
        return self._decide(entry, cycle, explain)

    def _decide(self, entry: QueuedPod, cycle: Cycle, explain: Explain | None) -> Decision | None:
        """The same by a whole cycle."""
        attempts, queue = self._attempts, self._queue
        queue.pop()
        deciding = cycle.begin(entry.pod, explain, queue.cycle)
        decision = deciding.decision
        try:
            if not deciding.run():
                attempts.undecided = (entry, deciding)
                return None
            decision = deciding.decision
        except PluginError as error:
            attempts.undecided = (entry, Decided(deciding.decision, error))
            return None
        except Exception:
            attempts.recover(entry)
            raise
        is_usual = not (decision.traceback or decision.extenders or decision.effect)
        if is_usual and decision.binds_alone(entry.pod):
            return decision
        attempts.undecided = (entry, Decided(decision))
        attempts.busy_kind = entry.pod.signature.kind
        return None

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
        queue = self._queue
        if entry.place is IN_FLIGHT:
            queue.done(entry)
        else:
            queue.placed_first(entry)
        self._placed[pod.uid] = placed
        self._nodes.add_pod(placed, node)

    def assume(self, entry: QueuedPod, node: str) -> None:
        """The pod is about to be bound, and its scheduler will be told of it."""
        if entry.place is not IN_FLIGHT:
            self._queue.pop()
        assumed = self._placed[entry.pod.uid] = entry.pod.assumed(node)
        self._nodes.add_pod(assumed, node)

    def done(self, entry: QueuedPod) -> None:
        """The pod is bound, and its scheduler was told of it."""
        self._queue.done(entry)

    def announce(self, pod: PodInfo, node: str) -> None:
        """Say to people that a pod is bound, if they want to know."""
        recorder = self._recorder
        if recorder.on:
            recorder.tell(notices.scheduled(pod, node))


def asked_before_binding(pod: PodInfo, cycle: Cycle) -> tuple[Callable[..., bool], ...] | None:
    """Who may have something to do with a pod beside its binding; None if somebody has."""
    return cycle.framework.relevance.of(pod.signature).asked_before_binding


def is_default_binder(plugin: object) -> bool:
    from kubescene.scheduler.plugins.default_binder import DefaultBinder

    return type(plugin) is DefaultBinder
