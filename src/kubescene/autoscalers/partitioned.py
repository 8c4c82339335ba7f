"""What plugins with a partition for each run have in common: who is told, and who is there."""

from abc import abstractmethod
from typing import Generic, Protocol, TypeVar

from kubescene.autoscalers.interfaces import (
    Autoscaler,
    AutoscalerPlugin,
    EventRequest,
    EventType,
    Pod,
    Stat,
    StatRequest,
)
from kubescene.errors import ConfigurationError


class RunPartition(Protocol):
    """What one run told a plugin."""

    def pod_event(self, request: EventRequest, pod: Pod) -> None:
        """A pod of the run came, changed or went."""

    def stat(self, stat: Stat) -> None:
        """Something was measured in the run."""


P = TypeVar("P", bound=RunPartition)


class PartitionedPlugin(AutoscalerPlugin, Generic[P]):
    """Any number of runs, each in a partition of its own.

    A plugin says how a partition is made of an autoscaler, and if it can, how one is changed.
    """

    def __init__(self) -> None:
        self._partitions: dict[str, P] = {}

    def event(self, request: EventRequest) -> None:
        if isinstance(request.object, Autoscaler):
            self._autoscaler_event(request, request.object)
        else:
            self._partition(request.partition).pod_event(request, request.object)

    def stat(self, request: StatRequest) -> None:
        partition = self._partition(request.partition)
        for stat in request.stat:
            partition.stat(stat)

    @abstractmethod
    def _created(self, autoscaler: Autoscaler) -> P:
        """The partition of a new run."""

    def _changed(self, partition: P, autoscaler: Autoscaler) -> None:
        del partition, autoscaler
        raise ConfigurationError("an autoscaler cannot be changed while it runs")

    def _partition(self, name: str) -> P:
        try:
            return self._partitions[name]
        except KeyError:
            raise ConfigurationError(f"no autoscaler was created in partition {name!r}") from None

    def _autoscaler_event(self, request: EventRequest, autoscaler: Autoscaler) -> None:
        name = request.partition
        if request.type is EventType.CREATE:
            if name in self._partitions:
                raise ConfigurationError(f"partition {name!r} has an autoscaler already")
            self._partitions[name] = self._created(autoscaler)
            return
        partition = self._partition(name)
        if request.type is EventType.UPDATE:
            self._changed(partition, autoscaler)
        else:
            del self._partitions[name]
