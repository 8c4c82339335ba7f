"""Whose time an object carries.

The world lives on its own clock, which a scenario may let stand still or jump. Scenarios and Leases
belong to the server and its clients: they are dated by the server's clock.
"""

from kubescene.api.kinds import LEASE, SCENARIO
from kubescene.api.scheme import ResourceType
from kubescene.clock import Clock, format_time

OF_THE_SERVER = frozenset({(LEASE.group, LEASE.kind), (SCENARIO.group, SCENARIO.kind)})


class Clocks:
    """The two clocks of a served world; elsewhere both are one."""

    __slots__ = ("server", "world")

    def __init__(self, world: Clock, server: Clock | None = None) -> None:
        self.world = world
        self.server = world if server is None else server

    @property
    def is_one(self) -> bool:
        """Whether the server has no clock of its own."""
        return self.server is self.world

    def seen_at(self, resource_type: ResourceType, created: str) -> int:
        """The instant from which the age of an object is counted.

        What was kept from another time than a scenario's may be younger than the world. Then it is
        as old as the server says.
        """
        now = self.of(resource_type).now()
        return now if created <= format_time(now) else max(now, self.server.now())

    def of(self, resource_type: ResourceType) -> Clock:
        group, _, kind = resource_type.gvk
        return self.server if (group, kind) in OF_THE_SERVER else self.world
