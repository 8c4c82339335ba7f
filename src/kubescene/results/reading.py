"""Timeline lines decoded only as far as an analysis needs them.

Typed structs let the decoder skip what nobody asks for: several times as fast as whole dicts.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec


class Step(msgspec.Struct, frozen=True):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    deleted: str = msgspec.field(default="", name="deletionTimestamp")


class TypeMeta(msgspec.Struct, frozen=True):
    kind: str = ""


class Object(msgspec.Struct, frozen=True):
    """An API object: identity typed, the rest as it is."""

    kind: str = ""
    metadata: Metadata = Metadata()
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class Target(msgspec.Struct, frozen=True):
    type_meta: TypeMeta = msgspec.field(default=TypeMeta(), name="typeMeta")
    object_meta: Metadata = msgspec.field(default=Metadata(), name="objectMeta")


class Changed(msgspec.Struct, frozen=True):
    result: Object


class Deleted(msgspec.Struct, frozen=True):
    operation: Target


class Score(msgspec.Struct, frozen=True):
    final: int = msgspec.field(name="finalScore")


class PluginResults(msgspec.Struct, frozen=True):
    score: dict[str, dict[str, Score]] = {}


class Cut(msgspec.Struct, frozen=True):
    candidate_nodes: int = msgspec.field(default=0, name="candidateNodes")
    feasible_nodes: int = msgspec.field(default=0, name="feasibleNodes")


class ScheduleResult(msgspec.Struct, frozen=True):
    candidates: list[str] = msgspec.field(default_factory=list, name="allCandidateNodes")
    feasible: list[str] = msgspec.field(default_factory=list, name="allFilteredNodes")
    plugins: PluginResults = msgspec.field(default=PluginResults(), name="pluginResults")
    cut: Cut | None = None


class PodResult(msgspec.Struct, frozen=True):
    pod: Object
    bound_to: str = msgspec.field(default="", name="boundTo")
    message: str = ""
    schedule_result: list[ScheduleResult] = msgspec.field(
        default_factory=list, name="scheduleResult"
    )


class Event(msgspec.Struct, frozen=True):
    """One line of ``timeline.jsonl``."""

    step: Step
    time: str
    actor: str
    operation: str
    create: Changed | None = None
    patch: Changed | None = None
    delete: Deleted | None = None
    scheduled: PodResult | None = msgspec.field(default=None, name="podScheduled")
    unscheduled: PodResult | None = msgspec.field(default=None, name="podUnscheduled")


_DECODER = msgspec.json.Decoder(Event)


def read_events(lines: Iterable[bytes]) -> Iterator[Event]:
    """The events behind encoded lines, in order."""
    return map(_DECODER.decode, lines)
