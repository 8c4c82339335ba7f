"""Time and chance. The only package that may read the machine's clock or draw anything at random.

Everything that needs an instant receives a `Clock`; everything that needs chance or a fresh
identity receives a named stream of `Streams` or an `Identities`. Imports nothing of ours.
"""

from kubescene.clock.clocks import (
    Clock,
    Deadline,
    LentClock,
    ScaledClock,
    Span,
    Stopwatch,
    VirtualClock,
    WallClock,
)
from kubescene.clock.event_queue import EventQueue, EventSource, Scheduled
from kubescene.clock.randomness import Identities, Stream, Streams
from kubescene.clock.timestamps import (
    LAST_INSTANT,
    ScenarioStep,
    format_micro_time,
    format_time,
    parse_time,
)
from kubescene.durations import (
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    format_duration,
    go_seconds,
    parse_duration,
)

__all__ = [
    "LAST_INSTANT",
    "MICROSECOND",
    "MILLISECOND",
    "MINUTE",
    "SECOND",
    "Clock",
    "Deadline",
    "EventQueue",
    "EventSource",
    "Identities",
    "LentClock",
    "ScaledClock",
    "ScenarioStep",
    "Scheduled",
    "Span",
    "Stopwatch",
    "Stream",
    "Streams",
    "VirtualClock",
    "WallClock",
    "format_duration",
    "format_micro_time",
    "format_time",
    "go_seconds",
    "parse_duration",
    "parse_time",
]
