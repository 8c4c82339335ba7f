"""What happened: a log of facts. Components call instruments; the recorder is one of them.

Append-only and open: controllers and plugins tell facts of their own (`CustomFact`). Whoever
analyses a run reads the log and nothing else, so a recorder that fails stops the run.
"""

from kubescene.instruments import Instrument, Instruments, ObjectWrite, StepPhaseChange
from kubescene.instruments.attempts import (
    Explanation,
    FilterGroup,
    Preemption,
    SchedulingAttempt,
)
from kubescene.instruments.score_columns import ScoreColumn
from kubescene.timeline.facts import (
    PLAIN_MESSAGE,
    About,
    Advanced,
    CustomFact,
    Done,
    ExpectationsEvaluated,
    Fact,
    NotSimulated,
    OperationOutcome,
    OperationsIgnored,
    Outcome,
    ScenarioEnded,
)
from kubescene.timeline.log import TimelineLog
from kubescene.timeline.object_facts import (
    ObjectCreated,
    ObjectDeleted,
    ObjectFact,
    ObjectKept,
    ObjectPatched,
)
from kubescene.timeline.pod_facts import (
    PodAttempt,
    PodEnded,
    PodFact,
    PodFinished,
    PodLifeFact,
    PodPreempted,
    PodRestarted,
    PodScheduled,
    PodUnscheduled,
)
from kubescene.timeline.recorder import TimelineRecorder
from kubescene.timeline.views import KepTimeline, KepView, Timeline

__all__ = [
    "PLAIN_MESSAGE",
    "About",
    "Advanced",
    "CustomFact",
    "Done",
    "ExpectationsEvaluated",
    "Explanation",
    "Fact",
    "FilterGroup",
    "Instrument",
    "Instruments",
    "KepTimeline",
    "KepView",
    "NotSimulated",
    "ObjectCreated",
    "ObjectDeleted",
    "ObjectFact",
    "ObjectKept",
    "ObjectPatched",
    "ObjectWrite",
    "OperationOutcome",
    "OperationsIgnored",
    "Outcome",
    "PodAttempt",
    "PodEnded",
    "PodFact",
    "PodFinished",
    "PodLifeFact",
    "PodPreempted",
    "PodRestarted",
    "PodScheduled",
    "PodUnscheduled",
    "Preemption",
    "ScenarioEnded",
    "SchedulingAttempt",
    "ScoreColumn",
    "StepPhaseChange",
    "Timeline",
    "TimelineLog",
    "TimelineRecorder",
]
