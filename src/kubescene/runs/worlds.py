"""What those who play, serve and follow runs need of a world, beside what the engine needs.

`kubescene.cluster.ClusterWorld` is such a world. Only where worlds are made is it known by that
name: here it is `kubescene.scenario.world.World`, and each protocol adds what its users ask.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from kubescene.cluster.lending import Lending
from kubescene.cluster.options import ClusterOptions
from kubescene.control import Alarm, Crank, Slot
from kubescene.instruments import Instrument
from kubescene.registry import Registry
from kubescene.remedies.search import ForkableWorld
from kubescene.scenario.world import World
from kubescene.scheduler import SchedulerOptions
from kubescene.store import Store
from kubescene.usage.registry import UsageRegistry


class RunWorld(World, Protocol):
    """A world in which a run is staged, and whose objects others may follow."""

    @property
    def options(self) -> ClusterOptions: ...

    @property
    def registry(self) -> Registry: ...

    @property
    def store(self) -> Store: ...

    @property
    def alarm(self) -> Alarm:
        """Rings when a controller has work."""
        ...

    def observe(self, *instruments: Instrument) -> None:
        """Attach instruments, at any time."""
        ...


class LendableWorld(RunWorld, Protocol):
    """A world with a life of its own that scenarios borrow, one after the other."""

    @property
    def own_options(self) -> ClusterOptions:
        """Its settings, also while a scenario has borrowed it and brought its own."""
        ...

    @property
    def lending(self) -> Lending: ...

    def take_back(self) -> None:
        """Let the controllers go; time goes on from now at the world's own pace and settings."""
        ...


class ServedWorld(LendableWorld, Protocol):
    """A world that one thread turns while others ask."""

    def twin_maker(self) -> Callable[[], ForkableWorld]:
        """What makes a world of the same objects on any thread, for questions that take long."""
        ...

    @property
    def slots(self) -> Sequence[Slot]:
        """The controllers that run, in the order of their turns."""
        ...

    @property
    def usage(self) -> UsageRegistry:
        """Who says what pods do."""
        ...

    @property
    def scheduler_is_configurable(self) -> bool: ...

    def configure_scheduler(self, scheduler: SchedulerOptions) -> None:
        """From now on the scheduler is made with other options; one that runs is made anew."""
        ...

    def advancing(self, duration: str | int, crank: Crank) -> Iterator[None]:
        """Let time pass, moment by moment."""
        ...

    def reset(self) -> None:
        """Back to an empty cluster: objects, controllers, settings, time and names."""
        ...

    def count_objects(self) -> int: ...
