"""Turning: one task after the other, between which anybody may look, stop or copy."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

from kubescene.clock import ScenarioStep
from kubescene.control import LivelockError
from kubescene.errors import KubesceneError, ScenarioError, ScenarioGoneError
from kubescene.scenario.engine.beginning import Beginning, Examine, Furnish
from kubescene.scenario.engine.endings import Endings
from kubescene.scenario.engine.major_steps import MajorSteps
from kubescene.scenario.engine.play import make_play
from kubescene.scenario.expectations import Judge
from kubescene.scenario.phases import ResultsStrategy, ScenarioPhase, StepPhase
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList
from kubescene.scenario.spec import Operation
from kubescene.scenario.world import LiveScenario, Stage, World
from kubescene.timeline import TimelineRecorder


class EngineMoment(NamedTuple):
    """Where a scenario stands between two pieces of work."""

    step: ScenarioStep
    phase: StepPhase | None
    waits: bool = False
    """Whether it is another program's turn: nothing happens here until that does something."""
    is_held: bool = False
    """Whether somebody holds what is played: nothing happens until it is let go."""


class Engine:
    """Plays the scenario behind a live object."""

    def __init__(
        self,
        world: World,
        scenario: LiveScenario,
        recorder: TimelineRecorder,
        results: ResultsStrategy = ResultsStrategy.AT_MOVING_NEXT_STEP,
        folder: ScenarioFolder | None = None,
        examine: Examine | None = None,
        judge: Judge | None = None,
        stage: Stage | None = None,
        listed: OperationList | None = None,
        furnish: Furnish | None = None,
    ) -> None:
        """``examine`` says what is remarkable about a spec before it is played, or refuses it.

        ``judge`` looks at the end whether the spec's expectations hold; without one nobody does.
        ``stage`` is where programs outside have their turns; without one none can take part.
        ``listed`` are the operations, if somebody has looked at them already. ``furnish`` puts into
        the empty world what is there before the scenario begins.
        """
        play = make_play(world, scenario, recorder, stage, results, folder, listed)
        self.world = world
        self.scenario = scenario
        self.bad_input = False
        self.failed_at: tuple[str | int, ...] = ()
        self._stage = stage
        self._script = play.script
        self._participants = play.participants
        self._tasks = play.tasks
        self._beginning = Beginning(play, examine, furnish)
        self._endings = Endings(play, judge)
        self._steps = MajorSteps(play, self._endings)
        self._tasks.then(self._read)

    # -- turning -----------------------------------------------------------------------------

    def run(self) -> ScenarioPhase:
        """Play to the end. Never raises for what the scenario did wrong: that is ``Failed``."""
        while self._tasks:
            self._do(*self._tasks.pop())
        return self.scenario.phase

    def play(self) -> Iterator[EngineMoment]:
        """Play on from where the scenario stands, one moment at a time.

        Whoever iterates may do anything between two moments, even leave and come back.
        """
        while self._tasks:
            self._tasks.waits = False
            self._do(*self._tasks.pop())
            yield EngineMoment(self.scenario.step, self.scenario.step_phase, self._tasks.waits)

    def stop(self) -> None:
        """Give up between two moments: what was done stays, outsiders may write again."""
        self._endings.stop()

    def fail(self, message: str) -> None:
        """End a scenario that is under way between two moments: something made it worthless."""
        self._endings.fail(message)

    def leave(self) -> None:
        """The scenario is over and somebody keeps it: forget the controllers that took part."""
        self._participants.leave()

    def fork(self) -> "Engine":
        """A copy of the scenario in its world, between two moments; both can be played on."""
        return deepcopy(self)

    def _do(self, task: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            if self._stage is not None and self._participants.outside:
                # Whoever has the turn: a program that is gone would be missed much later.
                self._stage.look()
            task(*arguments)
        except ScenarioGoneError:
            self.stop()
        except LivelockError as error:
            self.fail(f"step {self.scenario.step}: {error}")
        except KubesceneError as error:
            self.failed_at = error.path if isinstance(error, ScenarioError) else ()
            self.fail(str(error))
        except Exception as error:
            # A bug, not a fault of the scenario: told, and then shown in full.
            self.fail(f"internal error: {error!r}")
            raise

    def _read(self) -> None:
        self._tasks.then(self._steps.next_step)
        try:
            self._beginning.read()
        except ScenarioError as error:
            self.bad_input = True
            self.failed_at = error.path
            self._endings.end(ScenarioPhase.FAILED, str(error))

    # -- going on after a pause --------------------------------------------------------------

    def resume(self) -> bool:
        """Go on with a paused scenario if its author has changed it; whether there is work.

        Operations that they added for steps that have passed are listed as ignored. Other
        expectations are looked at anew.
        """
        if not self._is_paused():
            return False
        ignored = self.scenario.ignored
        self._do(self._script.reread, ())
        if not self._is_paused():
            return False
        if self._script.next_major() is not None:
            self._tasks.then(self._steps.next_step)
            self._tasks.then(self._beginning.go_on)
        elif self._script.spec.expectations != self._endings.evaluated:
            self._tasks.then(self._steps.conclude, ScenarioPhase.PAUSED)
        elif self.scenario.ignored != ignored:
            self._tasks.then(self.scenario.write)
        return bool(self._tasks)

    def _is_paused(self) -> bool:
        return self.scenario.phase is ScenarioPhase.PAUSED

    # -- where it stands ---------------------------------------------------------------------

    @property
    def started(self) -> Mapping[str, Operation]:
        """The operations of all steps up to the current one that were played, by id."""
        return self._script.played

    @property
    def is_between_steps(self) -> bool:
        """Whether a major step is complete and the next has not begun."""
        return self._steps.is_next

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to play."""
        return not self._tasks
