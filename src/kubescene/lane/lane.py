"""Pods that go through the lane, a chunk at a time."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kubescene.actors import Actor, Role
from kubescene.api.records import Record
from kubescene.api.records.changes import Change
from kubescene.clock import Clock, ScenarioStep, format_time
from kubescene.control import Slot
from kubescene.instruments import Instruments, StepPhaseChange
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.lane.counting import Owners, Sleepers
from kubescene.lane.creations import Creations, Wish
from kubescene.lane.guard import NotNowError, Parties, parties, why_not
from kubescene.registry import EmbeddedRegistry
from kubescene.registry.shortcuts.lane_writes import PodParts
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.cycle.decisions import Decision
from kubescene.scheduler.cycle.fast_path import NextDecision
from kubescene.scheduler.queue.waiting_places import QueuedPod
from kubescene.scheduler.state.pods import PodInfo
from kubescene.store.subscriptions import Route

CHUNK = 64
"""Pods at a time: about three milliseconds."""
CHUNK_SEEN = 8
"""The same where every pod is several writes of the Scenario, and somebody may wait."""
PAUSED = "ControllerPaused"


@dataclass(slots=True)
class Passage:
    """One chunk: where it begins and, afterwards, how far it came.

    ``most`` is how many pods may pass. ``step`` is that of the last pod, and ``role`` the
    scheduler's. ``settle`` lets those have their turns who have work before the next pod; it is
    told who has had one.
    """

    step: ScenarioStep
    most: int
    role: Role
    settle: Callable[..., None]
    pods: int = 0
    is_open: bool = True
    """Whether the next pod may try."""
    begin_turn: Callable[[], None] | None = None
    """Shows that a turn begins, and ``move_step`` that one moves the step, where somebody looks."""
    move_step: Callable[[ScenarioStep], None] | None = None
    has_begun: bool = False
    """Whether a turn was shown whose pod did not pass: it is to be had the long way."""


@dataclass(slots=True)
class LaneCounts:
    """How many pods came through, how many of them the kubelet saw, and why the lane was left.

    ``created`` are those that were made in bunches, ``counted`` the statuses of their owners that
    were written without a turn.
    """

    pods: int = 0
    shown: int = 0
    created: int = 0
    counted: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Running:
    """What becomes of pods that are alike once they are bound, if it is known."""

    status: bytes
    phase: str
    start_time: str


@dataclass(slots=True)
class Known:
    """What is known of pods that are alike: all that becomes of one but its node.

    ``bound`` is their encoded status once they are bound, ``told`` who hears of which change.
    """

    cycle: Cycle
    bound: bytes
    running: Running | None
    told: dict[tuple[bool, bool, bool], Route] = field(default_factory=dict)


class Lane:
    """The lane of one world."""

    def __init__(self, registry: EmbeddedRegistry, instruments: Instruments, clock: Clock) -> None:
        self.counts = LaneCounts()
        self._registry = registry
        self._instruments = instruments
        self._clock = clock

    def is_open_to(self, slot: Slot) -> bool:
        """Whether the next pod of the scheduler in ``slot`` may pass, as far as it is concerned."""
        reason = why_not(slot)
        if reason:
            self.counts.left[reason] += 1
        return not reason

    def run(self, slot: Slot, others: Sequence[Slot], passage: Passage) -> None:
        """Let pods of the scheduler in ``slot`` pass, as far as they are like those before.

        ``others`` are the controllers that settle after each of them. The passage says how far it
        went also if something is raised.
        """
        try:
            met = parties(slot, others, self._registry, self._instruments)
            chunk = Chunk(self, met, Sleepers(others, slot.alarm), passage)
            try:
                chunk.run()
            finally:
                self.counts.counted += chunk.counted
        except NotNowError as reason:
            self.counts.left[str(reason)] += 1
            passage.is_open = False
        finally:
            self.counts.pods += passage.pods
            slot.awake = slot.awake or passage.pods > 0

    def create(self, actor: Actor, wishes: Iterable[Wish]) -> int:
        """Create pods like those before under other names; how many of them (`Creations`)."""
        count = 0
        try:
            count = Creations(self._registry, self._instruments, actor).create(wishes)
        except NotNowError as reason:
            self.counts.left[str(reason)] += 1
        self.counts.created += count
        return count


class Chunk:
    """Some pods, one after the other."""

    def __init__(self, lane: Lane, met: Parties, others: Sleepers, passage: Passage) -> None:
        self.shown = 0
        self._lane = lane
        registry = lane._registry
        self._store = registry.store
        self._writes = registry.lane_writes
        self._parties = met
        self._others = others
        self._passage = passage
        self._time = format_time(lane._clock.now())
        self._by_parts: dict[tuple[object, ...], Known] = {}
        """By kind and parts, and whether something is said of the one pod."""
        self._owners: Owners | None = None
        """They are asked as soon as somebody counts."""
        self._follows = False
        """Whether nothing has happened since the last pod was placed, but that owners count."""
        self._has_counted = False

    def run(self) -> None:
        """Until the chunk is full, or `NotNowError` says why the next pod does not pass."""
        passage, like_pods = self._passage, self._parties.like_pods
        while passage.pods < passage.most:
            entry = like_pods.next()
            if entry is None:
                raise NotNowError("the last pod")
            known = self._known_of(entry.pod)
            if passage.begin_turn is not None:
                passage.begin_turn()
                passage.has_begun = True
            decision = like_pods.decide(
                entry, known.cycle, follows=self._follows, counted=self._has_counted
            )
            if decision is None:
                raise NotNowError("more than a binding")
            self._place(entry, known, decision)

    def _place(self, entry: QueuedPod, known: Known, decision: Decision | NextDecision) -> None:
        """Bind the pod and let it run; what has to be seen by others is shown to them."""
        passage, pod, node = self._passage, entry.pod, decision.node
        met, like_pods = self._parties, self._parties.like_pods
        passage.step = ScenarioStep(passage.step.major, passage.step.minor + 1)
        passage.pods += 1
        if passage.move_step is not None:
            passage.move_step(passage.step)
            passage.has_begun = False
        is_watching = like_pods.is_watching
        self._follows, self._has_counted = not is_watching, False
        if is_watching:
            like_pods.assume(entry, node)
        change = self._writes.bind(pod.record, node, known.bound)
        bound = change.record
        self._tell(change, known, is_watching=is_watching)
        if is_watching:
            like_pods.done(entry)
        like_pods.announce(pod, node)
        self._report(pod, bound, decision)
        running = known.running
        if running is None or not met.kubelet.starts_at_once(node) or self._others.awake():
            self._lane.counts.shown += 1
            if not is_watching:
                like_pods.placed(entry, bound, pod.start_time)
            self._store.tell_some(change, (met.kubelet_hears,))
            self._settle()
            return
        met.kubelet.starts(bound)
        change = self._writes.report(bound, running.status, running.phase)
        if not is_watching:
            like_pods.placed(entry, change.record, running.start_time)
        if self._tell(change, known, is_watching=is_watching) and self._others.awake():
            self._has_counted = True
            if not self._count():
                self._settle(met.kubelet.name)

    def _settle(self, *turned: str) -> None:
        """By then somebody may know more, or see to pods that nobody had an eye on."""
        self._follows = False
        self._passage.settle(*turned)
        self._others.settled()
        self._by_parts.clear()
        if self._owners is not None:
            self._owners.settled()

    def _count(self) -> bool:
        """Let owners count the pod; False if somebody has to have a turn (`Owners`)."""
        if self._owners is None:
            registry, instruments = self._lane._registry, self._lane._instruments
            self._owners = Owners(self._others, registry, self._parties.recorder, instruments)
        return self._owners.count()

    @property
    def counted(self) -> int:
        return 0 if self._owners is None else self._owners.counted

    # -- what is known of a pod ------------------------------------------------------------

    def _known_of(self, pod: PodInfo) -> Known:
        parts = self._writes.parts_of(pod.record)
        if parts is None or pod.terminating:
            raise NotNowError("an unusual pod")
        kind, kubelet = pod.signature.kind, self._parties.kubelet
        key = (kind, parts, kubelet.is_annotated(pod.record))
        known = self._by_parts.get(key)
        if known is None:
            known = self._by_parts[key] = self._learned(pod, parts)
        return known

    def _learned(self, pod: PodInfo, parts: PodParts) -> Known:
        cycle = self._parties.like_pods.cycle_of(pod)
        if cycle is None:
            raise NotNowError("more than a binding")
        bound = self._writes.bound_parts(pod.record, parts, self._time)
        if bound is None:
            raise NotNowError("an unusual binding")
        # What becomes of a pod with a life of its own, its kubelet has to say.
        has_life = self._parties.kubelet.may_behave(pod.record)
        return Known(cycle, bound.status, None if has_life else self._starts(bound))

    def _starts(self, bound: PodParts) -> Running | None:
        """What the kubelet reports of such pods, and what comes of it; None if nobody knows yet."""
        options = self._parties.kubelet.starts_with(bound, self._time)
        reported = None if options is None else self._writes.reported(options, bound)
        if reported is None:
            return None
        since = self._parties.like_pods.start_time(reported[0])
        return None if since is None else Running(*reported, since)

    # -- what it leaves behind -------------------------------------------------------------

    def _tell(self, change: Change, known: Known, *, is_watching: bool) -> bool:
        """Tell those of a change whose part the lane does not take; whether there are any."""
        record, before = change.record, change.previous
        assert before is not None
        kind = (before.node == "", record.labels is before.labels, is_watching)
        told = known.told.get(kind)
        if told is None:
            met = self._parties
            mine = (met.kubelet_hears,) if is_watching else (met.kubelet_hears, met.scheduler_hears)
            route = self._store.route_of(change)
            told = known.told[kind] = tuple([each for each in route if each not in mine])
        if told:
            self._store.tell_some(change, told)
        return bool(told)

    def _report(self, pod: PodInfo, bound: Record, decision: Decision | NextDecision) -> None:
        met, passage = self._parties, self._passage
        explanation = decision.explanation
        met.recorder.bound(
            passage.step,
            met.like_pods.actor,
            passage.role,
            bound,
            pod.scheduler_name,
            decision.evaluated,
            decision.feasible,
            explanation,
        )
        if not met.attempted and explanation is None:
            return
        attempt = SchedulingAttempt(
            actor=met.like_pods.actor,
            pod=bound,
            profile=pod.scheduler_name,
            node=decision.node,
            evaluated=decision.evaluated,
            feasible=decision.feasible,
            explanation=explanation,
        )
        if explanation is not None:
            phase = StepPhaseChange(passage.step, PAUSED, met.like_pods.actor.name)
            for hook in met.phases:
                hook(phase)
        for hook in met.attempted if explanation is None else met.explained:
            hook(attempt)
