"""The cluster autoscaler as a controller: a loop every scan interval, and what follows between.

It sleeps until there is a NodeGroup with a largest size, or until somebody asks for room by a
ProvisioningRequest if these are to be answered, and then starts like a process. A loop
that can only say what the last one said is left out: nothing that it looks at has changed, nobody
waits for a node, no node is unneeded, and no time has run out.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kubescene.api.own_kinds import own_kind
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.node_autoscaling.flags import AutoscalerSettings, read_settings
from kubescene.node_autoscaling.provider import Provider
from kubescene.node_autoscaling.provisioning.kinds import PROVISIONING_REQUEST

if TYPE_CHECKING:
    from kubescene.node_autoscaling.turns import Turns

NAME = "cluster-autoscaler"
NODE_GROUP = own_kind("NodeGroup")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
Cloud: TypeAlias = Callable[[ControllerContext], Provider]


class AutoscalerController:
    """Asleep until somebody wants a group autoscaled."""

    name = NAME

    def __init__(
        self,
        context: ControllerContext,
        settings: AutoscalerSettings,
        cloud: "Cloud | None" = None,
    ) -> None:
        self._context = context
        self._settings = settings
        self._cloud = cloud
        self._is_needed = cloud is not None
        self._turns: Turns | None = None
        context.client.watch(NODE_GROUP, self._changed, quiet=True)
        self._answers_requests = settings.flags.enable_provisioning_requests
        if self._answers_requests and PROVISIONING_REQUEST not in context.scheme:
            context.client.watch(DEFINITION, self._defined, quiet=True)

    def _defined(self, change: Change) -> None:
        del change
        if self._turns is None:
            self._context.wake()

    def _changed(self, change: Change) -> None:
        if self._turns is not None or change.type is ChangeType.DELETED:
            return
        if "max" in change.object["spec"]:
            self._is_needed = True
            self._context.wake()

    def run_once(self) -> Progress:
        if not self._is_needed and not self._has_requests():
            return IDLE
        if self._turns is None:
            from kubescene.node_autoscaling.turns import Turns

            self._turns = Turns(self._context, self._settings, self._cloud)
        return went(wrote=self._turns.run(), more=False)

    def _has_requests(self) -> bool:
        return self._answers_requests and PROVISIONING_REQUEST in self._context.scheme


class NoAutoscaler:
    """A world that does not ask for one: without a watch, every change would wake it."""

    name = NAME

    def __init__(self, context: ControllerContext) -> None:
        context.client.watch(NAMESPACE, self._heard, quiet=True)

    def _heard(self, change: Change) -> None:
        """Nothing follows from it."""

    def run_once(self) -> Progress:
        return IDLE


def cluster_autoscaler(
    context: ControllerContext, settings: AutoscalerSettings | None = None
) -> AutoscalerController | NoAutoscaler:
    """The factory of the controller."""
    if settings is None or NODE_GROUP not in context.scheme:
        return NoAutoscaler(context)
    return AutoscalerController(context, settings)


def autoscaler_over(
    cloud: Cloud, flags: Mapping[str, object] | None = None
) -> Callable[[ControllerContext], AutoscalerController]:
    """The factory of an autoscaler over a provider of one's own, with these flags, and ``mode``.

    ``cloud`` is called when the autoscaler begins. Raises `ConfigurationError` for flags that do
    not exist.
    """
    settings = read_settings(flags or {}, "flags")
    return partial(AutoscalerController, settings=settings, cloud=cloud)
