"""From which numbers on another way to the same result is faster, and how much is kept.

None of them changes a result. Each says which benchmark it is to be measured by: with other
numbers the bytes stay the same, and the benchmark says whether it was worth it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """What is kept of classes of pods per row of the node table, and how it is renewed."""

    few_rows: int = 10
    """So many rows are told of faster one by one (``bench/throughput.py``)."""
    many_columns: int = 64
    """So many rows of the columns of cpu and memory are renewed faster with all others
    (``bench/kubesbs.py``)."""
    rows_told: int = 2048
    """Up to so many nodes all rows of a class are told of anew, not only those of a window, if that
    is arithmetic (``bench/kubesbs.py``)."""
    few_outdated: int = 32
    """So many rows that are out of date are remembered one by one (``bench/throughput.py``)."""
    cells_kept: int = 500_000
    """Results that are kept, rows times classes (``bench/growth.py``)."""
    fewest_kept: int = 8
    """Of so many classes results are kept however many nodes there are (``bench/growth.py``)."""
    classes_kept: int = 4096
    """Classes of which is known how rows are told of anew, whether results are kept or not
    (``bench/plugins.py``)."""
    failures_kept: int = 256
    """Failures that may be repeated: thousands of pods may wait, each unlike all others
    (``bench/preemption.py``)."""
    specs_kept: int = 64
    """Verdicts on all node objects, by how pods are signed (``bench/kubesbs.py``)."""
    unrated_kept: int = 64
    """Columns of plugins that give no node a score, by number of nodes
    (``bench/explanations.py``)."""
    even_kept: int = 4096
    """Numbers of nodes for which is known that a plugin makes the same of all of them
    (``bench/kubesbs.py``)."""
    changes_kept: int = 1024
    """Changes of rows that can be followed; whoever is further behind compares versions
    (``bench/throughput.py``)."""
    moves_kept: int = 16
    """Orders of the rows that results can be moved from; older ones are forgotten
    (``bench/growth.py``)."""

    def entries_kept(self, rows: int) -> int:
        """Of how many classes results are kept: fewer where there are many nodes."""
        return max(self.fewest_kept, self.cells_kept // max(1, rows))


POLICY = RowPolicy()
