"""How a scenario shows where it stands: its status, and the instruments that want to know."""

from kubescene.clock import ScenarioStep
from kubescene.scenario.phases import ResultsStrategy, StepPhase
from kubescene.scenario.world import LiveScenario, World
from kubescene.timeline import KepView, StepPhaseChange, TimelineRecorder


class Telling:
    """Writes the status of one scenario."""

    def __init__(
        self,
        world: World,
        scenario: LiveScenario,
        recorder: TimelineRecorder,
        results: ResultsStrategy,
    ) -> None:
        self._world = world
        self._scenario = scenario
        self._results = results
        self._log = recorder.log
        self._view = KepView(recorder.log, len(recorder.log))

    def enter(
        self,
        phase: StepPhase,
        *,
        step: ScenarioStep | None = None,
        controller: str | None = None,
    ) -> None:
        """A phase is visible before its work starts."""
        scenario = self._scenario
        scenario.step_phase = phase
        if step is not None:
            scenario.step = step
        if controller is not None:
            scenario.controller = controller
        scenario.write()
        if hooks := self._world.instruments.phase_changed:
            change = StepPhaseChange(scenario.step, str(phase), scenario.controller)
            for hook in hooks:
                hook(change)

    def finish(self) -> None:
        """Phase 8: what was recorded so far is shown."""
        self.publish()
        self.enter(StepPhase.FINISHED, controller="")

    def publish(self) -> None:
        """Show what was recorded in ``status.scenarioResult``, if it is time for that."""
        if self._results.publishes(self._scenario.phase):
            self._scenario.timeline = self._view.until(len(self._log))
