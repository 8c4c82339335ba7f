"""From pods and usage to a number of replicas, one metric at a time.

First which pods count (`group_pods`): ready ones do, others are unready, lack a metric, or are on
their way out. `by_utilization` and `by_average` know pods: what unready pods and pods without a
metric would do is assumed in the direction that changes least. `by_value` and `by_total` know one
number.

A ratio is multiplied by the number of ready pods, not by the current replicas; the two differ
while a rollout has surplus pods. Percentages are cut to integers before they are compared.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from kubescene.api.quantity import MAX_INT64
from kubescene.autoscalers.horizontal.arithmetic import (
    MAX_INT32,
    ceiling,
    divided,
    ratio,
    truncated32,
    truncated64,
    wrapped32,
    wrapped64,
)
from kubescene.autoscalers.horizontal.observations import ScaledPod
from kubescene.autoscalers.horizontal.specs import HorizontalOptions, Tolerances
from kubescene.errors import KubesceneError
from kubescene.types import Nanoseconds

CPU = "cpu"


class MetricSample(NamedTuple):
    """One pod's value, and the time and span in which it was measured."""

    value: int
    timestamp: Nanoseconds
    window: Nanoseconds


class Groups(Struct, frozen=True):
    """How many pods are ready, and the names of the others."""

    ready: int
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def group_pods(
    pods: Iterable[ScaledPod],
    samples: Mapping[str, MetricSample],
    *,
    resource: str,
    options: HorizontalOptions,
    now: Nanoseconds,
) -> Groups:
    """Whether a pod is ready is asked for cpu only: other usage does not peak while it starts."""
    ready, unready, missing, ignored = 0, [], [], []
    by_readiness = resource == CPU
    for pod in pods:
        if pod.deleting or pod.phase == "Failed":
            ignored.append(pod.name)
        elif pod.phase == "Pending":
            unready.append(pod.name)
        elif (sample := samples.get(pod.name)) is None:
            missing.append(pod.name)
        elif by_readiness and _is_unready(pod, sample, options, now):
            unready.append(pod.name)
        else:
            ready += 1
    return Groups(ready, tuple(unready), tuple(missing), tuple(ignored))


def _is_unready(
    pod: ScaledPod, sample: MetricSample, options: HorizontalOptions, now: Nanoseconds
) -> bool:
    if pod.ready is None or pod.started is None:
        return True
    if now < pod.started + options.cpu_initialization_period:
        # A whole window has to lie behind the last change of readiness.
        return pod.ready == "False" or sample.timestamp < pod.ready_since + sample.window
    # Never became ready since it started.
    delay = options.initial_readiness_delay
    return pod.ready == "False" and pod.started + delay > pod.ready_since


class NoUsageError(KubesceneError):
    """There is nothing to compare with the target. The text is the controller's."""


class ProposalRule(StrEnum):
    """Why a metric proposed what it did."""

    TOLERANCE = "within tolerance"
    RATIO = "ratio of usage and target"
    REBALANCED = "ratio after assumptions about unready and missing pods"
    REBALANCED_TOLERANCE = "within tolerance after assumptions about unready and missing pods"
    TURNED = "assumptions about unready and missing pods turn the direction"
    FROM_ZERO = "from zero, without tolerance"
    TOTAL = "total divided by target"


class Proposal(Struct, frozen=True):
    """What one metric wants, how it came to that, and what it shows in the status.

    ``ratio`` is usage through target, ``rebalanced`` the same after assumptions about pods that
    do not count, ``counted`` what it was multiplied by.
    """

    replicas: int
    rule: ProposalRule
    ratio: float
    rebalanced: float | None = None
    counted: int | None = None
    value: int | None = None
    average: int | None = None
    utilization: int | None = None


class _Usage(Struct, frozen=True):
    ratio: float
    average: int
    utilization: int | None = None


class _Utilization:
    """Usage as a share of what pods request; of pods that are not known nothing is said."""

    def __init__(self, requests: Mapping[str, int], target: int) -> None:
        self._requests = requests
        self._target = target

    def of(self, values: Mapping[str, int]) -> _Usage:
        known = [name for name in values if name in self._requests]
        used = wrapped64(sum(values[name] for name in known))
        requested = wrapped64(sum(self._requests[name] for name in known))
        if requested == 0:
            raise NoUsageError("no metrics returned matched known pods")
        percent = wrapped32(divided(wrapped64(used * 100), requested))
        return _Usage(ratio(percent, self._target), divided(used, len(known)), percent)

    def assumed(self, pod: str) -> int:
        """A missing pod when scaling down: it uses all it may, or the target if that is more."""
        return divided(wrapped64(self._requests[pod] * max(100, self._target)), 100)


class _UsageAverage:
    """Usage per pod, known or not."""

    def __init__(self, target: int) -> None:
        self._target = target

    def of(self, values: Mapping[str, int]) -> _Usage:
        average = divided(wrapped64(sum(values.values())), len(values))
        return _Usage(ratio(average, self._target), average)

    def assumed(self, pod: str) -> int:
        del pod
        return self._target


