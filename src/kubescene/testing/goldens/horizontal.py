"""Recordings of the horizontal pod autoscaler's controller: pass by pass through our function.

The replay plays the API server of the recording (`horizontal_worlds`): objects, pods, metrics and
refused writes. It runs on our own decisions; a case ends with the first pass that differs.
"""

from enum import StrEnum
from typing import Any

from kubescene.api.quantity import QuantityError, parse
from kubescene.autoscalers.horizontal.history import History, ScaleEvent
from kubescene.autoscalers.horizontal.reconciling import Result
from kubescene.testing.goldens.comparing import Comparison, Tally
from kubescene.testing.goldens.horizontal_worlds import HorizontalWorld, instant_of
from kubescene.testing.goldens.recordings import Golden, GoldenFormatError
from kubescene.types import JsonObject, Nanoseconds

UNIT = "passes"
QUANTITIES = frozenset({"value", "averageValue"})


class HorizontalAspect(StrEnum):
    """What can differ, from coarse to fine."""

    REPLAYED = "replayed"
    SPEC = "defaulted spec"
    REPLICAS = "current replicas"
    PROPOSAL = "proposal"
    SCALED_TO = "scaled to"
    DESIRED = "desired replicas"
    STATUS_REPLICAS = "current replicas in status"
    LAST_SCALE_TIME = "last scale time"
    CONDITIONS = "conditions"
    EVENTS = "event reasons"
    METRICS = "current metrics"
    STATE = "history"


def check(case: JsonObject, result: JsonObject, where: str) -> None:
    timeline, steps = case.get("timeline"), result.get("steps")
    where = f"{where}: case {case['id']}"
    if not isinstance(timeline, list) or not isinstance(steps, list):
        raise GoldenFormatError(f'{where} needs a list "timeline", with "steps" in its result')
    if len(timeline) != len(steps):
        raise GoldenFormatError(
            f"{where} has {len(timeline)} entries in its timeline but {len(steps)} steps"
        )
    for name in ("hpa", "controller", "podTemplates"):
        if not isinstance(case.get(name), dict):
            raise GoldenFormatError(f'{where} has no object "{name}"')
    for number, each in enumerate((*timeline, *steps)):
        if not isinstance(each, dict) or not isinstance(each.get("t"), int | float):
            raise GoldenFormatError(f'{where}: pass {number % len(steps)} has no time "t"')


def replay(golden: Golden, tally: Tally) -> None:
    comparison = Comparison(golden.id, tally)
    try:
        world = HorizontalWorld(golden.case)
        if "spec" in golden.result:
            ours, theirs = _comparable(world.spec), _comparable(golden.result["spec"])
            comparison.equal(HorizontalAspect.SPEC, ours, theirs)
        _replay(world, golden, tally, comparison)
    except Exception as error:
        # Whatever ours raises is a difference.
        text = f"{type(error).__name__}: {error}"
        comparison.failed(HorizontalAspect.REPLAYED, text, "")


def _replay(world: HorizontalWorld, golden: Golden, tally: Tally, comparison: Comparison) -> None:
    steps = golden.result["steps"]
    for number, (entry, step) in enumerate(zip(golden.case["timeline"], steps, strict=True)):
        comparison.at = f"pass {number} at {step['t']}"
        tally.attempts += 1
        world.apply(entry)
        comparison.equal(HorizontalAspect.REPLICAS, world.replicas, step["currentReplicas"])
        result = world.run(entry)
        _compare(result, world, step, comparison)
        if comparison.differences:
            return


def _compare(
    result: Result | None, world: HorizontalWorld, step: JsonObject, comparison: Comparison
) -> None:
    status, equal = world.status, comparison.equal
    proposal = None if result is None else result.explanation.proposal
    equal(HorizontalAspect.PROPOSAL, proposal, step.get("proposal"))
    scaled_to = None if result is None else result.scaled_to
    equal(HorizontalAspect.SCALED_TO, scaled_to, step.get("scaledTo"))
    equal(HorizontalAspect.DESIRED, status.desired_replicas, step["desiredReplicas"])
    theirs = step["statusCurrentReplicas"]
    equal(HorizontalAspect.STATUS_REPLICAS, status.current_replicas, theirs)
    scaled = _optional_instant(world.start, step.get("lastScaleTime"))
    equal(HorizontalAspect.LAST_SCALE_TIME, status.last_scale_time, scaled)
    ours = [(c.type, str(c.status), c.reason, c.last_transition) for c in status.conditions]
    equal(HorizontalAspect.CONDITIONS, ours, _conditions(world.start, step))
    reasons = [] if result is None else [event.reason for event in result.events]
    recorded = [event["reason"] for event in step.get("events") or ()]
    equal(HorizontalAspect.EVENTS, reasons, recorded)
    metrics = [_comparable(each) for each in status.current_metrics]
    shown = [_comparable(each) for each in step.get("currentMetrics") or ()]
    equal(HorizontalAspect.METRICS, metrics, shown)
    if "state" in step:
        state = _history(world.start, step["state"])
        equal(HorizontalAspect.STATE, _slots(world.history), _slots(state))


def _optional_instant(start: Nanoseconds, seconds: float | None) -> Nanoseconds | None:
    return None if seconds is None else instant_of(start, seconds)


def _conditions(start: Nanoseconds, step: JsonObject) -> list[tuple[Any, ...]]:
    return [
        (c["type"], c["status"], c["reason"], instant_of(start, c["lastTransition"]))
        for c in step.get("conditions") or ()
    ]


def _history(start: Nanoseconds, state: JsonObject) -> History:
    """The recorded state in our form."""
    recommendations = (
        (replicas, instant_of(start, seconds)) for replicas, seconds in state["recommendations"]
    )
    return History(
        tuple(recommendations),  # type: ignore[arg-type] # compared as plain tuples
        _events(start, state["scaleUpEvents"]),
        _events(start, state["scaleDownEvents"]),
    )


def _events(start: Nanoseconds, events: list[Any]) -> tuple[ScaleEvent, ...]:
    return tuple(
        ScaleEvent(change, instant_of(start, seconds), outdated)
        for change, seconds, outdated in events
    )


def _slots(history: History) -> list[list[tuple[Any, ...]]]:
    return [
        [tuple(each) for each in slots]
        for slots in (history.recommendations, history.scale_up_events, history.scale_down_events)
    ]


def _comparable(value: Any, name: str = "") -> Any:
    """A JSON value with quantities by amount, in order of names."""
    if isinstance(value, dict):
        return {key: _comparable(value[key], key) for key in sorted(value)}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return _amount(value) if name in QUANTITIES | {"tolerance"} else value


def _amount(value: Any) -> Any:
    try:
        return parse(value).nanos
    except QuantityError:
        return value
