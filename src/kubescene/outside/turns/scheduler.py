"""A scheduler, pod by pod, held by park pods (see `kubescene.outside.park_pods`).

It stands still in the status write of a park pod. A turn lets it see all that has happened, one
more of the pods that wait, and the next park pod (`pod_feed`); then the write is answered. It works
until it stands still in the next one. What it wanted to write meanwhile was held (`wanted_writes`),
and is carried out one decision after the other, with the world coming to rest in between. When no
pod is left that it has not seen, it is asked whom it would try again (`roll_call`): these are given
like the others. If there are none, it is done. A pod whose volumes it has chosen is bound when they
are (`volumes`).
"""

from kubescene.clock import SECOND
from kubescene.control import IDLE, WAITING, Progress
from kubescene.errors import ScenarioError
from kubescene.outside.idleness import ONE_WORKER, Idleness
from kubescene.outside.programs import Held, OutsideProgram
from kubescene.outside.turns.pod_feed import PodFeed
from kubescene.outside.turns.turn import Turn, TurnSurroundings
from kubescene.outside.turns.wanted_writes import WantedWrites
from kubescene.outside.waiters import ControllerWaiter
from kubescene.scenario.outside import OutsideController

BIND_WITHIN = SECOND
"""A decision is written by a thread of its own: it is on its way when the next pod's turn comes."""
VICTIMS = "it preempted: kube-scheduler chooses among equal victims by chance"
LOOKS_WITHIN = 10 * SECOND
"""kube-scheduler looks once a second whether the volumes of a pod are bound."""


