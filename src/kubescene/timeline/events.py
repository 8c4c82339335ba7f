"""The timeline event: one thing that happened, at a step, at a time, by an actor.

An event has exactly one body, named by ``operation``::

    Create          create          {operation, result}
    Patch           patch           {operation, result}
    Delete          delete          {operation}
    Done            done            {operation}
    Advance         advance         {operation}, an extension
    PodScheduled    podScheduled    PodResult
    PodUnscheduled  podUnscheduled  PodResult
    PodPreempted    podPreempted    PodResult

Bodies are KEP-140's; ``operation`` is the type name of its first draft. Events are encoded once,
when they are recorded: a run of a hundred thousand pods keeps bytes, not dicts.
"""

from typing import Any

import msgspec
import orjson

from kubescene.api.encoding import encode
from kubescene.clock import ScenarioStep, format_micro_time

GENERATED_ID = "@"
"""How the ids of events begin that no operation asked for; operations may not use it."""

BODY_OF_OPERATION = {
    "Create": "create",
    "Patch": "patch",
    "Delete": "delete",
    "Done": "done",
    "Advance": "advance",
    "PodScheduled": "podScheduled",
    "PodUnscheduled": "podUnscheduled",
    "PodPreempted": "podPreempted",
}


class TimelineEvent(msgspec.Struct, frozen=True):
    """Encoded on creation; ``data`` is one line of ``timeline.jsonl``."""

    step: ScenarioStep
    operation: str
    data: bytes

    @classmethod
    def encode(
        cls,
        *,
        event_id: str,
        step: ScenarioStep,
        time: int,
        actor: str,
        operation: str,
        body: dict[str, Any],
    ) -> "TimelineEvent":
        data = encode(
            {
                "id": event_id,
                "step": {"major": step.major, "minor": step.minor},
                "time": format_micro_time(time),
                "actor": actor,
                "operation": operation,
                BODY_OF_OPERATION[operation]: body,
            }
        )
        return cls(step, operation, data)

    def to_dict(self) -> dict[str, Any]:
        decoded: dict[str, Any] = orjson.loads(self.data)
        return decoded
