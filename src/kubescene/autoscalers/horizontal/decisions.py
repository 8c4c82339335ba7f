"""What a pass wants, before it is written, and the texts of its conditions."""

from msgspec import Struct

from kubescene.autoscalers.horizontal.explaining import Explanation
from kubescene.autoscalers.horizontal.history import History
from kubescene.autoscalers.horizontal.limiting import (
    DOWN_LIMIT,
    TOO_FEW,
    TOO_MANY,
    UP_LIMIT,
    WITHIN_RANGE,
)
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.specs import HorizontalSpec
from kubescene.autoscalers.horizontal.stabilizing import DOWN_STABILIZED, READY, UP_STABILIZED
from kubescene.autoscalers.horizontal.statuses import Condition, HorizontalStatus, Notice
from kubescene.types import JsonObject, Nanoseconds

NORMAL, WARNING = "Normal", "Warning"
ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"
FAILED_COMPUTE = "FailedComputeMetricsReplicas"

MESSAGES = {
    READY: "recommended size matches current size",
    UP_STABILIZED: "recent recommendations were lower than current one, "
    "applying the lowest recent recommendation",
    DOWN_STABILIZED: "recent recommendations were higher than current one, "
    "applying the highest recent recommendation",
    WITHIN_RANGE: "the desired count is within the acceptable range",
    TOO_FEW: "the desired replica count is less than the minimum replica count",
    TOO_MANY: "the desired replica count is more than the maximum replica count",
    UP_LIMIT: "the desired replica count is increasing faster than the maximum scale rate",
    DOWN_LIMIT: "the desired replica count is decreasing faster than the maximum scale rate",
}


class Decision(Struct, frozen=True):
    """What a pass wants, before it is written.

    ``wanted`` is the count to write to the scale, None if it shall stay. ``error`` is the error
    of the pass so far; ``ended``: it cannot go on, only the status is written. ``last`` are events
    that follow the write of the status.
    """

    spec: HorizontalSpec
    before: HorizontalStatus
    now: Nanoseconds
    current: int | None
    wanted: int | None
    reason: str
    conditions: tuple[Condition, ...]
    events: tuple[Notice, ...]
    history: History
    metrics: tuple[JsonObject, ...]
    explanation: Explanation
    options: HorizontalOptions
    last: tuple[Notice, ...] = ()
    error: str = ""
    ended: bool = False
