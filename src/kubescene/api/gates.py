"""The last word before a write.

KEP-140 uses an admission webhook to stop outsiders and to move the minor step just before a
simulation controller's first write. This is that webhook, as a call: the scenario engine
installs a gate, and the registry asks it when everything else has been decided.
"""

from typing import Protocol

from kubescene.actors import Actor, Component, Role
from kubescene.api.scheme import ResourceType


class WriteGate(Protocol):
    def role_of(self, actor: Actor) -> Role:
        """What the actor is in the scenario that runs now."""
        ...

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        """Called once per write that will be made unless this raises. Never for a dry run."""
        ...


def role_without_scenario(actor: Actor) -> Role:
    """What an actor is where no scenario has called anybody: controllers only settle."""
    if not actor.inside:
        return Role.USER
    return Role.ENGINE if actor.component is Component.ENGINE else Role.PRESIMULATION


class OpenGate:
    """Lets everything through: the gate of a world without a scenario."""

    def role_of(self, actor: Actor) -> Role:
        return role_without_scenario(actor)

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        del actor, resource_type, subresource, name
