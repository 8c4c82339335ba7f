"""How the autoscaler is set up.

What kube-controller-manager is started with, as far as it concerns the autoscaler.

The band around the target in which nothing happens: a closed interval, one width each way.
"""

from msgspec import Struct

from kubescene.clock.durations import MINUTE, SECOND
from kubescene.types import Nanoseconds


class HorizontalOptions(Struct, frozen=True):
    """Flags and feature gates with their defaults of v1.36; durations in nanoseconds."""

    tolerance: float = 0.1
    downscale_stabilization: Nanoseconds = 5 * MINUTE
    cpu_initialization_period: Nanoseconds = 5 * MINUTE
    initial_readiness_delay: Nanoseconds = 30 * SECOND
    scale_to_zero: bool = False
    """Gate HPAScaleToZero."""
    configurable_tolerance: bool = True
    """Gate HPAConfigurableTolerance."""
    pod_level_resources: bool = True
    """Gate PodLevelResources."""


class Tolerances(Struct, frozen=True):
    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        """Whether a ratio of usage and target is too close to 1 to act upon."""
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)
