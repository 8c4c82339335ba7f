"""Autoscalers by name: ``module:Class`` (``--autoscaler``), installed ones, and commands.

They are imported by name, or started as commands: both must come from whoever started the program,
never from a TrafficRun or a request.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from kubescene.autoscalers.dispatcher import check_plugin
from kubescene.autoscalers.interfaces import AutoscalerPlugin
from kubescene.errors import ConfigurationError
from kubescene.installed import offered

ENTRY_POINTS = "kubescene.autoscalers"
COMMAND = "command "
"""Before the commands of autoscalers in processes of their own; classes have no space in them."""


def load_autoscaler(reference: str) -> AutoscalerPlugin:
    """A new one of what ``package.module:Class`` names; raises `ConfigurationError`."""
    return made(autoscaler_class(reference), reference)


def autoscaler_class(reference: str) -> type:
    """What ``package.module:Class`` names; raises `ConfigurationError`."""
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise ConfigurationError(f"autoscaler {reference!r} must be written as module:Class")
    try:
        found: Any = getattr(import_module(module_name), class_name, None)
    except Exception as error:
        # Whatever the author's module does when it is imported.
        why = str(error) if isinstance(error, ImportError) else repr(error)
        raise ConfigurationError(f"autoscaler {reference!r} cannot be imported: {why}") from error
    if not isinstance(found, type):
        raise ConfigurationError(
            f"autoscaler {reference!r}: {module_name} has no class {class_name}"
        )
    return found


def installed_autoscalers() -> list[AutoscalerPlugin]:
    """Those that installed packages bring, in the order of their entry points' names."""
    return [load_autoscaler(point.value) for point in offered(ENTRY_POINTS)]


def named(classes: Sequence[str], commands: Sequence[str]) -> tuple[str, ...]:
    """How the autoscalers of a run are written down: nobody ever runs what stands there."""
    return (*classes, *(COMMAND + each for each in commands))


def started(commands: Sequence[str]) -> list[AutoscalerPlugin]:
    """The autoscalers behind commands; if one cannot be started, the others are ended."""
    if not commands:
        return []
    from kubescene.autoscalers import ProcessAutoscaler  # needs an extra

    plugins: list[AutoscalerPlugin] = []
    try:
        plugins.extend(map(ProcessAutoscaler, commands))
        check_distinct(plugins)
    except BaseException:
        for each in plugins:
            each.close()
        raise
    return plugins


@contextmanager
def running(commands: Sequence[str]) -> Iterator[list[AutoscalerPlugin]]:
    """The same for as long as they are needed."""
    plugins = started(commands)
    try:
        yield plugins
    finally:
        for each in plugins:
            each.close()


def check_distinct(plugins: Sequence[AutoscalerPlugin]) -> None:
    """Of those that a user names, each type is taken by one: which of two is meant?"""
    takes: dict[str, AutoscalerPlugin] = {}
    for plugin in plugins:
        for each in plugin.types:
            if takes.setdefault(each, plugin) is not plugin:
                both = " and ".join(_shown(one) for one in (takes[each], plugin))
                raise ConfigurationError(
                    f"{both} both take objects of type {each!r}: name one of them"
                )


def _shown(plugin: AutoscalerPlugin) -> str:
    return repr(getattr(plugin, "command", type(plugin).__name__))


def made(kind: Callable[[], AutoscalerPlugin], reference: str) -> AutoscalerPlugin:
    """One of a class that a user calls by this name; raises `ConfigurationError`."""
    try:
        plugin = kind()
    except Exception as error:
        # Whatever the author's class does when it is made.
        raise ConfigurationError(f"autoscaler {reference!r} cannot be made: {error!r}") from error
    check_plugin(plugin)
    return plugin
