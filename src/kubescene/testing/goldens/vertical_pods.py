"""Replaying what updater and admission do with pods."""

from typing import Any

from kubescene.autoscalers.vertical.admission import admitted, resource_patches
from kubescene.autoscalers.vertical.assessing import assess
from kubescene.autoscalers.vertical.attempts import Attempts
from kubescene.autoscalers.vertical.capping import Capped, capped
from kubescene.autoscalers.vertical.limit_ranges import LimitRanges, limit_ranges
from kubescene.autoscalers.vertical.objects import (
    ResourceList,
    VerticalPodAutoscaler,
    decode_vpa,
)
from kubescene.autoscalers.vertical.options import updater_options
from kubescene.autoscalers.vertical.updating import update
from kubescene.clock import SECOND, parse_time
from kubescene.testing.goldens.comparing import Comparison, Tally
from kubescene.testing.goldens.recordings import Golden
from kubescene.testing.goldens.vertical_aspects import VerticalAspect
from kubescene.types import JsonObject


def replay_updater(golden: Golden, comparison: Comparison) -> None:
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


def replay_loops(golden: Golden, comparison: Comparison, tally: Tally) -> None:
    """Several loops of one updater, feature gate InPlace on: what it remembers is between them."""
    case = golden.case
    vpa, ranges = _given(case)
    options = updater_options({**(case.get("config") or {}), "inPlace": True})
    start, attempts = parse_time(case["start"]), Attempts()
    replicas: dict[str, int] = {}
    for number, (loop, theirs) in enumerate(
        zip(case["loops"], golden.result["loops"], strict=True)
    ):
        comparison.at = f"loop {number}"
        tally.attempts += 1
        vpa = decode_vpa(loop["vpa"]) if "vpa" in loop else vpa
        replicas |= loop.get("replicas") or {}
        now, refused = start + round(loop["now"] * SECOND), loop.get("resizeErrors") or ()
        ours = update(vpa, loop["pods"], replicas, now, options, ranges, attempts, refused)
        comparison.equal(VerticalAspect.EVICTED, list(ours.evicted), theirs["evicted"])
        comparison.equal(VerticalAspect.RESIZED, list(ours.resized), theirs["resized"])
        comparison.equal(VerticalAspect.EVENTS, list(ours.events), theirs["events"])


_PRIORITY = ("outsideRecommendedRange", "scaleUp", "resourceDiff")


def replay_admission(golden: Golden, comparison: Comparison) -> None:
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
    comparison: Comparison,
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
    comparison: Comparison,
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
