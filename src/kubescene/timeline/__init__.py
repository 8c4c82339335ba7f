"""What happened: a log of facts. Components call instruments; the recorder is one of them.

Append-only and open: a package adds its own kinds of facts by subclassing `Fact`. Whoever
analyses a run reads the log and nothing else, so a recorder that fails stops the run.
"""

from kubescene.timeline.attempts import (
    Explanation,
    FilterGroup,
    Preemption,
    SchedulingAttempt,
)
from kubescene.timeline.facts import (
    Advanced,
    Done,
    ExpectationsEvaluated,
    Fact,
    NotSimulated,
    OperationsIgnored,
    Outcome,
    ScenarioEnded,
    UnknownFact,
)
from kubescene.timeline.instruments import Instrument, Instruments, ObjectWrite, StepPhaseChange
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
    PodPreempted,
    PodScheduled,
    PodUnscheduled,
)
from kubescene.timeline.recorder import TimelineRecorder
from kubescene.timeline.score_columns import ScoreColumn
from kubescene.timeline.views import KepTimeline, KepView, Timeline

__all__ = [
    "Advanced",
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
    "OperationsIgnored",
    "Outcome",
    "PodAttempt",
    "PodEnded",
    "PodFact",
    "PodPreempted",
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
    "UnknownFact",
]
