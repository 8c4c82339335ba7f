"""A scenario's spec in the one form that the engine reads.

`parse_spec` takes the object as its author wrote it (the merged KEP's ``operations``, or the
drafts' ``events``) and returns frozen values, or raises `ScenarioError` naming index, id and
fault. The schema admits operations that this refuses, as the KEP wants: such a scenario becomes
``Failed`` before anything is touched.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from kubescene.api.kinds import SCENARIO
from kubescene.api.patches import PatchType
from kubescene.clock import LAST_INSTANT, parse_duration
from kubescene.clock.clocks import DEFAULT_START
from kubescene.errors import ScenarioError
from kubescene.scenario.options import check_members, delete_options, write_options
from kubescene.scenario.simulation import Simulation, parse_simulation
from kubescene.timeline.facts import GENERATED_ID
from kubescene.types import JsonObject

DEFAULT_SIMULATION_CONTROLLER = "kube-scheduler"
MAX_STEP = 2**31 - 1
MAX_COUNT = 1_000_000


class OperationKind(StrEnum):
    """The field that makes an operation what it is, by the type name of the drafts."""

    CREATE = "Create"
    PATCH = "Patch"
    DELETE = "Delete"
    DONE = "Done"
    ADVANCE = "Advance"

    @property
    def field(self) -> str:
        return f"{self.value.lower()}Operation"


SPEC_FIELDS = ("operations", "events", "controllers", "simulation", "expectations")
OPERATION_FIELDS = ("id", "step", "operation", *(kind.field for kind in OperationKind))
BODY_FIELDS = {
    OperationKind.CREATE: ("object", "count", "createOptions"),
    OperationKind.PATCH: (
        "typeMeta",
        "objectMeta",
        "patch",
        "patchType",
        "PatchType",
        "patchOptions",
    ),
    OperationKind.DELETE: ("typeMeta", "objectMeta", "deleteOptions"),
    OperationKind.DONE: ("done",),
    OperationKind.ADVANCE: ("duration",),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``body`` is its ``*Operation`` value as written."""

    id: str
    index: int
    step: int
    kind: OperationKind
    body: JsonObject

    @property
    def instances(self) -> int:
        """How many objects a counted create makes; everything else happens once."""
        count: int = self.body.get("count", 1) if self.kind is OperationKind.CREATE else 1
        return count

    @property
    def where(self) -> str:
        return f"step {self.step}, operation {self.id!r}"


@dataclass(frozen=True)
class ScenarioSpec:
    """Operations in list order, and who plays."""

    operations: tuple[Operation, ...]
    simulation_controllers: tuple[str, ...] = (DEFAULT_SIMULATION_CONTROLLER,)
    disabled: frozenset[str] = frozenset()
    presimulation_enabled: tuple[str, ...] | None = None
    simulation: Simulation = field(default_factory=Simulation)

    @cached_property
    def by_step(self) -> dict[int, tuple[Operation, ...]]:
        """The operations of each major step in list order, steps ascending."""
        return grouped(self.operations)

    def next_major(self, after: int) -> int | None:
        """The next step that has operations."""
        majors = self._majors
        place = bisect_right(majors, after)
        return majors[place] if place < len(majors) else None

    def at(self, major: int) -> tuple[Operation, ...]:
        """The operations of one major step, in list order."""
        return self.by_step.get(major, ())

    @cached_property
    def _majors(self) -> tuple[int, ...]:
        return tuple(self.by_step)

    def presimulation_controllers(self, registered: Sequence[str]) -> list[str]:
        """Every registered controller that is neither simulated nor disabled, in settle order."""
        if "*" in self.disabled:
            return list(self.presimulation_enabled or ())
        return [
            name
            for name in registered
            if name not in self.simulation_controllers and name not in self.disabled
        ]


def grouped(operations: Iterable[Operation]) -> dict[int, tuple[Operation, ...]]:
    """Operations by major step, ascending, each in list order."""
    found: dict[int, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.step, []).append(operation)
    return {step: tuple(found[step]) for step in sorted(found)}


