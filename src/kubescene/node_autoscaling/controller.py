"""The cluster autoscaler as a controller: a loop every scan interval, and what follows between.

It sleeps until there is a NodeGroup with a largest size, or until somebody asks for room by a
ProvisioningRequest if these are to be answered, and then starts like a process. A loop
that can only say what the last one said is left out: nothing that it looks at has changed, nobody
waits for a node, no node is unneeded, and no time has run out.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from kubescene.api.own_kinds import own_kind
from kubescene.api.records.changes import Change, ChangeType
from kubescene.api.scheme import GroupVersionKind
from kubescene.control.loops import IDLE, ControllerContext, Progress, went
from kubescene.errors import ConfigurationError
from kubescene.node_autoscaling.flags import PROFILE, AutoscalerSettings, read_settings
from kubescene.node_autoscaling.provider import Provider
from kubescene.node_autoscaling.provisioning.kinds import PROVISIONING_REQUEST
from kubescene.scheduler.options import SchedulerOptions

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
        judges: SchedulerOptions | None = None,
    ) -> None:
        """``judges`` has the plugins that decide whether a pod fits on a node."""
        self._context = context
        self._judges = judges
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

            self._turns = Turns(self._context, self._settings, self._cloud, self._judges)
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
    context: ControllerContext,
    settings: AutoscalerSettings | None = None,
    scheduler: SchedulerOptions | None = None,
) -> AutoscalerController | NoAutoscaler:
    """The factory of the controller; ``scheduler`` is the one of the world."""
    if settings is None or NODE_GROUP not in context.scheme:
        return NoAutoscaler(context)
    judges = judging(settings, scheduler or SchedulerOptions())
    return AutoscalerController(context, settings, judges=judges)


def judging(settings: AutoscalerSettings, options: SchedulerOptions) -> SchedulerOptions | None:
    """The scheduler's options with the profile that the autoscaler goes by, if there is one.

    `ConfigurationError` if the scheduler has none of that name.
    """
    profile = settings.profile
    if not profile:
        return None
    found = [each for each in options.profiles if each.scheduler_name == profile]
    if not found:
        known = ", ".join(each.scheduler_name for each in options.profiles)
        raise ConfigurationError(
            f"clusterAutoscaler.{PROFILE}: the scheduler has no profile named {profile!r}; "
            f"there is {known}"
        )
    return replace(options, profiles=tuple(found))


def autoscaler_over(
    cloud: Cloud, flags: Mapping[str, object] | None = None
) -> Callable[[ControllerContext], AutoscalerController]:
    """The factory of an autoscaler over a provider of one's own, with these flags, and ``mode``.

    ``cloud`` is called when the autoscaler begins. Raises `ConfigurationError` for flags that do
    not exist.
    """
    settings = read_settings(flags or {}, "flags")
    return partial(AutoscalerController, settings=settings, cloud=cloud)
