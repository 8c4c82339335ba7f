"""The cluster autoscaler: which nodes are needed, and which are not.

`autoscaler` is the loop; it knows neither store nor controllers, only a `Provider` of machines and
a world that it sees and writes to. What one loop does is in modules by name: `templates`,
`cluster_state`, `packing`, `estimation`, `expanders`, `scale_up`, `scale_down`, `drainability`,
`actuation`, `status`; `provisioning` answers ProvisioningRequests. `controller` turns it in a world
of objects: `machines` are its provider, `objects` what it sees.

Loaded with the first name that somebody asks for: most worlds have no autoscaler.
"""

from typing import TYPE_CHECKING

from kubescene.late_names import late_names

if TYPE_CHECKING:
    from kubescene.node_autoscaling.autoscaler import AutoscalerWorld, ClusterAutoscaler, LoopReport
    from kubescene.node_autoscaling.controller import autoscaler_over
    from kubescene.node_autoscaling.expanders import EXPANDERS, expander_chain
    from kubescene.node_autoscaling.flags import AutoscalerSettings, Flags, GroupFlags, read_flags
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
    "AutoscalerSettings",
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
    "autoscaler_over",
    "expander_chain",
    "read_flags",
]

_HOMES = {
    "EXPANDERS": "expanders",
    "AutoscalerSettings": "flags",
    "AutoscalerWorld": "autoscaler",
    "ClusterAutoscaler": "autoscaler",
    "Flags": "flags",
    "GroupFlags": "flags",
    "Instance": "provider",
    "InstanceError": "provider",
    "InstanceState": "provider",
    "LoopReport": "autoscaler",
    "NodeGroup": "provider",
    "Provider": "provider",
    "ProviderError": "provider",
    "autoscaler_over": "controller",
    "expander_chain": "expanders",
    "read_flags": "flags",
}

__getattr__ = late_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
