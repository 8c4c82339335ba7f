"""One metric of an autoscaler: asked for, and turned into a proposal or a failure."""

from msgspec import Struct

from kubescene.autoscalers.horizontal.grouping import Groups
from kubescene.autoscalers.horizontal.measuring_context import MeasuringContext
from kubescene.autoscalers.horizontal.metric_failures import MeasuringError, MetricFailure
from kubescene.autoscalers.horizontal.metric_texts import (
    current_metric,
    display_name,
    failure_prefix,
)
from kubescene.autoscalers.horizontal.pod_measuring import PodMeasuring
from kubescene.autoscalers.horizontal.proposing import Proposal
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.autoscalers.horizontal.value_measuring import ValueMeasuring
from kubescene.types import JsonObject


class Measurement(Struct, frozen=True):
    """What a metric came to. ``name`` is how it is called in texts; ``status`` may be blank."""

    spec: MetricSpec
    name: str
    proposal: Proposal | None = None
    failure: MetricFailure | None = None
    groups: Groups | None = None

    @property
    def status(self) -> JsonObject:
        return {"type": ""} if self.proposal is None else current_metric(self.spec, self.proposal)


class Measuring:
    """The metrics of one pass over the selected pods."""

    def __init__(self, context: MeasuringContext) -> None:
        self._with = context

    def measure(self, metric: MetricSpec) -> Measurement:
        try:
            proposal, groups = self._evaluated(metric)
        except MeasuringError as failed:
            reason = f"FailedGet{metric.type}Metric"
            error = f"{failure_prefix(metric)}: {failed.prefix}{failed}"
            failure = MetricFailure(reason, str(failed), error)
            return Measurement(metric, display_name(metric), failure=failure)
        return Measurement(metric, display_name(metric), proposal, groups=groups)

    def _evaluated(self, metric: MetricSpec) -> tuple[Proposal, Groups | None]:
        match metric.type:
            case "Pods":
                return PodMeasuring(self._with).pods_metric(metric)
            case "Object":
                return ValueMeasuring(self._with).object(metric)
            case "External":
                return ValueMeasuring(self._with).external(metric)
            case _:
                return PodMeasuring(self._with).resource(metric)