def parse_spec(scenario: Mapping[str, Any]) -> ScenarioSpec:
    """Normalise ``scenario['spec']``."""
    spec = scenario.get("spec")
    if not isinstance(spec, Mapping):
        raise ScenarioError("spec is missing: a Scenario needs spec.operations", where="spec")
    check_members(spec, SPEC_FIELDS, "spec")
    if spec.get("expectations"):
        raise ScenarioError("expectations are not evaluated yet: remove them", where="spec")
    operations, events = _items(spec, "operations"), _items(spec, "events")
    if operations and events:
        raise ScenarioError(
            "spec.operations and spec.events are both set: keep one of them", where="spec"
        )
    items, draft = (events, True) if events else (operations, False)
    ids = _assigned_ids(items)
    parsed = [_operation(item, index, ids[index], draft=draft) for index, item in enumerate(items)]
    _check_ids(parsed)
    _check_advance_is_last(parsed)
    controllers = _controllers(spec.get("controllers"))
    simulation = parse_simulation(spec.get("simulation"))
    _check_time_lasts(parsed, DEFAULT_START if simulation.start is None else simulation.start)
    return ScenarioSpec(operations=tuple(parsed), simulation=simulation, **controllers)


def _items(spec: Mapping[str, Any], field_name: str) -> list[Any]:
    items = spec.get(field_name) or []
    if not isinstance(items, list):
        raise ScenarioError("must be a list", where=f"spec.{field_name}")
    return items


def _assigned_ids(items: Sequence[Any]) -> list[str]:
    """The ids as given; a missing one is made from its place, and never one that is given."""
    given = [str(item.get("id") or "") if isinstance(item, Mapping) else "" for item in items]
    taken = set(given)
    ids = []
    for index, name in enumerate(given):
        assigned = name or f"op-{index + 1}"
        while not name and assigned in taken:
            assigned += "-1"
        ids.append(assigned)
    return ids


def _operation(item: Any, index: int, name: str, *, draft: bool) -> Operation:
    place = f"spec.{'events' if draft else 'operations'}[{index}]"
    if not isinstance(item, Mapping):
        raise ScenarioError("an operation must be an object", where=place)
    where = f"{place} (id {name!r})"
    check_members(item, OPERATION_FIELDS, where)
    step = item.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or not 1 <= step <= MAX_STEP:
        raise ScenarioError(f"step must be a whole number of at least 1, not {step!r}", where=where)
    present = [kind for kind in OperationKind if item.get(kind.field) is not None]
    if len(present) != 1:
        names = ", ".join(kind.field for kind in OperationKind)
        found = ", ".join(kind.field for kind in present) or "none"
        raise ScenarioError(f"exactly one of {names} must be set; found: {found}", where=where)
    kind = present[0]
    if draft and item.get("operation") != kind.value:
        raise ScenarioError(
            f"operation is {item.get('operation')!r} but {kind.field} is set", where=where
        )
    body = item[kind.field]
    if not isinstance(body, Mapping):
        raise ScenarioError(f"{kind.field} must be an object", where=where)
    operation = Operation(name, index, step, kind, dict(body))
    inside = f"{where}.{kind.field}"
    check_members(body, BODY_FIELDS[kind], inside)
    _CHECKS[kind](operation.body, inside)
    return operation


def _check_create(body: JsonObject, where: str) -> None:
    obj = body.get("object")
    if not isinstance(obj, Mapping) or not _names_a_kind(obj):
        raise ScenarioError("object must be an API object with apiVersion and kind", where=where)
    count = body.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MAX_COUNT:
        raise ScenarioError(f"count must be 1..{MAX_COUNT}, not {count!r}", where=where)
    _refuse_scenarios(obj, where)
    write_options(body.get("createOptions"), f"{where}.createOptions")


def _check_patch(body: JsonObject, where: str) -> None:
    _check_target(body, where)
    if not isinstance(body.get("patch"), str):
        raise ScenarioError("patch must be a string that holds the patch", where=where)
    given = body.get("patchType", body.get("PatchType"))
    if given:
        try:
            PatchType.parse(str(given))
        except ValueError as error:
            raise ScenarioError(str(error), where=where) from error
    write_options(body.get("patchOptions"), f"{where}.patchOptions", patch=True)


def _check_delete(body: JsonObject, where: str) -> None:
    _check_target(body, where)
    delete_options(body.get("deleteOptions"), f"{where}.deleteOptions")


def _check_done(body: JsonObject, where: str) -> None:
    if body.get("done", True) is not True:
        raise ScenarioError("done must be true", where=where)


