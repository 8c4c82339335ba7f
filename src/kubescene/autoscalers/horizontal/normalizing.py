"""From a proposal to a count that may be: stabilized first, then limited.

An object without ``behavior`` has one window and one rate, one with it those of its rules.
"""

from msgspec import Struct

from kubescene.autoscalers.horizontal.history import History
from kubescene.autoscalers.horizontal.limiting import (
    WITHIN_RANGE,
    Limited,
    limited,
    limited_down,
    limited_up,
)
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.specs import Behavior, HorizontalSpec
from kubescene.autoscalers.horizontal.stabilizing import (
    Stabilization,
    stabilized,
    stabilized_by_behavior,
)
from kubescene.clock.timestamps import SECOND
from kubescene.types import Nanoseconds


class Normalizing(Struct, frozen=True):
    """The rules of one object at one time."""

    spec: HorizontalSpec
    options: HorizontalOptions
    now: Nanoseconds

    def stabilized(self, proposal: int, history: History, *, current: int) -> Stabilization:
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

    def limited(self, desired: int, history: History, *, current: int) -> Limited:
        """What the bounds and the rate of change leave of it."""
        spec = self.spec
        if spec.behavior is None:
            return limited(desired, current=current, minimum=spec.minimum, maximum=spec.maximum)
        return self._limited_by(spec.behavior, desired, history, current)

    def _limited_by(
        self, behavior: Behavior, desired: int, history: History, current: int
    ) -> Limited:
        now = self.now
        if desired > current:
            up, maximum = behavior.scale_up, self.spec.maximum
            return limited_up(desired, up, history, current=current, maximum=maximum, now=now)
        if desired < current:
            down, minimum = behavior.scale_down, self.spec.minimum
            return limited_down(desired, down, history, current=current, minimum=minimum, now=now)
        return Limited(desired, WITHIN_RANGE)
