"""The last word before a write.

KEP-140 uses an admission webhook to stop outsiders and to move the minor step just before a
simulation controller's first write. This is that webhook, as a call: the scenario engine
installs a gate, and the registry asks it when everything else has been decided.
"""

from typing import Protocol

from kubescene.actors import Actor, Role
from kubescene.api.scheme import ResourceType


class WriteGate(Protocol):
    def role_of(self, actor: Actor) -> Role:
        """What the actor is in the scenario that runs now, whoever it was when it logged in."""
        ...

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        """Called once per write that will be made unless this raises. Never for a dry run."""
        ...


class OpenGate:
    """Lets everything through: the gate of a world without a scenario."""

    def role_of(self, actor: Actor) -> Role:
        return actor.role

    def before_write(
        self, actor: Actor, resource_type: ResourceType, subresource: str, name: str
    ) -> None:
        del actor, resource_type, subresource, name
