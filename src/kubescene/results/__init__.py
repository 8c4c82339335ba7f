"""What a run tells: read from the timeline alone, so that every kind of run is analysed alike."""

from kubescene.results.summary import (
    ExpectationOutcome,
    NodeUse,
    PendingPod,
    Placement,
    StepSummary,
    Summary,
    summarize,
)

__all__ = [
    "ExpectationOutcome",
    "NodeUse",
    "PendingPod",
    "Placement",
    "StepSummary",
    "Summary",
    "summarize",
]
