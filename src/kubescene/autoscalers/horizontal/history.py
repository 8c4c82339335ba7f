"""What the controller remembers of one autoscaler: a value, replaced by every pass.

Slots are reused as the controller reuses them: the last one that nobody can need any more is
overwritten, and only if there is none the list grows. `replaced` therefore keeps an order that is
not the order of time.
"""

from typing import NamedTuple, TypeVar

from msgspec import Struct

from kubescene.autoscalers.horizontal.arithmetic import wrapped32
from kubescene.types import Nanoseconds


class Recommendation(NamedTuple):
    """What the metrics proposed, before anything limited it."""

    replicas: int
    time: Nanoseconds


class ScaleEvent(NamedTuple):
    """By how much the target was scaled. ``outdated``: the slot may be used again."""

    change: int
    time: Nanoseconds
    outdated: bool = False


class History(Struct, frozen=True):
    """Empty when the controller starts, and once the object is gone."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_up_events: tuple[ScaleEvent, ...] = ()
    scale_down_events: tuple[ScaleEvent, ...] = ()

    def seeded(self, replicas: int, now: Nanoseconds) -> "History":
        """The count that the controller found counts as its first recommendation.

        That is why a controller that just started does not scale down for a whole window.
        """
        if self.recommendations:
            return self
        return self.with_recommendations((Recommendation(replicas, now),))

    def with_recommendations(self, recommendations: tuple[Recommendation, ...]) -> "History":
        return History(recommendations, self.scale_up_events, self.scale_down_events)

    def with_change(self, change: int, now: Nanoseconds, longest: Nanoseconds) -> "History":
        """After a rescale; ``longest`` is the longest period of the policies of its direction."""
        event = ScaleEvent(wrapped32(abs(change)), now)
        if change > 0:
            up = _stored(self.scale_up_events, event, longest)
            return History(self.recommendations, up, self.scale_down_events)
        down = _stored(self.scale_down_events, event, longest)
        return History(self.recommendations, self.scale_up_events, down)


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
