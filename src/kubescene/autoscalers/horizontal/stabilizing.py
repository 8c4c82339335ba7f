"""Recommendations of the recent past hold back a new one.

Without ``behavior`` the highest recommendation of the controller's window wins. With it each
direction has a window: never above the lowest of one, never below the highest of the other.
The two disagree about a recommendation that is exactly as old as the window: without
``behavior`` it still counts. What is remembered is always the raw proposal.
"""

from msgspec import Struct

from kubescene.autoscalers.horizontal.history import History, Recommendation, replaced
from kubescene.types import Nanoseconds

READY = "ReadyForNewScale"
UP_STABILIZED = "ScaleUpStabilized"
DOWN_STABILIZED = "ScaleDownStabilized"


class Stabilization(Struct, frozen=True):
    """A stabilized proposal. ``held_by`` is the recommendation that decided, if one did."""

    replicas: int
    reason: str
    history: History
    held_by: Recommendation | None = None
    window: Nanoseconds = 0


def stabilized(
    proposal: int, history: History, *, window: Nanoseconds, now: Nanoseconds
) -> Stabilization:
    """Without ``behavior``."""
    new = Recommendation(proposal, now)
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
    history: History,
    *,
    current: int,
    up_window: Nanoseconds,
    down_window: Nanoseconds,
    now: Nanoseconds,
) -> Stabilization:
    """With ``behavior``: from the current count as far as both windows allow."""
    new = Recommendation(proposal, now)
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
