"""One more plugin in an otherwise unchanged scheduler: what ``--plugin module:Class`` does.

The class is imported by name, so names must come from whoever started the program, never from a
scenario or a request.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import signature
from types import FunctionType
from typing import Any

from kubescene.errors import ConfigurationError
from kubescene.scheduler.config import EnabledPlugin, ExtensionPoint, Profile
from kubescene.scheduler.interfaces import Handle, Plugin
from kubescene.scheduler.options import SchedulerOptions
from kubescene.scheduler.points import points_of


def import_plugin(reference: str) -> type:
    """The class that ``package.module:Class`` names."""
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise ConfigurationError(f"plugin {reference!r} must be written as module:Class")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(f"plugin {reference!r} cannot be imported: {error}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise ConfigurationError(f"plugin {reference!r}: {module_name} has no class {class_name}")
    return found


def with_plugin(options: SchedulerOptions, plugin: type) -> SchedulerOptions:
    """The options with a plugin at the end of every point that it implements, in every profile.

    It is made with its arguments and the handle, or with nothing if it takes nothing.
    """
    points, name = points_of(plugin), plugin_name(plugin)
    if not points:
        raise ConfigurationError(
            f"{plugin.__module__}:{plugin.__qualname__} has none of the methods of a scheduler "
            "plugin; see kubescene.scheduler.interfaces"
        )
    return replace(
        options,
        profiles=tuple(_appended(profile, name, points) for profile in options.profiles),
        plugins={**options.plugins, name: partial(_make, plugin)},
    )


def plugin_name(plugin: type) -> str:
    name = getattr(plugin, "name", None)
    return name if isinstance(name, str) else plugin.__name__


def _appended(profile: Profile, name: str, points: list[ExtensionPoint]) -> Profile:
    added = {point: (*profile.at(point), EnabledPlugin(name)) for point in points}
    return replace(profile, points={**profile.points, **added})


def _make(plugin: type, arguments: Mapping[str, Any], handle: Handle) -> Plugin:
    made: Plugin = plugin(arguments, handle) if _takes_something(plugin) else plugin()
    return made


def _takes_something(plugin: type) -> bool:
    """Whether the class has an ``__init__`` of its own with parameters, not just a protocol's."""
    for each in plugin.__mro__:
        init = vars(each).get("__init__")
        if isinstance(init, FunctionType) and init.__module__ != "typing":
            return len(signature(init).parameters) > 1
    return False
