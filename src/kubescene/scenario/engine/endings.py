"""How a scenario pauses or ends: expectations looked at, the status written, the world frozen."""

from kubescene.actors import ENGINE
from kubescene.api.gates import OpenGate
from kubescene.errors import ScenarioGoneError
from kubescene.scenario.engine.play import Play
from kubescene.scenario.expectations import Ending, Evaluation, Expectation, Judge
from kubescene.scenario.outsiders import Frozen
from kubescene.scenario.phases import ScenarioPhase
from kubescene.timeline import ExpectationsEvaluated, OperationsIgnored, Outcome


class Endings:
    """Ends one scenario, perhaps several times: a paused one may go on."""

    def __init__(self, play: Play, judge: Judge | None) -> None:
        self.evaluated: tuple[Expectation, ...] = ()
        """The expectations that were looked at last."""
        self._play = play
        self._scenario = play.scenario
        self._judge = judge

    # -- expectations ------------------------------------------------------------------------------

    def evaluate(self, phase: ScenarioPhase, evaluation: Evaluation | None) -> Evaluation | None:
        """The evaluation of what the author expects now: begun anew if that has changed."""
        asked = self._play.script.spec.expectations
        if self._judge is not None and asked and (evaluation is None or asked != self.evaluated):
            ending = Ending(str(phase), self._play.world.clock.now())
            evaluation = self._judge(asked, self._play.recorder.log, ending)
        self.evaluated = asked
        return evaluation

    def conclude(self, phase: ScenarioPhase, evaluation: Evaluation | None) -> None:
        """Everything was evaluated: tell the outcomes, then end."""
        self._tell_outcomes(
            evaluation.outcomes if evaluation is not None and self.evaluated else ()
        )
        if phase is ScenarioPhase.SUCCEEDED and (late := self._play.script.note_late()):
            self._play.recorder.record(OperationsIgnored, ENGINE, operations=late)
        self.end(phase)

    def _tell_outcomes(self, outcomes: tuple[Outcome, ...]) -> None:
        self._scenario.expectations = outcomes
        if outcomes:
            self._play.recorder.record(ExpectationsEvaluated, ENGINE, outcomes=outcomes)

    # -- the end -----------------------------------------------------------------------------------

    def end(self, phase: ScenarioPhase, message: str = "") -> None:
        self._play.tasks.clear()
        self._show(phase, message)
        self._play.world.guard(Frozen(self._scenario, self._play.participants.outside))
        if phase.is_final:
            self._dismiss()
        for hook in self._play.world.instruments.run_ended:
            hook(str(phase), message)

    def _show(self, phase: ScenarioPhase, message: str) -> None:
        self._scenario.phase = phase
        self._scenario.message = message
        if phase is ScenarioPhase.FAILED:
            self._scenario.expectations = ()
        if self._play.stage is not None and self._play.participants.outside:
            self._scenario.outside = self._play.stage.statuses()
        self._play.telling.publish()
        self._scenario.write()

    def fail(self, message: str) -> None:
        try:
            self.end(ScenarioPhase.FAILED, message)
        except ScenarioGoneError:
            self.stop()

    def stop(self) -> None:
        """Leave everything as it is; outsiders may write again."""
        self._play.tasks.clear()
        self._dismiss()
        self._play.world.guard(OpenGate())

    def _dismiss(self) -> None:
        """It is over: programs outside are answered whatever they still wait for.

        Also those that it did not call: who says that its loop is over waits for the end.
        """
        if self._play.stage is not None:
            self._play.stage.leave(self._scenario.name)