def by_utilization(
    values: Mapping[str, int],
    groups: Groups,
    requests: Mapping[str, int],
    *,
    target: int,
    current: int,
    tolerances: Tolerances,
) -> Proposal:
    """``values`` of pods that count, requests of all; ``target`` in percent."""
    return _by_pods(_Utilization(requests, target), values, groups, current, tolerances)


def by_average(
    values: Mapping[str, int],
    groups: Groups,
    *,
    target: int,
    current: int,
    tolerances: Tolerances,
) -> Proposal:
    """``values`` of pods that count; ``target`` for each of them."""
    return _by_pods(_UsageAverage(target), values, groups, current, tolerances)


def _by_pods(
    measure: _Utilization | _UsageAverage,
    values: Mapping[str, int],
    groups: Groups,
    current: int,
    tolerances: Tolerances,
) -> Proposal:
    usage = measure.of(values)
    slowed = bool(groups.unready) and usage.ratio > 1.0
    if slowed or groups.missing:
        rebalanced = _rebalanced(measure, values, groups, usage.ratio)
        return _shown(usage, _after_assumptions(usage, rebalanced, current, tolerances))
    if tolerances.holds(usage.ratio):
        return _shown(usage, Proposal(current, ProposalRule.TOLERANCE, usage.ratio))
    replicas = truncated32(ceiling(usage.ratio * float(groups.ready)))
    return _shown(usage, Proposal(replicas, ProposalRule.RATIO, usage.ratio, counted=groups.ready))


def _rebalanced(
    measure: _Utilization | _UsageAverage, values: Mapping[str, int], groups: Groups, ratio: float
) -> tuple[float, int]:
    """The ratio with the other pods assumed to do the opposite, and how many pods that are."""
    assumed = dict(values)
    if ratio < 1.0:
        assumed |= {pod: measure.assumed(pod) for pod in groups.missing}
    elif ratio > 1.0:
        assumed |= dict.fromkeys(groups.missing, 0)
        assumed |= dict.fromkeys(groups.unready, 0)
    return measure.of(assumed).ratio, len(assumed)


def _after_assumptions(
    usage: _Usage, rebalanced: tuple[float, int], current: int, tolerances: Tolerances
) -> Proposal:
    before, (after, counted) = usage.ratio, rebalanced
    if tolerances.holds(after):
        return Proposal(current, ProposalRule.REBALANCED_TOLERANCE, before, after)
    if before < 1.0 < after or after < 1.0 < before:
        return Proposal(current, ProposalRule.TURNED, before, after)
    replicas = truncated32(ceiling(after * float(counted)))
    if (after < 1.0 and replicas > current) or (after > 1.0 and replicas < current):
        return Proposal(current, ProposalRule.TURNED, before, after, counted)
    return Proposal(replicas, ProposalRule.REBALANCED, before, after, counted)


def _shown(usage: _Usage, proposal: Proposal) -> Proposal:
    """The status shows the usage as it was measured, before any assumption."""
    return Proposal(
        proposal.replicas,
        proposal.rule,
        proposal.ratio,
        proposal.rebalanced,
        proposal.counted,
        average=usage.average,
        utilization=usage.utilization,
    )


def needs_ready_pods(usage: int, target: int, current: int, tolerances: Tolerances) -> bool:
    """Whether `by_value` will look at ``ready``: only then it must be known."""
    return current != 0 and not tolerances.holds(ratio(usage, float(target)))


def by_value(
    usage: int, *, target: int, current: int, ready: int, tolerances: Tolerances
) -> Proposal:
    """One number against a target for all pods together; ``ready`` pods produce it."""
    share = ratio(usage, float(target))
    if current == 0:
        replicas = truncated32(ceiling(share))
        return Proposal(replicas, ProposalRule.FROM_ZERO, share, counted=1, value=usage)
    if tolerances.holds(share):
        return Proposal(current, ProposalRule.TOLERANCE, share, value=usage)
    wanted = share * float(ready)
    replicas = MAX_INT32 if wanted > MAX_INT32 else truncated32(ceiling(wanted))
    return Proposal(replicas, ProposalRule.RATIO, share, counted=ready, value=usage)


def by_total(
    usage: int, *, target: int, status_replicas: int, tolerances: Tolerances, capped: bool
) -> Proposal:
    """One number to be divided among pods; ``capped``: what overflows stays at the maximum."""
    share = ratio(usage, float(target) * float(status_replicas))
    average = truncated64(ceiling(ratio(usage, float(status_replicas))))
    if capped and float(usage) >= float(MAX_INT64):
        average = MAX_INT64
    if tolerances.holds(share):
        return Proposal(status_replicas, ProposalRule.TOLERANCE, share, average=average)
    wanted = ceiling(ratio(usage, float(target)))
    replicas = MAX_INT32 if capped and wanted > MAX_INT32 else truncated32(wanted)
    return Proposal(replicas, ProposalRule.TOTAL, share, counted=status_replicas, average=average)


def summed(values: tuple[int, ...], *, averaged: bool) -> int:
    """All values of an external metric, saturated where int64 ends.

    With an average target a negative sum counts as an overflow, however it came about.
    """
    total = 0
    for value in values:
        if not averaged and value > 0 and total > MAX_INT64 - value:
            return MAX_INT64
        total = wrapped64(total + value)
        if averaged and total < 0:
            return MAX_INT64
    return total
