"""Phases 2 to 7: settle, then all simulation controllers until none has work left."""

from functools import partial

from kubescene.actors import Role
from kubescene.clock import ScenarioStep
from kubescene.control import Patience, Slot
from kubescene.lane import CHUNK, CHUNK_SEEN, Passage
from kubescene.scenario.engine.outstanding import Outstanding
from kubescene.scenario.engine.play import Play
from kubescene.scenario.phases import StepPhase

OPERATING_COMPLETED = StepPhase.OPERATING_COMPLETED
CONTROLLER_RUNNING = StepPhase.CONTROLLER_RUNNING
CONTROLLER_PAUSED = StepPhase.CONTROLLER_PAUSED
SIMULATION = Role.SIMULATION


class Rest:
    """Lets a world come to rest, one round or one loop at a time."""

    def __init__(self, play: Play, outstanding: Outstanding) -> None:
        self._world = play.world
        self._outstanding = outstanding
        self._scenario = play.scenario
        self._recorder = play.recorder
        self._participants = play.participants
        self._telling = play.telling
        self._gate = play.gate
        self._patience = play.patience
        self._tasks = play.tasks
        self._then = play.tasks.then
        self._done_at: dict[str, int] = {}

    def begin_step(self) -> None:
        """At the beginning of a major step nobody is known to be done."""
        self._done_at.clear()

    def come(self) -> None:
        """Until nobody has work, and no operation that is under way goes on by itself."""
        if self._outstanding:
            self._then(self._go_on)
        self._then(self._work, 0)
        self._then(self._settle, self._patience())

    def _go_on(self, wrote: bool = False) -> None:
        wrote = self._outstanding.go_on() or wrote
        if self._outstanding.is_halfway:
            self._then(self._go_on, wrote)
        elif wrote:
            self.come()

    # -- settling ----------------------------------------------------------------------------------

    def _settle(self, patience: Patience) -> None:
        """One round of the pre-simulation controllers, or what is due at this very instant."""
        if self._participants.beside:
            self._settle_beside(patience)
        elif self._world.crank.round(self._participants.presimulation, patience):
            self._then(self._settle, patience)

    def _settle_beside(self, patience: Patience) -> None:
        """The same beside programs outside, which have their turns when ours rest.

        While one is at it nobody else moves, so that what it finds does not depend on its pace.
        """
        beside = self._participants.beside
        busy = next((slot for slot in beside if slot.waits), None)
        if busy is None and self._world.crank.round(self._participants.presimulation, patience):
            self._then(self._settle, patience)
            return
        slot = busy or next((slot for slot in beside if slot.awake), None)
        if slot is not None:
            self._then(self._settle, patience)
            self._give_turn(slot, patience)

    def _give_turn(self, slot: Slot, patience: Patience) -> None:
        progress = slot.turn()
        self._tasks.waits = progress.waits
        if not progress.waits:
            self._recorder.tell_net()
            patience.spend([slot.name], [slot.name] if progress.wrote else [])

    # -- the simulation controllers ----------------------------------------------------------------

    def _work(self, turns: int, may_pass: bool = True) -> None:
        """Give the first simulation controller that is not known to be done its turn.

        ``may_pass``: its next pods may go through the lane instead.
        """
        slot = next(filter(self._may_have_work, self._participants.simulation), None)
        if slot is None or (may_pass and self._through_lane(slot, turns)):
            return
        self._gate.check_turns(turns + 1)
        self._then(self._work, turns + 1)
        self._then(self._loop, slot, None)
        self._enter_turn(slot)

    def _through_lane(self, slot: Slot, turns: int) -> bool:
        """Let like pods pass as far as they can; False if the next one takes a turn (`lane`)."""
        lane, participants = self._world.lane, self._participants
        if lane is None or participants.outside or slot is not participants.simulation[0]:
            return False
        if not lane.is_open_to(slot):
            return False
        # Who looks at the Scenario sees every phase, and shall not wait for long.
        is_seen = not self._scenario.is_unseen
        most = min(CHUNK_SEEN if is_seen else CHUNK, self._gate.uncounted(turns))
        if most <= 0:
            return False
        passage = Passage(self._scenario.step, most, SIMULATION, self._settle_now)
        if is_seen:
            passage.begin_turn = partial(self._enter_turn, slot)
            passage.move_step = self._move_step
        try:
            lane.run(slot, participants.presimulation, passage)
        finally:
            if passage.pods:
                self._done_at.pop(slot.name, None)
                if not is_seen:
                    self._telling.enter(CONTROLLER_PAUSED, step=passage.step, controller=slot.name)
        if passage.has_begun:
            self._gate.check_turns(turns + passage.pods + 1)
            self._then(self._work, turns + passage.pods + 1)
            self._then(self._loop, slot, None)
            return True
        if passage.pods:
            self._then(self._work, turns + passage.pods, passage.is_open)
        return passage.pods > 0

    def _enter_turn(self, slot: Slot) -> None:
        self._telling.enter(OPERATING_COMPLETED, controller=slot.name)
        self._telling.enter(CONTROLLER_RUNNING)

    def _move_step(self, step: ScenarioStep) -> None:
        self._telling.enter(CONTROLLER_PAUSED, step=step)

    def _settle_now(self, *turned: str) -> None:
        """Come to rest at once; who is named has had a turn, and wrote."""
        patience, slots = self._patience(), self._participants.presimulation
        if turned:
            patience.spend(turned, turned)
        while self._world.crank.round(slots, patience):
            pass

    def _may_have_work(self, slot: Slot) -> bool:
        """Not known to be done: something it watches has changed since its last turn."""
        done_at = self._done_at.get(slot.name)
        return done_at is None or slot.awake or slot.changed_since(done_at)

    def _loop(self, slot: Slot, patience: Patience | None) -> None:
        """One loop of a simulation controller; None is patience that nobody has needed yet."""
        if not slot.waits:
            self._gate.has_counted = False
        progress = slot.turn()
        if progress.waits:
            self._tasks.waits = True
            self._then(self._loop, slot, patience)
        elif self._gate.has_counted:
            self._done_at.pop(slot.name, None)
            self._then(self._settle, self._patience())
        elif progress.more:
            patience = patience or self._patience()
            patience.spend([slot.name], [slot.name] if progress.wrote else [])
            self._then(self._loop, slot, patience)
        else:
            self._complete(slot)

    def _complete(self, slot: Slot) -> None:
        slot.awake = False
        self._done_at[slot.name] = self._world.revision
        # Conditions of failed attempts do not move the step, but others may want to react.
        self._then(self._telling.enter, StepPhase.CONTROLLER_COMPLETED)
        self._then(self._settle, self._patience())
