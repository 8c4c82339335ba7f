"""How evenly the load is spread: over the nodes, and over the resources of one node."""

from collections.abc import Mapping
from math import fsum, sqrt

from kubescene.api.resource_requests import CPU, MEMORY
from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import SHARE, Measure, ResourceMeasure, Value, share
from kubescene.results.measures.utilization import by_node, mean


def deviation(values: list[float]) -> float | None:
    """The standard deviation of all of them."""
    if not values:
        return None
    middle = mean(values)
    return sqrt(fsum((value - middle) ** 2 for value in values) / len(values))


def over_nodes(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    nodes = ledger.standing()
    return {name: deviation(by_node(nodes, name)) for name in names}


def within_nodes(ledger: Ledger) -> float | None:
    gaps = []
    for node in ledger.standing():
        asked, offered = node.room.requested, node.allocatable
        cpu, memory = (share(asked.get(r, 0), offered.get(r, 0)) for r in (CPU, MEMORY))
        if cpu is not None and memory is not None:
            gaps.append(abs(cpu - memory))
    return mean(gaps) if gaps else None


MEASURES = (
    ResourceMeasure(
        name="imbalance_RESOURCE",
        meaning="How unevenly RESOURCE is used over the nodes at the end; 0 is even.",
        formula="standard deviation over nodes of requested / allocatable",
        unit=SHARE,
        of=over_nodes,
    ),
    Measure(
        name="imbalance_within_nodes",
        meaning="How far cpu and memory of one node are apart at the end; 0 is even.",
        formula="mean over nodes of |cpu utilisation - memory utilisation|",
        unit=SHARE,
        of=within_nodes,
    ),
)
