"""From which numbers on another way to the same result is faster, and how much is kept.

None of them changes a result. Each says which benchmark it is to be measured by: with other
numbers the bytes stay the same, and the benchmark says whether it was worth it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowPolicy:
    """What a scheduler keeps of pods, nodes and decisions, and how it is renewed."""

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
    """Classes and signatures of which something is known: how rows are told of anew, and what
    plugins and the cycle have made of them (``bench/plugins.py``)."""
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
    entries_followed: int = 4096
    """Entries of a log of changes; whoever is further behind begins anew
    (``bench/topology.py``)."""
    deltas_followed: int = 16_384
    """The same of pods that came, went or moved (``bench/topology.py``)."""
    label_values_kept: int = 64
    """So many values of a label may be known beside two for each node (``bench/growth.py``)."""
    priorities_kept: int = 16
    """Priorities below which, or from which on, amounts are summed up (``bench/preemption.py``)."""

    dry_run_cells_kept: int = 100_000
    """Dry runs that are kept, nodes times signatures of preemptors (``bench/preemption.py``)."""
    few_dry_runs: int = 4
    """So many nodes are tried faster one by one (``bench/preemption.py``)."""
    dry_runs_at_once: int = 256
    """Nodes that are tried together, if that is arithmetic (``bench/preemption.py``)."""

    counter_cells_kept: int = 8_000_000
    """Counts of pods by topology, rows times counters (``bench/topology.py``)."""
    fewest_counters_kept: int = 32
    """So many counters are kept however many nodes there are (``bench/topology.py``)."""
    empty_groups_kept: int = 64
    """Groups of like pods without a pod that wait for the next one (``bench/topology.py``)."""
    tallies_kept: int = 16
    """Sums by domain of one group (``bench/topology.py``)."""
    spread_scores_kept: int = 64
    """Tables of the scores of counts (``bench/topology.py``)."""

    device_tables_kept: int = 128
    """What became of nodes for claims that ask for the same (``bench/claims.py``)."""
    claim_specs_kept: int = 4096
    """Specs of claims that are read (``bench/claims.py``)."""
    volume_shapes_kept: int = 256
    """Kinds of claims for which volumes are found (``bench/volumes.py``)."""
    few_reaching_nodes: int = 64
    """Volumes that so few nodes reach are looked up by node (``bench/volumes.py``)."""
    reach_cells_kept: int = 20_000_000
    """Rows from which volumes can be reached, rows times selectors (``bench/volumes.py``)."""

    def entries_kept(self, rows: int) -> int:
        """Of how many classes results are kept: fewer where there are many nodes."""
        return max(self.fewest_kept, self.cells_kept // max(1, rows))


POLICY = RowPolicy()
