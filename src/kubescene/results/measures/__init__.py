"""Measures: numbers that a run comes down to. One module each, with sentence, formula and unit.

``measures(run)`` gives all of them, flat: what expectations and sweeps compare.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from kubescene.results.measures import (
    allocation,
    balance,
    extent,
    fragmentation,
    pending,
    pod_counts,
    preemptions,
    scheduling,
    utilization,
    workloads,
)
from kubescene.results.measures.cost import cost_measures
from kubescene.results.measures.measure import (
    RESOURCE,
    WORKLOAD,
    AnyMeasure,
    Measure,
    Number,
    Reading,
    ResourceMeasure,
)
from kubescene.results.measures.own import OwnFunction, own_measures
from kubescene.results.prices import Prices
from kubescene.results.rows import MeasureRow
from kubescene.results.sources import RunSource, open_run

__all__ = [
    "ALL",
    "Measure",
    "Number",
    "ResourceMeasure",
    "cost_measures",
    "is_of_the_run",
    "measure_rows",
    "measures",
]

ALL: tuple[AnyMeasure, ...] = (
    *extent.MEASURES,
    *pod_counts.MEASURES,
    *pending.MEASURES,
    *scheduling.MEASURES,
    *preemptions.MEASURES,
    *allocation.MEASURES,
    *utilization.MEASURES,
    *balance.MEASURES,
    *fragmentation.MEASURES,
    *workloads.MEASURES,
)
"""Those that need nothing but a run."""
OF_THE_RUN = (RESOURCE, WORKLOAD)
"""What stands for something that runs do not all have."""


def is_of_the_run(name: str) -> bool:
    """Whether it is the name of a measure for some resource or workload, which may be or not."""
    kinds = (each.name.removesuffix(end) for each in ALL for end in OF_THE_RUN if end in each.name)
    return any(name.startswith(each) for each in kinds)


def measures(
    where: object, prices: Prices | None = None, own: Sequence[OwnFunction] = ()
) -> dict[str, Number]:
    """The measures of a run that have a value, by name; ``own`` are functions of a run."""
    rows = measure_rows(open_run(where), prices, own)
    return {row.measure: row.value for row in rows if row.value is not None}


def measure_rows(
    source: RunSource, prices: Prices | None = None, own: Sequence[OwnFunction] = ()
) -> Iterator[MeasureRow]:
    """Every measure, with None where there is nothing to measure; cost if there are prices."""
    told = list(_told(source, prices))
    yield from told
    for each in own_measures(own, [row.measure for row in told]):
        value = each.value(source)
        yield MeasureRow(measure=each.name, value=value, unit=each.unit, meaning=each.meaning)


def _told(source: RunSource, prices: Prices | None) -> Iterator[MeasureRow]:
    priced = () if prices is None else cost_measures(prices)
    run = Reading(source.ledger)
    found = [(each, measure.unit) for measure in (*ALL, *priced) for each in measure.values(run)]
    often = Counter(each.name for each, _ in found)
    for each, unit in found:
        name = each.name if often[each.name] == 1 else each.exact
        yield MeasureRow(measure=name, value=each.value, unit=unit, meaning=each.meaning)
