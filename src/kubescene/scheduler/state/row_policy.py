"""From which numbers on another way to the same result is faster, all in one place.

None of them changes a result. Each says which benchmark it is to be measured by: with other
numbers the bytes stay the same, and the benchmark says whether it was worth it.
"""

from dataclasses import dataclass

from kubescene.scheduler.state.nodes import NodeTable


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """What is kept of classes of pods per row of the node table, and how it is renewed."""

    few_judged: int = 4
    """So many rows are judged faster one by one, in a whole cycle (``bench/topology.py``)."""
    few_rated: int = 4
    """So many rows are rated faster one by one, in a whole cycle (``bench/topology.py``)."""
    few_routine: int = 12
    """The same where rows are judged and rated together (``bench/plugins.py``)."""
    few_paired: int = 10
    """The same for cpu and memory alone (``bench/throughput.py``)."""
    part_paired: int = 4
    """If more than one row of so many has changed, all are renewed (``bench/throughput.py``)."""
    many_columns: int = 64
    """So many rows of the columns are renewed faster with all others (``bench/kubesbs.py``)."""
    few_outdated: int = 32
    """So many rows that are out of date are remembered one by one (``bench/throughput.py``)."""
    most_changes: int = 512
    """After so many changes, at the latest, evaluating anew takes less than following
    (``bench/kubesbs.py``)."""
    filling: int = 4
    """A class has its results kept once it has seen one node of so many: evaluating all at a time
    takes so much less than in windows (``bench/kubesbs.py``)."""
    cells_kept: int = 500_000
    """Results that are kept, rows times classes (``bench/growth.py``)."""
    classes_kept: int = 4096
    """Classes of which is known when their last pod came (``bench/kubesbs.py``)."""
    failures_kept: int = 256
    """Failures that may be repeated: thousands of pods may wait, each unlike all others
    (``bench/preemption.py``)."""
    specs_kept: int = 64
    """Verdicts on all node objects, by how pods are signed (``bench/kubesbs.py``)."""
    unrated_kept: int = 64
    """Columns of plugins that give no node a score, by number of nodes
    (``bench/explanations.py``)."""


POLICY = RowPolicy()


def entries_kept(nodes: NodeTable) -> int:
    """Of how many classes results are kept: fewer where there are many nodes."""
    return max(8, POLICY.cells_kept // max(1, len(nodes)))
