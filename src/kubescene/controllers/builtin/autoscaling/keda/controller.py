"""The controller, asleep until there is a ScaledObject."""

from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.keda.kinds import NAME, SCALED_OBJECT
from kubescene.controllers.builtin.autoscaling.sleeping import SleepingController
from kubescene.controllers.runtime import ReconcilerController


def keda_operator(context: ControllerContext) -> SleepingController:
    """The factory of the controller."""
    return SleepingController(context, name=NAME, kinds=(SCALED_OBJECT,), make=_awake)


def _awake(context: ControllerContext) -> ReconcilerController:
    from kubescene.controllers.builtin.autoscaling.keda.reconciler import scaled_objects

    return scaled_objects(context)
