"""The HPA behind the autoscaler interface: events and stats in, recommendations out.

Of a world that knows pods, cpu, memory and concurrency, it makes what a controller sees: a target
whose scale is what was recommended last, pods, and the answers of the metrics APIs. Served are
Resource and ContainerResource metrics of cpu and memory, and the Pods metric
``concurrent_requests``; an autoscaler that asks for others is refused when it is created.

``faithful`` repeats what Skenario's plugin did where that differs: the scale is the number of
pods, a pod without stats uses nothing, memory is 1 MiB, and pods count from their first moment on.
"""

from collections.abc import Sequence

from kubescene.autoscalers.horizontal.autoscaler import HorizontalAutoscaler
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.partitions import Partition
from kubescene.autoscalers.horizontal.served_metrics import RESOURCES, created
from kubescene.autoscalers.interfaces import (
    HPA_TYPES,
    Autoscaler,
    Capability,
    HorizontalRecommendationRequest,
    HorizontalRecommendationResponse,
)
from kubescene.autoscalers.partitioned import PartitionedPlugin
from kubescene.clock.timestamps import MINUTE, SECOND
from kubescene.types import Nanoseconds

PLUGIN_OPTIONS = HorizontalOptions(
    cpu_initialization_period=2 * MINUTE, initial_readiness_delay=10 * SECOND
)
"""The controller as Skenario's plugin configures it."""

STAT_WINDOW = 10 * SECOND
"""The span that one stat speaks of."""


class HorizontalPlugin(PartitionedPlugin[Partition]):
    """Any number of runs, each in its partition. ``resources`` are what the world measures."""

    types = HPA_TYPES
    capabilities = frozenset(
        {Capability.EVENT, Capability.STAT, Capability.HORIZONTAL_RECOMMENDATION}
    )

    def __init__(
        self,
        options: HorizontalOptions = PLUGIN_OPTIONS,
        *,
        faithful: bool = False,
        stat_window: Nanoseconds = STAT_WINDOW,
        resources: Sequence[str] = RESOURCES,
    ) -> None:
        super().__init__()
        self._options = options
        self._resources = resources
        self._faithful = faithful
        self._stat_window = stat_window

    def horizontal_recommendation(
        self, request: HorizontalRecommendationRequest
    ) -> HorizontalRecommendationResponse:
        result = self._partition(request.partition).recommend(request.time_nanos)
        reason = result.explanation.why
        if result.error:
            reason = f"{reason} ({result.error})"
        details = result.explanation.to_dict()
        details["conditions"] = {each.type: each.reason for each in result.status.conditions}
        if result.error:
            details["error"] = result.error
        return HorizontalRecommendationResponse(result.desired, reason, details)

    def autoscaler(self, partition: str) -> HorizontalAutoscaler:
        """The autoscaler of a run, to look at its status and history."""
        return self._partition(partition).autoscaler

    def _created(self, autoscaler: Autoscaler) -> Partition:
        new = created(autoscaler, self._options, self._resources)
        return Partition(new, faithful=self._faithful, stat_window=self._stat_window)
