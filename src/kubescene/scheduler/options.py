"""What a scheduler is made with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.scheduler.extenders.extenders import BackgroundCaller, Extender, ExtenderCaller
from kubescene.scheduler.framework.explain import Explain
from kubescene.scheduler.framework.feature_gates import DEFAULT_GATES, FeatureGates
from kubescene.scheduler.framework.guarded_calls import PluginErrors
from kubescene.scheduler.framework.interfaces import PluginFactory
from kubescene.scheduler.framework.plugin_registry import PluginRegistry
from kubescene.scheduler.framework.profile import Backoff, Profile
from kubescene.scheduler.plugins.default_profile import (
    default_profile,
    default_registry,
    gated_profile,
)
from kubescene.shortcuts import ALL, Shortcuts
from kubescene.types import ReadOnlyObject


def _default_profiles() -> tuple[Profile, ...]:
    return (default_profile(),)


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Profiles, plugins and pace of one scheduler. Immutable.

    ``plugins`` are factories by name that join the built-in ones; those in ``added`` stand in every
    profile of a configuration that does not speak of them. ``explain`` is as the world wants it
    unless it is said here. ``plugin_errors`` says whether a plugin that raises fails the attempt or
    ends the run. Extenders are asked through ``extender_caller``. A profile that is the
    default one has the plugins which the ``feature_gates`` add to it.
    """

    profiles: tuple[Profile, ...] = field(default_factory=_default_profiles)
    plugins: Mapping[str, PluginFactory] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)
    explain: Explain | None = None
    extenders: tuple[Extender, ...] = ()
    extender_caller: ExtenderCaller | None = None
    added: tuple[str, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    plugin_errors: PluginErrors = PluginErrors.FAIL
    annotations: bool = False
    """Whether pods are annotated with the results of every attempt (see `annotations`)."""
    shortcuts: Shortcuts = ALL
    """What is only faster; as the world wants it."""
    nodes_in_steps: bool = False
    """Whether nodes come while time stands still: a pod that found none at all is tried again."""
    configuration: ReadOnlyObject | None = None
    """The KubeSchedulerConfiguration behind these options, complete; None if there is none."""

    def __post_init__(self) -> None:
        if not self.profiles:
            raise ConfigurationError("a scheduler needs at least one profile")
        gated = tuple(gated_profile(each, self.feature_gates) for each in self.profiles)
        object.__setattr__(self, "profiles", gated)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SchedulerOptions":
        return self

    def in_background(self) -> "SchedulerOptions":
        """The same for a world in which others wait for the same thread as an extender's answer."""
        caller = self.extender_caller
        if isinstance(caller, BackgroundCaller):
            return self
        return replace(self, extender_caller=BackgroundCaller(caller or http_caller()))

    def at_once(self) -> "SchedulerOptions":
        """The same for a run that goes on when an extender has answered, and not before."""
        caller = self.extender_caller
        if not isinstance(caller, BackgroundCaller):
            return self
        return replace(self, extender_caller=caller.caller)

    def registry(self) -> PluginRegistry:
        """The built-in plugins and the additional ones."""
        registry = default_registry()
        for name, factory in self.plugins.items():
            registry.register(name, factory)
        return registry


def http_caller() -> ExtenderCaller:
    # HTTP is imported only where there are extenders.
    from kubescene.scheduler.extenders.http import HttpExtenderCaller

    return HttpExtenderCaller()
