"""What happened to the nodes of a `NodeTable`, for plugins that keep counts of pods.

Counting the pods of a topology domain anew for every pod to be placed costs as much as there are
pods. A plugin that follows the table reads what has changed since it last looked and corrects its
counts::

    self._reader = handle.nodes.follow()             # in __init__

    def pre_filter(self, state, pod, nodes):
        deltas = self._reader.read()
        if deltas is None:                           # the first time, or too far behind
            self._count_anew(nodes)
        else:
            for delta in deltas: ...

The log speaks of nodes that have a row: a node joins with the pods that waited for it, and takes
its pods along when it leaves. It is kept only while somebody follows it, and only so far back.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.pods import PodInfo
from kubescene.scheduler.state.row_policy import POLICY


class DeltaKind(Enum):
    """What happened. ``POD_CHANGED``: its labels, or that it is being deleted."""

    POD_ADDED = "pod added"
    POD_REMOVED = "pod removed"
    POD_CHANGED = "pod changed"
    NODE_CHANGED = "node changed"
    NODE_JOINED = "node joined"
    NODE_LEFT = "node left"


POD_ADDED = DeltaKind.POD_ADDED
"""A name of its own: looking it up in its class takes ten times as long."""


class Delta(NamedTuple):
    """One change of one node.

    ``pods`` are the pods in question: those that came or went, or the old and the new form of one
    that changed. ``node`` is as it stands when the delta is read, not as it was; so is its row.
    """

    kind: DeltaKind
    node: NodeInfo
    pods: tuple[PodInfo, ...] = ()


class DeltaLog:
    """The newest deltas, by position. Empty until somebody follows."""

    __slots__ = ("_deltas", "_first", "_kept", "followed")

    def __init__(self, kept: int = POLICY.deltas_followed) -> None:
        self._kept = kept
        self._deltas: list[Delta] = []
        self._first = 0
        self.followed = False

    @property
    def end(self) -> int:
        return self._first + len(self._deltas)

    def add(self, kind: DeltaKind, node: NodeInfo, *pods: PodInfo) -> None:
        self._deltas.append(Delta(kind, node, pods))
        if len(self._deltas) >= 2 * self._kept:
            del self._deltas[: self._kept]
            self._first += self._kept

    def forget(self) -> None:
        """Whoever follows counts anew."""
        self._first = self.end
        self._deltas.clear()

    def since(self, position: int) -> Sequence[Delta] | None:
        """The deltas from a position on; None if the first of them are forgotten."""
        if position < self._first:
            return None
        return self._deltas[position - self._first :]


class DeltaReader:
    """One follower and how far it has read."""

    __slots__ = ("_log", "_position")

    def __init__(self, log: DeltaLog) -> None:
        log.followed = True
        self._log = log
        self._position = -1

    def read(self) -> Sequence[Delta] | None:
        """What happened since the last call; None means: look at the table and count anew."""
        position, log = self._position, self._log
        self._position = end = log.end
        return () if position == end else log.since(position)
