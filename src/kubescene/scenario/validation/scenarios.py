"""All that is wrong with a scenario, found before anything is touched.

First its form, by the table of fields; then what a table cannot say, for those parts whose form is
right. The engine and ``kubescene validate`` ask the same question: the one stops at the first
answer, the other lists them all.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubescene.clock import LAST_INSTANT, parse_duration
from kubescene.clock.clocks import DEFAULT_START
from kubescene.errors import ScenarioError
from kubescene.scenario.fields.table import SCENARIO_FIELDS
from kubescene.scenario.reading.alike import SharedBody
from kubescene.scenario.reading.object_files import ScenarioFolder
from kubescene.scenario.reading.operation_list import OperationList, assigned_ids, operations_of
from kubescene.scenario.simulation import parse_simulation, simulation_faults
from kubescene.scenario.validation.controllers import controller_faults
from kubescene.scenario.validation.faults import Fault, Step, misfits, spelled
from kubescene.scenario.validation.fitting import fits, scenario_shape
from kubescene.scenario.validation.operations import BODIES, OPTIONS, operation_faults
from kubescene.timeline.facts import GENERATED_ID

LENIENT = ("Warn", "Ignore")
OPTION_NAMES = frozenset(OPTIONS)
OF_AN_INSTANCE = re.compile(r"\[\d+\]$")


def find_faults(
    scenario: Mapping[str, Any],
    folder: ScenarioFolder | None = None,
    listed: OperationList | None = None,
) -> Iterator[Fault]:
    """Every fault of a Scenario; ``folder`` is where ``objectFrom`` may read.

    ``listed`` are its operations, if somebody has looked at them already.
    """
    operations = OperationList.of(scenario) if listed is None else listed
    for fault in _faults(scenario, folder, operations):
        yield _placed(fault, operations.ids)


def tolerated(scenario: Mapping[str, Any]) -> Iterator[Fault]:
    """Unknown fields of operations that say ``fieldValidation: Warn``, of a sound scenario."""
    _, items = operations_of(scenario)
    if not any(map(_has_options, items)):
        return
    ids = assigned_ids(items)
    for fault in misfits(scenario, SCENARIO_FIELDS):
        if fault.unknown and _validation_at(scenario, fault.path) == "Warn":
            yield _placed(fault, ids)


# -- form --------------------------------------------------------------------------------------


def _faults(
    scenario: Mapping[str, Any], folder: ScenarioFolder | None, operations: OperationList
) -> Iterator[Fault]:
    malformed = []
    at_a_glance = fits(operations.sampled(scenario), scenario_shape())
    for fault in () if at_a_glance else misfits(scenario, SCENARIO_FIELDS):
        if fault.unknown and _validation_at(scenario, fault.path) in LENIENT:
            continue
        malformed.append(fault)
        yield fault
    if not isinstance(scenario.get("spec"), Mapping):
        return
    places = {fault.path[:3] for fault in malformed}
    yield from _spec_faults(scenario["spec"], folder, operations, places)


def _validation_at(scenario: Mapping[str, Any], path: tuple[Step, ...]) -> str:
    """What the operation that a path leads into says about unknown fields."""
    name, items = operations_of(scenario)
    if path[:2] != ("spec", name) or len(path) < 3 or not isinstance(path[2], int):
        return "Strict"
    return _validation_of(items[path[2]])


def _has_options(item: Mapping[str, Any]) -> bool:
    for body in item.values():
        if isinstance(body, dict) and not OPTION_NAMES.isdisjoint(body):
            return True
    return False


def _validation_of(item: Any) -> str:
    for body in _mappings(item, BODIES):
        for options in _mappings(body, OPTIONS):
            if options.get("fieldValidation"):
                return str(options["fieldValidation"])
    return "Strict"


def _mappings(value: Any, names: Iterable[str]) -> list[Mapping[str, Any]]:
    """Those members of a value that are objects."""
    members = [value.get(name) for name in names] if isinstance(value, Mapping) else []
    return [member for member in members if isinstance(member, Mapping)]


def _placed(fault: Fault, ids: Sequence[str]) -> Fault:
    """A fault whose place names the operation, not only its number."""
    path = fault.path
    if len(path) < 3 or path[1] not in ("operations", "events") or not isinstance(path[2], int):
        return fault
    rest = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in path[3:])
    named = f" (id {ids[path[2]]!r})" if path[2] < len(ids) else ""
    return Fault(
        path, fault.message, fault.of_name, fault.unknown, f"{spelled(path[:3])}{named}{rest}"
    )


# -- what a table cannot say -------------------------------------------------------------------


def _spec_faults(
    spec: Mapping[str, Any],
    folder: ScenarioFolder | None,
    operations: OperationList,
    malformed: set[tuple[Step, ...]],
) -> Iterator[Fault]:
    name, items = operations.field, operations.items
    if spec.get("operations") and spec.get("events"):
        yield Fault(("spec", "events"), "operations and events are both set: keep one of them")
    start = DEFAULT_START
    if not any(path[:2] == ("spec", "simulation") for path in malformed):
        try:
            start = parse_simulation(spec.get("simulation")).start or start
        except ScenarioError:
            for error in simulation_faults(spec["simulation"]):
                yield Fault(error.path or ("spec", "simulation"), error.message, where=error.where)
    if not any(path[:2] == ("spec", "controllers") for path in malformed):
        yield from controller_faults(spec)
    sound = []
    harmless: set[SharedBody] = set()
    for index, (item, shared) in enumerate(zip(items, operations.shared_bodies, strict=True)):
        if shared in harmless:
            continue
        place = ("spec", name, index)
        if place in malformed or not isinstance(item, Mapping):
            continue
        found = list(operation_faults(item, folder, draft=name == "events"))
        yield from (fault.under(*place) for fault in found)
        if not found:
            sound.append(index)
            if shared is not None:
                harmless.add(shared)
    yield from (fault.under("spec", name) for fault in _id_faults(operations.ids))
    yield from (fault.under("spec", name) for fault in _time_faults(items, sound, start))
    if not any(path[:2] == ("spec", "expectations") for path in malformed):
        yield from (fault.under("spec", "expectations") for fault in _twins(spec))


def _twins(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Expectations of the same name: nobody could tell which one does not hold."""
    seen: dict[str, int] = {}
    for index, each in enumerate(spec.get("expectations") or ()):
        name = each["name"]
        if name in seen:
            message = f"the name {name!r} is used twice, at index {seen[name]} and {index}"
            yield Fault((index, "name"), f"{message}: every expectation needs its own")
        seen.setdefault(name, index)


