"""Replicas, and where they live: `ReplicaBackend`.

The world decides how many replicas there should be and how large; a backend makes it so and tells
its listener what became of it. The simulated one is in `in_memory_replicas`; a backend of pods in a
store has the same verbs.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from kubescene.traffic.world.entities import Entity, EntityKind
from kubescene.traffic.world.movements import Movement


class ReplicaSize(NamedTuple):
    """What a replica requests: millicores and bytes."""

    cpu: int
    memory: int = 0


class Replica(Entity):
    """One copy of the service, from its launch to its end; instants are -1 until they come."""

    __slots__ = (
        "activated_at",
        "cpu_before",
        "deactivated_at",
        "doomed",
        "drained_at",
        "launch",
        "launched_at",
        "replacement",
        "replaces",
        "resized_at",
        "restart_delay",
        "restarting",
        "restarts",
        "size",
        "terminated_at",
    )

    def __init__(self, number: int, size: ReplicaSize, now: int) -> None:
        super().__init__(EntityKind.REPLICA, number)
        self.size = size
        self.launched_at = now
        self.activated_at = self.deactivated_at = self.terminated_at = -1
        self.drained_at = self.resized_at = now
        self.cpu_before = 0
        """What was reserved until its last resize, in millicore-nanoseconds."""
        self.launch: Movement | None = None
        self.doomed = False
        self.restarting = False
        self.restarts = self.restart_delay = 0
        self.replaces: Replica | None = None
        self.replacement: Replica | None = None


class ReplicaListener(Protocol):
    """Who wants to know what becomes of replicas."""

    def launched(self, replica: Replica) -> None: ...

    def activated(self, replica: Replica) -> None: ...

    def deactivated(self, replica: Replica) -> int:
        """It takes no more requests; answers when the last one inside is gone."""
        ...

    def cancelled(self, replica: Replica) -> None:
        """It was launched and will never be active, or not again."""
        ...

    def killed(self, replica: Replica) -> None:
        """It ended at once, with all that is inside, and starts again."""
        ...

    def resized(self, replica: Replica) -> None: ...

    def counted(self) -> None:
        """The number of replicas in some state has changed."""
        ...


class ReplicaBackend(Protocol):
    """Where replicas live. Verbs take effect at the environment's present instant."""

    def begin(self, replicas: int) -> None:
        """The replicas that a run starts with: active at once."""
        ...

    def scale(self, replicas: int) -> None:
        """So many there should be."""
        ...

    def admit(self, size: ReplicaSize) -> None:
        """Replicas that are made from now on have this size."""
        ...

    def evict(self, replicas: Iterable[Replica], *, surge: bool) -> None:
        """Replace these by new ones; with ``surge`` the new one is active before the old leaves."""
        ...

    def resize(self, replicas: Iterable[Replica], size: ReplicaSize) -> None:
        """Change the size of these in place."""
        ...

    def restart(self, replica: Replica, instant: int, delay: int) -> None:
        """It is killed then and starts again, as a container does in its pod, ``delay`` later."""
        ...

    @property
    def desired(self) -> int: ...

    @property
    def active(self) -> Sequence[Replica]: ...


class ReplicaVictims(StrEnum):
    """Who goes first when there are too many. Those that are still launching always do."""

    OLDEST = "oldest"
    NEWEST = "newest"
