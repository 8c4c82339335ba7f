"""What an author may change while a scenario is under way, and what comes too late.

Operations may be added, and those of future steps changed, until the scenario is over. What has
started stays as it was played; so do ``controllers`` and ``simulation``. Expectations may be
changed as long, since they are looked at in the end. A new operation of a step that has passed is
accepted and ignored, as KEP-140 says: ``status.ignoredOperations`` names it.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.spec import Operation, ScenarioSpec
from kubescene.types import JsonObject

UNDER_WAY = frozenset({ScenarioPhase.RUNNING, ScenarioPhase.PAUSED})
FIXED = ("controllers", "simulation")


class IgnoredOperation(NamedTuple):
    """An operation that is in the spec and will never be played."""

    id: str
    step: int
    reason: str


class Complaint(NamedTuple):
    """What is wrong with an edit: the field below ``spec``, and why."""

    field: str
    why: str


def passed(spec: ScenarioSpec, major: int, played: Mapping[str, Operation]) -> list[Operation]:
    """Operations that came too late: their step has passed without them."""
    early = (each for each in spec.operations if each.step <= major)
    return [each for each in early if each.id not in played]


def ignored_operations(
    spec: ScenarioSpec, major: int, played: Mapping[str, Operation], *, is_over: bool = False
) -> tuple[IgnoredOperation, ...]:
    """All operations that will not be played, in list order."""
    too_late = {each.id for each in passed(spec, major, played)}
    found = []
    for each in spec.operations:
        if each.id in too_late:
            found.append(IgnoredOperation(each.id, each.step, f"step {each.step} had passed"))
        elif is_over and each.step > major:
            why = f"the scenario was done at step {major}"
            found.append(IgnoredOperation(each.id, each.step, why))
    return tuple(found)


def complaints_about(
    old: JsonObject, new: JsonObject, after: ScenarioSpec, started: Collection[Operation]
) -> list[Complaint]:
    """What an edit of a scenario that is under way may not change.

    ``old`` and ``new`` are the two specs, ``after`` is the new one, read. ``started`` are the
    operations that were begun, in that order. Operations without an id are known by their place
    in the list: others have to follow them.
    """
    found = [
        Complaint(name, f"{name} cannot be changed once the scenario has started")
        for name in FIXED
        if old.get(name) != new.get(name)
    ]
    now = {each.id: each for each in after.operations}
    field = "events" if new.get("events") else "operations"
    for operation in started:
        if (found_now := now.get(operation.id)) is None:
            found.append(Complaint(field, f"{_named(operation)} cannot be removed"))
        elif not is_same(operation, found_now):
            found.append(Complaint(field, f"{_named(operation)} cannot be changed"))
    if not found and (step := _rearranged(after, started)) is not None:
        why = f"the operations of step {step} have started: their order cannot be changed"
        found.append(Complaint(field, why))
    return found


def _rearranged(after: ScenarioSpec, started: Iterable[Operation]) -> int | None:
    """The first step whose operations now stand in another order than they were played in."""
    places = {each.id: place for place, each in enumerate(after.operations)}
    last: dict[int, int] = {}
    for operation in started:
        place = places[operation.id]
        if place < last.get(operation.step, place):
            return operation.step
        last[operation.step] = place
    return None


def is_same(operation: Operation, other: Operation) -> bool:
    """Whether both say the same, wherever in the list they stand."""
    key = (operation.id, operation.step, operation.kind, operation.body)
    return key == (other.id, other.step, other.kind, other.body)


def _named(operation: Operation) -> str:
    return (
        f"operation {operation.id!r} of step {operation.step} has started and "
        "is part of what happened: it"
    )


def spec_of(scenario: Mapping[str, Any]) -> JsonObject:
    spec = scenario.get("spec")
    return spec if isinstance(spec, dict) else {}
