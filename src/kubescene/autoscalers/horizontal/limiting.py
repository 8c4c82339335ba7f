"""How far one pass may go: the bounds of the object, and the rate at which it may change.

Without ``behavior`` a count may double, or become four. With it the policies say how many pods may
come or go within a period. Changes that were made within it are taken back first, so that a
policy speaks of the count at the period's start.
"""

from msgspec import Struct

from kubescene.autoscalers.horizontal.arithmetic import ceiling, truncated32, wrapped32
from kubescene.autoscalers.horizontal.history import History, changed_within
from kubescene.autoscalers.horizontal.specs import Policy, ScalingRules
from kubescene.types import Nanoseconds

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
    history: History,
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
    history: History,
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


def up_rate(rules: ScalingRules, history: History, *, current: int, now: Nanoseconds) -> RateLimit:
    """The count that the policies allow to rise to."""
    return _rate(rules, history, current, now, up=True)


def down_rate(
    rules: ScalingRules, history: History, *, current: int, now: Nanoseconds
) -> RateLimit:
    """The count that the policies allow to fall to."""
    return _rate(rules, history, current, now, up=False)


def _rate(
    rules: ScalingRules, history: History, current: int, now: Nanoseconds, *, up: bool
) -> RateLimit:
    if rules.select == "Disabled":
        return RateLimit(current, disabled=True)
    limits = tuple(_policy_limit(policy, history, current, now, up=up) for policy in rules.policies)
    # The largest change is the highest count upwards, and the lowest one downwards.
    best = max if (rules.select == "Min") != up else min
    chosen = best(range(len(limits)), key=lambda at: limits[at].allowed)
    return RateLimit(limits[chosen].allowed, limits, chosen)


def _policy_limit(
    policy: Policy, history: History, current: int, now: Nanoseconds, *, up: bool
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
