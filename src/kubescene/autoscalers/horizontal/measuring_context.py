"""What all metrics of one pass are measured with."""

from collections.abc import Sequence

from msgspec import Struct

from kubescene.autoscalers.horizontal.observing import MetricsSource, ScaledPod
from kubescene.autoscalers.horizontal.options import HorizontalOptions
from kubescene.autoscalers.horizontal.specs import HorizontalSpec
from kubescene.autoscalers.horizontal.tolerances import Tolerances
from kubescene.types import Nanoseconds


class MeasuringContext(Struct, frozen=True):
    """The selected pods, the names of those that are not, and the counts of the scale."""

    spec: HorizontalSpec
    metrics: MetricsSource
    pods: Sequence[ScaledPod]
    unselected: frozenset[str]
    replicas: int
    status_replicas: int
    options: HorizontalOptions
    now: Nanoseconds

    @property
    def tolerances(self) -> Tolerances:
        return self.spec.tolerances(self.options)