class SchedulerTurn(Turn):
    """Moves one scheduler."""

    _idle: Idleness | None = None
    _late = 0
    _is_preempting = False

    def __init__(
        self,
        program: OutsideProgram,
        declared: OutsideController,
        world: TurnSurroundings,
        waiter: ControllerWaiter | None = None,
    ) -> None:
        super().__init__(program, declared, world, waiter)
        self._feed = PodFeed(program, declared, world)
        self._wanted = WantedWrites(program, world.reader, self._feed.waiting)
        self._batch: list[Held] = []

    @property
    def judged_by(self) -> tuple[str, ...]:
        return ("park-pod",) if self._idle is None else ("park-pod", self._idle.judged_by)

    @property
    def by_chance(self) -> str:
        return VICTIMS if self._wanted.has_preempted else ""

    def end(self) -> None:
        if self._idle is not None:
            self._feed.reveal()

    def run_once(self) -> Progress:
        if any(held.asked.lists_pods for held in self._program.held):
            raise ScenarioError(
                "it wants to list all pods in the middle of the scenario (its watch was broken "
                "off): from then on it would see them all at once",
                where=f"controller {self.name}",
            )
        return super().run_once()

    def _look_anew(self) -> Idleness:
        """Whether it is idle is judged from now on."""
        if self._idle is None:
            self._idle = Idleness(self._program, self._world.real_clock, ONE_WORKER)
        self._idle.begin()
        return self._idle

    def _is_idle(self) -> bool:
        return (self._idle or self._look_anew()).is_reached()

    # -- giving -----------------------------------------------------------------------------------

    def _begin(self) -> Progress:
        """It stands still: give it the next pod. In its first turn it is parked before."""
        self._look_anew()
        self._program.sees_pods_in_turn = True
        self._program.unpark()
        self._program.let_read()
        return self._tell() if self._feed.is_parked else self._park_first()

    def _park_first(self) -> Progress:
        """Nothing holds it yet: what it is shown it would hear of in any order, and act on it."""
        if not self._feed.is_open:
            return self._come_back()
        self._feed.park()
        return self._go(self._parking_first, "it had not come to a stand: it did not try a pod")

    def _parking_first(self) -> Progress:
        """What it says meanwhile is about a world that is gone: it is told so."""
        self._program.unpark()
        for held in self._program.writes:
            self._program.let_in(held)
        if self._program.passed or not self._feed.has_come():
            return WAITING
        self._feed.is_parked = True
        return self._tell()

    def _tell(self) -> Progress:
        """Let it see all that has happened, and one more pod."""
        if not self._feed.is_open:
            return self._come_back()
        self._feed.tell()
        if self._feed.waiting.has_new:
            return self._give()
        self._wanted.begin(())
        self._look_anew()
        self._late = self._world.real_clock.now() + LOOKS_WITHIN
        return self._go(self._knowing, "what it was sent was not read")

    def _give(self) -> Progress:
        self._wanted.begin(self._feed.deliver())
        self._look_anew()
        return self._go(self._consuming, "what it was sent was not read")

    def _consuming(self) -> Progress:
        if not self._is_idle():
            return WAITING
        self._feed.answer()
        return self._run()

    # -- working --------------------------------------------------------------------------------

    def _run(self) -> Progress:
        self._look_anew()
        return self._go(self._running, "it had not come to a stand: it did not try its park pod")

    def _running(self) -> Progress:
        """Until it stands still in the next park pod's status."""
        self._wanted.let_failures_in()
        self._program.unpark()
        if self._program.passed or not self._feed.has_come():
            return self._release() if self._is_stuck() else WAITING
        self._feed.is_parked = True
        self._late = self._world.real_clock.now() + BIND_WITHIN
        return self._go(self._collecting, "its decisions did not arrive")

    def _is_stuck(self) -> bool:
        """Whether its loop waits for a write: one that binds before it takes the next pod does."""
        return bool(self._program.writes) and self._is_idle()

    def _collecting(self) -> Progress:
        """Decisions are written by threads of their own: wait for those that must come."""
        self._wanted.let_failures_in()
        if self._program.passed:
            return WAITING
        is_complete = self._wanted.covers_given() and self._is_idle()
        if not is_complete and self._world.real_clock.now() < self._late:
            return WAITING
        return self._decide()

    def _decide(self) -> Progress:
        """What it wants to have written is carried out, or it is given the next pod."""
        if self._program.writes:
            return self._release()
        self._state = self._begin
        return Progress(wrote=bool(self._wanted.failed), more=True)

    # -- carrying out ------------------------------------------------------------------------------

    def _release(self) -> Progress:
        """One decision: a binding, or all that one preemption removes."""
        self._feed.has_news = True
        binding = self._wanted.next_binding()
        self._batch = self._wanted.deeds() if binding is None else [binding]
        self._is_preempting = binding is None
        return self._go(self._carrying_out, "its writes were not answered")

    def _carrying_out(self) -> Progress:
        if self._program.passed:
            return WAITING
        if self._batch:
            self._wanted.let_in(self._batch.pop(0))
            return WAITING
        if self._is_preempting and not self._has_come_to_rest():
            return WAITING
        if self._wanted.is_half_done():
            return self._release()
        self._state = self._decided
        return Progress(wrote=True, more=True)

    def _has_come_to_rest(self) -> bool:
        """A victim is marked first and deleted then: both belong to one decision."""
        if not self._is_idle():
            return False
        self._batch = self._wanted.others()
        if self._batch:
            self._look_anew()
        return not self._batch

    def _decided(self) -> Progress:
        """The world has come to rest: the next decision, or the next pod."""
        self._wanted.let_failures_in()
        if self._program.passed:
            return WAITING
        if self._wanted.chosen.is_due():
            return self._await_binding()
        if not self._feed.is_parked:
            return self._run()
        if self._program.writes:
            return self._release()
        return self._begin()

    # -- volumes -----------------------------------------------------------------------------------

    def _await_binding(self) -> Progress:
        """The volumes of a pod are bound: let it see that, and it binds the pod."""
        self._feed.tell()
        self._late = self._world.real_clock.now() + LOOKS_WITHIN
        return self._go(self._awaiting, "a pod was not bound though its volumes are")

    def _awaiting(self) -> Progress:
        if self._is_late():
            return WAITING
        if self._program.writes:
            return self._release()
        self._state = self._decided
        return Progress(wrote=False, more=True)

    def _is_late(self) -> bool:
        """Whether a binding that is due has still to come; not for ever."""
        self._wanted.let_failures_in()
        if self._program.passed:
            return True
        if self._program.writes or not self._wanted.chosen.is_due():
            return False
        if self._world.real_clock.now() < self._late:
            return True
        self._wanted.chosen.give_up()
        return False

    # -- trying again ------------------------------------------------------------------------------

    def _knowing(self) -> Progress:
        """It has heard of everything, and seen every pod: whom would it try again?"""
        if not self._is_idle() or self._is_late():
            return WAITING
        if self._program.writes:
            return self._release()
        if not (self._feed.has_news and self._feed.waiting.unplaced):
            return self._go_on()
        self._feed.call()
        self._look_anew()
        return self._go(self._hearing_the_call, "what it was sent was not read")

    def _hearing_the_call(self) -> Progress:
        if not self._is_idle():
            return WAITING
        self._feed.answer()
        self._look_anew()
        return self._go(self._answering, "it was still busy")

    def _answering(self) -> Progress:
        self._hear()
        if self._program.passed or not self._is_idle():
            return WAITING
        self._feed.park()
        self._look_anew()
        return self._go(self._parking_again, "it had not come to a stand (its park pod)")

    def _hear(self) -> None:
        for held in self._wanted.attempts():
            self._feed.heard(held)

    def _parking_again(self) -> Progress:
        self._program.unpark()
        self._hear()
        if self._program.passed or not self._feed.has_come():
            return WAITING
        self._feed.is_parked = True
        self._feed.restore()
        self._look_anew()
        return self._go(self._seeing_all, "what it was sent was not read")

    def _seeing_all(self) -> Progress:
        if not self._is_idle():
            return WAITING
        if self._program.writes:
            return self._release()
        return self._go_on()

    def _go_on(self) -> Progress:
        return self._give() if self._feed.waiting.has_any else self._rest()

    # -- resting -----------------------------------------------------------------------------------

    def _rest(self) -> Progress:
        return self._go(self._resting, "it was still busy")

    def _resting(self) -> Progress:
        if self._program.writes:
            return self._release()
        if not self._is_content():
            return WAITING
        self._state = self._begin
        self._program.may_read = False
        return IDLE
