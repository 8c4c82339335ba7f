"""The states of KEP-140, spelled as the KEP spells them."""

from enum import StrEnum


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


SCHEDULER_STATUS = {
    StepPhase.OPERATING: "Stoped",
    StepPhase.OPERATING_COMPLETED: "WillRun",
    StepPhase.CONTROLLER_RUNNING: "Running",
    StepPhase.CONTROLLER_PAUSED: "Running",
    StepPhase.CONTROLLER_COMPLETED: "WillStop",
    StepPhase.FINISHED: "Stoped",
}
"""``status.schedulerStatus`` of the KEP's first draft, whose spelling it keeps."""
