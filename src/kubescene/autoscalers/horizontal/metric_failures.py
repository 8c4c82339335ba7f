"""Metrics of which nothing can be said, in the controller's words.

The texts are shown in conditions and events, so they are part of what is compared.
"""

from msgspec import Struct

from kubescene.api.selectors import SelectorError, from_label_selector
from kubescene.autoscalers.horizontal.specs import MetricSpec
from kubescene.errors import KubesceneError

NO_PODS = "no pods returned by selector while calculating replica count"
NO_SAMPLES = "did not receive metrics for targeted pods (pods might be unready)"


class MetricFailure(Struct, frozen=True):
    """A metric of which nothing can be said: reason and text of its event, and the error."""

    reason: str
    message: str
    error: str


class MeasuringError(KubesceneError):
    """Ends the evaluation of one metric; ``prefix`` stands only in the error of the pass."""

    def __init__(self, message: str, prefix: str = "") -> None:
        super().__init__(message)
        self.prefix = prefix


def check_selector(metric: MetricSpec, prefix: str = "") -> None:
    try:
        from_label_selector(metric.selector)
    except SelectorError as error:
        raise MeasuringError(str(error), prefix) from error