def _check_advance(body: JsonObject, where: str) -> None:
    duration = body.get("duration")
    try:
        nanoseconds = parse_duration(duration) if isinstance(duration, str) else 0
    except ValueError as error:
        raise ScenarioError(str(error), where=where) from error
    if nanoseconds <= 0:
        raise ScenarioError(
            f"duration must be longer than zero, such as 5m, not {duration!r}", where=where
        )


_CHECKS = {
    OperationKind.CREATE: _check_create,
    OperationKind.PATCH: _check_patch,
    OperationKind.DELETE: _check_delete,
    OperationKind.DONE: _check_done,
    OperationKind.ADVANCE: _check_advance,
}


def _check_target(body: JsonObject, where: str) -> None:
    types, metadata = body.get("typeMeta"), body.get("objectMeta")
    if not isinstance(types, Mapping) or not _names_a_kind(types):
        raise ScenarioError("typeMeta needs apiVersion and kind", where=where)
    if not isinstance(metadata, Mapping) or not _is_text(metadata.get("name")):
        raise ScenarioError("objectMeta needs name", where=where)
    _refuse_scenarios(types, where)


def _refuse_scenarios(obj: Mapping[str, Any], where: str) -> None:
    if (obj["apiVersion"], obj["kind"]) == (SCENARIO.api_version, SCENARIO.kind):
        raise ScenarioError("a scenario cannot create, change or delete Scenarios", where=where)


def _names_a_kind(obj: Mapping[str, Any]) -> bool:
    return _is_text(obj.get("apiVersion")) and _is_text(obj.get("kind"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _check_ids(operations: Sequence[Operation]) -> None:
    seen: dict[str, int] = {}
    for operation in operations:
        if operation.id.startswith(GENERATED_ID):
            raise ScenarioError(
                f"id {operation.id!r} begins with {GENERATED_ID}, which marks what controllers do",
                where=f"spec.operations[{operation.index}]",
            )
        if operation.id in seen:
            raise ScenarioError(
                f"id {operation.id!r} is used twice, at index {seen[operation.id]} and "
                f"{operation.index}: every operation needs its own",
                where="spec.operations",
            )
        seen[operation.id] = operation.index


def _check_advance_is_last(operations: Sequence[Operation]) -> None:
    for at_step in grouped(operations).values():
        played = [each for each in at_step if each.kind is not OperationKind.DONE]
        for operation in played[:-1]:
            if operation.kind is OperationKind.ADVANCE:
                raise ScenarioError(
                    "an advanceOperation must be the last operation of its step (before a done)",
                    where=f"spec.operations[{operation.index}] (id {operation.id!r})",
                )


def _check_time_lasts(operations: Sequence[Operation], now: int) -> None:
    for operation in operations:
        if operation.kind is OperationKind.ADVANCE:
            now += parse_duration(operation.body["duration"])
            if now > LAST_INSTANT:
                raise ScenarioError(
                    "time would go on after year 9999: let less of it pass, or start earlier",
                    where=f"spec.operations[{operation.index}] (id {operation.id!r})",
                )


def _controllers(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ScenarioError("must be an object", where="spec.controllers")
    simulated = _names(value.get("simulationControllers"), "simulationControllers", "enabled")
    key = "presimulationControllers"
    before = value.get(key, value.get("preSimulationControllers"))
    enabled = _names(before, key, "enabled")
    return {
        "simulation_controllers": tuple(simulated),
        "disabled": frozenset(_names(before, key, "disabled")),
        "presimulation_enabled": tuple(enabled) if enabled else None,
    }


def _names(value: Any, field_name: str, part: str) -> list[str]:
    where = f"spec.controllers.{field_name}"
    if not isinstance(value or {}, Mapping):
        raise ScenarioError("must be an object with enabled and disabled", where=where)
    items = (value or {}).get(part) or []
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise ScenarioError("must be a list such as [{name: replicaset}]", where=f"{where}.{part}")
    names = [item.get("name", item.get("Name")) for item in items]
    if not all(isinstance(name, str) and name for name in names):
        raise ScenarioError("every entry needs a name", where=f"{where}.{part}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ScenarioError(f"{', '.join(twice)} is named twice", where=f"{where}.{part}")
    return names
