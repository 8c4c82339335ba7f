"""Who takes part in a scenario: controllers of ours, and programs outside that have turns."""

from collections.abc import Iterator, Sequence
from itertools import chain

from kubescene.actors import Role
from kubescene.control import Slot
from kubescene.scenario.spec import ScenarioSpec
from kubescene.scenario.validation.registered import check_controllers, refuse_outside
from kubescene.scenario.world import Stage, World


class Participants:
    """The slots of a scenario, by what they are in it. Nobody before `enter`."""

    def __init__(self, world: World, stage: Stage | None) -> None:
        self.simulation: Sequence[Slot] = ()
        self.presimulation: Sequence[Slot] = ()
        self.beside: Sequence[Slot] = ()
        """Programs outside that are pre-simulation controllers."""
        self.outside: frozenset[str] = frozenset()
        self.roles: dict[str, Role] = {}
        self._world = world
        self._stage = stage

    def check(self, spec: ScenarioSpec) -> None:
        """Raise `ScenarioError` for a controller that nobody has."""
        check_controllers(spec, self._world.registrations)

    def check_outside(self, spec: ScenarioSpec) -> None:
        """Raise `ScenarioError` for a program that nobody could judge."""
        if self._stage is None:
            refuse_outside(spec)
        else:
            self._stage.check(spec.outside)

    def enter(self, spec: ScenarioSpec) -> None:
        """All whom the scenario names, in its order."""
        names = spec.presimulation_controllers(list(self._world.registrations))
        simulated = spec.simulation_controllers
        self.outside = frozenset(each.name for each in spec.outside)
        self.roles = dict.fromkeys(names, Role.PRESIMULATION)
        self.roles |= dict.fromkeys(simulated, Role.SIMULATION)
        self.presimulation, self.beside = self._start(spec, names)
        inside, beside = self._start(spec, simulated)
        slots = {slot.name: slot for slot in chain(inside, beside)}
        self.simulation = [slots[name] for name in simulated]

    def _start(
        self, spec: ScenarioSpec, names: Sequence[str]
    ) -> tuple[Sequence[Slot], Sequence[Slot]]:
        """Controllers of ours, made anew, and programs outside, which are there or will come."""
        inside = self._world.start([each for each in names if each not in self.outside])
        if self._stage is None:
            return inside, ()
        called = [each for each in spec.outside if each.name in names]
        return inside, [self._stage.enter(each) for each in called]

    def leave(self) -> None:
        """The scenario is over: who still holds it does not hold its controllers."""
        self.presimulation = self.beside = self.simulation = ()

    def begin_step(self) -> None:
        for slot in self._slots():
            slot.begin_step()

    def is_anybody_awake(self) -> bool:
        return any(slot.awake for slot in self._slots())

    def _slots(self) -> Iterator[Slot]:
        return chain(self.presimulation, self.beside, self.simulation)
