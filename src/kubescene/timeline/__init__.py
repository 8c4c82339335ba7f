"""What happened, in order. Components call instruments; the recorder is one of them.

Append-only. Whoever analyses a run reads the timeline and nothing else, so a recorder that
fails stops the run.
"""

from kubescene.timeline.attempts import Explanation, FilterGroup, SchedulingAttempt, ScoreColumn
from kubescene.timeline.events import TimelineEvent
from kubescene.timeline.instruments import Instrument, Instruments, ObjectWrite, StepPhaseChange
from kubescene.timeline.recorder import TimelineRecorder

__all__ = [
    "Explanation",
    "FilterGroup",
    "Instrument",
    "Instruments",
    "ObjectWrite",
    "SchedulingAttempt",
    "ScoreColumn",
    "StepPhaseChange",
    "TimelineEvent",
    "TimelineRecorder",
]
