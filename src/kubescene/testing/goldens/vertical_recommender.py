"""Replaying the recommender: operations one after the other, each compared with its step."""

from collections.abc import Sequence
from typing import Any

from kubescene.api.selectors.label_selectors import parse_labels
from kubescene.autoscalers.vertical.aggregates import Aggregate
from kubescene.autoscalers.vertical.estimators import Bound
from kubescene.autoscalers.vertical.objects import decode_vpa
from kubescene.autoscalers.vertical.options import recommender_options
from kubescene.autoscalers.vertical.recommendations import ContainerEstimates, Recommendation
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.clock import SECOND, parse_time
from kubescene.testing.goldens.comparing import Comparison, Tally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.testing.goldens.vertical_aspects import VerticalAspect
from kubescene.types import JsonObject

OPERATIONS = ("pod", "deletePod", "samples", "oom", "spec", "gc", "restart", "recommend")


def check_ops(ops: Sequence[Any], where: str) -> None:
    for number, op in enumerate(ops):
        if not isinstance(op, dict) or len(op) != 1 or next(iter(op)) not in OPERATIONS:
            raise GoldenFormatError(
                f"{where}: operation {number} has to be one of {', '.join(OPERATIONS)}"
            )


class RecommenderReplay:
    """One case: a recommender that is told what the recorded one was told."""

    def __init__(self, golden: Golden, comparison: Comparison, tally: Tally) -> None:
        case = golden.case
        self._golden = golden
        self._comparison = comparison
        self._tally = tally
        self._start = parse_time(case["start"])
        self._now = self._start
        self._recommender = Recommender(
            decode_vpa(case["vpa"]),
            recommender_options(case.get("config") or {}),
            parse_labels(case["selector"]),
        )

    def run(self) -> None:
        steps = zip(self._golden.case["ops"], self._golden.result["steps"], strict=True)
        for number, (op, theirs) in enumerate(steps):
            [(name, argument)] = op.items()
            self._tally.attempts += 1
            self._comparison.at = f"step {number} {name}"
            self._play(name, argument, theirs)

    def _play(self, name: str, argument: Any, theirs: JsonObject) -> None:
        match name:
            case "pod":
                self._set_pod(argument)
            case "deletePod":
                self._recommender.usage.delete_pod(argument)
            case "samples":
                self._add_samples(argument, theirs)
            case "oom":
                self._add_oom(argument, theirs)
            case "spec":
                self._recommender.vpa = self._recommender.vpa.with_spec(argument)
            case "gc":
                self._collect(argument, theirs)
            case "restart":
                self._restart(argument, theirs)
            case "recommend":
                self._recommend(argument, theirs)

    def _at(self, seconds: float) -> int:
        self._now = self._start + round(seconds * SECOND)
        return self._now

    def _set_pod(self, pod: JsonObject) -> None:
        self._recommender.usage.set_pod(
            pod["name"],
            labels=pod.get("labels") or {},
            containers=[each["name"] for each in pod.get("containers") or ()],
            now=self._now,
            phase=pod.get("phase", "Running"),
        )

    def _add_samples(self, given: JsonObject, theirs: JsonObject) -> None:
        usage, where = self._recommender.usage, (given["pod"], given["container"])
        cpu, memory = given.get("cpu") or (), given.get("memory") or ()
        unit = given.get("memoryUnit", 1)
        rejected = []
        for number in range(max(len(cpu), len(memory))):
            time = self._at(given["t"] + number * given.get("every", 0))
            taken = number >= len(cpu) or usage.add_cpu(*where, cpu[number], time)
            if number < len(memory):
                taken = usage.add_memory(*where, memory[number] * unit, time) and taken
            if not taken:
                rejected.append(number)
        self._comparison.equal(VerticalAspect.REJECTED, rejected, theirs.get("rejected", []))

    def _add_oom(self, given: JsonObject, theirs: JsonObject) -> None:
        taken = self._recommender.usage.add_oom(
            given["pod"], given["container"], given["memory"], self._at(given["t"])
        )
        self._comparison.equal(
            VerticalAspect.OOM_REJECTED, not taken, theirs.get("oomRejected", False)
        )

    def _collect(self, seconds: float, theirs: JsonObject) -> None:
        self._recommender.collect_garbage(self._at(seconds))
        ours = len(self._recommender.usage.aggregates)
        self._comparison.equal(VerticalAspect.AGGREGATES, ours, theirs.get("aggregates", 0))

    def _restart(self, seconds: float, theirs: JsonObject) -> None:
        now, old = self._at(seconds), self._recommender
        saved = old.checkpoints(now)
        recorded = {name: _as_read(each) for name, each in theirs.get("checkpoints", {}).items()}
        self._comparison.equal(VerticalAspect.CHECKPOINTS, saved, recorded)
        self._recommender = Recommender(old.vpa, old.options, old.selector)
        self._recommender.load(saved, now)

    def _recommend(self, seconds: float, theirs: JsonObject) -> None:
        now = self._at(seconds)
        recommendation = self._recommender.recommend(now)
        self._compare_containers(recommendation, theirs.get("containers") or [])
        self._comparison.equal(
            VerticalAspect.RECOMMENDATION,
            [each.to_dict() for each in recommendation.recommended],
            theirs.get("recommendation") or [],
        )
        conditions = [
            f"{each.type}={each.status}/{each.reason}" for each in recommendation.conditions
        ]
        self._comparison.equal(VerticalAspect.CONDITIONS, conditions, theirs.get("conditions"))

    def _compare_containers(self, ours: Recommendation, theirs: list[JsonObject]) -> None:
        names = [each.name for each in ours.containers]
        if not self._comparison.equal(
            VerticalAspect.CONTAINERS, names, [each["name"] for each in theirs]
        ):
            return
        histories = self._recommender.histories(ours.time)
        for each, recorded in zip(ours.containers, theirs, strict=True):
            self._compare_container(each, histories[each.name], recorded)

    def _compare_container(
        self, ours: ContainerEstimates, history: Aggregate, theirs: JsonObject
    ) -> None:
        sampled = (self._seconds(ours.first_sample), self._seconds(ours.last_sample), ours.samples)
        self._comparison.equal(
            VerticalAspect.HISTORY,
            sampled,
            (theirs.get("firstSample"), theirs.get("lastSample"), theirs.get("samples")),
        )
        for resource, histogram in (("cpu", history.cpu), ("memory", history.memory)):
            recorded = theirs["percentiles"].get(resource) or {}
            percentiles = {share: histogram.percentile(float(share)) for share in recorded}
            self._comparison.equal(VerticalAspect.PERCENTILES, percentiles, recorded)
        for bound in Bound:
            self._comparison.equal(
                VerticalAspect.ESTIMATES, ours.amounts(bound), theirs.get(str(bound)) or {}
            )

    def _seconds(self, time: int | None) -> float | None:
        return None if time is None else (time - self._start) / SECOND


def _as_read(checkpoint: JsonObject) -> JsonObject:
    """A recorded checkpoint with weights as floats: JSON shows large ones as whole numbers."""
    read = dict(checkpoint)
    for name in ("cpuHistogram", "memoryHistogram"):
        histogram = checkpoint.get(name) or {}
        if "totalWeight" in histogram:
            read[name] = {**histogram, "totalWeight": float(histogram["totalWeight"])}
    return read
