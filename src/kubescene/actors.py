"""Who writes. Every write carries an `Actor`, and its role decides what the write means.

A write by a *simulation* controller moves the minor step; the same write by a *presimulation*
controller is part of settling; the *engine* plays the scenario's operations; a *user* is
everybody outside, who may not write while a scenario runs. An actor carries the role it has when no
scenario runs; while one does, the gate says what the actor is in it.
"""

from enum import StrEnum

from msgspec import Struct


class Role(StrEnum):
    ENGINE = "engine"
    SIMULATION = "simulation"
    PRESIMULATION = "presimulation"
    USER = "user"


class Actor(Struct, frozen=True):
    """Name and role; the field manager defaults to the name.

    ``schedules``: its writes to a pod's status are scheduling attempts, told as such.
    ``is_kubelet``: its writes of a status are the cluster breathing, not part of the story.
    """

    name: str
    role: Role = Role.USER
    field_manager: str = ""
    schedules: bool = False
    is_kubelet: bool = False

    @property
    def manager(self) -> str:
        return self.field_manager or self.name

    def __str__(self) -> str:
        return self.name


ENGINE = Actor("scenario-engine", Role.ENGINE)
