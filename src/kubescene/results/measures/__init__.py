"""Measures: numbers that a run comes down to. One module each, with sentence, formula and unit.

``measures(run)`` gives all of them, flat: what expectations and sweeps compare.
"""

from collections.abc import Iterator

from kubescene.results.measures import allocation, pod_counts
from kubescene.results.measures.measure import AnyMeasure, Number
from kubescene.results.rows import MeasureRow
from kubescene.results.sources import RunSource, open_run

ALL: tuple[AnyMeasure, ...] = (*pod_counts.MEASURES, *allocation.MEASURES)


def measures(where: object) -> dict[str, Number]:
    """The measures of a run that have a value, by name."""
    rows = measure_rows(open_run(where))
    return {row.measure: row.value for row in rows if row.value is not None}


def measure_rows(source: RunSource) -> Iterator[MeasureRow]:
    """Every measure, with None where there is nothing to measure."""
    for measure in ALL:
        for name, value in measure.values(source.ledger):
            yield MeasureRow(measure=name, value=value, unit=measure.unit, meaning=measure.meaning)
