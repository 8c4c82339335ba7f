"""How much of what the nodes offer is asked for: the cluster as a whole."""

from collections.abc import Mapping

from kubescene.results.ledger import Ledger
from kubescene.results.measures.measure import SHARE, ResourceMeasure, Value, highest, shares


def at_the_end(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    found = shares(ledger.totals.requested, ledger.totals.allocatable)
    return {name: found.get(name) for name in names}


def at_most(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    found = highest((step.peak.requested, step.peak.allocatable) for step in ledger.steps)
    return {name: found.get(name) for name in names}


def over_time(ledger: Ledger, names: list[str]) -> Mapping[str, Value]:
    found = shares(ledger.requested_time, ledger.allocatable_time)
    return {name: found.get(name) for name in names}


MEASURES = (
    ResourceMeasure(
        name="allocation_RESOURCE",
        meaning="Share of the cluster's RESOURCE that the pods on its nodes ask for, at the end.",
        formula="sum of requested / sum of allocatable, over the nodes that exist",
        unit=SHARE,
        of=at_the_end,
    ),
    ResourceMeasure(
        name="allocation_peak_RESOURCE",
        meaning="The highest share of the cluster's RESOURCE asked for at any moment.",
        formula="max over moments of sum of requested / sum of allocatable",
        unit=SHARE,
        of=at_most,
    ),
    ResourceMeasure(
        name="allocation_mean_RESOURCE",
        meaning="Share of the cluster's RESOURCE asked for over the virtual time that passed.",
        formula="integral of requested over time / integral of allocatable over time",
        unit=SHARE,
        of=over_time,
    ),
)
