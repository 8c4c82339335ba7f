"""Nodes: each once, and each at the end of each step."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kubescene.api.resource_requests import PODS
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry, NodeUse
from kubescene.results.rows.columns import Clockwork, amounts, others, row_of, text


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at the end, or when it was removed."""

    name: str
    present: bool
    created_step: str
    created_s: float
    ended_step: str | None
    ended_s: float | None
    pods: int
    pods_allocatable: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_utilization: float | None
    memory_requested: int
    memory_allocatable: int
    memory_utilization: float | None
    other_requested: dict[str, int]
    other_allocatable: dict[str, int]
    labels: dict[str, str]


class UtilizationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node at the end of one major step."""

    step: int
    node: str
    pods: int
    pods_allocatable: int
    cpu_requested: int
    cpu_allocatable: int
    cpu_utilization: float | None
    memory_requested: int
    memory_allocatable: int
    memory_utilization: float | None
    other_requested: dict[str, int]
    other_allocatable: dict[str, int]


def used(use: NodeUse) -> dict[str, Any]:
    """The columns that tell how much of a node is asked for."""
    return {
        "pods": use.requested.get(PODS, 0),
        "pods_allocatable": use.allocatable.get(PODS, 0),
        **amounts(use, "utilization"),
        "other_requested": others(use.requested),
        "other_allocatable": others(use.allocatable),
    }


def node_rows(ledger: Ledger) -> Iterator[NodeRow]:
    """All nodes that ever were, in the order of their creation."""
    clock = Clockwork(ledger)
    return (node_row(node, clock) for node in ledger.nodes)


def node_row(node: NodeEntry, clock: Clockwork) -> NodeRow:
    return row_of(
        NodeRow,
        node,
        present=node.ended_time is None,
        created_step=str(node.created_step),
        created_s=clock.seconds(node.created_time),
        ended_step=text(node.ended_step),
        ended_s=clock.maybe(node.ended_time),
        labels={**node.labels},
        **used(node.use),
    )


def utilization_rows(ledger: Ledger) -> Iterator[UtilizationRow]:
    """Every node that exists at the end of every step, by step and name."""
    uses: dict[str, NodeUse] = {}
    for step in ledger.steps:
        for name, use in step.nodes.items():
            if use is None:
                uses.pop(name, None)
            else:
                uses[name] = use
        for name in sorted(uses):
            yield UtilizationRow(step=step.major, node=name, **used(uses[name]))
