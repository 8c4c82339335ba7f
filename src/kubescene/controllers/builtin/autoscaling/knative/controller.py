"""The controller, asleep until there is a PodAutoscaler."""

from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.knative.kinds import AUTOSCALER, NAME
from kubescene.controllers.builtin.autoscaling.sleeping import SleepingController
from kubescene.controllers.runtime import ReconcilerController


def knative_autoscaler(context: ControllerContext) -> SleepingController:
    """The factory of the controller."""
    return SleepingController(context, name=NAME, kinds=(AUTOSCALER,), make=_awake)


def _awake(context: ControllerContext) -> ReconcilerController:
    from kubescene.controllers.builtin.autoscaling.knative.reconciler import pod_autoscalers

    return pod_autoscalers(context)
