"""Who writes. Every write carries an `Actor`; what it means in a scenario is its `Role` there.

A write by a *simulation* controller moves the minor step; the same write by a *presimulation*
controller is part of settling; the *engine* plays the scenario's operations; a *user* is
everybody outside, who may not write while a scenario runs. An actor does not know its role: the
gate does (`kubescene.api.gates`), which knows whom the scenario has called.
"""

from enum import StrEnum

from msgspec import Struct


class Role(StrEnum):
    """What an actor is in a scenario."""

    ENGINE = "engine"
    SIMULATION = "simulation"
    PRESIMULATION = "presimulation"
    USER = "user"


class Component(StrEnum):
    """What part of a cluster an actor is, in whatever scenario."""

    ENGINE = "engine"
    SCHEDULER = "scheduler"
    """Its writes to a pod's status are scheduling attempts, told as such."""
    KUBELET = "kubelet"
    """Its writes of a status are the cluster breathing, not part of the story."""
    CONTROLLER = "controller"
    CLIENT = "client"
    """Whoever speaks to the API: people, tools, programs of which no more is known."""


class Actor(Struct, frozen=True):
    """Name and kind of component; the field manager defaults to the name."""

    name: str
    component: Component = Component.CLIENT
    field_manager: str = ""
    inside: bool = False
    """Whether the world itself made it; all others come from outside, whatever they are called."""
    groups: tuple[str, ...] = ()
    """Those of a client, by which an API server may know what it is allowed to do."""
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What else is known of a client, such as the pod that its token is bound to."""

    @property
    def manager(self) -> str:
        return self.field_manager or self.name

    def __str__(self) -> str:
        return self.name


ENGINE = Actor("scenario-engine", Component.ENGINE, inside=True)
