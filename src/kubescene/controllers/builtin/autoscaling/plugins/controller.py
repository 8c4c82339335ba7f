"""The controller, asleep until there is a PluginAutoscaler."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kubescene.control.loops import ControllerContext
from kubescene.controllers.builtin.autoscaling.flags import DEFAULTS, AutoscalingSettings
from kubescene.controllers.builtin.autoscaling.plugins.kinds import NAME, PLUGIN_AUTOSCALER
from kubescene.controllers.builtin.autoscaling.sleeping import SleepingController
from kubescene.controllers.runtime import ReconcilerController

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource


def plugin_autoscalers(
    context: ControllerContext,
    sources: Sequence["PluginSource"] = (),
    settings: AutoscalingSettings = DEFAULTS,
) -> SleepingController:
    """The factory of the controller; ``sources`` are the autoscalers of whoever made the world.

    ``settings`` are flags of our own, which count for ours behind the interface, too.
    """
    make = partial(_awake, sources=sources, settings=settings)
    return SleepingController(context, name=NAME, kinds=(PLUGIN_AUTOSCALER,), make=make)


def _awake(
    context: ControllerContext, sources: Sequence["PluginSource"], settings: AutoscalingSettings
) -> ReconcilerController:
    from kubescene.controllers.builtin.autoscaling.plugins.reconciler import PluginController

    return PluginController(context, sources, settings)
