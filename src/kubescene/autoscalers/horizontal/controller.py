"""The controller: one pass, and one autoscaler through time.

One whole pass of the controller, as a function: object, world, history and time in, all out.

`reconcile` decides and completes at once. Who has a real scale to write calls
`kubescene.autoscalers.horizontal.decisions.decide`, writes, and then `complete`.

One autoscaler through time: the object, its status and its history, pass after pass.
"""

from typing import NamedTuple

from msgspec import Struct

from kubescene.autoscalers.horizontal.behavior import History
from kubescene.autoscalers.horizontal.decisions import NORMAL, WARNING, Decision, decide
from kubescene.autoscalers.horizontal.explanations import Explanation
from kubescene.autoscalers.horizontal.observations import Observation
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.specs import HorizontalSpec, accepted, compiled
from kubescene.autoscalers.horizontal.statuses import (
    ABLE_TO_SCALE,
    SCALED_TO_ZERO,
    Condition,
    ConditionList,
    HorizontalStatus,
    Notice,
)
from kubescene.types import JsonObject, Nanoseconds

DEFAULTS = HorizontalOptions()


class Result(Struct, frozen=True):
    """What a pass came to.

    ``desired`` is the count that should be: the one written, or the current one. ``scaled_to`` is
    what was written to the scale, None if nothing was. ``status`` is the status that the object
    now has, with whole seconds; ``status_written`` says whether it was sent.
    """

    desired: int
    scaled_to: int | None
    status: HorizontalStatus
    status_written: bool
    events: tuple[Notice, ...]
    history: History
    explanation: Explanation
    error: str = ""


def reconcile(
    spec: HorizontalSpec,
    status: HorizontalStatus,
    observation: Observation,
    history: History,
    *,
    now: Nanoseconds,
    options: HorizontalOptions = DEFAULTS,
    scale_error: str = "",
    status_error: str = "",
) -> Result:
    """One pass. ``scale_error`` and ``status_error`` are what the API says to writes, if it does.

    ``status`` and ``history`` are those that the last pass returned. Nothing is changed, no clock
    is read.
    """
    decision = decide(spec, status, observation, history, now=now, options=options)
    return complete(decision, scale_error=scale_error, status_error=status_error)


def complete(decision: Decision, *, scale_error: str = "", status_error: str = "") -> Result:
    """The pass after its write: status, events, history."""
    if decision.ended:
        return _ended(decision, status_error)
    if decision.wanted is None:
        return _finished(decision, status_error)
    if scale_error:
        return _not_scaled(decision, decision.wanted, scale_error, status_error)
    return _scaled(decision, decision.wanted, status_error)


def _ended(decision: Decision, status_error: str) -> Result:
    """Without a scale only the conditions are new; else the counts and metrics, too."""
    status = _status(decision, desired=decision.before.desired_replicas)
    if decision.current is None:
        status = _with_conditions(decision.before, decision.conditions)
    return _result(decision, status, status_error, events=decision.events, error=decision.error)


def _finished(decision: Decision, status_error: str) -> Result:
    status = _status(decision, desired=decision.current or 0)
    error = _status_failure(decision, status, status_error) or decision.error
    return _result(decision, status, status_error, events=decision.events, error=error)


def _not_scaled(decision: Decision, wanted: int, scale_error: str, status_error: str) -> Result:
    conditions = ConditionList(decision.conditions, decision.now)
    text = f"the HPA controller was unable to update the target scale: {scale_error}"
    conditions.set(ABLE_TO_SCALE, False, "FailedUpdateScale", text)
    told = f"New size: {wanted}; reason: {decision.reason}; error: {scale_error}"
    status = _status(
        decision, desired=decision.before.desired_replicas, conditions=conditions.listed()
    )
    return _result(
        decision,
        status,
        status_error,
        events=(*decision.events, Notice(WARNING, "FailedRescale", told)),
        error=f"failed to rescale {decision.spec.reference}: {scale_error}",
    )


def _scaled(decision: Decision, wanted: int, status_error: str) -> Result:
    current = decision.current or 0
    conditions = ConditionList(decision.conditions, decision.now)
    text = f"the HPA controller was able to update the target scale to {wanted}"
    conditions.set(ABLE_TO_SCALE, True, "SucceededRescale", text)
    _set_zero(conditions, decision, current, wanted)
    told = f"New size: {wanted}; reason: {decision.reason}"
    status = _status(decision, desired=wanted, conditions=conditions.listed(), scaled=decision.now)
    return _result(
        decision,
        status,
        status_error,
        events=(*decision.events, Notice(NORMAL, "SuccessfulRescale", told)),
        error=_status_failure(decision, status, status_error) or decision.error,
        history=_with_change(decision, wanted - current),
        scaled_to=wanted,
    )


