"""How much of what the nodes offer is asked for."""

from kubescene.api.resource_requests import PODS
from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import ResourceMeasure, share


def allocation(ledger: Ledger, resource: str) -> float | None:
    totals = ledger.totals
    asked = totals.pods if resource == PODS else totals.requested.get(resource, 0)
    return share(asked, totals.allocatable.get(resource, 0))


MEASURES = (
    ResourceMeasure(
        name="allocation_RESOURCE",
        meaning="Share of the cluster's resource that pods on its nodes ask for, at the end.",
        formula="sum over nodes of requested / sum over nodes of allocatable",
        unit="share",
        of=allocation,
    ),
)
