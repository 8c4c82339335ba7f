"""One simulated cluster: the composition root of a world.

`options` is what a world is made with, and who plays in it; `cluster` puts it together and is what
people use; `world` is the same for a scenario engine or a server; `manager` runs its controllers;
`lending` gives it to a scenario and takes it back.
"""

from kubescene.cluster.cluster import Cluster
from kubescene.cluster.options import SCHEDULER, ClusterOptions, builtin_controllers
from kubescene.cluster.world import ClusterWorld

__all__ = ["SCHEDULER", "Cluster", "ClusterOptions", "ClusterWorld", "builtin_controllers"]
