"""What is wrong with who plays: ``spec.controllers``, beyond its form."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kubescene.actors import ENGINE
from kubescene.scenario.outside import (
    OutsideKind,
    duration_of,
    entries_of,
    scheduler_names_of,
)
from kubescene.scenario.validation.faults import Fault, Step, spelled

OUTSIDE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A label of a host name: it is a part of a URL."""
OF_SCHEDULERS = ("schedulerName", "schedulerNames", "feed")
OUTSIDE: tuple[Step, ...] = ("spec", "controllers", "outside")


def controller_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Of a spec whose ``controllers`` have the right form."""
    yield from (fault.under("spec", "controllers") for fault in _list_faults(spec))
    names = controller_names(spec)
    yield from outside_faults(
        spec,
        names["simulationControllers", "enabled"],
        names["presimulationControllers", "enabled"],
        names["presimulationControllers", "disabled"],
    )


def _list_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Who is named twice, or in lists that exclude each other."""
    names = controller_names(spec)
    for (group, part), listed in names.items():
        if twice := sorted({name for name in listed if listed.count(name) > 1}):
            yield Fault((group, part), f"{', '.join(twice)} is named twice")
    simulated, before = "simulationControllers", "presimulationControllers"
    for name in names[simulated, "enabled"]:
        if name in names[before, "enabled"]:
            message = f"{name} is a simulation controller, too: it can be one of them only"
            yield Fault((before, "enabled"), message)
    for group in (simulated, before):
        for name in names[group, "enabled"]:
            if name in names[group, "disabled"]:
                yield Fault((group, "disabled"), f"{name} is enabled, too")


def controller_names(spec: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Who is named in ``spec.controllers``, by group and part."""
    given = spec.get("controllers") or {}
    groups = {
        "simulationControllers": given.get("simulationControllers"),
        "presimulationControllers": given.get(
            "presimulationControllers", given.get("preSimulationControllers")
        ),
    }
    return {
        (group, part): [
            str(each.get("name") or each.get("Name")) for each in (value or {}).get(part) or ()
        ]
        for group, value in groups.items()
        for part in ("enabled", "disabled")
    }


def outside_faults(
    spec: Mapping[str, Any],
    simulated: Sequence[str],
    before: Sequence[str],
    disabled: Sequence[str],
) -> Iterator[Fault]:
    """All that is wrong with entries whose form is right.

    ``simulated``, ``before`` and ``disabled`` are the names that the other lists have.
    """
    names: dict[str, int] = {}
    schedulers: dict[str, str] = {}
    for index, entry in enumerate(entries_of(spec)):
        name = entry["name"]
        found = list(_entry_faults(entry, simulated))
        if name in names:
            message = f"the name {name!r} is used twice, at index {names[name]} and {index}"
            found.append(Fault(("name",), f"{message}: every controller needs its own"))
        elif "*" in disabled and name not in (*simulated, *before, *disabled):
            found.append(Fault(("name",), _never_plays(name)))
        names.setdefault(name, index)
        if entry.get("kind") == OutsideKind.SCHEDULER:
            found += _rivals(entry, schedulers)
        yield from (_placed(fault, index, name) for fault in found)


def _placed(fault: Fault, index: int, name: str) -> Fault:
    """A fault whose place names the controller, not only its number."""
    place = (*OUTSIDE, index)
    steps = fault.path[:-1] if isinstance(fault.path[-1], int) else fault.path
    inside = f".{spelled(steps)}"
    return replace(fault.under(*place), where=f"{spelled(place)} (name {name!r}){inside}")


def _never_plays(name: str) -> str:
    return (
        f"{name!r} would never have a turn, since presimulationControllers.disabled has '*': name "
        "it in simulationControllers.enabled or presimulationControllers.enabled, or leave it out"
    )


def _rivals(entry: Mapping[str, Any], known: dict[str, str]) -> Iterator[Fault]:
    """Two schedulers with the same pods: which of them takes one would be chance."""
    name, names = entry["name"], scheduler_names_of(entry)
    field = "schedulerNames" if entry.get("schedulerNames") else "schedulerName"
    if entry.get("schedulerNames") and entry.get("schedulerName"):
        yield Fault(("schedulerName",), "schedulerNames is set, too: keep one of them")
    for given in names:
        first = known.setdefault(given, name)
        if first != name:
            message = f"pods of {given!r} belong to {first!r} already"
            yield Fault((field,), f"{message}: give it another schedulerName")
    if len(set(names)) < len(names):
        yield Fault((field,), f"a name is there twice: {', '.join(names)}")


def _entry_faults(entry: Mapping[str, Any], simulated: Sequence[str]) -> Iterator[Fault]:
    name, kind = entry["name"], entry.get("kind") or OutsideKind.OPERATOR
    if not OUTSIDE_NAME.fullmatch(name):
        message = "must be at most 63 lower case letters, digits and '-', as it is part of a URL"
        yield Fault(("name",), f"{message}; not {name!r}")
    if name == ENGINE.name:
        yield Fault(("name",), f"{name!r} is whoever plays the scenario: choose another name")
    if kind != OutsideKind.SCHEDULER:
        for field in OF_SCHEDULERS:
            if entry.get(field) is not None:
                yield Fault((field,), f"only a scheduler has it, and kind is {kind}", of_name=True)
    if kind == OutsideKind.BAG and name in simulated:
        yield Fault(
            ("kind",),
            "a bag cannot be a simulation controller, as its loops cannot be told apart: "
            "leave it out of simulationControllers, so that it reacts before the simulation",
        )
    for field in ("timeout", "attachTimeout"):
        yield from _duration_faults(entry, field)
    if entry.get("waiter") is not None:
        yield from (fault.under("waiter") for fault in _waiter_faults(entry["waiter"]))


def _duration_faults(given: Mapping[str, Any], field: str) -> Iterator[Fault]:
    try:
        if duration_of(given, field) == 0:
            yield Fault((field,), f"must be longer than zero, such as 30s, not {given[field]!r}")
    except ValueError as error:
        yield Fault((field,), str(error))


def _waiter_faults(waiter: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _duration_faults(waiter, "quietPeriod")
    conditions = waiter.get("conditions") or ()
    if waiter.get("name") and conditions:
        yield Fault(("conditions",), "name and conditions are two waiters: keep one of them")
    elif not waiter.get("name") and not conditions and waiter.get("quietPeriod") is None:
        yield Fault((), "needs one of name, conditions, quietPeriod")
    for index, condition in enumerate(conditions):
        place: tuple[Step, ...] = ("conditions", index, "expression")
        for offset, problem in _expression_problems(condition["expression"]):
            yield Fault((*place, offset), problem)


def _expression_problems(text: str) -> Iterator[tuple[int, str]]:
    # The expression language is loaded by those only who use it.
    from kubescene.cel import BOOL, DYN, list_of
    from kubescene.cel.problems import problems

    return problems(text, BOOL, {"object": DYN, "objects": list_of(DYN)})