def _id_faults(ids: Sequence[str]) -> Iterator[Fault]:
    texts = "".join(ids)
    if len({*ids}) == len(ids) and GENERATED_ID not in texts and "]" not in texts:
        return
    seen: dict[str, int] = {}
    for index, name in enumerate(ids):
        if name.startswith(GENERATED_ID):
            message = f"id {name!r} begins with {GENERATED_ID}, which marks what controllers do"
            yield Fault((index, "id"), message)
        elif OF_AN_INSTANCE.search(name):
            message = f"id {name!r} ends as those of the objects of one operation do"
            yield Fault((index, "id"), f"{message}: choose another")
        if name in seen:
            yield Fault(
                (index, "id"),
                f"id {name!r} is used twice, at index {seen[name]} and {index}: "
                "every operation needs its own",
            )
        seen.setdefault(name, index)


def _time_faults(items: Sequence[Any], sound: Sequence[int], now: int) -> Iterator[Fault]:
    """Advance operations that are not the last of their step, or lead past the last year."""
    advances = [index for index in sound if items[index].get("advanceOperation") is not None]
    if not advances:
        return
    last: dict[int, int] = {}
    for index, item in enumerate(items):
        step = item.get("step") if isinstance(item, Mapping) else None
        if isinstance(step, int) and item.get("doneOperation") is None:
            last[step] = index
    for index in advances:
        item = items[index]
        if last.get(item["step"]) != index:
            message = "an advanceOperation must be the last operation of its step (before a done)"
            yield Fault((index,), message)
        now += parse_duration(item["advanceOperation"]["duration"])
        if now > LAST_INSTANT:
            message = "time would go on after year 9999: let less of it pass, or start earlier"
            yield Fault((index,), message)
