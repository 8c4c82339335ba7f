"""Whether those exist whom a scenario wants to see play."""

from collections.abc import Iterable, Iterator

from kubescene.controllers.registrations import ControllerRegistrations
from kubescene.errors import ScenarioError
from kubescene.scenario.outside import OutsideKind
from kubescene.scenario.spec import ScenarioSpec

SCHEDULER = "kube-scheduler"


def check_controllers(spec: ScenarioSpec, registered: Iterable[str]) -> None:
    """Raise `ScenarioError` for a controller that nobody knows, or if none is simulated."""
    for error in missing_controllers(spec, registered):
        raise error


def missing_controllers(spec: ScenarioSpec, registered: Iterable[str]) -> Iterator[ScenarioError]:
    """All that is wrong with the names of who plays."""
    left_out = registered.left_out if isinstance(registered, ControllerRegistrations) else ()
    known = spec.known_controllers(registered)
    listed = f"registered are: {', '.join(known)}"
    simulated, before = "simulationControllers.enabled", "presimulationControllers"
    named = {
        simulated: spec.simulation_controllers,
        f"{before}.enabled": spec.presimulation_enabled or (),
        f"{before}.disabled": sorted(spec.disabled - {"*"}),
    }
    if not named[simulated]:
        yield _misnamed(simulated, f"at least one controller is needed; {listed}")
    for field, names in named.items():
        for name in names:
            if name in known or (name in left_out and field.endswith("disabled")):
                continue
            if name in left_out:
                what = f"{name} was left out of this world: let a program of that name in "
                where = "controllers.outside take its place, or name another one"
                yield _misnamed(field, f"{what}{where}; {listed}")
                continue
            yield _misnamed(field, f"no controller is named {name!r}; {listed}")


def _misnamed(field: str, message: str) -> ScenarioError:
    path = ("spec", "controllers", *field.split("."))
    return ScenarioError(message, where=f"spec.controllers.{field}", path=path)


def check_schedulers(spec: ScenarioSpec, registered: Iterable[str], ours: Iterable[str]) -> None:
    """Raise `ScenarioError` if a scheduler outside has the pods of one of ours that plays too.

    ``ours`` are the scheduler names that the scheduler of this process answers to.
    """
    profiles = set(ours)
    playing = {*spec.presimulation_controllers(list(registered)), *spec.simulation_controllers}
    if SCHEDULER not in playing or any(each.name == SCHEDULER for each in spec.outside):
        return
    for index, each in enumerate(spec.outside):
        shared = profiles.intersection(each.scheduler_names)
        if each.kind is OutsideKind.SCHEDULER and shared:
            raise ScenarioError(
                f"pods of {min(shared)!r} are bound by the {SCHEDULER} of this process "
                f"too, which plays: give {each.name!r} the name {SCHEDULER} or another "
                f"schedulerName, or put {SCHEDULER} into presimulationControllers.disabled",
                where=f"spec.controllers.outside[{index}] (name {each.name!r})",
                path=("spec", "controllers", "outside", index),
            )


def refuse_outside(spec: ScenarioSpec) -> None:
    """Raise `ScenarioError` if the spec has controllers outside: nobody gives them turns here."""
    playing = [each.name for each in spec.outside if each.name not in spec.disabled]
    if playing:
        raise ScenarioError(
            f"controllers.outside needs a server that gives {', '.join(playing)} turns: play the "
            "scenario with `kubescene run FILE --server URL`, or start the program with "
            '`kubescene run FILE --outside NAME="command"`',
            where="spec.controllers.outside",
            path=("spec", "controllers", "outside"),
        )
