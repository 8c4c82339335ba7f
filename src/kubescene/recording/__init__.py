"""Writing Event objects: what kubectl shows under "Events", said by those who did it.

A component tells a `Notice`; the recorder of its `ControllerContext` decides whether a new Event is
written, an old one counted up, or nothing, as client-go's recorders do. Off unless asked for
(`ClusterOptions.events`): Events are for people who look at a cluster, and cost a write each.
"""

from kubescene.recording.notices import NORMAL, WARNING, Notice, regarding, regarding_record
from kubescene.recording.recorder import (
    SILENT,
    EventRecorder,
    EventStamps,
    NoticeList,
    Recorder,
)

__all__ = [
    "NORMAL",
    "SILENT",
    "WARNING",
    "EventRecorder",
    "EventStamps",
    "Notice",
    "NoticeList",
    "Recorder",
    "regarding",
    "regarding_record",
]
