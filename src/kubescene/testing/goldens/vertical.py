"""The vertical pod autoscaler.

What is compared in recordings of the vertical pod autoscaler.

Replaying what updater and admission do with pods.

Replaying the recommender: operations one after the other, each compared with its step.

Recordings of the vertical pod autoscaler: recommender, updater, admission.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from kubescene.api.selectors.label_selectors import parse_labels
from kubescene.autoscalers.vertical.admission import admitted, resource_patches
from kubescene.autoscalers.vertical.evictions import ResizeAttempts
from kubescene.autoscalers.vertical.histories import Aggregate
from kubescene.autoscalers.vertical.limits import Capped, LimitRanges, capped, limit_ranges
from kubescene.autoscalers.vertical.objects import (
    ResourceList,
    VerticalPodAutoscaler,
    decode_vpa,
)
from kubescene.autoscalers.vertical.options import recommender_options, updater_options
from kubescene.autoscalers.vertical.recommendations import Bound, ContainerEstimates, Recommendation
from kubescene.autoscalers.vertical.recommender import Recommender
from kubescene.autoscalers.vertical.updater import PaperHands, assess, update
from kubescene.clock import SECOND, parse_time
from kubescene.testing.goldens.comparisons import GoldenComparison, GoldenTally
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject


class VerticalAspect(StrEnum):
    """What can differ, from coarse to fine."""

    REPLAYED = "replayed"
    REJECTED = "rejected samples"
    OOM_REJECTED = "rejected kills"
    AGGREGATES = "aggregates"
    CHECKPOINTS = "checkpoints"
    CONTAINERS = "recommended containers"
    HISTORY = "history"
    PERCENTILES = "percentiles"
    ESTIMATES = "estimates"
    RECOMMENDATION = "recommendation"
    CONDITIONS = "conditions"
    CAPPED = "capped"
    NOTES = "capping notes"
    PRIORITY = "priority"
    ACCEPTED = "accepted"
    EVICTED = "evicted"
    RESIZED = "resized"
    EVENTS = "events"
    RESOURCES = "resources"
    PATCHES = "patches"


def replay_updater(golden: Golden, comparison: GoldenComparison) -> None:
    """One loop of the updater. Where the recorded one crashed there is nothing to compare."""
    case, result = golden.case, golden.result
    vpa, ranges = _given(case)
    options = updater_options(case.get("config") or {})
    now = parse_time(case["start"]) + round(case.get("now", 0) * SECOND)
    for pod, theirs in zip(case["pods"], result["pods"], strict=True):
        comparison.at = f"pod {theirs['name']}"
        ours = assess(vpa, pod, now, options, ranges)
        if "error" in theirs:
            continue
        _compare_capped(ours.fitted, theirs, comparison)
        recorded = tuple(theirs[name] for name in _PRIORITY)
        comparison.equal(VerticalAspect.PRIORITY, tuple(ours.priority), recorded)
        comparison.equal(VerticalAspect.ACCEPTED, ours.verdict.accepted, theirs["accepted"])
    comparison.at = "loop"
    if not result.get("panic"):
        loop = update(vpa, case["pods"], case.get("replicas") or {}, now, options, ranges)
        comparison.equal(VerticalAspect.EVICTED, list(loop.evicted), result["evicted"])
        comparison.equal(VerticalAspect.EVENTS, list(loop.events), result["events"])


def replay_loops(golden: Golden, comparison: GoldenComparison, tally: GoldenTally) -> None:
    """Several loops of one updater, feature gate InPlace on: what it remembers is between them."""
    case = golden.case
    vpa, ranges = _given(case)
    options = updater_options({**(case.get("config") or {}), "inPlace": True})
    start, attempts = parse_time(case["start"]), ResizeAttempts()
    replicas: dict[str, int] = {}
    for number, (loop, theirs) in enumerate(
        zip(case["loops"], golden.result["loops"], strict=True)
    ):
        comparison.at = f"loop {number}"
        tally.attempts += 1
        vpa = decode_vpa(loop["vpa"]) if "vpa" in loop else vpa
        replicas |= loop.get("replicas") or {}
        now, refused = start + round(loop["now"] * SECOND), loop.get("resizeErrors") or ()
        hands = PaperHands(refused)
        ours = update(vpa, loop["pods"], replicas, now, options, ranges, attempts, hands)
        comparison.equal(VerticalAspect.EVICTED, list(ours.evicted), theirs["evicted"])
        comparison.equal(VerticalAspect.RESIZED, list(ours.resized), theirs["resized"])
        comparison.equal(VerticalAspect.EVENTS, list(ours.events), theirs["events"])


_PRIORITY = ("outsideRecommendedRange", "scaleUp", "resourceDiff")


def replay_admission(golden: Golden, comparison: GoldenComparison) -> None:
    """Pods that are about to be created."""
    vpa, ranges = _given(golden.case)
    for pod, theirs in zip(golden.case["pods"], golden.result["pods"], strict=True):
        comparison.at = f"pod {theirs['name']}"
        if "error" not in theirs:
            _compare_admitted(vpa, pod, ranges, theirs, comparison)


def _compare_admitted(
    vpa: VerticalPodAutoscaler,
    pod: JsonObject,
    ranges: LimitRanges,
    theirs: JsonObject,
    comparison: GoldenComparison,
) -> None:
    ours = admitted(vpa, pod, ranges)
    _compare_capped(capped(vpa, pod, ranges), theirs, comparison, ours.notes)
    resources = [
        {"Limits": _texts(each.limits), "Requests": _texts(each.requests)}
        for each in ours.resources
    ]
    comparison.equal(VerticalAspect.RESOURCES, resources, theirs["resources"])
    patches = sorted(resource_patches(vpa, pod, ranges), key=_path)
    comparison.equal(VerticalAspect.PATCHES, patches, theirs["patches"])


def _given(case: JsonObject) -> tuple[VerticalPodAutoscaler, LimitRanges]:
    return decode_vpa(case["vpa"]), limit_ranges(case.get("limitRanges") or ())


def _compare_capped(
    ours: Capped | None,
    theirs: JsonObject,
    comparison: GoldenComparison,
    said: dict[str, list[str]] | None = None,
) -> None:
    recommendations = [each.to_dict() for each in ours.recommendations] if ours else []
    comparison.equal(VerticalAspect.CAPPED, recommendations, theirs.get("capped") or [])
    notes = said if said is not None else ours.notes if ours else {}
    ordered = {name: sorted(each) for name, each in notes.items()}
    comparison.equal(VerticalAspect.NOTES, ordered, theirs.get("notes") or {})


def _texts(amounts: ResourceList | None) -> dict[str, str] | None:
    return None if amounts is None else {name: str(amount) for name, amount in amounts.items()}


def _path(patch: JsonObject) -> Any:
    return patch["path"]


OPERATIONS = ("pod", "deletePod", "samples", "oom", "spec", "gc", "restart", "recommend")


def check_ops(ops: Sequence[Any], where: str) -> None:
    for number, op in enumerate(ops):
        if not isinstance(op, dict) or len(op) != 1 or next(iter(op)) not in OPERATIONS:
            raise GoldenFormatError(
                f"{where}: operation {number} has to be one of {', '.join(OPERATIONS)}"
            )


class RecommenderReplay:
    """One case: a recommender that is told what the recorded one was told."""

    def __init__(self, golden: Golden, comparison: GoldenComparison, tally: GoldenTally) -> None:
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


UNIT = "steps or pods"

_LISTS = (("steps", "ops"), ("loops", "loops"), ("pods", "pods"))
"""What a result holds for which part of its case."""


def replay(golden: Golden, tally: GoldenTally) -> None:
    comparison = GoldenComparison(golden.id, tally)
    try:
        _replay(golden, comparison, tally)
    except Exception as error:
        # Whatever our autoscaler raises is a difference.
        said = f"{type(error).__name__}: {error}"
        comparison.failed(VerticalAspect.REPLAYED, said, "")


def _replay(golden: Golden, comparison: GoldenComparison, tally: GoldenTally) -> None:
    if "ops" in golden.case:
        RecommenderReplay(golden, comparison, tally).run()
        return
    if "loops" in golden.case:
        replay_loops(golden, comparison, tally)
        return
    tally.attempts += len(golden.case["pods"])
    replay_pods = replay_admission if golden.case.get("admission") else replay_updater
    replay_pods(golden, comparison)


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    """A case is a list of operations with a step each, or loops or pods with a result each."""
    made, by = next((each for each in _LISTS if each[1] in case), _LISTS[-1])
    given, told = case.get(by), result.get(made)
    if not isinstance(given, list) or not isinstance(told, list) or len(given) != len(told):
        raise GoldenFormatError(
            f'{where}: case {case["id"]} needs a list "{by}", and a list "{made}" of the same '
            "length in its result"
        )
    if "ops" in case:
        check_ops(given, f"{where}: case {case['id']}")
