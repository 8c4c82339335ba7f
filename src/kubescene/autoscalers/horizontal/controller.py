"""The controller, from what a pass sees to what it writes; and one autoscaler through time.

A pass (`reconcile`) is two steps, with the write of the scale between them. `decide` goes from
metrics to a count: propose, stabilize, limit. `complete` makes status, events and history of that,
once it is known how the write went. Who has a real scale to write calls the two itself.
`HorizontalAutoscaler` keeps an object's status and history from pass to pass.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from kubescene.autoscalers.horizontal.behavior import (
    DOWN_LIMIT,
    DOWN_STABILIZED,
    READY,
    TOO_FEW,
    TOO_MANY,
    UP_LIMIT,
    UP_STABILIZED,
    WITHIN_RANGE,
    Normalizing,
    ScalingHistory,
)
from kubescene.autoscalers.horizontal.explanations import ScalingExplanation
from kubescene.autoscalers.horizontal.metrics import (
    Combined,
    MeasuredMetric,
    Measuring,
    MeasuringContext,
    combined,
)
from kubescene.autoscalers.horizontal.observations import (
    Observation,
    ObservedScale,
    ScaledPod,
    ScaleFailure,
    SelectorRefusal,
    selected,
    usable_selector,
)
from kubescene.autoscalers.horizontal.specs import (
    HorizontalOptions,
    HorizontalSpec,
    accepted,
    compiled,
)
from kubescene.autoscalers.horizontal.statuses import (
    ABLE_TO_SCALE,
    SCALED_TO_ZERO,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    Condition,
    ConditionList,
    HorizontalStatus,
    ScalingNotice,
)
from kubescene.types import JsonObject, Nanoseconds

DEFAULTS = HorizontalOptions()

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
    events: tuple[ScalingNotice, ...]
    history: ScalingHistory
    explanation: ScalingExplanation
    error: str = ""


def reconcile(
    spec: HorizontalSpec,
    status: HorizontalStatus,
    observation: Observation,
    history: ScalingHistory,
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


# -- up to the write -------------------------------------------------------------------------


class ScalingDecision(Struct, frozen=True):
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
    events: tuple[ScalingNotice, ...]
    history: ScalingHistory
    metrics: tuple[JsonObject, ...]
    explanation: ScalingExplanation
    options: HorizontalOptions
    last: tuple[ScalingNotice, ...] = ()
    error: str = ""
    ended: bool = False


def decide(
    spec: HorizontalSpec,
    status: HorizontalStatus,
    observation: Observation,
    history: ScalingHistory,
    *,
    now: Nanoseconds,
    options: HorizontalOptions,
) -> ScalingDecision:
    """One pass over what was observed at ``now``, up to what should be written."""
    return _Pass(spec, status, observation, history, now, options).run()


class _Pass:
    """The working state of one call of `decide`."""

    def __init__(
        self,
        spec: HorizontalSpec,
        status: HorizontalStatus,
        observation: Observation,
        history: ScalingHistory,
        now: Nanoseconds,
        options: HorizontalOptions,
    ) -> None:
        self._spec = spec
        self._status = status
        self._observation = observation
        self._history = history
        self._now = now
        self._options = options
        self._conditions = ConditionList(status.conditions, now)
        self._events: list[ScalingNotice] = []
        self._measurements: tuple[MeasuredMetric, ...] = ()

    def run(self) -> ScalingDecision:
        scale = self._observation.scale
        if isinstance(scale, ScaleFailure):
            return self._without_scale(scale)
        text = "the HPA controller was able to get the target's current scale"
        self._conditions.set(ABLE_TO_SCALE, True, "SucceededGetScale", text)
        self._history = self._history.seeded(scale.replicas, self._now)
        current = scale.replicas
        if current == 0 and not self._may_leave_zero():
            return self._disabled()
        if current > self._spec.maximum:
            return self._out_of_range(current, self._spec.maximum, ABOVE_MAXIMUM)
        if current != 0 and current < self._spec.minimum:
            return self._out_of_range(current, self._spec.minimum, BELOW_MINIMUM)
        return self._by_metrics(scale)

    # -- without metrics ---------------------------------------------------------------------

    def _without_scale(self, failure: ScaleFailure) -> ScalingDecision:
        text = f"the HPA controller was unable to get the target's current scale: {failure.message}"
        self._events.append(ScalingNotice(WARNING, "FailedGetScale", failure.message))
        self._conditions.set(ABLE_TO_SCALE, False, "FailedGetScale", text)
        return self._ended(None, failure.error, note=failure.message)

    def _may_leave_zero(self) -> bool:
        """Only a count of zero that the autoscaler itself made."""
        if not (self._options.scale_to_zero and self._status.is_true(SCALED_TO_ZERO)):
            return False
        return self._spec.minimum != 0 or self._spec.can_be_zero

    def _disabled(self) -> ScalingDecision:
        text = "scaling is disabled since the replica count of the target is zero"
        self._conditions.set(SCALING_ACTIVE, False, "ScalingDisabled", text)
        if not self._options.scale_to_zero:
            self._conditions.remove(SCALED_TO_ZERO)
        return self._decision(0, None, explanation=ScalingExplanation(self._now, 0, 0, note=text))

    def _out_of_range(self, current: int, bound: int, reason: str) -> ScalingDecision:
        explanation = ScalingExplanation(self._now, current, bound, note=reason)
        return self._decision(current, bound, reason, explanation)

    # -- by metrics --------------------------------------------------------------------------

    def _by_metrics(self, scale: ObservedScale) -> ScalingDecision:
        seen = self._observation
        selector = usable_selector(scale.selector, self._spec, seen.pods, seen.others)
        if isinstance(selector, SelectorRefusal):
            return self._refused(scale.replicas, selector)
        self._measurements = tuple(self._measured(scale, selected(seen.pods, selector)))
        for each in self._measurements:
            if each.failure is not None:
                self._events.append(
                    ScalingNotice(WARNING, each.failure.reason, each.failure.message)
                )
        found = combined(self._measurements, scale.replicas)
        if found.replicas is None:
            assert found.failure is not None  # there is no count because of it
            text = f"the HPA was unable to compute the replica count: {found.failure.message}"
            self._conditions.set(SCALING_ACTIVE, False, found.failure.reason, text)
            note = "a metric failed, and the others do not ask for more"
            return self._ended(scale.replicas, found.error, computing=True, note=note)
        text = f"the HPA was able to successfully calculate a replica count from {found.metric}"
        self._conditions.set(SCALING_ACTIVE, True, "ValidMetricFound", text)
        return self._by_proposal(scale.replicas, max(found.replicas, 0), found)

    def _refused(self, current: int, refusal: SelectorRefusal) -> ScalingDecision:
        self._events.append(ScalingNotice(WARNING, refusal.event, refusal.error))
        self._conditions.set(SCALING_ACTIVE, False, refusal.reason, refusal.message)
        return self._ended(current, refusal.error, computing=True, note=refusal.error)

    def _measured(self, scale: ObservedScale, ours: list[ScaledPod]) -> Iterator[MeasuredMetric]:
        pods = self._observation.pods
        unselected: frozenset[str] = frozenset()
        if len(ours) < len(pods):
            unselected = frozenset(pod.name for pod in pods) - {pod.name for pod in ours}
        status = scale.replicas if scale.status_replicas is None else scale.status_replicas
        context = MeasuringContext(
            self._spec,
            self._observation.metrics,
            ours,
            unselected,
            scale.replicas,
            status,
            self._options,
            self._now,
        )
        return map(Measuring(context).measure, self._spec.metrics)

    def _by_proposal(self, current: int, proposal: int, found: Combined) -> ScalingDecision:
        normalizing = Normalizing(self._spec, self._options, self._now)
        held = normalizing.stabilized(proposal, self._history, current=current)
        self._history = held.history
        self._conditions.set(ABLE_TO_SCALE, True, held.reason, MESSAGES[held.reason])
        within = normalizing.limited(held.replicas, self._history, current=current)
        is_limited = within.replicas != held.replicas
        text = MESSAGES[within.reason]
        self._conditions.set(SCALING_LIMITED, is_limited, within.reason, text)
        desired, reason = within.replicas, _reason(current, proposal, found.metric)
        if current == 0 and desired < self._spec.minimum:
            desired, reason = self._spec.minimum, reason or BELOW_MINIMUM
        explanation = ScalingExplanation(
            self._now,
            current,
            desired,
            self._measurements,
            found.metric,
            proposal,
            held,
            within,
        )
        wanted = None if desired == current else desired
        return self._decision(current, wanted, reason, explanation, error=found.error)

    # -- what comes of it --------------------------------------------------------------------

    def _ended(
        self, current: int | None, error: str, *, note: str, computing: bool = False
    ) -> ScalingDecision:
        """A pass that cannot go on: the count stays, the status says why."""
        stays = self._status.current_replicas if current is None else current
        explanation = ScalingExplanation(self._now, stays, stays, self._measurements, note=note)
        decision = self._decision(current, None, explanation=explanation, error=error)
        if computing:
            prefix = "failed to compute desired number of replicas based on listed metrics for"
            error = f"{prefix} {self._spec.reference}: {error}"
        last = (ScalingNotice(WARNING, FAILED_COMPUTE, decision.error),) if computing else ()
        return msgspec.structs.replace(decision, error=error, ended=True, last=last)

    def _decision(
        self,
        current: int | None,
        wanted: int | None,
        reason: str = "",
        explanation: ScalingExplanation | None = None,
        *,
        error: str = "",
    ) -> ScalingDecision:
        return ScalingDecision(
            self._spec,
            self._status,
            self._now,
            current,
            wanted,
            reason,
            self._conditions.listed(),
            tuple(self._events),
            self._history,
            tuple(each.status for each in self._measurements),
            explanation or ScalingExplanation(self._now, current or 0, current or 0),
            self._options,
            error=error,
        )


def _reason(current: int, proposal: int, metric: str) -> str:
    """Why the proposal differs from the count; empty if only a window or a bound does."""
    if proposal > current:
        return f"{metric} above target"
    return "All metrics below target" if proposal < current else ""


# -- after the write -------------------------------------------------------------------------


def complete(decision: ScalingDecision, *, scale_error: str = "", status_error: str = "") -> Result:
    """The pass after its write: status, events, history."""
    if decision.ended:
        return _ended(decision, status_error)
    if decision.wanted is None:
        return _finished(decision, status_error)
    if scale_error:
        return _not_scaled(decision, decision.wanted, scale_error, status_error)
    return _scaled(decision, decision.wanted, status_error)


def _ended(decision: ScalingDecision, status_error: str) -> Result:
    """Without a scale only the conditions are new; else the counts and metrics, too."""
    status = _status(decision, desired=decision.before.desired_replicas)
    if decision.current is None:
        status = _with_conditions(decision.before, decision.conditions)
    return _result(decision, status, status_error, events=decision.events, error=decision.error)


def _finished(decision: ScalingDecision, status_error: str) -> Result:
    status = _status(decision, desired=decision.current or 0)
    error = _status_failure(decision, status, status_error) or decision.error
    return _result(decision, status, status_error, events=decision.events, error=error)


def _not_scaled(
    decision: ScalingDecision, wanted: int, scale_error: str, status_error: str
) -> Result:
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
        events=(*decision.events, ScalingNotice(WARNING, "FailedRescale", told)),
        error=f"failed to rescale {decision.spec.reference}: {scale_error}",
    )


def _scaled(decision: ScalingDecision, wanted: int, status_error: str) -> Result:
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
        events=(*decision.events, ScalingNotice(NORMAL, "SuccessfulRescale", told)),
        error=_status_failure(decision, status, status_error) or decision.error,
        history=_with_change(decision, wanted - current),
        scaled_to=wanted,
    )


def _set_zero(
    conditions: ConditionList, decision: ScalingDecision, current: int, wanted: int
) -> None:
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


def _with_change(decision: ScalingDecision, change: int) -> ScalingHistory:
    """Only policies look at changes, so without them none are kept."""
    behavior = decision.spec.behavior
    if behavior is None:
        return decision.history
    rules = behavior.scale_up if change > 0 else behavior.scale_down
    return decision.history.with_change(change, decision.now, rules.longest_period)


# -- status ----------------------------------------------------------------------------------


def _status(
    decision: ScalingDecision,
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


def _status_failure(decision: ScalingDecision, status: HorizontalStatus, status_error: str) -> str:
    if not status_error or status == decision.before:
        return ""
    return f"failed to update status for {decision.spec.name}: {status_error}"


def _result(
    decision: ScalingDecision,
    status: HorizontalStatus,
    status_error: str,
    *,
    events: tuple[ScalingNotice, ...],
    error: str,
    history: ScalingHistory | None = None,
    scaled_to: int | None = None,
) -> Result:
    """A status that did not change is not sent; one that was refused does not hold."""
    changed = status != decision.before
    refused = changed and bool(status_error)
    if refused:
        events = (*events, ScalingNotice(WARNING, "FailedUpdateStatus", status_error))
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


# -- through time ----------------------------------------------------------------------------


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
        self.history = ScalingHistory()

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
