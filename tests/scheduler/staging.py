"""A real cluster with a scheduler that has foreign plugins, for tests of what plugins may do."""

from collections.abc import Callable, Mapping
from typing import Any

from kubescene.actors import Actor, Component
from kubescene.api.options import DeleteOptions
from kubescene.api.scheme import GroupVersionKind
from kubescene.client.interfaces import ObjectRef
from kubescene.cluster import ClusterWorld
from kubescene.instruments.attempts import SchedulingAttempt
from kubescene.scheduler import (
    EnabledPlugin,
    ExtensionPoint,
    Handle,
    Plugin,
    PluginFactory,
    Profile,
    Scheduler,
    SchedulerOptions,
    default_profile,
    kube_scheduler,
)
from kubescene.scheduler.cycle.cycle import Cycle
from kubescene.scheduler.fast.decisions import FastDecisions
from kubescene.scheduler.framework.points import points_of
from kubescene.testing.builders import ObjectBuilder, make_node
from kubescene.timeline import Instrument
from kubescene.types import JsonObject

POD = GroupVersionKind("", "v1", "Pod")
NODE = GroupVersionKind("", "v1", "Node")

Making = Callable[[Handle], Plugin]


class Attempts(Instrument):
    goes_with_fork = True

    def __init__(self) -> None:
        self.made: list[SchedulingAttempt] = []

    def pod_attempted(self, attempt: SchedulingAttempt) -> None:
        self.made.append(attempt)


class Factory:
    """Makes a plugin from its handle alone, and remembers it."""

    def __init__(self, making: Making) -> None:
        self.making = making
        self.made: list[Any] = []

    def __call__(self, arguments: Mapping[str, Any], handle: Handle) -> Plugin:
        plugin = self.making(handle)
        self.made.append(plugin)
        return plugin


def with_plugins(plugins: Mapping[str, type], scheduler_name: str = "") -> Profile:
    """The default profile with some more plugins at the end of every point they implement."""
    default = default_profile()
    added: dict[ExtensionPoint, tuple[EnabledPlugin, ...]] = {**default.points}
    for name, plugin in plugins.items():
        for point in points_of(plugin):
            added[point] = (*added.get(point, ()), EnabledPlugin(name))
    return Profile(scheduler_name or default.scheduler_name, added)


class Stage:
    """Nodes, pods, and a scheduler with some foreign plugins."""

    def __init__(
        self, *plugins: type, more: Mapping[str, PluginFactory] | None = None, **options: Any
    ) -> None:
        self.attempts = Attempts()
        self.cluster = ClusterWorld(instruments=[self.attempts])
        self.client = self.cluster.client(Actor("test"))
        self.factories = {plugin.__name__: Factory(plugin) for plugin in plugins}
        factories: dict[str, PluginFactory] = {**self.factories, **(more or {})}
        names = {plugin.__name__: plugin for plugin in plugins}
        options.setdefault("profiles", (with_plugins(names),))
        context = self.cluster.context(Actor("kube-scheduler", Component.SCHEDULER))
        self.scheduler: Scheduler = kube_scheduler(
            context, SchedulerOptions(plugins=factories, **options)
        )

    def plugin(self, name: str) -> Any:
        return self.factories[name].made[0]

    def create(self, *builders: ObjectBuilder | JsonObject) -> None:
        for builder in builders:
            obj = builder if isinstance(builder, dict) else builder.build()
            self.client.create(obj)

    def nodes(self, *names: str, cpu: str = "4") -> None:
        self.create(*(make_node(name).cpu(cpu).memory("8Gi") for name in names))

    def delete(self, name: str, gvk: GroupVersionKind = POD) -> None:
        namespace = "default" if gvk == POD else ""
        options = DeleteOptions(grace_period_s=0)
        self.client.delete(ObjectRef(gvk, name, namespace), options=options)

    def work(self) -> list[SchedulingAttempt]:
        """Run until there is nothing to do; returns the attempts made."""
        before = len(self.attempts.made)
        while self.scheduler.run_once().more:
            pass
        return self.attempts.made[before:]

    def place(self, *builders: ObjectBuilder | JsonObject) -> list[str]:
        """Create, work, and tell who went where."""
        self.create(*builders)
        return [f"{each.pod.name}:{each.node}" for each in self.work()]

    def pass_time(self, nanoseconds: int) -> None:
        self.cluster.event_queue.run(self.cluster.clock.now() + nanoseconds)

    def pod(self, name: str) -> JsonObject:
        return self.client.get(ObjectRef(POD, name, "default"))

    def uid(self, name: str) -> str:
        uid: str = self.pod(name)["metadata"]["uid"]
        return uid


def fast_of(cycle: Cycle) -> FastDecisions:
    """What is only faster, of a cycle that has it."""
    assert isinstance(cycle.fast, FastDecisions)
    return cycle.fast
