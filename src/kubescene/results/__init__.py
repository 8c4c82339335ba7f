"""What a run tells: read from the timeline alone, so that every kind of run is analysed alike.

>>> from kubescene.results import open_run
>>> open_run("out").measures()["allocation_cpu"]  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names
from kubescene.results.summary import (
    ExpectationOutcome,
    NodeUse,
    PendingPod,
    Placement,
    StepSummary,
    Summary,
    summarize,
)

if TYPE_CHECKING:
    from kubescene.results.calculations import (
        Moment,
        allocation_rate,
        annotated_results,
        by_pod,
        iterate,
        node_utilization,
        scheduling_results,
    )
    from kubescene.results.comparison import Comparison, compare
    from kubescene.results.cost.prices import Prices, read_prices
    from kubescene.results.opening import open_run
    from kubescene.results.sources import RunSource
    from kubescene.results.tables import Table

__all__ = [
    "Comparison",
    "ExpectationOutcome",
    "Moment",
    "NodeUse",
    "PendingPod",
    "Placement",
    "Prices",
    "RunSource",
    "StepSummary",
    "Summary",
    "Table",
    "allocation_rate",
    "annotated_results",
    "by_pod",
    "compare",
    "iterate",
    "node_utilization",
    "open_run",
    "read_prices",
    "scheduling_results",
    "summarize",
]

_HOMES = {
    "Moment": "calculations",
    "Prices": "cost.prices",
    "RunSource": "sources",
    "Table": "tables",
    "allocation_rate": "calculations",
    "annotated_results": "calculations",
    "by_pod": "calculations",
    "iterate": "calculations",
    "node_utilization": "calculations",
    "open_run": "opening",
    "read_prices": "cost.prices",
    "scheduling_results": "calculations",
    "Comparison": "comparison",
    "compare": "comparison",
}

# Loaded on first use: a plain run needs none of it.
__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