def _set_zero(conditions: ConditionList, decision: Decision, current: int, wanted: int) -> None:
    """Said at every rescale, so that it is never out of date."""
    if not decision.options.scale_to_zero:
        conditions.remove(SCALED_TO_ZERO)
        return
    spec = decision.spec
    if current > 0 and wanted == 0 and spec.minimum == 0 and spec.can_be_zero:
        text = "the HPA controller scaled the workload to zero"
        conditions.set(SCALED_TO_ZERO, True, "ScaledToZero", text)
    else:
        text = "the HPA controller did not scale the workload to zero"
        conditions.set(SCALED_TO_ZERO, False, "NotScaledToZero", text)


def _with_change(decision: Decision, change: int) -> History:
    """Only policies look at changes, so without them none are kept."""
    behavior = decision.spec.behavior
    if behavior is None:
        return decision.history
    rules = behavior.scale_up if change > 0 else behavior.scale_down
    return decision.history.with_change(change, decision.now, rules.longest_period)


# -- status ----------------------------------------------------------------------------------


def _status(
    decision: Decision,
    *,
    desired: int,
    conditions: tuple[Condition, ...] | None = None,
    scaled: Nanoseconds | None = None,
) -> HorizontalStatus:
    return HorizontalStatus(
        decision.current or 0,
        desired,
        decision.before.last_scale_time if scaled is None else scaled,
        decision.metrics,
        decision.conditions if conditions is None else conditions,
    )


def _with_conditions(
    status: HorizontalStatus, conditions: tuple[Condition, ...]
) -> HorizontalStatus:
    return HorizontalStatus(
        status.current_replicas,
        status.desired_replicas,
        status.last_scale_time,
        status.current_metrics,
        conditions,
    )


def _status_failure(decision: Decision, status: HorizontalStatus, status_error: str) -> str:
    if not status_error or status == decision.before:
        return ""
    return f"failed to update status for {decision.spec.name}: {status_error}"


def _result(
    decision: Decision,
    status: HorizontalStatus,
    status_error: str,
    *,
    events: tuple[Notice, ...],
    error: str,
    history: History | None = None,
    scaled_to: int | None = None,
) -> Result:
    """A status that did not change is not sent; one that was refused does not hold."""
    changed = status != decision.before
    refused = changed and bool(status_error)
    if refused:
        events = (*events, Notice(WARNING, "FailedUpdateStatus", status_error))
    return Result(
        decision.explanation.current if scaled_to is None else scaled_to,
        scaled_to,
        decision.before if refused else status.as_stored(),
        changed and not refused,
        (*events, *decision.last),
        decision.history if history is None else history,
        decision.explanation,
        error,
    )


class Prepared(NamedTuple):
    """An object as an API server would store it, and its spec; many autoscalers may share it."""

    object: JsonObject
    spec: HorizontalSpec


def prepared(source: JsonObject | str, options: HorizontalOptions = DEFAULTS) -> Prepared:
    """Read, checked and compiled; raises what `accepted` raises."""
    found = accepted(source, scale_to_zero=options.scale_to_zero)
    return Prepared(found, compiled(found))


class HorizontalAutoscaler:
    """Remembers between passes what `reconcile` returns. It holds values only: copies go on alike.

    ``source`` is a HorizontalPodAutoscaler of v1, v2beta2 or v2, as an object or a text, or one
    that was `prepared`.
    """

    def __init__(
        self, source: "JsonObject | str | Prepared", options: HorizontalOptions = DEFAULTS
    ) -> None:
        self.object, self.spec = (
            source if isinstance(source, Prepared) else prepared(source, options)
        )
        self.options = options
        self.status = HorizontalStatus.of(self.object.get("status") or {})
        self.history = History()

    def run(
        self,
        observation: Observation,
        now: Nanoseconds,
        *,
        scale_error: str = "",
        status_error: str = "",
    ) -> Result:
        """One pass at ``now``."""
        result = reconcile(
            self.spec,
            self.status,
            observation,
            self.history,
            now=now,
            options=self.options,
            scale_error=scale_error,
            status_error=status_error,
        )
        self.status, self.history = result.status, result.history
        return result
