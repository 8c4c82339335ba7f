"""ControllerWaiters of KEP-140: whether a controller has nothing left to do, from objects alone.

`waiter_of` gives the one that a scenario declares. `waiter` is what a waiter is, for those who
write their own; `choice` and `workloads` have those that are shipped.
"""

from kubescene.outside.waiters.choice import (
    NO_OTHERS,
    Waiters,
    import_waiter,
    installed_waiters,
    waiter_of,
)
from kubescene.outside.waiters.waiter import ControllerWaiter

__all__ = [
    "NO_OTHERS",
    "ControllerWaiter",
    "Waiters",
    "import_waiter",
    "installed_waiters",
    "waiter_of",
]
