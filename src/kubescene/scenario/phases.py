"""The states of KEP-140, spelled as the KEP spells them."""

from collections.abc import Mapping
from enum import StrEnum

from kubescene.errors import ConfigurationError

RESULTS_STRATEGY_VARIABLE = "UPDATE_SCENARIO_RESULTS_STRATEGY"


class ScenarioPhase(StrEnum):
    """Where a scenario is in its life. The last three end it; ``Paused`` waits for operations."""

    PENDING = "Pending"
    RUNNING = "Running"
    PAUSED = "Paused"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def is_final(self) -> bool:
        return self in (ScenarioPhase.SUCCEEDED, ScenarioPhase.FAILED)


class StepPhase(StrEnum):
    """Where a major step is::

    Operating ─> OperatingCompleted ─> ControllerRunning ─┬─ wrote ──> ControllerPaused ─┐
                         ^                                └─ idle ───> ControllerCompleted
                         ├───────────────────────────────────────────────┴───┘    │ all done
                         │                                                        v
                         └ next controller                                     Finished
    """

    OPERATING = "Operating"
    OPERATING_COMPLETED = "OperatingCompleted"
    CONTROLLER_RUNNING = "ControllerRunning"
    CONTROLLER_PAUSED = "ControllerPaused"
    CONTROLLER_COMPLETED = "ControllerCompleted"
    FINISHED = "Finished"


class ResultsStrategy(StrEnum):
    """When ``status.scenarioResult`` is brought up to date; phases are always current."""

    AT_MOVING_NEXT_STEP = "AtMovingNextStep"
    ON_PAUSE = "OnPause"
    ON_DONE = "OnDone"

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> "ResultsStrategy":
        """What ``UPDATE_SCENARIO_RESULTS_STRATEGY`` asks for; `ConfigurationError` if unknown."""
        value = environment.get(RESULTS_STRATEGY_VARIABLE) or cls.AT_MOVING_NEXT_STEP
        try:
            return cls(value)
        except ValueError:
            raise ConfigurationError(
                f"{RESULTS_STRATEGY_VARIABLE} is {value!r}; it must be one of: {', '.join(cls)}"
            ) from None

    def publishes(self, phase: ScenarioPhase) -> bool:
        """Whether a scenario in this phase shows what has been recorded so far."""
        if phase is ScenarioPhase.RUNNING:
            return self is ResultsStrategy.AT_MOVING_NEXT_STEP
        return phase.is_final or self is not ResultsStrategy.ON_DONE


SCHEDULER_STATUS = {
    StepPhase.OPERATING: "Stoped",
    StepPhase.OPERATING_COMPLETED: "WillRun",
    StepPhase.CONTROLLER_RUNNING: "Running",
    StepPhase.CONTROLLER_PAUSED: "Running",
    StepPhase.CONTROLLER_COMPLETED: "WillStop",
    StepPhase.FINISHED: "Stoped",
}
"""``status.schedulerStatus`` of the KEP's first draft, whose spelling it keeps."""
DRAFT_STEP_PHASE = {
    StepPhase.OPERATING: "OperatingEvents",
    StepPhase.OPERATING_COMPLETED: "OperatingEventsFinished",
    StepPhase.CONTROLLER_RUNNING: "Scheduling",
    StepPhase.CONTROLLER_PAUSED: "Scheduling",
    StepPhase.CONTROLLER_COMPLETED: "SchedulingFinished",
    StepPhase.FINISHED: "Finished",
}
"""The phases of a step in the KEP's second draft: ``status.stepPhase`` of a draft's scenario."""
