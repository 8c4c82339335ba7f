"""What turns controllers: control loops, who of them has work, and running them to rest.

`loops` is what a controller is, `timers` its view of time, `crank` turns them, `patience` says when
it has been too long.
"""

from kubescene.control.crank import Alarm, Crank, ServingCrank, Slot
from kubescene.control.loops import (
    IDLE,
    WAITING,
    Controller,
    ControllerContext,
    ControllerFactory,
    Progress,
)
from kubescene.control.patience import LivelockError, Patience
from kubescene.control.timers import Timers

__all__ = [
    "IDLE",
    "WAITING",
    "Alarm",
    "Controller",
    "ControllerContext",
    "ControllerFactory",
    "Crank",
    "LivelockError",
    "Patience",
    "Progress",
    "ServingCrank",
    "Slot",
    "Timers",
]
