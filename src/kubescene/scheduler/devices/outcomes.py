"""What the search said about each node, remembered until something changes there.

Pods of one template ask for the same. Between two of them one node has changed, so of hundreds of
nodes that have to be judged only one is searched. `OutcomeTable` keeps, for one list of claims, a
code and an outcome per row of the node table; the stamps of the `DeviceCluster` say which are out
of date.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from kubescene.scheduler.devices.allocator import Failed, Granted, Outcome, Refused, allocate
from kubescene.scheduler.devices.cluster import DeviceCluster
from kubescene.scheduler.devices.pools import Pool
from kubescene.scheduler.devices.requests import ClaimSpec
from kubescene.scheduler.framework.interfaces import Codes, Rows
from kubescene.scheduler.state.node_info import NodeInfo
from kubescene.scheduler.state.nodes import NodeTable
from kubescene.scheduler.state.row_types import Column

TABLES_KEPT = 128

Claims: TypeAlias = tuple[ClaimSpec, ...]


class OutcomeTable:
    """The outcomes for one list of claims. Code 0 is granted."""

    __slots__ = ("_codes", "_layout", "_outcomes", "_stamps", "refusals")

    def __init__(self) -> None:
        self.refusals: dict[Refused | Failed, int] = {}
        """Refusals and their codes, in order of the codes."""
        self._layout = -1
        self._stamps: Column = np.zeros(0, dtype=np.int64)
        self._codes: Codes = np.zeros(0, dtype=np.int64)
        self._outcomes: list[Outcome | None] = []

    def stale(self, rows: Rows, stamps: Column, layout: int) -> list[int]:
        """The rows whose outcome is not known any more."""
        if self._layout != layout:
            self._layout = layout
            self._stamps = np.zeros(stamps.size, dtype=np.int64)
            self._codes = np.zeros(stamps.size, dtype=np.int64)
            self._outcomes = [None] * stamps.size
            self.refusals.clear()
        known: list[int] = rows[self._stamps.take(rows) != stamps.take(rows)].tolist()
        return known

    def put(self, row: int, stamp: int, outcome: Outcome) -> None:
        self._stamps[row] = stamp
        self._outcomes[row] = outcome
        if isinstance(outcome, Granted):
            self._codes[row] = 0
        else:
            self._codes[row] = self.refusals.setdefault(outcome, len(self.refusals) + 1)

    def codes(self, rows: Rows) -> Codes:
        return self._codes.take(rows)

    def outcome(self, row: int) -> Outcome:
        found = self._outcomes[row]
        assert found is not None
        return found

    def refusal(self, code: int) -> Refused | Failed:
        return [*self.refusals][code - 1]


class Outcomes:
    """Tables for the lists of claims that pods have had lately."""

    def __init__(self, cluster: DeviceCluster, kept: int = TABLES_KEPT) -> None:
        self._cluster = cluster
        self._kept = kept
        self._tables: OrderedDict[Claims, OutcomeTable] = OrderedDict()

    def judged(self, claims: Claims, nodes: NodeTable, rows: Rows) -> OutcomeTable:
        """The table for these claims, up to date for these rows."""
        table = self._table(claims)
        stamps = self._cluster.stamps(nodes)
        stale = table.stale(rows, stamps, nodes.layout)
        known: dict[int, Outcome] = {}
        for row in stale:
            table.put(row, int(stamps[row]), self._search(claims, nodes.infos[row], known))
        return table

    def on(self, claims: Claims, nodes: NodeTable, row: int) -> Outcome:
        """The outcome for one row."""
        return self.judged(claims, nodes, np.array([row], dtype=np.intp)).outcome(row)

    def anew(self, claims: Claims, node: NodeInfo) -> Outcome:
        """The outcome for a node that need not have a row, found without remembering it."""
        return self._search(claims, node, {})

    def _table(self, claims: Claims) -> OutcomeTable:
        found = self._tables.get(claims)
        if found is None:
            found = self._tables[claims] = OutcomeTable()
            if len(self._tables) > self._kept:
                self._tables.popitem(last=False)
        else:
            self._tables.move_to_end(claims)
        return found

    def _search(self, claims: Claims, node: NodeInfo, known: dict[int, Outcome]) -> Outcome:
        """Search, unless another node that reaches the same pools was searched just now."""
        pools = self._cluster.inventory.pools(node.name, node.labels)
        alike = not any(each.is_per_device for each in pools)
        if alike and (found := known.get(id(pools))) is not None:
            return found
        outcome = self._allocate(claims, pools, node)
        if alike and not isinstance(outcome, Failed):
            known[id(pools)] = outcome
        return outcome

    def _allocate(self, claims: Claims, pools: Sequence[Pool], node: NodeInfo) -> Outcome:
        cluster = self._cluster
        return allocate(
            claims,
            pools,
            node.name,
            node.labels,
            classes=cluster.classes.by_name,
            allocated=cluster.taken,
        )
