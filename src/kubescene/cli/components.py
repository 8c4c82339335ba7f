"""What a command line asks for by name: the scheduler, controllers, waiters and measures.

Nobody loads what he does not name: a command that shows results needs no scheduler.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubescene.autoscalers.available import PluginSource
    from kubescene.autoscalers.interfaces import AutoscalerPlugin
    from kubescene.cluster import ClusterOptions
    from kubescene.controllers.registrations import ControllerRegistrations
    from kubescene.outside.waiters import Waiters
    from kubescene.results.measures.own import OwnFunction
    from kubescene.scheduler import SchedulerOptions
    from kubescene.scheduler.framework.guarded_calls import PluginErrors


def look_here(references: Sequence[str]) -> None:
    """As with python -m: what is named may lie in the current directory."""
    if references and "" not in sys.path:
        sys.path.insert(0, "")


def scheduler_with(
    plugins: Sequence[str],
    config: Path | None = None,
    gates: str = "",
    plugin_errors: "PluginErrors | None" = None,
) -> "SchedulerOptions":
    """``--plugin``, ``--scheduler-config`` and ``--feature-gates``: the scheduler they make."""
    from kubescene.scheduler import FeatureGates, SchedulerOptions
    from kubescene.scheduler.configuration.added_plugins import import_plugin, with_plugin
    from kubescene.scheduler.configuration.sources import scheduler_options
    from kubescene.scheduler.framework.guarded_calls import PluginErrors

    options = SchedulerOptions(
        feature_gates=FeatureGates.parse(gates), plugin_errors=plugin_errors or PluginErrors.FAIL
    )
    look_here(plugins)
    for reference in plugins:
        options = with_plugin(options, import_plugin(reference))
    return scheduler_options(config, options)


def autoscalers_named(references: Sequence[str]) -> "list[PluginSource]":
    """Autoscalers of PluginAutoscalers, by ``module:Class``; each can be made."""
    return [*autoscaler_classes_named(references)]


def autoscaler_classes_named(references: Sequence[str]) -> "list[type[AutoscalerPlugin]]":
    """The same, where each world needs its own."""
    if not references:
        return []
    from kubescene.autoscalers.references import autoscaler_class, load_autoscaler

    look_here(references)
    for each in references:
        load_autoscaler(each).close()
    return [autoscaler_class(each) for each in references]


def controllers_named(references: Sequence[str]) -> list[type]:
    """Classes with ``reconcile``: those of installed packages, then those that are named."""
    from kubescene.controllers.authoring import import_controller, installed_controllers

    look_here(references)
    return [*installed_controllers(), *map(import_controller, references)]


def registered(options: "ClusterOptions", references: Sequence[str]) -> "ControllerRegistrations":
    """The controllers of a served world: the built-in ones, then those that are asked for."""
    from kubescene.cluster import builtin_controllers
    from kubescene.controllers.authoring import controller_from

    all_of_them = builtin_controllers(options)
    for each in controllers_named(references):
        all_of_them.add(controller_from(each))
    return all_of_them


def names_in(given: Sequence[str]) -> frozenset[str]:
    """``--without``: names between commas, in one option or several."""
    names = (name.strip() for each in given for name in each.split(","))
    return frozenset(name for name in names if name)


def waiters_named(references: Sequence[str]) -> "Waiters":
    """``--waiter`` and installed packages: classes by the names of their waiters."""
    from kubescene.outside.waiters import installed_waiters

    look_here(references)
    return installed_waiters(references)


def measures_named(references: Sequence[str]) -> "list[OwnFunction]":
    """Functions by ``module:function``."""
    if not references:
        return []
    from kubescene.results.measures.own import load_measure

    look_here(references)
    return [load_measure(each) for each in references]
