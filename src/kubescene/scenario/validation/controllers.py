"""What is wrong with who plays: ``spec.controllers``, beyond its form."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubescene.scenario.outside import entries_of
from kubescene.scenario.validation.faults import Fault


def controller_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    """Of a spec whose ``controllers`` have the right form."""
    yield from (fault.under("spec", "controllers") for fault in _list_faults(spec))
    yield from _outside_faults(spec)


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


def _outside_faults(spec: Mapping[str, Any]) -> Iterable[Fault]:
    if not entries_of(spec):
        return ()
    from kubescene.scenario.validation.outside import outside_faults

    names = controller_names(spec)
    return outside_faults(
        spec,
        names["simulationControllers", "enabled"],
        names["presimulationControllers", "enabled"],
        names["presimulationControllers", "disabled"],
    )


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
