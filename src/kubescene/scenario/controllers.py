"""Whether those exist whom a scenario wants to see play."""

from collections.abc import Iterable

from kubescene.errors import ScenarioError
from kubescene.scenario.spec import ScenarioSpec


def check_controllers(spec: ScenarioSpec, registered: Iterable[str]) -> None:
    """Raise `ScenarioError` for a controller that nobody registered, or if none is simulated."""
    known = list(registered)
    listed = f"registered are: {', '.join(known)}"
    simulated, before = "simulationControllers.enabled", "presimulationControllers"
    named = {
        simulated: spec.simulation_controllers,
        f"{before}.enabled": spec.presimulation_enabled or (),
        f"{before}.disabled": sorted(spec.disabled - {"*"}),
    }
    if not named[simulated]:
        raise ScenarioError(
            f"at least one controller is needed; {listed}",
            where=f"spec.controllers.{simulated}",
            path=("spec", "controllers", *simulated.split(".")),
        )
    for field, names in named.items():
        for name in names:
            if name not in known:
                raise ScenarioError(
                    f"no controller is named {name!r}; {listed}",
                    where=f"spec.controllers.{field}",
                    path=("spec", "controllers", *field.split(".")),
                )
