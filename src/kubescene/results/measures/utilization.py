"""How full single nodes are, by what their pods ask for."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import fsum

from kubescene.api.resource_requests import PODS
from kubescene.results.ledger import Ledger
from kubescene.results.ledger_entries import NodeEntry
from kubescene.results.measures.measure import SHARE, Measure, ResourceMeasure, Value, highest


def by_node(nodes: Sequence[NodeEntry], resource: str) -> list[float]:
    """The utilisation of every one of these nodes that offers the resource."""
    uses = [(node.room.requested, node.allocatable) for node in nodes]
    return [
        asked.get(resource, 0) / offered[resource]
        for asked, offered in uses
        if offered.get(resource)
    ]


def mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def of_nodes(
    ledger: Ledger, names: list[str], *, fold: Callable[[Sequence[float]], float]
) -> Mapping[str, Value]:
    nodes = ledger.standing()
    found = {name: by_node(nodes, name) for name in names}
    return {name: fold(values) if values else None for name, values in found.items()}


def at_most(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    found = highest((node.peak_requested, node.peak_allocatable) for node in ledger.nodes)
    return {name: found.get(name) for name in names}


def nodes(ledger: Ledger) -> int:
    return ledger.totals.nodes


def nodes_most(ledger: Ledger) -> int:
    return max((each.nodes for each in ledger.instants), default=0)


def empty(ledger: Ledger) -> int:
    return sum(not node.room.requested[PODS] for node in ledger.standing())


MEASURES = (
    Measure(
        name="nodes",
        meaning="Nodes that exist at the end.",
        formula="number of nodes",
        unit="nodes",
        of=nodes,
    ),
    Measure(
        name="nodes_most",
        meaning="The most nodes that existed at the end of an instant of virtual time.",
        formula="max over instants of number of nodes",
        unit="nodes",
        of=nodes_most,
    ),
    Measure(
        name="nodes_empty",
        meaning="Nodes without a pod at the end.",
        formula="number of nodes without a bound or terminating pod",
        unit="nodes",
        of=empty,
    ),
    ResourceMeasure(
        name="utilization_min_RESOURCE",
        meaning="Share of RESOURCE asked for on the emptiest node at the end.",
        formula="min over nodes of requested / allocatable",
        unit=SHARE,
        of=partial(of_nodes, fold=min),
    ),
    ResourceMeasure(
        name="utilization_mean_RESOURCE",
        meaning="Share of RESOURCE asked for on a node at the end, on average over nodes.",
        formula="mean over nodes of requested / allocatable",
        unit=SHARE,
        of=partial(of_nodes, fold=mean),
    ),
    ResourceMeasure(
        name="utilization_max_RESOURCE",
        meaning="Share of RESOURCE asked for on the fullest node at the end.",
        formula="max over nodes of requested / allocatable",
        unit=SHARE,
        of=partial(of_nodes, fold=max),
    ),
    ResourceMeasure(
        name="utilization_peak_RESOURCE",
        meaning="The highest share of a single node's RESOURCE asked for at any moment.",
        formula="max over nodes and moments of requested / allocatable",
        unit=SHARE,
        of=at_most,
    ),
)
