"""What the cluster was at every instant of virtual time, and at the end of every major step.

One number for each column and instant, in arrays: a day in which 100,000 pods end has as many.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.results.states import Amounts


class Sample(NamedTuple):
    """The cluster from an instant on; ``most_...`` are the highest at any moment within it."""

    time: int
    step: int
    nodes: int
    nodes_ready: int
    pods_pending: int
    pods_bound: int
    cpu_requested: int
    cpu_allocatable: int
    memory_requested: int
    memory_allocatable: int
    most_pending: int
    most_cpu: int
    most_memory: int

    @property
    def still(self) -> "Sample":
        """The same, when its instant is over."""
        most = self.pods_pending, self.cpu_requested, self.memory_requested
        return Sample._make((*self[: -len(most)], *most))


WHAT_IT_WAS = slice(Sample._fields.index("nodes"), None)
"""All but when."""


class Instants:
    """Samples in their order; one that says the same as the one before is left out."""

    def __init__(self, columns: Sequence[Sequence[int]] | None = None) -> None:
        given = columns or [()] * len(Sample._fields)
        self._columns = [array("q", each) for each in given]
        self._last = Sample._make(each[-1] for each in self._columns) if len(self) else None
        self._pending = self._cpu = self._memory = 0

    def look(self, pending: int, requested: Amounts) -> None:
        """A moment is over."""
        self._pending = max(self._pending, pending)
        if (cpu := requested.get(CPU, 0)) > self._cpu:
            self._cpu = cpu
        if (memory := requested.get(MEMORY, 0)) > self._memory:
            self._memory = memory

    def add(
        self,
        when: tuple[int, int],
        nodes: tuple[int, int],
        pods: tuple[int, int],
        requested: Amounts,
        allocatable: Amounts,
    ) -> None:
        """Time goes on, or a step is over: until now it was like that since ``when``.

        ``nodes`` are how many there are and how many are ready, ``pods`` those that are pending and
        those that are bound.
        """
        pending, cpu, memory = pods[0], requested.get(CPU, 0), requested.get(MEMORY, 0)
        offered = allocatable.get(CPU, 0), allocatable.get(MEMORY, 0)
        self.look(pending, requested)
        last = self._last
        if last is not None and last[:2] == when:
            self.look(last.most_pending, {CPU: last.most_cpu, MEMORY: last.most_memory})
            self._drop_last()
            last = None
        most = self._pending, self._cpu, self._memory
        sample = Sample(*when, *nodes, *pods, cpu, offered[0], memory, offered[1], *most)
        self._pending = self._cpu = self._memory = 0
        if last is not None and last[WHAT_IT_WAS] == sample[WHAT_IT_WAS]:
            return
        self._last = Sample._make(min(value, LARGEST) for value in sample)
        for column, value in zip(self._columns, self._last, strict=True):
            column.append(value)

    def _drop_last(self) -> None:
        for column in self._columns:
            column.pop()

    def columns(self) -> list[list[int]]:
        """As they are written down."""
        return [each.tolist() for each in self._columns]

    def __len__(self) -> int:
        return len(self._columns[0])

    def __iter__(self) -> Iterator[Sample]:
        return map(Sample, *self._columns)


LARGEST = 2**63 - 1
