"""The stage: all programs outside that a served world knows, and those that a scenario has called.

A program is known by the name under which it speaks (``/as/NAME`` in its server's URL). It may be
there long before a scenario calls it, and after; only in between it moves in turns.

What a scheduler outside did is told as attempts, from its writes, since it tells nothing else: a
binding is an attempt that succeeded, a condition ``PodScheduled=False`` one that failed, a pod that
it deletes a victim. Which nodes it looked at and why it chose is not known.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from kubescene.actors import ENGINE, Actor, Component
from kubescene.api.kinds import BOOKKEEPING, POD
from kubescene.api.records import Record
from kubescene.api.records.changes import Change, RecordDecoder
from kubescene.api.scheme import GroupResource
from kubescene.client import Reader
from kubescene.clock import MILLISECOND, SECOND, Clock, WallClock
from kubescene.control import Slot
from kubescene.controllers.kubelet import KUBELET
from kubescene.errors import ScenarioError
from kubescene.instruments.attempts import Preemption, SchedulingAttempt
from kubescene.outside.feeds import WatchFeed
from kubescene.outside.idleness import Idleness
from kubescene.outside.programs import GateReply, Held, OutsideProgram
from kubescene.outside.requests import PODS
from kubescene.outside.round_trips import Errand, at_once
from kubescene.outside.turns.bag import BagTurn
from kubescene.outside.turns.operator import OperatorTurn
from kubescene.outside.turns.scheduler import SchedulerTurn
from kubescene.outside.turns.turn import Turn
from kubescene.outside.waiters import NO_OTHERS, waiter_of
from kubescene.runs.worlds import RunWorld
from kubescene.scenario.outside import OutsideController, OutsideKind, OutsideStatus, scheduler_of
from kubescene.scenario.outsiders import too_late
from kubescene.store import Store, Subscription
from kubescene.timeline import Instrument, Instruments, ObjectWrite


class OutsideAttempts(Instrument):
    """Listens to the writes of schedulers outside and passes on what they mean."""

    def __init__(self, instruments: Instruments, schedulers: Collection[str]) -> None:
        """``schedulers``: their names as controllers."""
        self._instruments = instruments
        self._schedulers = schedulers
        self._preemptor: dict[str, str] = {}
        """Who was nominated last, NAMESPACE/NAME, by node."""

    def object_written(self, write: ObjectWrite) -> None:
        if write.gvk != POD or write.actor.name not in self._schedulers:
            return
        if write.verb == "bind":
            self._attempted(write, node=write.record.node)
        elif write.verb == "delete":
            self._preempted(write)
        elif write.subresource == "status" and (failure := failure_of(write)):
            self._attempted(write, **failure)

    def _attempted(self, write: ObjectWrite, **told: Any) -> None:
        if nominated := told.get("nominated"):
            self._preemptor[nominated] = f"{write.record.namespace}/{write.record.name}"
        profile = scheduler_of(write.record.decode())
        attempt = SchedulingAttempt(write.actor, write.record, profile, **told)
        for hook in self._instruments.pod_attempted:
            hook(attempt)

    def _preempted(self, write: ObjectWrite) -> None:
        pod: Record = write.record
        preemption = Preemption(write.actor, pod, self._preemptor.get(pod.node, ""))
        hook: Callable[[Preemption], None]
        for hook in self._instruments.pod_preempted:
            hook(preemption)


def failure_of(write: ObjectWrite) -> dict[str, str] | None:
    """What a status says of a failed attempt; None if it is about something else."""
    if "PodScheduled" not in str(write.body):
        return None
    status = write.record.decode().get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return {
                "message": condition.get("message", ""),
                "reason": condition.get("reason", ""),
                "nominated": status.get("nominatedNodeName", ""),
            }
    return None


QUIET_AT_FIRST = 500 * MILLISECOND
"""A program that has asked nothing for so long knows what it wants to know."""
QUIET_BAG_AT_FIRST = 1500 * MILLISECOND
MOST_KNOWN = 1000
"""Programs that are remembered though nothing is open in their name."""
PARKED = "parked"
PARK_POD = "park-pod"
STILL = "still"
ALONE = (OutsideKind.SCHEDULER, OutsideKind.BAG)
"""Kinds of programs that are one process: of operators several may share a name."""
TURNS: dict[OutsideKind, type[Turn]] = {
    OutsideKind.SCHEDULER: SchedulerTurn,
    OutsideKind.OPERATOR: OperatorTurn,
    OutsideKind.BAG: BagTurn,
}


@dataclass(frozen=True, slots=True)
class WorldOfTurns:
    """A world as turns see it."""

    cluster: RunWorld
    real_clock: Clock

    @property
    def revision(self) -> int:
        return self.cluster.store.revision

    @property
    def decoder(self) -> RecordDecoder:
        return self.cluster.store

    @property
    def reader(self) -> Reader:
        return self.cluster.client(ENGINE)

    @property
    def clock(self) -> Clock:
        return self.cluster.clock

    def count(self, resource: GroupResource) -> int:
        return self.cluster.store.count(resource)


@dataclass(frozen=True, slots=True)
class Followed:
    """What a program watches, for whoever asks whether anything there has changed."""

    program: OutsideProgram
    store: Store
    news: "News"

    def changed_since(self, revision: int) -> bool:
        if not self.program.feeds:
            return self.news.revision > revision  # it only lists: anything may be news
        return any(self.store.newest(each.resource) > revision for each in self.program.feeds)


class News:
    """What has changed, for a program that only lists: it hears of nothing by itself."""

    def __init__(self, program: OutsideProgram, slot: Slot) -> None:
        self.revision = 0
        """Of the newest change of anything but bookkeeping."""
        self._program = program
        self._slot = slot

    def __call__(self, change: Change) -> None:
        if change.record.resource in BOOKKEEPING:
            return
        self.revision = change.revision
        if not self._program.feeds:
            self._slot.wake()


@dataclass(frozen=True, slots=True)
class Called:
    """A program in the scenario that is played."""

    program: OutsideProgram
    declared: OutsideController
    turn: Turn
    arrival: Idleness
    deadline: int

    @property
    def has_given_up(self) -> bool:
        """Whether the scenario fails because of it."""
        return self.turn.gave_up or self.program.has_failed


class OutsideStage:
    """All but `called` is for the engine thread."""

    def __init__(self, cluster: RunWorld, clock: Clock | None = None) -> None:
        self._cluster = cluster
        self._clock = clock or WallClock()
        self._programs: dict[str, OutsideProgram] = {}
        self._called: dict[str, Called] = {}
        self.called: Mapping[str, OutsideProgram] = {}
        """Programs whose requests go by turns. Any thread may look."""
        self._strangers: dict[str, OutsideProgram] = {}
        self._attempts: OutsideAttempts | None = None
        self._news: list[Subscription] = []
        self._vouched: set[str] = set()
        self.waiters = NO_OTHERS
        """Classes of waiters that were brought along, by name."""
        self.is_playing: Callable[[], bool] = nobody_plays
        self.errand: Errand = at_once
        """Set by the server, once it has an event loop."""
        self.since = 0
        """When the scenario began, in real time."""

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """A copy of the world is played without programs outside: they are in one world only."""

    # -- the server ----------------------------------------------------------------------------

    def program(self, name: str) -> OutsideProgram:
        return self._programs.setdefault(name, OutsideProgram(name, self._clock))

    def open_feed(
        self, name: str, resource: GroupResource, mark: Callable[[], None], product: str = ""
    ) -> WatchFeed:
        return self.program(name).open_feed(resource, mark, product)

    def close_feed(self, name: str, feed: WatchFeed) -> None:
        program = self.program(name)
        program.close_feed(feed)
        self.forget(program)

    def forget(self, program: OutsideProgram) -> None:
        """Forget a program of which nothing is left; that one parks is worth remembering."""
        used = program.feeds or program.is_waiting or program.last_words
        if used or program.pid is not None or program.name in self._called:
            return
        known = self._programs.get(program.name)
        if known is program and (not program.has_parked or len(self._programs) > MOST_KNOWN):
            del self._programs[program.name]

    def park(self, program: OutsideProgram, held: Held) -> None:
        """A program says that its loop is over; where no scenario runs, it may go on at once.

        One that is called waits for its turn, before the first step as well, unless it only says
        that it will park and has yet to begin; one that is not called waits until the scenario is
        over.
        """
        has_begun = program.has_parked or bool(program.feeds)
        program.park(held)
        if program.name in self._called:
            if program.is_gathering and not has_begun:
                program.unpark()
        elif self.is_playing():
            self._strangers[program.name] = program
        else:
            program.unpark()

    # -- the supervisor --------------------------------------------------------------------------

    def started(self, name: str, pid: int) -> None:
        """Somebody has started the program here, so that one can see whether it does anything."""
        program = self.program(name)
        program.pid, program.last_words = pid, ""

    def vouch(self, name: str) -> None:
        """Somebody has looked at the program's settings, and they are right."""
        self._vouched.add(name)

    def ended(self, name: str, last_words: str) -> None:
        """The program is gone."""
        program = self.program(name)
        program.pid, program.has_parked = None, False
        program.last_words = last_words

    # -- the engine --------------------------------------------------------------------------------

    def check(self, declared: Sequence[OutsideController]) -> None:
        for each in declared:
            waiter_of(each, self.waiters)

    def enter(self, declared: OutsideController) -> Slot:
        program = self.program(declared.name)
        program.actor = Actor(declared.name, component_of(declared))
        slot = Slot(declared.name, self._cluster.alarm)
        program.enter(is_alone=declared.kind in ALONE)
        program.wake = slot.wake
        program.errand = self.errand
        world = WorldOfTurns(self._cluster, self._clock)
        waiter = waiter_of(declared, self.waiters) if declared.waiter is not None else None
        turn = TURNS[declared.kind](program, declared, world, waiter)
        news = News(program, slot)
        slot.controller = turn
        slot.watcher = Followed(program, self._cluster.store, news)  # type: ignore[assignment]
        quiet = QUIET_BAG_AT_FIRST if declared.kind is OutsideKind.BAG else QUIET_AT_FIRST
        arrival = Idleness(program, self._clock, quiet, linger=quiet)
        arrival.begin()
        deadline = self._clock.now() + declared.attach_timeout_ns
        self._called[declared.name] = Called(program, declared, turn, arrival, deadline)
        if declared.kind is OutsideKind.OPERATOR:
            self._news.append(self._cluster.store.subscribe(news, goes_with_fork=False))
        self.called = {name: each.program for name, each in self._called.items()}
        self.since = self.since or self._clock.now()
        return slot

    def is_gathered(self) -> bool:
        if not all(map(self._is_there, self._called.values())):
            return False
        for each in self._called.values():
            each.program.close()
        schedulers = [
            name
            for name, each in self._called.items()
            if each.declared.kind is OutsideKind.SCHEDULER
        ]
        if schedulers:
            self._attempts = OutsideAttempts(self._cluster.instruments, schedulers)
            self._cluster.observe(self._attempts)
        return True

    def _is_there(self, called: Called) -> bool:
        program = called.program
        program.check()
        if called.declared.kind is OutsideKind.OPERATOR and program.stands:
            return True
        watches = program.feeds_of(PODS) if called.declared.kind is OutsideKind.SCHEDULER else None
        if any(program.feeds if watches is None else watches) and called.arrival.is_reached():
            return True
        if self._clock.now() > called.deadline:
            raise ScenarioError(late(called), where=f"controller {program.name}")
        return False

    def leave(self, scenario: str) -> None:
        called, self._called, self.called = self._called, {}, {}
        while self._news:
            self._news.pop().cancel()
        strangers, self._strangers = self._strangers, {}
        self.since = 0
        if self._attempts is not None:
            self._cluster.instruments.detach(self._attempts)
            self._attempts = None
        with ExitStack() as each_of_them:
            # Whatever goes wrong with one, the others are answered.
            for stranger in strangers.values():
                each_of_them.callback(stranger.unpark)
            for each in called.values():
                each_of_them.callback(self.forget, each.program)
                late = too_late(scenario, each.program.actor)
                each_of_them.callback(each.program.release, GateReply.refusing(late))
                each_of_them.callback(each.turn.end)

    def look(self) -> None:
        for each in self._called.values():
            each.program.check()

    def statuses(self) -> tuple[OutsideStatus, ...]:
        """By what it was judged that each had nothing left to do."""
        gave_up = (n for n, each in self._called.items() if each.has_given_up)
        failed_by = next(gave_up, "")
        return tuple(
            judged(
                each.declared,
                each.turn.judged_by,
                settings_known=name in self._vouched,
                failed_by="it" if name == failed_by else failed_by,
                by_chance=each.turn.by_chance,
            )
            for name, each in self._called.items()
        )


