"""What a world is made with, and the controllers that come of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from kubescene.actors import Component
from kubescene.api.feature_gates import check_gates
from kubescene.clock import VirtualClock
from kubescene.control.loops import ControllerFactory
from kubescene.controllers import builtin
from kubescene.controllers.builtin.autoscaling.flags import DEFAULTS as AUTOSCALING
from kubescene.controllers.builtin.autoscaling.flags import AutoscalingSettings
from kubescene.controllers.kubelet import NO_DELAYS, KubeletDelays
from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour
from kubescene.controllers.registrations import (
    ControllerRegistrations,
    OfferedDefinition,
    Registration,
)
from kubescene.karpenter.controller import NAME as KARPENTER
from kubescene.karpenter.controller import karpenter
from kubescene.karpenter.flags import KarpenterFlags
from kubescene.karpenter.offered import OFFERS
from kubescene.node_autoscaling.controller import NAME as AUTOSCALER
from kubescene.node_autoscaling.controller import cluster_autoscaler, judging
from kubescene.node_autoscaling.flags import AutoscalerSettings
from kubescene.node_autoscaling.provisioning.kinds import PROVISIONING_REQUEST as REQUEST
from kubescene.node_autoscaling.provisioning.kinds import request_definition
from kubescene.scheduler import SchedulerOptions, kube_scheduler
from kubescene.scheduler.framework.explain import Explain
from kubescene.shortcuts import ALL, Shortcuts

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource

SCHEDULER = "kube-scheduler"
FURNISHING = frozenset(
    {"clusterrole-aggregation", "kubernetes-service", "root-ca-certificate-publisher"}
)
"""Controllers that only furnished worlds have."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What a world is made with. The same options give the same world."""

    seed: int = 0
    start: int | None = None
    explain: Explain = Explain.AUTO
    kubelet: KubeletDelays = NO_DELAYS
    workloads: tuple[WorkloadBehaviour, ...] = ()
    """How pods behave (`kubescene.controllers.kubelet.behaviour`); the first that fits counts."""
    events: bool = False
    """Whether components write Event objects. A served world does (see `kubescene.recording`)."""
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    shortcuts: Shortcuts = ALL
    """What is only faster; `kubescene.shortcuts.PLAIN` plays without any of it, to the same end."""
    gates: frozenset[str] = frozenset()
    """Feature gates of API server and controllers that are on (`kubescene.api.feature_gates`)."""
    furnished: bool = False
    """Whether there is what every real cluster has: the Service ``default/kubernetes``,
    ``kube-root-ca.crt`` in each namespace, labels and ``nodeInfo`` that kubelets bring along. A
    served world has it; a scenario's world holds what its file says, and nothing else."""
    autoscaler: AutoscalerSettings | None = None
    """How the cluster autoscaler works (`kubescene.node_autoscaling`); None: there is none."""
    karpenter: KarpenterFlags | None = None
    """How Karpenter works (`kubescene.karpenter`); None: there is none."""
    autoscaling: AutoscalingSettings = AUTOSCALING
    """Flags of the pod autoscalers."""
    autoscaler_plugins: tuple["PluginSource", ...] = ()
    """Autoscalers that PluginAutoscalers can choose beside ours: classes, of which each world makes
    its own, or such that are there already and serve several (`ProcessAutoscaler`)."""
    without: frozenset[str] = frozenset()
    """Built-in controllers that the world does not have, since somebody else takes their place."""

    def __post_init__(self) -> None:
        check_gates(self.gates)
        if self.autoscaler is not None:
            judging(self.autoscaler, self.scheduler)

    def virtual_clock(self) -> VirtualClock:
        """The clock of a rehearsal; a served world is given the machine's instead."""
        return VirtualClock() if self.start is None else VirtualClock(self.start)


def builtin_controllers(options: ClusterOptions) -> ControllerRegistrations:
    """The controllers that a world has, in settle order; the scheduler comes last.

    `ConfigurationError` for one that is left out and does not exist.
    """
    rows = _builtin(options)
    controllers = ControllerRegistrations(
        each for each in rows if options.furnished or each.name not in FURNISHING
    )
    controllers.leave_out(sorted(options.without))
    return controllers


def _builtin(options: ClusterOptions) -> Iterator[Registration]:
    yield from builtin.table(
        delays=options.kubelet,
        workloads=options.workloads,
        events=options.events,
        gates=options.gates,
        # Whoever takes that place from outside knows of nodes what their Leases say.
        heartbeats=options.events and "node-lifecycle" in options.without,
        furnished=options.furnished,
        machines_at_once=options.autoscaler is not None and options.autoscaler.immediate,
        autoscaling=options.autoscaling,
        autoscaler_plugins=options.autoscaler_plugins,
    )
    yield Registration(
        AUTOSCALER,
        partial(cluster_autoscaler, settings=options.autoscaler, scheduler=options.scheduler),
        offers=[OfferedDefinition(REQUEST.group, REQUEST.kind, request_definition)],
    )
    yield Registration(
        KARPENTER,
        partial(karpenter, settings=options.karpenter),
        offers=[OfferedDefinition(group, kind, load) for group, kind, load in OFFERS],
    )
    scheduler = partial(kube_scheduler, options=scheduler_options(options))
    yield Registration(SCHEDULER, scheduler, component=Component.SCHEDULER)


def scheduler_options(options: ClusterOptions) -> SchedulerOptions:
    """The scheduler's options; shortcuts are the world's, explanations if they say nothing."""
    scheduler = options.scheduler
    explain = scheduler.explain or options.explain
    return replace(
        scheduler,
        explain=explain,
        shortcuts=options.shortcuts,
        nodes_in_steps=options.autoscaler is not None and options.autoscaler.immediate,
    )


def use_options(registrations: ControllerRegistrations, options: ClusterOptions) -> None:
    """Let those built-in controllers that have settings begin with these; others stay."""
    for new in _builtin(options):
        known = registrations.find(new.name)
        if known is not None and have_settings_of_one_kind(new.factory, known):
            registrations.replace(new.name, new.factory)


def have_settings_of_one_kind(new: ControllerFactory, known: ControllerFactory) -> bool:
    """Whether both are the same built-in controller, made with settings."""
    return isinstance(new, partial) and isinstance(known, partial) and new.func is known.func
