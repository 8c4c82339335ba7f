"""From a proposal to a count that may be: stabilized first, then limited (`Normalizing`).

**Stabilized**: recommendations of the recent past hold back a new one. Without ``behavior`` the
highest recommendation of the controller's window wins. With it each direction has a window: never
above the lowest of one, never below the highest of the other. The two disagree about a
recommendation that is exactly as old as the window: without ``behavior`` it still counts. What is
remembered is always the raw proposal.

**Limited**: by the bounds of the object, and by the rate at which it may change. Without
``behavior`` a count may double, or become four. With it the policies say how many pods may come or
go within a period. Changes that were made within it are taken back first, so that a policy speaks
of the count at the period's start.

What is remembered for both is a `ScalingHistory`, a value that every pass replaces. Slots are
reused as the controller reuses them: the last one that nobody can need any more is overwritten, and
only if there is none the list grows. `replaced` therefore keeps an order that is not the order of
time.
"""

from typing import NamedTuple, TypeVar

from msgspec import Struct

from kubescene.autoscalers.horizontal.arithmetic import ceiling, truncated32, wrapped32
from kubescene.autoscalers.horizontal.specs import (
    Behavior,
    HorizontalOptions,
    HorizontalSpec,
    Policy,
    ScalingRules,
)
from kubescene.durations import SECOND
from kubescene.types import Nanoseconds


class ReplicaRecommendation(NamedTuple):
    """What the metrics proposed, before anything limited it."""

    replicas: int
    time: Nanoseconds


class ScaleEvent(NamedTuple):
    """By how much the target was scaled. ``outdated``: the slot may be used again."""

    change: int
    time: Nanoseconds
    outdated: bool = False


class ScalingHistory(Struct, frozen=True):
    """Empty when the controller starts, and once the object is gone."""

    recommendations: tuple[ReplicaRecommendation, ...] = ()
    scale_up_events: tuple[ScaleEvent, ...] = ()
    scale_down_events: tuple[ScaleEvent, ...] = ()

    def seeded(self, replicas: int, now: Nanoseconds) -> "ScalingHistory":
        """The count that the controller found counts as its first recommendation.

        That is why a controller that just started does not scale down for a whole window.
        """
        if self.recommendations:
            return self
        return self.with_recommendations((ReplicaRecommendation(replicas, now),))

    def with_recommendations(
        self, recommendations: tuple[ReplicaRecommendation, ...]
    ) -> "ScalingHistory":
        return ScalingHistory(recommendations, self.scale_up_events, self.scale_down_events)

    def with_change(self, change: int, now: Nanoseconds, longest: Nanoseconds) -> "ScalingHistory":
        """After a rescale; ``longest`` is the longest period of the policies of its direction."""
        event = ScaleEvent(wrapped32(abs(change)), now)
        if change > 0:
            up = _stored(self.scale_up_events, event, longest)
            return ScalingHistory(self.recommendations, up, self.scale_down_events)
        down = _stored(self.scale_down_events, event, longest)
        return ScalingHistory(self.recommendations, self.scale_up_events, down)


Slot = TypeVar("Slot")


def replaced(slots: tuple[Slot, ...], at: int | None, new: Slot) -> tuple[Slot, ...]:
    """``new`` in the slot that is free, or in one more."""
    return (*slots, new) if at is None else (*slots[:at], new, *slots[at + 1 :])


def changed_within(events: tuple[ScaleEvent, ...], period: Nanoseconds, now: Nanoseconds) -> int:
    """Sum of the changes that are younger than ``period``."""
    return sum(event.change for event in events if event.time > now - period)


def _stored(
    events: tuple[ScaleEvent, ...], new: ScaleEvent, longest: Nanoseconds
) -> tuple[ScaleEvent, ...]:
    oldest = new.time - longest
    marked = tuple(
        event if event.outdated or event.time >= oldest else event._replace(outdated=True)
        for event in events
    )
    free = max((at for at, event in enumerate(marked) if event.outdated), default=None)
    return replaced(marked, free, new)


READY = "ReadyForNewScale"
UP_STABILIZED = "ScaleUpStabilized"
DOWN_STABILIZED = "ScaleDownStabilized"


