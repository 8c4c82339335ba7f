"""What kube-controller-manager is started with, as far as it concerns the autoscaler."""

from msgspec import Struct

from kubescene.clock.timestamps import MINUTE, SECOND
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
