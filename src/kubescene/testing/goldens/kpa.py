"""Knative's pod autoscaler: its rule on averages that are given, and the averages themselves.

A line is flat: the case with ``answers``, one for each of ``steps`` (the rule) or ``asks`` (the
buckets). The recorded scaler was made by the clock of the machine, later than all of its steps: a
panic that it began with ends only after another. Without data the answer is not valid, and 0.
"""

from enum import StrEnum

from kubescene.autoscalers.kpa import Buckets, Scaler, ScalerSpec, WeightedBuckets
from kubescene.clock import SECOND
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject

UNIT = "answers"

_LATER_THAN_ALL = 1 << 62


class KpaAspect(StrEnum):
    """What can differ."""

    REPLAYED = "replayed"
    VALID = "valid"
    DESIRED = "desired pods"
    EXCESS = "excess burst capacity"
    AVERAGE = "average"
    EMPTY = "empty window"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case has as many answers as steps, or as moments that it asks at."""
    by = "steps" if "initialReady" in case else "asks"
    given, told = case.get(by), result.get("answers")
    if not isinstance(given, list) or not isinstance(told, list) or len(given) != len(told):
        raise GoldenFormatError(
            f'{where}: {case["id"]} needs a list "{by}" and a list "answers", equally long'
        )


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    try:
        (_replay_scaler if "initialReady" in golden.case else _replay_buckets)(golden, comparison)
    except Exception as error:
        # Whatever our autoscaler raises is a difference.
        comparison.failed(KpaAspect.REPLAYED, f"{type(error).__name__}: {error}", "")
    tally.attempts += len(golden.result["answers"])


def _replay_scaler(golden: Golden, comparison: GoldenComparison) -> None:
    case = golden.case
    scaler = Scaler.beginning(_spec(case["spec"]), case["initialReady"], _LATER_THAN_ALL)
    for step, theirs in zip(case["steps"], golden.result["answers"], strict=True):
        comparison.at = f"at {step['t']} s"
        valid, desired, excess = False, 0, 0
        if not step.get("noData", False):
            averages = float(step["stable"]), float(step["panic"])
            ours = scaler.scale(*averages, step["ready"], _at(step["t"]))
            valid, desired, excess = True, ours.desired, ours.excess_burst_capacity
        comparison.equal(KpaAspect.VALID, valid, theirs["valid"])
        comparison.equal(KpaAspect.DESIRED, desired, theirs["desired"])
        comparison.equal(KpaAspect.EXCESS, excess, theirs["excessBurstCapacity"])


def _replay_buckets(golden: Golden, comparison: GoldenComparison) -> None:
    case = golden.case
    kind = WeightedBuckets if case["weighted"] else Buckets
    buckets = kind(_at(case["windowSeconds"]), _at(case["granularitySeconds"]))
    records = iter([*case["records"], None])
    record = next(records)
    for seconds, theirs in zip(case["asks"], golden.result["answers"], strict=True):
        while record is not None and record["t"] <= seconds:
            buckets.record(_at(record["t"]), float(record["value"]))
            record = next(records)
        comparison.at = f"at {seconds} s"
        comparison.equal(KpaAspect.AVERAGE, buckets.average(_at(seconds)), theirs["average"])
        comparison.equal(KpaAspect.EMPTY, buckets.is_empty(_at(seconds)), theirs["empty"])


def _spec(given: JsonObject) -> ScalerSpec:
    return ScalerSpec(
        target=given["targetValue"],
        total=given["totalValue"],
        target_burst_capacity=given["targetBurstCapacity"],
        panic_threshold=given["panicThreshold"],
        max_scale_up_rate=given["maxScaleUpRate"],
        max_scale_down_rate=given["maxScaleDownRate"],
        stable_window=_at(given["stableWindowSeconds"]),
        scale_down_delay=_at(given["scaleDownDelaySeconds"]),
        activation_scale=given["activationScale"],
        reachable=given["reachable"],
    )


def _at(seconds: float) -> int:
    return round(seconds * SECOND)