class Stabilization(Struct, frozen=True):
    """A stabilized proposal. ``held_by`` is the recommendation that decided, if one did."""

    replicas: int
    reason: str
    history: ScalingHistory
    held_by: ReplicaRecommendation | None = None
    window: Nanoseconds = 0


def stabilized(
    proposal: int, history: ScalingHistory, *, window: Nanoseconds, now: Nanoseconds
) -> Stabilization:
    """Without ``behavior``."""
    new = ReplicaRecommendation(proposal, now)
    cutoff, free, highest = now - window, None, new
    for at, each in enumerate(history.recommendations):
        if each.time < cutoff:
            free = at
        elif each.replicas > highest.replicas:
            highest = each
    after = history.with_recommendations(replaced(history.recommendations, free, new))
    if highest is new:
        return Stabilization(proposal, READY, after)
    return Stabilization(highest.replicas, DOWN_STABILIZED, after, highest, window)


def stabilized_by_behavior(
    proposal: int,
    history: ScalingHistory,
    *,
    current: int,
    up_window: Nanoseconds,
    down_window: Nanoseconds,
    now: Nanoseconds,
) -> Stabilization:
    """With ``behavior``: from the current count as far as both windows allow."""
    new = ReplicaRecommendation(proposal, now)
    lowest = highest = new
    free = None
    for at, each in enumerate(history.recommendations):
        if each.time > now - up_window and each.replicas < lowest.replicas:
            lowest = each
        if each.time > now - down_window and each.replicas > highest.replicas:
            highest = each
        if each.time < now - up_window and each.time < now - down_window:
            free = at
    after = history.with_recommendations(replaced(history.recommendations, free, new))
    replicas = min(max(current, lowest.replicas), highest.replicas)
    if replicas == proposal:
        return Stabilization(proposal, READY, after)
    if proposal >= current:
        return Stabilization(replicas, UP_STABILIZED, after, lowest, up_window)
    return Stabilization(replicas, DOWN_STABILIZED, after, highest, down_window)


WITHIN_RANGE = "DesiredWithinRange"
TOO_FEW = "TooFewReplicas"
TOO_MANY = "TooManyReplicas"
UP_LIMIT = "ScaleUpLimit"
DOWN_LIMIT = "ScaleDownLimit"

MOST_AT_ONCE_FACTOR = 2.0
MOST_AT_ONCE = 4.0


class PolicyLimit(Struct, frozen=True):
    """What one policy allows: ``start`` is the count when its period began."""

    policy: Policy
    start: int
    added: int
    removed: int
    allowed: int


class RateLimit(Struct, frozen=True):
    """The rate that holds now. ``policies`` are empty without ``behavior`` or when disabled."""

    replicas: int
    policies: tuple[PolicyLimit, ...] = ()
    chosen: int | None = None
    disabled: bool = False


class Limited(Struct, frozen=True):
    """A count within its limits; ``rate`` is None where none was asked for."""

    replicas: int
    reason: str
    rate: RateLimit | None = None


def limited(desired: int, *, current: int, minimum: int, maximum: int) -> Limited:
    """Without ``behavior``."""
    most = truncated32(max(MOST_AT_ONCE_FACTOR * float(current), MOST_AT_ONCE))
    rate = RateLimit(most)
    if desired < minimum:
        return Limited(minimum, TOO_FEW)
    if maximum > most < desired:
        return Limited(most, UP_LIMIT, rate)
    if maximum <= most and desired > maximum:
        return Limited(maximum, TOO_MANY, rate)
    return Limited(desired, WITHIN_RANGE)


def limited_up(
    desired: int,
    rules: ScalingRules,
    history: ScalingHistory,
    *,
    current: int,
    maximum: int,
    now: Nanoseconds,
) -> Limited:
    """With ``behavior``, ``desired`` above ``current``."""
    rate = up_rate(rules, history, current=current, now=now)
    most = max(rate.replicas, current)
    highest, reason = (most, UP_LIMIT) if maximum > most else (maximum, TOO_MANY)
    if desired > highest:
        return Limited(highest, reason, rate)
    return Limited(desired, WITHIN_RANGE, rate)


