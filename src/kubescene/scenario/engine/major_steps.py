"""One major step after the other, until nothing is left to play."""

from collections.abc import Sequence

from kubescene.clock import ScenarioStep, parse_duration
from kubescene.scenario.engine.endings import Endings
from kubescene.scenario.engine.operating import Operating
from kubescene.scenario.engine.outstanding import Outstanding
from kubescene.scenario.engine.passing_time import PassingTime
from kubescene.scenario.engine.play import Play
from kubescene.scenario.engine.rest import Rest
from kubescene.scenario.expectations import Evaluation
from kubescene.scenario.phases import ScenarioPhase, StepPhase
from kubescene.scenario.spec import Operation, OperationKind


class MajorSteps:
    """Puts what a step consists of on the stack of tasks."""

    def __init__(self, play: Play, endings: Endings) -> None:
        self._play = play
        self._scenario = play.scenario
        self._script = play.script
        self._telling = play.telling
        self._then = play.tasks.then
        self._endings = endings
        self._outstanding = Outstanding(play)
        self._operating = Operating(play, self._outstanding)
        self._rest = Rest(play, self._outstanding)
        self._time = PassingTime(play, self._rest, self._outstanding)

    @property
    def is_next(self) -> bool:
        """Whether a major step is complete and the next has not begun."""
        tasks = self._play.tasks
        at_end = bool(tasks) and tasks[-1][0] in (self.next_step, self._succeed)
        return at_end and self._scenario.step.major > 0

    def next_step(self) -> None:
        self._script.reread()
        major = self._script.next_major()
        if major is None:
            self.conclude(ScenarioPhase.PAUSED)
            return
        operations = self._script.spec.at(major)
        self._script.played.update((each.id, each) for each in operations)
        self._rest.begin_step()
        self._play.gate.begin_step()
        self._plan(operations)
        self._telling.enter(StepPhase.OPERATING, step=ScenarioStep(major, 0))
        self._play.participants.begin_step()

    def _plan(self, operations: Sequence[Operation]) -> None:
        """The last thing first: it is a stack."""
        self._then(self._finish, operations)
        for operation in reversed(operations):
            if operation.kind is OperationKind.ADVANCE:
                self._then(self._time.begin, parse_duration(operation.body["duration"]))
        self._then(self._rest.come)
        self._then(self._operating.operate, operations)

    def _finish(self, operations: Sequence[Operation]) -> None:
        if any(operation.kind is OperationKind.DONE for operation in operations):
            self._then(self._succeed)
        else:
            self._then(self.next_step)
        if self._scenario.step_phase is not StepPhase.FINISHED:
            self._telling.finish()
        for hook in self._play.world.instruments.step_finished:
            hook(self._scenario.step)

    def _succeed(self) -> None:
        self.conclude(ScenarioPhase.SUCCEEDED)

    def conclude(self, phase: ScenarioPhase, evaluation: Evaluation | None = None) -> None:
        """Look whether the expectations hold, piece by piece, then end.

        The author may change them meanwhile, or add to a scenario that is about to pause.
        """
        self._script.reread()
        if phase is ScenarioPhase.PAUSED and self._script.next_major():
            self._then(self.next_step)
            return
        if evaluation is None:
            self._outstanding.tell_unfinished()
        evaluation = self._endings.evaluate(phase, evaluation)
        if evaluation is not None and evaluation.go_on():
            self._then(self.conclude, phase, evaluation)
        else:
            self._endings.conclude(phase, evaluation)
