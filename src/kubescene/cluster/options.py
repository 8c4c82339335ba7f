"""What a world is made with, and the controllers that come of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from kubescene.actors import Component
from kubescene.api.feature_gates import check_gates
from kubescene.clock import VirtualClock
from kubescene.control.loops import ControllerFactory
from kubescene.controllers import builtin
from kubescene.controllers.kubelet import NO_DELAYS, KubeletDelays
from kubescene.controllers.kubelet.behaviour import WorkloadBehaviour
from kubescene.controllers.registrations import ControllerRegistrations, Registration
from kubescene.node_autoscaling.controller import NAME as AUTOSCALER
from kubescene.node_autoscaling.controller import cluster_autoscaler
from kubescene.node_autoscaling.flags import AutoscalerSettings
from kubescene.scheduler import SchedulerOptions, kube_scheduler
from kubescene.scheduler.framework.explain import Explain
from kubescene.shortcuts import ALL, Shortcuts

SCHEDULER = "kube-scheduler"


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
    autoscaler: AutoscalerSettings | None = None
    """How the cluster autoscaler works (`kubescene.node_autoscaling`); None: there is none."""
    without: frozenset[str] = frozenset()
    """Built-in controllers that the world does not have, since somebody else takes their place."""

    def __post_init__(self) -> None:
        check_gates(self.gates)

    def virtual_clock(self) -> VirtualClock:
        """The clock of a rehearsal; a served world is given the machine's instead."""
        return VirtualClock() if self.start is None else VirtualClock(self.start)


def builtin_controllers(options: ClusterOptions) -> ControllerRegistrations:
    """The controllers that a world has, in settle order; the scheduler comes last.

    `ConfigurationError` for one that is left out and does not exist.
    """
    controllers = ControllerRegistrations(_builtin(options))
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
        machines_at_once=options.autoscaler is not None and options.autoscaler.immediate,
    )
    yield Registration(AUTOSCALER, partial(cluster_autoscaler, settings=options.autoscaler))
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
