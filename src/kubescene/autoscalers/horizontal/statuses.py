"""The status of an autoscaler: counts, conditions, and the events that a pass told of."""

import msgspec
from msgspec import Struct

from kubescene.clock.timestamps import format_time, parse_time
from kubescene.durations import SECOND
from kubescene.types import JsonObject, Nanoseconds

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"


class Condition(Struct, frozen=True):
    type: str
    status: bool
    reason: str
    message: str
    last_transition: Nanoseconds

    def to_dict(self) -> JsonObject:
        return {
            "type": self.type,
            "status": str(self.status),
            "lastTransitionTime": format_time(self.last_transition),
            "reason": self.reason,
            "message": self.message,
        }


class ScalingNotice(Struct, frozen=True):
    """An event about the autoscaler."""

    type: str
    reason: str
    message: str


class HorizontalStatus(Struct, frozen=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: Nanoseconds | None = None
    current_metrics: tuple[JsonObject, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, status: JsonObject) -> "HorizontalStatus":
        """The status of an object."""
        scaled = status.get("lastScaleTime")
        return cls(
            status.get("currentReplicas", 0),
            status.get("desiredReplicas", 0),
            None if scaled is None else parse_time(scaled),
            tuple(status.get("currentMetrics") or ()),
            tuple(map(_condition, status.get("conditions") or ())),
        )

    def is_true(self, condition: str) -> bool:
        return any(each.type == condition and each.status for each in self.conditions)

    def as_stored(self) -> "HorizontalStatus":
        """Times have whole seconds in the API."""
        times = (self.last_scale_time or 0, *(each.last_transition for each in self.conditions))
        if not any(time % SECOND for time in times):
            return self
        return msgspec.structs.replace(
            self,
            last_scale_time=None if self.last_scale_time is None else _whole(self.last_scale_time),
            conditions=tuple(
                msgspec.structs.replace(each, last_transition=_whole(each.last_transition))
                for each in self.conditions
            ),
        )

    def to_dict(self) -> JsonObject:
        """The status as it stands in the object."""
        status: JsonObject = {
            "currentReplicas": self.current_replicas,
            "desiredReplicas": self.desired_replicas,
        }
        if self.last_scale_time is not None:
            status["lastScaleTime"] = format_time(self.last_scale_time)
        if self.current_metrics:
            status["currentMetrics"] = list(self.current_metrics)
        status["conditions"] = [each.to_dict() for each in self.conditions]
        return status


class ConditionList:
    """The conditions of one pass, changed in place: new types come last."""

    def __init__(self, conditions: tuple[Condition, ...], now: Nanoseconds) -> None:
        self._conditions = {each.type: each for each in conditions}
        self._now = now

    def set(self, type: str, status: bool, reason: str, message: str) -> None:
        """The time of the transition moves only if the status does."""
        old = self._conditions.get(type)
        since = old.last_transition if old is not None and old.status is status else self._now
        self._conditions[type] = Condition(type, status, reason, message, since)

    def remove(self, type: str) -> None:
        self._conditions.pop(type, None)

    def listed(self) -> tuple[Condition, ...]:
        return tuple(self._conditions.values())


def _condition(condition: JsonObject) -> Condition:
    return Condition(
        condition["type"],
        condition["status"] == "True",
        condition.get("reason", ""),
        condition.get("message", ""),
        parse_time(condition["lastTransitionTime"]),
    )


def _whole(instant: Nanoseconds) -> Nanoseconds:
    return instant // SECOND * SECOND
