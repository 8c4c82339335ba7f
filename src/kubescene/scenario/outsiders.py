"""Who may write while a scenario has the world to itself."""

from collections.abc import Collection

from kubescene.actors import Actor, Role
from kubescene.api.gates import role_without_scenario
from kubescene.api.kinds import BOOKKEEPING, SCENARIO
from kubescene.api.scheme import ResourceType
from kubescene.errors import ForbiddenError
from kubescene.scenario.phases import ScenarioPhase
from kubescene.scenario.world import LiveScenario


class Frozen:
    """The gate after a run: a paused scenario still keeps outsiders away.

    ``outside`` were its controllers in other programs: what they write after its end would change
    what it has left behind. That they are there they may say at any time.
    """

    def __init__(self, scenario: LiveScenario, outside: Collection[str] = ()) -> None:
        self._scenario = scenario
        self._outside = outside

    def role_of(self, actor: Actor) -> Role:
        return role_without_scenario(actor)

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        del subresource
        paused = self._scenario.phase is ScenarioPhase.PAUSED
        if actor.name in self._outside:
            if resource_type.group_resource in BOOKKEEPING:
                return
            if not paused:
                raise too_late(self._scenario.name, actor)
        if not actor.inside and paused and self._scenario.exists:
            refuse_outsider(self._scenario, actor, resource_type, name)


def too_late(scenario: str, actor: Actor) -> ForbiddenError:
    return ForbiddenError(
        f'scenario "{scenario}" is over: what {actor.name}, one of its controllers, wants to write '
        "came too late"
    )


def refuse_outsider(
    scenario: LiveScenario, actor: Actor, resource_type: ResourceType, name: str
) -> None:
    """While a scenario runs only Scenarios themselves may be written by anybody else."""
    if resource_type.gvk == SCENARIO:
        return
    raise ForbiddenError(
        f'{resource_type.named_resource} "{name}" is forbidden: scenario "{scenario.name}" is '
        f"{scenario.phase}, and {actor.name} is not one of its controllers; "
        "wait until it ends or delete it",
        name=name,
        group=resource_type.gvk.group,
        kind=resource_type.plural,
    )
