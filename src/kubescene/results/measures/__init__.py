"""Measures: numbers that a run comes down to. One module each, with sentence, formula and unit.

``measures(run)`` gives all of them, flat: what expectations and sweeps compare.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from kubescene.results.cost.prices import Prices
from kubescene.results.measures import (
    allocation,
    balance,
    cost,
    extent,
    fragmentation,
    pending,
    pod_counts,
    preemptions,
    requests,
    scaling,
    scheduling,
    utilization,
    workloads,
)
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
from kubescene.results.opening import open_run
from kubescene.results.rows import MeasureRow
from kubescene.results.sources import RunSource

__all__ = [
    "ALL",
    "Measure",
    "Number",
    "ResourceMeasure",
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
    *scaling.MEASURES,
    *requests.MEASURES,
    *cost.MEASURES,
)
OF_THE_RUN = (RESOURCE, WORKLOAD, cost.GROUP)
"""What stands for something that runs do not all have."""


def is_of_the_run(name: str) -> bool:
    """Whether it is the name of a measure for some resource, workload or node group."""
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
    """Every measure, with None where there is nothing to measure; cost if something is paid for."""
    told = list(_told(source, prices))
    yield from told
    for each in own_measures(own, [row.measure for row in told]):
        value = each.value(source)
        yield MeasureRow(measure=each.name, value=value, unit=each.unit, meaning=each.meaning)


def _told(source: RunSource, prices: Prices | None) -> Iterator[MeasureRow]:
    run = Reading(source, prices)
    found = [(each, each.unit or measure.unit) for measure in ALL for each in measure.values(run)]
    often = Counter(each.name for each, _ in found)
    for each, unit in found:
        name = each.name if often[each.name] == 1 else each.exact
        yield MeasureRow(measure=name, value=each.value, unit=unit, meaning=each.meaning)