def limited_down(
    desired: int,
    rules: ScalingRules,
    history: ScalingHistory,
    *,
    current: int,
    minimum: int,
    now: Nanoseconds,
) -> Limited:
    """With ``behavior``, ``desired`` below ``current``."""
    rate = down_rate(rules, history, current=current, now=now)
    least = min(rate.replicas, current)
    lowest, reason = (least, DOWN_LIMIT) if minimum < least else (minimum, TOO_FEW)
    if desired < lowest:
        return Limited(lowest, reason, rate)
    return Limited(desired, WITHIN_RANGE, rate)


def up_rate(
    rules: ScalingRules, history: ScalingHistory, *, current: int, now: Nanoseconds
) -> RateLimit:
    """The count that the policies allow to rise to."""
    return _rate(rules, history, current, now, up=True)


def down_rate(
    rules: ScalingRules, history: ScalingHistory, *, current: int, now: Nanoseconds
) -> RateLimit:
    """The count that the policies allow to fall to."""
    return _rate(rules, history, current, now, up=False)


def _rate(
    rules: ScalingRules, history: ScalingHistory, current: int, now: Nanoseconds, *, up: bool
) -> RateLimit:
    if rules.select == "Disabled":
        return RateLimit(current, disabled=True)
    limits = tuple(_policy_limit(policy, history, current, now, up=up) for policy in rules.policies)
    # The largest change is the highest count upwards, and the lowest one downwards.
    best = max if (rules.select == "Min") != up else min
    chosen = best(range(len(limits)), key=lambda at: limits[at].allowed)
    return RateLimit(limits[chosen].allowed, limits, chosen)


def _policy_limit(
    policy: Policy, history: ScalingHistory, current: int, now: Nanoseconds, *, up: bool
) -> PolicyLimit:
    added = changed_within(history.scale_up_events, policy.period, now)
    removed = changed_within(history.scale_down_events, policy.period, now)
    start = wrapped32(current - added + removed)
    return PolicyLimit(policy, start, added, removed, _allowed(policy, start, up=up))


def _allowed(policy: Policy, start: int, *, up: bool) -> int:
    """Up to a percentage is rounded up, or a small count would never rise."""
    if policy.type == "Pods":
        return wrapped32(start + policy.value if up else start - policy.value)
    share = policy.value / 100
    if up:
        return truncated32(ceiling(float(start) * (1 + share)))
    return truncated32(float(start) * (1 - share))


class Normalizing(Struct, frozen=True):
    """The rules of one object at one time."""

    spec: HorizontalSpec
    options: HorizontalOptions
    now: Nanoseconds

    def stabilized(self, proposal: int, history: ScalingHistory, *, current: int) -> Stabilization:
        """What recent recommendations leave of a proposal."""
        window = self.options.downscale_stabilization
        behavior = self.spec.behavior
        if behavior is None:
            return stabilized(proposal, history, window=window, now=self.now)
        down = behavior.scale_down.window
        return stabilized_by_behavior(
            proposal,
            history,
            current=current,
            up_window=behavior.scale_up.window or 0,
            down_window=window // SECOND * SECOND if down is None else down,
            now=self.now,
        )

    def limited(self, desired: int, history: ScalingHistory, *, current: int) -> Limited:
        """What the bounds and the rate of change leave of it."""
        spec = self.spec
        if spec.behavior is None:
            return limited(desired, current=current, minimum=spec.minimum, maximum=spec.maximum)
        return self._limited_by(spec.behavior, desired, history, current)

    def _limited_by(
        self, behavior: Behavior, desired: int, history: ScalingHistory, current: int
    ) -> Limited:
        now = self.now
        if desired > current:
            up, maximum = behavior.scale_up, self.spec.maximum
            return limited_up(desired, up, history, current=current, maximum=maximum, now=now)
        if desired < current:
            down, minimum = behavior.scale_down, self.spec.minimum
            return limited_down(desired, down, history, current=current, minimum=minimum, now=now)
        return Limited(desired, WITHIN_RANGE)
