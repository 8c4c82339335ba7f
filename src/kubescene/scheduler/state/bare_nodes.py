"""Nodes on which nothing runs: how Score plugins see those that an extender sent back (X-5)."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_types import Column


class BareNodes(NodeTable):
    """A table with the rows of another one, but no pods and no images. Only for reading."""

    bare = True

    def __init__(self, table: NodeTable) -> None:
        vars(self).update(vars(table))
        self._nothing: Column = np.zeros(len(table), dtype=np.int64)
        self.infos = _BareInfos(table.infos)

    def requested(self, resource: str) -> Column:
        del resource
        return self._nothing

    @property
    def nonzero_cpu(self) -> Column:
        return self._nothing

    @property
    def nonzero_memory(self) -> Column:
        return self._nothing

    def info(self, name: str) -> NodeInfo | None:
        found = super().info(name)
        return None if found is None else found.without_pods()


class _BareInfos(Sequence[NodeInfo]):
    """The nodes of a table without their pods, made when somebody looks."""

    __slots__ = ("_beneath",)

    def __init__(self, beneath: Sequence[NodeInfo]) -> None:
        self._beneath = beneath

    def __len__(self) -> int:
        return len(self._beneath)

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [info.without_pods() for info in self._beneath[index]]
        return self._beneath[index].without_pods()

    def __iter__(self) -> Iterator[NodeInfo]:
        return (info.without_pods() for info in self._beneath)
