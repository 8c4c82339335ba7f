"""The rows of each table, and how a ledger becomes rows; one module for each thing they are about.

Times are seconds of virtual time since the run began. ``cpu`` is in thousandths of a core,
``memory`` in bytes; what else there is (extended resources, ephemeral storage) stands in a mapping.
What was there before the scenario was created at step 0.0.
"""

from kubescene.results.rows.attempts import (
    AttemptRow,
    PreemptionRow,
    attempt_rows,
    preemption_rows,
)
from kubescene.results.rows.facts import FactRow, fact_rows
from kubescene.results.rows.measures import MeasureRow
from kubescene.results.rows.nodes import NodeRow, UtilizationRow, node_rows, utilization_rows
from kubescene.results.rows.pods import PodRow, pod_rows
from kubescene.results.rows.steps import AllocationRow, StepRow, allocation_rows, step_rows

__all__ = [
    "AllocationRow",
    "AttemptRow",
    "FactRow",
    "MeasureRow",
    "NodeRow",
    "PodRow",
    "PreemptionRow",
    "StepRow",
    "UtilizationRow",
    "allocation_rows",
    "attempt_rows",
    "fact_rows",
    "node_rows",
    "pod_rows",
    "preemption_rows",
    "step_rows",
    "utilization_rows",
]
