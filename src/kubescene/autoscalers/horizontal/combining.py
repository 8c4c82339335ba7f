"""All metrics of an autoscaler: the largest proposal wins, and a failure forbids scaling down."""

from collections.abc import Sequence

from msgspec import Struct

from kubescene.autoscalers.horizontal.measuring import Measurement
from kubescene.autoscalers.horizontal.metric_failures import MetricFailure


class Combined(Struct, frozen=True):
    """What the metrics came to. ``replicas`` None: nothing can be decided.

    ``failure`` is the first one; it may be there beside a count.
    """

    replicas: int | None
    metric: str = ""
    failure: MetricFailure | None = None
    error: str = ""


def combined(measurements: Sequence[Measurement], current: int) -> Combined:
    """On ties the earlier metric gives its name; a count of 0 gives way to whatever follows."""
    replicas, metric = 0, ""
    failures = [each.failure for each in measurements if each.failure is not None]
    for each in measurements:
        if each.proposal is not None and (replicas == 0 or each.proposal.replicas > replicas):
            replicas, metric = each.proposal.replicas, each.name
    if not failures:
        return Combined(replicas, metric)
    error = (
        f"invalid metrics ({len(failures)} invalid out of {len(measurements)}), "
        f"first error is: {failures[0].error}"
    )
    if len(failures) == len(measurements) or replicas < current:
        return Combined(None, "", failures[0], error)
    return Combined(replicas, metric, failures[0], error)
