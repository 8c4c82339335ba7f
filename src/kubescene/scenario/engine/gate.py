"""The gate of a world while a scenario runs.

It moves the minor step just before a simulation controller's first counting write of a loop, and
turns outsiders away.
"""

from collections import Counter

from kubescene.actors import Actor, Role
from kubescene.api.gates import role_without_scenario
from kubescene.api.scheme import ResourceType
from kubescene.errors import ScenarioError
from kubescene.scenario.engine.participants import Participants
from kubescene.scenario.engine.script import Script
from kubescene.scenario.engine.telling import Telling
from kubescene.scenario.outsiders import refuse_outsider
from kubescene.scenario.phases import StepPhase
from kubescene.scenario.world import LiveScenario
from kubescene.timeline.significance import is_significant

OPERATING, CONTROLLER_PAUSED = StepPhase.OPERATING, StepPhase.CONTROLLER_PAUSED
SIMULATION, PRESIMULATION = Role.SIMULATION, Role.PRESIMULATION
ENGINE, USER = Role.ENGINE, Role.USER


class StepGate:
    """A `WriteGate`."""

    def __init__(
        self, scenario: LiveScenario, script: Script, participants: Participants, telling: Telling
    ) -> None:
        self.has_counted = False
        """Whether the present loop has moved the minor step."""
        self._scenario = scenario
        self._script = script
        self._participants = participants
        self._telling = telling
        self._writes: Counter[str] | None = None

    def role_of(self, actor: Actor) -> Role:
        if not actor.inside and actor.name not in self._participants.outside:
            # Somebody outside who calls himself like a controller of ours is not that one.
            return USER
        role = self._participants.roles.get(actor.name)
        return role_without_scenario(actor) if role is None else role

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        role = self.role_of(actor)
        if self._writes is not None and role in (SIMULATION, PRESIMULATION):
            self._writes[actor.name] += 1
        if role is SIMULATION:
            resource = resource_type.group_resource
            if not self.has_counted and is_significant(actor, resource, subresource):
                self._move_step()
        elif role is ENGINE:
            if self._scenario.step_phase not in (None, OPERATING):
                # An operation that was begun earlier goes on.
                self._telling.enter(OPERATING, controller="")
        elif role is USER:
            refuse_outsider(self._scenario, actor, resource_type, name)

    def _move_step(self) -> None:
        self.has_counted = True
        step = self._scenario.step.next_minor()
        limit = self._script.spec.simulation.max_minor_steps
        if step.minor > limit:
            raise ScenarioError(
                f"more than {limit} minor steps; {self._busy_writers()}; "
                "raise spec.simulation.maxMinorSteps if that is meant",
                where=f"step {step}",
            )
        self._telling.enter(CONTROLLER_PAUSED, step=step)

    # -- who goes on and on ------------------------------------------------------------------------

    def begin_step(self) -> None:
        self._writes = None

    def uncounted(self, turns: int) -> int:
        """After how many more turns and minor steps somebody looks who goes on and on."""
        limit = self._script.spec.simulation.max_minor_steps // 2
        return 0 if self._writes is not None else limit - max(turns, self._scenario.step.minor)

    def check_turns(self, turns: int) -> None:
        """Failed attempts move no step: controllers could go on with their conditions forever."""
        limit = self._script.spec.simulation.max_minor_steps
        if turns <= limit // 2 and self._scenario.step.minor <= limit // 2:
            return
        most = (limit + 1) * len(self._participants.simulation)
        if self._writes is None and (turns > most // 2 or self._scenario.step.minor > limit // 2):
            # Who writes in the second half is who keeps writing.
            self._writes = Counter()
        if turns > most:
            raise ScenarioError(
                f"the controllers had {turns} turns, more than {limit} minor steps "
                f"(spec.simulation.maxMinorSteps) can cause; {self._busy_writers()}",
                where=f"step {self._scenario.step}",
            )

    def _busy_writers(self) -> str:
        writes = self._writes or Counter({self._scenario.controller: 1})
        return f"still writing: {', '.join(f'{name} ({n})' for name, n in writes.most_common())}"
