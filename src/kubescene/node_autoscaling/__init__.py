"""The cluster autoscaler: which nodes are needed, and which are not.

`autoscaler` is the loop; it knows neither store nor controllers, only a `Provider` of machines and
a world that it sees and writes to. What one loop does is in modules by name: `templates`,
`cluster_state`, `packing`, `estimation`, `expanders`, `scale_up`, `scale_down`, `drainability`,
`actuation`, `status`.
"""

from kubescene.node_autoscaling.autoscaler import AutoscalerWorld, ClusterAutoscaler, LoopReport
from kubescene.node_autoscaling.expanders import EXPANDERS, expander_chain
from kubescene.node_autoscaling.flags import Flags, GroupFlags, read_flags
from kubescene.node_autoscaling.provider import (
    Instance,
    InstanceError,
    InstanceState,
    NodeGroup,
    Provider,
    ProviderError,
)

__all__ = [
    "EXPANDERS",
    "AutoscalerWorld",
    "ClusterAutoscaler",
    "Flags",
    "GroupFlags",
    "Instance",
    "InstanceError",
    "InstanceState",
    "LoopReport",
    "NodeGroup",
    "Provider",
    "ProviderError",
    "expander_chain",
    "read_flags",
]
