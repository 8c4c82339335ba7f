"""Why a pass came to its count: for programs (`ScalingExplanation.to_dict`) and for people
(`str`)."""

import math

from msgspec import Struct

from kubescene.api.quantity import from_milli
from kubescene.autoscalers.horizontal.behavior import (
    DOWN_LIMIT,
    TOO_FEW,
    TOO_MANY,
    UP_LIMIT,
    Limited,
    RateLimit,
    Stabilization,
)
from kubescene.autoscalers.horizontal.metrics import MeasuredMetric
from kubescene.durations import format_duration
from kubescene.types import JsonObject, Nanoseconds


class ScalingExplanation(Struct, frozen=True):
    """One decision. Parts that were not reached are None; ``note`` says why it ended early."""

    time: Nanoseconds
    current: int
    desired: int
    measurements: tuple[MeasuredMetric, ...] = ()
    metric: str = ""
    proposal: int | None = None
    stabilization: Stabilization | None = None
    limited: Limited | None = None
    note: str = ""

    def __str__(self) -> str:
        change = f"{self.current} -> {self.desired}"
        if self.current == self.desired:
            change = f"stays at {self.current}"
        return ": ".join(filter(None, (change, self.why)))

    @property
    def why(self) -> str:
        """Which metric decided, what held it back; without the counts themselves."""
        steps = (self._proposed(), self._stabilized(), self._limited(), self.note)
        return "; ".join(filter(None, steps))

    def _proposed(self) -> str:
        if self.proposal is None:
            return ""
        won = next((each for each in self.measurements if each.name == self.metric), None)
        if won is None or won.proposal is None:
            return f"{self.metric} proposes {self.proposal}"
        rule = won.proposal.rule
        return f"{self.metric} at {_measured(won)} proposes {self.proposal} ({rule})"

    def _stabilized(self) -> str:
        held = self.stabilization
        if held is None or held.held_by is None:
            return ""
        window = format_duration(held.window)
        return (
            f"held at {held.replicas} by a recommendation of {held.held_by.replicas} "
            f"within the last {window}"
        )

    def _limited(self) -> str:
        if self.limited is None:
            return ""
        count = self.limited.replicas
        return {
            TOO_FEW: f"raised to minReplicas {count}",
            TOO_MANY: f"cut to maxReplicas {count}",
            UP_LIMIT: f"limited to {count} by {_rate(self.limited.rate)}",
            DOWN_LIMIT: f"limited to {count} by {_rate(self.limited.rate)}",
        }.get(self.limited.reason, "")

    def to_dict(self) -> JsonObject:
        """JSON only, in the spelling of the API."""
        parts: JsonObject = {
            "current": self.current,
            "desired": self.desired,
            "metrics": [_metric(each) for each in self.measurements],
            "metric": self.metric,
            "proposal": self.proposal,
            "stabilization": _stabilization(self.stabilization),
            "limit": _limit(self.limited),
            "note": self.note,
        }
        return {name: part for name, part in parts.items() if part not in (None, "", [])}


def _measured(each: MeasuredMetric) -> str:
    """``100% (target 50%)``; where the controller keeps no amount, the ratio."""
    target, proposal = each.spec.target, each.proposal
    assert proposal is not None
    if target.average_utilization is not None and proposal.utilization is not None:
        return f"{proposal.utilization}% (target {target.average_utilization}%)"
    amounts = ((proposal.average, target.average_value), (proposal.value, target.value))
    for seen, wanted in amounts:
        if seen is not None and wanted is not None:
            return f"{from_milli(seen)} (target {from_milli(wanted)})"
    return f"{proposal.ratio:.4g} times its target"


def _rate(rate: RateLimit | None) -> str:
    if rate is None:
        return "the rate"
    if rate.disabled:
        return "selectPolicy Disabled"
    if rate.chosen is None:
        return "the rule that a count at most doubles, or becomes 4"
    limit = rate.policies[rate.chosen]
    made = ""
    if limit.added or limit.removed:
        made = f" from {limit.start} (+{limit.added} -{limit.removed} in the period)"
    return f"policy {rate.chosen} ({limit.policy}){made}"


def _metric(each: MeasuredMetric) -> JsonObject:
    shown: JsonObject = {"name": each.name, "type": each.spec.type}
    if each.failure is not None:
        return {**shown, "reason": each.failure.reason, "error": each.failure.message}
    if (proposal := each.proposal) is not None:
        shown |= {"proposal": proposal.replicas, "rule": str(proposal.rule)}
        shown |= _numbers(ratio=proposal.ratio, rebalancedRatio=proposal.rebalanced)
        shown |= _numbers(value=proposal.value, averageValue=proposal.average)
        shown |= _numbers(utilization=proposal.utilization, multipliedBy=proposal.counted)
    if each.groups is not None:
        shown["ready"] = each.groups.ready
        for name in ("unready", "missing", "ignored"):
            if pods := getattr(each.groups, name):
                shown[name] = len(pods)
    return shown


def _numbers(**numbers: float | None) -> JsonObject:
    return {
        name: number if math.isfinite(number) else str(number)
        for name, number in numbers.items()
        if number is not None
    }


def _stabilization(held: Stabilization | None) -> JsonObject | None:
    if held is None:
        return None
    shown: JsonObject = {"reason": held.reason, "replicas": held.replicas}
    if held.held_by is not None:
        shown["recommendation"] = held.held_by.replicas
        shown["recommendedAt"] = held.held_by.time
        shown["window"] = format_duration(held.window)
    return shown


def _limit(limited: Limited | None) -> JsonObject | None:
    if limited is None:
        return None
    shown: JsonObject = {"reason": limited.reason, "replicas": limited.replicas}
    if limited.rate is not None:
        shown["rate"] = limited.rate.replicas
        if limited.rate.chosen is not None:
            shown["policy"] = limited.rate.chosen
        shown["policies"] = [
            {
                "policy": str(each.policy),
                "start": each.start,
                "added": each.added,
                "removed": each.removed,
                "allowed": each.allowed,
            }
            for each in limited.rate.policies
        ]
    return shown