def component_of(declared: OutsideController) -> Component:
    if declared.kind is OutsideKind.SCHEDULER:
        return Component.SCHEDULER
    return Component.KUBELET if declared.name == KUBELET else Component.CONTROLLER


def nobody_plays() -> bool:
    return False


def late(called: Called) -> str:
    waited = called.declared.attach_timeout_ns // SECOND
    name = called.program.name
    if called.program.feeds:
        return (
            f"after {waited} s it never came to a stand: it was still asking. Have it park at the "
            "end of its loop (docs/guides/outside-go.md), or raise its attachTimeout in "
            "spec.controllers.outside"
        )
    if called.program.pid is not None:
        return (
            f"after {waited} s the program runs, but nobody watches anything in its name, or "
            "parks: have it use the server of the kubeconfig that it was given (KUBECONFIG, or "
            "{kubeconfig} and {server} in its command)"
        )
    return (
        f"after {waited} s nobody watches anything in its name, or parks: start the program with a "
        f"kubeconfig whose server URL ends in /as/{name} (kubescene kubeconfig --as {name}), or "
        f'with kubescene run --outside {name}="command"'
    )


def judged(
    declared: OutsideController,
    by: tuple[str, ...],
    *,
    settings_known: bool,
    failed_by: str = "",
    by_chance: str = "",
) -> OutsideStatus:
    """What a Scenario's status says of a program: how it was judged, and what that is worth.

    ``by`` are the signs that were gone by; ``settings_known``: somebody has looked at them.

    ``failed_by``: because of whom the scenario ended; ``by_chance``: why it may decide otherwise.
    """
    doubt = doubt_about(declared, by, settings_known=settings_known) or by_chance
    if failed_by and by:
        doubt = f"the scenario failed because of {failed_by}: when it did depends on the machine"
    signs = (*by, *waiters_of(declared)) if by else ()
    return OutsideStatus(declared.name, str(declared.kind), signs, not doubt, doubt)


def waiters_of(declared: OutsideController) -> list[str]:
    """The waiter that had to agree, as a sign."""
    spec = declared.waiter
    return [] if spec is None else [f"waiter {spec.name or 'conditions'}"]


def doubt_about(declared: OutsideController, by: tuple[str, ...], *, settings_known: bool) -> str:
    """Why another run may differ; empty if it will not.

    Equal runs are promised only where nothing was guessed: a program that says itself when a loop
    is over (``parked``), and a scheduler that stands still in its park pods, is watched by the
    kernel's accounts meanwhile, and has the settings that take its timers and races away.
    """
    if not by:
        return "it never had a turn"
    if declared.kind is OutsideKind.BAG:
        return "its workers race: the state that they end in is alike, not the way there"
    if PARKED in by and declared.kind is OutsideKind.OPERATOR:
        return ""
    if declared.kind is OutsideKind.OPERATOR:
        return "the end of a loop was judged from outside: let it say so itself (parked)"
    if PARK_POD not in by or STILL not in by:
        return "whether it had read what it was sent was judged by silence: start it with --outside"
    if declared.unchecked:
        return "settings: Unchecked, so its timers and races may show"
    return "" if settings_known else "its settings are not known: start it with --outside"
