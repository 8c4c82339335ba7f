"""The cluster autoscaler: which nodes would let waiting pods run.

What is here so far is the first half of its loop, as pure functions over a node table of its own:
pods are packed on free room (`packing`), what is left is estimated per node group (`estimation`),
and expanders choose (`expanders`). Scale-down, cluster state and actuation are not here yet.
"""

from kubescene.node_autoscaling.estimation import (
    NodeGroup,
    Option,
    equivalence_groups,
    expansion_options,
)
from kubescene.node_autoscaling.expanders import EXPANDERS, chosen, expander_chain
from kubescene.node_autoscaling.packing import Packing
from kubescene.node_autoscaling.snapshot import ClusterSnapshot, SimulatedNode

__all__ = [
    "EXPANDERS",
    "ClusterSnapshot",
    "NodeGroup",
    "Option",
    "Packing",
    "SimulatedNode",
    "chosen",
    "equivalence_groups",
    "expander_chain",
    "expansion_options",
]
